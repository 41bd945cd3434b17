/* SPDX-License-Identifier: BSD-3-Clause */
/** @file mock/rma_util.h A pair whose second side has registered memory, and the first its key. */
#ifndef WEFT_TEST_RMA_UTIL_H
#define WEFT_TEST_RMA_UTIL_H

#include "mock/msg_util.h"
#include "base/log.h"
#include "mem/mem.h"
#include "rma/rma.h"

#define ALL_RIGHTS (WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC)
#define ALL_FEATURES (WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64)

struct stage {
	struct pair p;
	struct weft_ep *ep; /* side 0's */
	uint8_t *mem;       /* side 1's, with guards of 64 bytes */
	size_t size;
	struct weft_mem *m;
	struct weft_rkey *rkey;
};

static uint64_t stage_seed = 88172645463325252ull;

static int stage_random(void *arg, void *buf, size_t len)
{
	uint8_t *p = buf;

	(void)arg;
	while (len--)
		*p++ = (uint8_t)(pair_random(&stage_seed) >> 20);
	return 0;
}

static inline struct weft_rkey *stage_key(struct stage *s, struct weft_mem *m)
{
	struct weft_rkey *rkey;
	size_t length;
	void *blob;

	assert_int_equal(weft_rkey_pack(m, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(s->ep, blob, length, &rkey), 0);
	weft_rkey_release_blob(blob);
	return rkey;
}

static inline struct weft_mem *stage_register(struct stage *s, void *at, size_t size,
					      unsigned int rights)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = rights);
	struct weft_mem *m;

	assert_int_equal(weft_mem_register(&s->p.ctx, at, size, &mp, &m), 0);
	return m;
}

/* pair_defaults() has run; the test may have changed s->p.conf. */
static inline void stage_open(struct stage *s, unsigned int lanes,
			      const struct pair_lane_params *params, size_t size)
{
	static const struct weft_platform platform = {.random = stage_random};

	s->p.ctx.features = ALL_FEATURES;
	pair_open(&s->p, lanes, params);
	s->p.ctx.platform = &platform; /* the pair's own always says the same */
	s->ep = &s->p.ep[0];
	s->size = size;
	s->mem = malloc(size + 128);
	memset(s->mem, 0xa5, size + 128);
	s->mem += 64;
	s->m = stage_register(s, s->mem, size, ALL_RIGHTS);
	s->rkey = stage_key(s, s->m);
}

static inline void stage_guards(const struct stage *s)
{
	for (int i = 0; i < 64; i++) {
		assert_int_equal(s->mem[-1 - i], 0xa5);
		assert_int_equal(s->mem[s->size + (size_t)i], 0xa5);
	}
}

static inline void stage_close(struct stage *s)
{
	struct weft_mem_table keys = s->p.ctx.keys; /* pair_close() forgets the context */

	stage_guards(s);
	weft_rkey_destroy(s->rkey);
	pair_close(&s->p);
	assert_int_equal(weft_mem_deregister(s->m), 0);
	weft_mem_table_fini(&keys);
	free(s->mem - 64);
}

static inline struct weft_op_params rma_params(struct op *op, unsigned int flags,
					       const struct weft_datatype *type)
{
	struct weft_op_params p = op_params(op, type);

	p.flags = flags;
	return p;
}

static inline void op_put(struct op *op, struct stage *s, const void *buf, size_t len, uint64_t at,
			  unsigned int flags)
{
	struct weft_op_params p = rma_params(op, flags, NULL);

	op->rc = weft_put(s->ep, buf, len, s->rkey, at, &p, &op->req);
}

static inline void op_get(struct op *op, struct stage *s, void *buf, size_t len, uint64_t at)
{
	struct weft_op_params p = rma_params(op, 0, NULL);

	op->rc = weft_get(s->ep, buf, len, s->rkey, at, &p, &op->req);
}

static inline void op_amo(struct op *op, struct stage *s, enum weft_atomic_op what,
			  unsigned int width, uint64_t operand, uint64_t compare, void *result,
			  uint64_t at, unsigned int flags)
{
	struct weft_op_params p = rma_params(op, flags, NULL);
	struct weft_atomic_params a =
		WEFT_INIT(struct weft_atomic_params, .op = what, .width = width, .operand = operand,
			  .compare = compare, .result = result);

	op->rc = weft_atomic(s->ep, &a, s->rkey, at, &p, &op->req);
}

/* The message half's flush: weft_ep_flush() belongs to the connection half. */
struct flushed {
	int calls, status;
};

static inline void flushed_cb(void *arg, int status)
{
	struct flushed *f = arg;

	f->calls++;
	f->status = status;
}

static inline int stage_flush(struct stage *s)
{
	struct flushed f = {0};
	int rc = weft_msg_ep_flush(s->ep, flushed_cb, &f);

	if (rc == WEFT_LANE_IDLE)
		return 0;
	if (rc < 0)
		return rc;
	pair_run(&s->p);
	assert_int_equal(f.calls, 1);
	return f.status;
}

static inline void stage_check_empty(struct stage *s)
{
	for (int i = 0; i < 2; i++) {
		const struct weft_rma *rma = s->p.ep[i].msg->rma;

		assert_int_equal(s->p.w[i].msg->reqs.in_use, 0);
		assert_true(TAILQ_EMPTY(&s->p.ep[i].msg->ops));
		if (!rma)
			continue;
		assert_int_equal(rma->running, 0);
		assert_int_equal(rma->open, 0);
		assert_int_equal(rma->answers_open, 0);
		assert_true(TAILQ_EMPTY(&rma->pending) && TAILQ_EMPTY(&rma->waiting));
	}
	assert_int_equal(s->m->refs, 0);
}

/** As if the peer of this side had sent it. */
static inline void stage_push(struct stage *s, int side, uint8_t id, const void *data,
			      size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);

	memcpy(copy, data, length);
	pair_receive(&s->p, (unsigned int)side, 0, id, copy, length);
	free(copy);
}

/** Nothing has written to the memory. */
static inline void stage_untouched(const struct stage *s)
{
	for (size_t i = 0; i < s->size; i++)
		assert_int_equal(s->mem[i], 0xa5);
}

#endif /* WEFT_TEST_RMA_UTIL_H */
