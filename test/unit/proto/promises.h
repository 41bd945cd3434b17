/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unit/proto/promises.h
 * Two workers for every protocol and kind of lane, and a datatype that fails in the middle.
 */
#ifndef UNIT_PROTO_PROMISES_H
#define UNIT_PROTO_PROMISES_H

#include "mock/mock_lane.h"
#include "mock/msg_util.h"

#define MS 1000000ull
#define LONG 50000

/* One way that messages go. */
struct way {
	const char *name; /* protocol, as weft_ep_query_proto() tells; of a rendezvous the data's */
	const char *lanes; /* NULL: to the own worker */
	const char *conf[2];
	size_t len;
	bool rendezvous; /* the data stays at the sender until a receive matches */
};

#define TWO "mock:0;mock:1"
#define NATIVE "mock:0,native=16384;mock:1,native=16384"
#define MIXED "mock:0,native=16384;mock:1"
#define NO_READS "mock:0,native=16384,noreads;mock:1,native=16384,noreads"
#define EAGER "RNDV_THRESH=inf", "MULTI_EAGER_LIMIT=1M"

static const struct way ways[] = {
	{"eager/short", "mock:0", {EAGER}, 100, false},
	{"eager/bcopy", "mock:0,zcopy=0", {EAGER}, 3000, false},
	{"eager/zcopy", "mock:0,bcopy=512", {EAGER}, 3000, false},
	{"multi-eager", TWO, {EAGER}, LONG, false},
	{"rndv/pull", TWO, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/pull", TWO, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, 8, true},
	{"rndv/get", NATIVE, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/get", MIXED, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/pull", NO_READS, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/put", NATIVE, {"RNDV_THRESH=1", "RNDV_SCHEME=put"}, LONG, true},
	{"rndv/put", MIXED, {"RNDV_THRESH=1", "RNDV_SCHEME=put"}, LONG, true},
	{"rndv/am", TWO, {"RNDV_THRESH=1", "RNDV_SCHEME=am"}, LONG, true},
	{"eager/short", NULL, {EAGER}, 100, false},
	{"multi-eager", NULL, {EAGER}, LONG, false},
	{"rndv/pull", NULL, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/am", NULL, {"RNDV_THRESH=1", "RNDV_SCHEME=am"}, LONG, true},
};

#define EACH_WAY(w)                      \
	for (const struct way *w = ways; \
	     w < ways + sizeof(ways) / sizeof(ways[0]) && (current = w) != NULL; w++)

static const struct way *current; /* for the debugger, at a failure */

struct stage {
	struct weft_context *ctx;
	struct weft_worker *w[2]; /* sender, receiver; the loopback has one for both */
	struct weft_ep *ep[2];    /* to each other */
	struct mock_err err[2];
};

static uint8_t out[LONG], in[LONG + 8];

static inline int setup(void **state)
{
	(void)state;
	mock_reset();
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_kept(), 0);
	assert_int_equal(mock_num_mems(), 0);
	return 0;
}

static inline void run(struct stage *s, unsigned int rounds)
{
	while (rounds--) {
		mock_run(1, MS / 10, s->w[0], NULL);
		if (s->w[1] != s->w[0])
			mock_run(1, 0, s->w[1], NULL);
	}
}

static inline bool is_self(const struct stage *s)
{
	return s->w[0] == s->w[1];
}

static inline void stage_connect(struct stage *s, int from)
{
	s->ep[from] = mock_connect(s->w[from], s->w[!from]);
	s->ep[from]->err_arg = &s->err[from];
}

static inline void stage_open(struct stage *s, const struct way *way)
{
	memset(s, 0, sizeof(*s));
	s->ctx = mock_context(way->conf[0], way->conf[1], "REG_CACHE=off", "LOG_FILE=/dev/null",
			      "CONNECT_TIMEOUT=30s", "PEER_TIMEOUT=30s", NULL);
	s->w[0] = mock_worker(s->ctx, way->lanes ? way->lanes : "self");
	s->w[1] = way->lanes ? mock_worker(s->ctx, way->lanes) : s->w[0];
	stage_connect(s, 0);
	if (way->lanes)
		stage_connect(s, 1);
	else
		s->ep[1] = s->ep[0];
	run(s, 50);
	pattern_fill(1, 0, out, sizeof(out));
	memset(in, 0xee, sizeof(in));
}

static inline void stage_close(struct stage *s)
{
	if (!is_self(s))
		weft_worker_destroy(s->w[1]);
	weft_worker_destroy(s->w[0]);
	assert_int_equal(weft_context_destroy(s->ctx), 0);
}

static inline void wait_for(struct stage *s, const struct op *op)
{
	for (int i = 0; i < 3000 && !op_done(op); i++)
		run(s, 1);
}

static inline void ends(struct stage *s, struct op *op, int status)
{
	wait_for(s, op);
	op_end(op, status);
}

static inline void untouched(size_t from)
{
	for (size_t i = from; i < sizeof(in); i++)
		assert_int_equal(in[i], 0xee);
}

static inline bool is_there(struct stage *s, uint64_t tag)
{
	return weft_tag_probe(s->w[1], NULL, tag, FULL, NULL, NULL, NULL) == 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ------------------------------------------------------------------ pack() fails */

struct broken {
	size_t length, from;
};

static inline void *broken_start(void *arg, const void *buffer, size_t count)
{
	(void)buffer;
	(void)count;
	return arg;
}

static inline size_t broken_size(void *state)
{
	return ((struct broken *)state)->length;
}

static inline ssize_t broken_pack(void *state, size_t off, void *dst, size_t max)
{
	struct broken *b = state;

	if (off + max > b->from)
		return -ENODATA;
	pattern_fill(1, 0, dst, max);
	return (ssize_t)max;
}

static inline void broken_finish(void *state)
{
	(void)state;
}

static const struct weft_generic_ops broken_ops = {.size = sizeof(broken_ops),
						   .start_pack = broken_start,
						   .packed_size = broken_size,
						   .pack = broken_pack,
						   .finish = broken_finish};

#endif /* UNIT_PROTO_PROMISES_H */
