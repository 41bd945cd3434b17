/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library over ports like NICs: user memory is registered before it is sent in place, few
 * registrations may be, and sent buffers come back late.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/worker.h"
#include "frame/frame_port.h"
#include "mem/watch.h"
#include "scene.h"

static const size_t sizes[] = {1,     64,    1000,   1400,   4096,   8192,    16384,
			       32769, 65536, 100003, 262145, 524288, 1048576, 3000017};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct nic {
	unsigned int lanes, max_mems;
	bool scattered;
	uint16_t frame;
	double loss;
	const char *config;
};

static struct scene *open_nics(struct sim_case *c, const struct nic *n)
{
	const struct scene_conf conf = {
		.lanes = {n->lanes, n->lanes},
		.config = n->config,
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = n->loss},
		.port = {.frame_size = n->frame,
			 .flags = WEFT_FRAME_PORT_REG,
			 .max_mems = n->max_mems,
			 .scattered = n->scattered},
	};

	return scene_open(c, &conf);
}

static void all_was_readable(const struct scene *s, unsigned int lanes)
{
	for (unsigned int i = 0; i < 2 * lanes; i++)
		assert_int_equal(sim_port_stats(s->port[i % 2][i / 2])->not_allowed, 0);
}

static struct scene *every_size(struct sim_case *c, const struct nic *n)
{
	struct scene *s = open_nics(c, n);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r, *w;

	scene_run(s, 20 * SIM_MS);
	for (unsigned int i = 0; i < SIZES; i++) {
		r = op_recv(s, 1, sizes[i], i);
		w = op_send(e, i, sizes[i], i);
		op_expect(r, SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, i, sizes[i]);
		/* What the NIC sent was the user's to change the moment the send was done. */
		memset(w->buf, 0, w->cap);
	}
	all_was_readable(s, n->lanes);
	return s;
}

/*
 * Where the kernel does not report that memory is unmapped no registration is kept, and large
 * messages are copied.
 */
static void registrations_are_kept_or_skip(void)
{
	char why[256];
	int fd = weft_uffd_open(why, sizeof(why));

	if (fd < 0) {
		print_message("left out: %s\n", why);
		skip();
	}
	close(fd);
}

static void every_size_goes_without_a_copy(struct sim_case *c)
{
	const struct nic n = {.lanes = 1, .config = "RNDV_THRESH=4096"};
	struct scene *s;

	registrations_are_kept_or_skip();
	s = every_size(c, &n);

	assert_true(sim_node_counter(s->node[0], "tx.zcopy") > 100);
	assert_int_equal(sim_node_counter(s->node[0], "tx.zcopy.copied"), 0);
	assert_int_equal(sim_node_counter(s->node[0], "rndv.register_failed"), 0);
	/* What is smaller than the threshold, and tails. */
	assert_true(sim_node_counter(s->node[0], "copied_bytes") < 100000);
}

static void every_size_over_2_nics(struct sim_case *c)
{
	every_size(c, &(struct nic){.lanes = 2});
}

static void every_size_over_2_nics_of_9000(struct sim_case *c)
{
	every_size(c, &(struct nic){.lanes = 2, .frame = 9014});
}

static void every_size_from_scattered_pages(struct sim_case *c)
{
	const struct nic n = {
		.lanes = 2, .frame = 9014, .scattered = true, .config = "CSUM=crc32c"};
	struct scene *s = every_size(c, &n);

	assert_true(sim_node_counter(s->node[0], "tx.zcopy") > 100);
}

static void every_size_with_loss(struct sim_case *c)
{
	every_size(c, &(struct nic){.lanes = 2, .loss = 0.01});
}

static void every_size_without_the_cache(struct sim_case *c)
{
	every_size(c, &(struct nic){.lanes = 1, .config = "REG_CACHE=off RNDV_THRESH=4096"});
}

/*
 * More messages under way than there may be registrations: some are copied, which is counted, and
 * all arrive.
 */
static void registrations_run_out(struct sim_case *c)
{
	enum { N = 16, SIZE = 300000 };
	const struct nic n = {.lanes = 2, .max_mems = 3};
	struct op *r[N], *w[N];
	unsigned int i, round;
	struct scene_ep *e;
	struct scene *s;

	registrations_are_kept_or_skip();
	s = open_nics(c, &n);
	e = scene_up(s, 0, 1);
	scene_run(s, 20 * SIM_MS);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++) {
			r[i] = op_recv(s, 1, SIZE, i);
			w[i] = op_send(e, i, SIZE, i);
		}
		for (i = 0; i < N; i++) {
			op_expect(r[i], SIM_S, 0);
			op_expect(w[i], SIM_S, 0);
			op_holds(r[i], i, SIZE);
		}
	}
	assert_true(sim_node_counter(s->node[0], "rndv.register_failed") > 0);
	assert_true(sim_node_counter(s->node[0], "copied_bytes") > SIZE);
	assert_true(sim_node_counter(s->node[0], "tx.zcopy") > 0);
	/* Buffers that come one after the other find room: what only the cache holds goes. */
	i = (unsigned int)sim_node_counter(s->node[0], "rndv.register_failed");
	for (round = 0; round < 8; round++) {
		scene_run(s, 2 * SIM_S);
		r[0] = op_recv(s, 1, SIZE, 0);
		w[0] = op_send(e, 0, SIZE, 0);
		op_expect(r[0], SIM_S, 0);
		op_expect(w[0], SIM_S, 0);
		op_holds(r[0], 0, SIZE);
	}
	assert_int_equal(sim_node_counter(s->node[0], "rndv.register_failed"), i);
	all_was_readable(s, 2);
}

/* What the application registers is a wish here: a lane that cannot have it copies. */
static void registered_by_the_application_and_not_by_the_nic(struct sim_case *c)
{
	enum { SIZE = 300000 };
	struct scene *s = open_nics(c, &(struct nic){.lanes = 1, .max_mems = 1});
	struct scene_ep *e = scene_up(s, 0, 1);
	struct weft_context *ctx = scene_worker(s, 0)->ctx;
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .flags = 0);
	struct weft_mem *mem[2];
	uint8_t *buf = calloc(2, SIZE);
	struct weft_request *req;
	struct op *r;

	scene_run(s, 20 * SIM_MS);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(weft_mem_register(ctx, buf + i * SIZE, SIZE, NULL, &mem[i]), 0);
	for (unsigned int i = 0; i < 2; i++) {
		pattern_fill(i, 0, buf + i * SIZE, SIZE);
		p.mem = mem[i];
		r = op_recv(s, 1, SIZE, i);
		req = NULL;
		assert_true(weft_tag_send(e->ep, buf + i * SIZE, SIZE, i, &p, &req) >= 0);
		op_expect(r, SIM_S, 0);
		op_holds(r, i, SIZE);
		scene_run(s, 10 * SIM_MS);
		if (req) {
			assert_int_equal(weft_request_test(req, NULL), 0);
			weft_request_free(req);
		}
		assert_int_equal(sim_node_counter(s->node[0], "copied_bytes") > SIZE / 2, i == 1);
	}
	assert_int_equal(weft_mem_deregister(mem[0]), 0);
	assert_int_equal(weft_mem_deregister(mem[1]), 0);
	all_was_readable(s, 1);
	free(buf);
}

/*
 * Messages of one frame that are sent in place: each end waits for its send to complete, as MPI's
 * sendrecv does. @return ns of a round, once the connection has seen some
 */
static uint64_t rounds(struct scene *s, struct scene_ep *e[2], bool at_once, uint64_t *acks)
{
	const unsigned int warm = 20, num = 100;
	struct op *w[2], *r[2];
	uint64_t begin = 0;

	for (unsigned int i = 0; i < warm + num; i++) {
		if (i == warm) {
			begin = sim_now(s->sim);
			*acks = sim_node_counter(s->node[0], "tx.acks") +
				sim_node_counter(s->node[1], "tx.acks");
		}
		for (unsigned int k = 0; k < 2; k++)
			r[k] = op_recv(s, k, 8192, 2 * i + k);
		w[0] = op_send(e[0], i, 8192, 2 * i + 1);
		if (!at_once)
			op_expect(r[1], SIM_S, 0);
		w[1] = op_send(e[1], i, 8192, 2 * i);
		for (unsigned int k = 0; k < 2; k++) {
			op_expect(r[k], SIM_S, 0);
			op_expect(w[k], SIM_S, 0);
		}
	}
	*acks = sim_node_counter(s->node[0], "tx.acks") + sim_node_counter(s->node[1], "tx.acks") -
		*acks;
	return (sim_now(s->sim) - begin) / num;
}

static void two_ends(struct sim_case *c, struct scene_ep *e[2])
{
	const struct scene_conf conf = {
		.lanes = {1, 1},
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
		.port = {.frame_size = 9014},
		.lazy = true,
	};
	struct scene *s = scene_open(c, &conf);

	s->accept = true;
	scene_start(s, 0);
	scene_start(s, 1);
	e[0] = scene_up(s, 0, 1);
	scene_run(s, 20 * SIM_MS);
	e[1] = s->accepted[1];
	assert_non_null(e[1]);
}

/* No data follow that could carry the acknowledgement: each end waits for the other's. */
static void an_exchange_waits_for_no_delayed_acknowledgement(struct sim_case *c)
{
	struct scene_ep *e[2];
	uint64_t acks, ns;

	two_ends(c, e);
	ns = rounds(e[0]->s, e, true, &acks);
	/* 2 x (5 us + 6.6 us of 8 KiB at 10 Gb/s) is 24 us, less than RAW_ACK_DELAY alone. */
	if (ns > 30000)
		fail_msg("a round takes %llu ns", (unsigned long long)ns);
}

/* The answer's frame carries the acknowledgement. */
static void a_ping_pong_sends_no_frame_for_acknowledgements(struct sim_case *c)
{
	struct scene_ep *e[2];
	uint64_t acks;

	two_ends(c, e);
	rounds(e[0]->s, e, false, &acks);
	if (acks > 110) /* one a round: the second message's */
		fail_msg("%llu frames for 200 messages", (unsigned long long)acks);
}

static struct sim_case cases[] = {
	SIM_CASE(every_size_goes_without_a_copy),
	SIM_CASE(every_size_over_2_nics),
	SIM_CASE(every_size_over_2_nics_of_9000),
	SIM_CASE(every_size_from_scattered_pages),
	SIM_CASE(every_size_with_loss),
	SIM_CASE(every_size_without_the_cache),
	SIM_CASE(registrations_run_out),
	SIM_CASE(registered_by_the_application_and_not_by_the_nic),
	SIM_CASE(an_exchange_waits_for_no_delayed_acknowledgement),
	SIM_CASE(a_ping_pong_sends_no_frame_for_acknowledgements),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_zcopy", cases, sizeof(cases) / sizeof(cases[0]));
}
