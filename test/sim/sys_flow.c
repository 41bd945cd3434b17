/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: floods, credits, memory, and how lanes share the load.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

static const char *const unexp = "UNEXP_LIMIT=4M EAGER_CREDIT=1M";

/* ---- unexpected floods ---------------------------------------------------------------------- */

/*
 * n messages without a receive; then one with a receive; then all, the last first. Memory in
 * bytes beside them.
 */
static size_t flood(struct scene *s, struct scene_ep *e, unsigned int n, size_t size)
{
	struct op **r = calloc(n, sizeof(*r)), *posted;
	unsigned int i;
	size_t before, used, own;

	if (!r)
		abort();
	posted = op_recv(s, 1, 100, 1ull << 40);
	before = sim_heap_used();
	for (i = 0; i < n; i++)
		op_send(e, i, size, i);
	op_send(e, 1000000, 100, 1ull << 40);
	op_expect(posted, 60 * SIM_S, 0);
	op_holds(posted, 1000000, 100);
	scene_run(s, 100 * SIM_MS);
	used = sim_heap_used() - before;
	/* What the test's own sends take. */
	own = (size_t)n * (size + 16 + 3 * 16 + sizeof(struct op) + sizeof(void *));
	used = used > own ? used - own : 0;
	for (i = n; i-- > 0;)
		r[i] = op_recv(s, 1, size, i);
	for (i = 0; i < n; i++) {
		op_expect(r[i], 60 * SIM_S, 0);
		op_holds(r[i], i, size);
	}
	free(r);
	return used;
}

/* @behaviour E3 */
static void flood_of_10000_small_messages(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	size_t used = flood(s, e, 10000, 8);

	/*
	 * Both ends are in this process: 256 bytes per message at the receiver, and a request at
	 * the sender.
	 */
	if (used > 10000 * (256 + 512))
		fail_msg("%zu bytes for 10000 messages of 8", used);
}

/* @behaviour U89 */
static void flood_of_1000_messages_of_64k_beyond_the_bound(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = unexp};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	size_t used = flood(s, e, 1000, 65536);

	/* 64 MB were sent, 4 MB may be kept. */
	if (used > (4 << 20) * 11 / 10 + 1000 * 1024)
		fail_msg("%zu bytes for 1000 messages of 64 KiB", used);
}

/* @behaviour E3 */
static void flood_of_300_messages_of_256k_from_three_peers(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 4, .config = unexp};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e[4];
	struct op *r[300], *posted;
	unsigned int i;

	posted = op_recv(s, 0, 10, 5000);
	for (i = 1; i < 4; i++)
		e[i] = scene_up(s, i, 0);
	for (i = 0; i < 300; i++)
		op_send(e[1 + i % 3], i, 262144, i);
	op_send(e[3], 5000, 10, 5000);
	op_expect(posted, 60 * SIM_S, 0);
	for (i = 300; i-- > 0;)
		r[i] = op_recv(s, 0, 262144, i);
	for (i = 0; i < 300; i++) {
		op_expect(r[i], 60 * SIM_S, 0);
		op_holds(r[i], i, 262144);
	}
}

/* @behaviour U89: flow control, flush with it, over a shared receive queue too */
static void small_messages_still_pass_when_credit_is_used_up(struct sim_case *c)
{
	const struct scene_conf conf = {.config = "UNEXP_LIMIT=64k EAGER_CREDIT=4k"};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r;
	unsigned int i;

	for (i = 0; i < 100; i++)
		op_send(e, i, 3000, 1);
	r = op_recv(s, 1, 200, 2);
	op_send(e, 7, 200, 2);
	op_expect(r, SIM_S, 0);
	r = op_recv(s, 1, 20000, 3);
	op_send(e, 8, 20000, 3);
	op_expect(r, SIM_S, 0);
	op_holds(r, 8, 20000);
	for (i = 0; i < 100; i++) {
		r = op_recv(s, 1, 3000, 1);
		op_expect(r, SIM_S, 0);
		op_holds(r, i, 3000);
	}
}

/*
 * Node 1 sends without end to node 0, which receives none of it. Nodes 2 and 3 send what their
 * share allows, and then something that is asked for. Only node 1's endpoint ends.
 */
/* @behaviour E1 */
static void a_peer_that_fills_the_memory_for_unexpected_messages_ends_alone(struct sim_case *c)
{
	const struct scene_conf conf = {
		.nodes = 4, .config = "UNEXP_LIMIT=64k UNEXP_MEMORY=1M LOG_LEVEL=error"};
	struct scene *s = scene_open(c, &conf);
	struct op *posted[4], *r;
	struct scene_ep *e[4];
	unsigned int i, k;

	for (k = 1; k < 4; k++)
		e[k] = scene_up(s, k, 0);
	for (i = 0; i < 500; i++) {
		op_send(e[2], i, 8, 12);
		op_send(e[3], i, 20000, 13);
	}
	scene_run(s, 100 * SIM_MS);
	for (i = 0; i < 20000 && !e[1]->errors; i++) {
		op_send(e[1], i, 8, 11);
		if (i % 100 == 0)
			scene_run(s, SIM_MS);
	}
	assert_int_equal(e[1]->errors, 1);
	assert_non_null(strstr(e[1]->why, "WEFT_UNEXP_MEMORY"));
	for (k = 2; k < 4; k++) {
		posted[k] = op_recv(s, 0, 20000, k);
		op_send(e[k], 77, k == 2 ? 100 : 20000, k);
	}
	for (k = 2; k < 4; k++) {
		op_expect(posted[k], 10 * SIM_S, 0);
		op_holds(posted[k], 77, k == 2 ? 100 : 20000);
		assert_int_equal(e[k]->errors, 0);
	}
	for (i = 0; i < 500; i++) {
		r = op_recv(s, 0, 8, 12);
		op_expect(r, SIM_S, 0);
		op_holds(r, i, 8);
		r = op_recv(s, 0, 20000, 13);
		op_expect(r, SIM_S, 0);
		op_holds(r, i, 20000);
	}
}

/* @behaviour U83 */
static void a_full_window_resumes(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = "WINDOW=16k"};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r[200];
	unsigned int i;

	for (i = 0; i < 200; i++)
		r[i] = op_recv(s, 1, 20000, i);
	sim_node_pause(s->node[1], 50 * SIM_MS);
	for (i = 0; i < 200; i++)
		op_send(e, i, 20000, i);
	for (i = 0; i < 200; i++) {
		op_expect(r[i], 5 * SIM_S, 0);
		op_holds(r[i], i, 20000);
	}
}

/* @behaviour E7 */
static void more_messages_than_the_sequence_window(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *last = NULL;
	unsigned int i;

	sim_node_pause(s->node[1], 20 * SIM_MS);
	for (i = 0; i < 10000; i++)
		op_send(e, i, 8, 1);
	for (i = 0; i < 10000; i++)
		last = op_recv(s, 1, 8, 1);
	op_expect(last, 5 * SIM_S, 0);
	op_holds(last, 9999, 8);
}

/* All to one, large and small: terminates, and no sender starves. */
/* @behaviour E7 */
static void incast_terminates(struct sim_case *c)
{
	const struct scene_conf conf = {
		.nodes = 8, .port = {.down = {.rate = 10 * SIM_GBIT, .queue_bytes = 100000}}};
	struct scene *s = scene_open(c, &conf);
	struct op *r[7][20];
	unsigned int i, k;

	for (i = 1; i < 8; i++) {
		struct scene_ep *e = scene_up(s, i, 0);

		for (k = 0; k < 20; k++)
			op_send(e, i * 100 + k, 80000, i * 100 + k);
	}
	for (i = 1; i < 8; i++)
		for (k = 0; k < 20; k++)
			r[i - 1][k] = op_recv(s, 0, 80000, i * 100 + k);
	for (i = 1; i < 8; i++) {
		for (k = 0; k < 20; k++) {
			op_expect(r[i - 1][k], 20 * SIM_S, 0);
			op_holds(r[i - 1][k], i * 100 + k, 80000);
		}
	}
}

/*
 * ---- which sender is first ----------------------------------------------------------------------
 */

#define LONG_SENDERS 6
#define SHORT_SIZE 60000

static const struct scene_conf queue_at_port = {
	.nodes = LONG_SENDERS + 2,
	.up = {.rate = 10 * SIM_GBIT, .delay_ns = 2500},
	.port = {.down = {.rate = 10 * SIM_GBIT, .delay_ns = 2500}},
	.config = "RNDV_THRESH=16k",
};

/* Behind 24 MiB of others: no queue in the network, and no turn of each in the line. */
/*
 * @behaviour R84: With many senders short messages go before long ones, and no long one starves;
 * senders that deliver nothing, or next to nothing, do not delay the others
 */
static void a_short_message_waits_for_few_pieces_of_long_ones(struct sim_case *c)
{
	struct scene *s = scene_open(c, &queue_at_port);
	struct scene_ep *e[LONG_SENDERS + 2];
	struct op *r[LONG_SENDERS], *last;
	uint64_t start, took, worst = 0;
	unsigned int i;

	for (i = 1; i < LONG_SENDERS + 2; i++)
		e[i] = scene_up(s, i, 0);
	for (i = 0; i < LONG_SENDERS; i++) {
		r[i] = op_recv(s, 0, 4 << 20, i);
		op_send(e[i + 1], i, 4 << 20, i);
	}
	scene_run(s, 5 * SIM_MS);
	for (i = 0; i < 10; i++) {
		last = op_recv(s, 0, SHORT_SIZE, 1000);
		start = sim_now(s->sim);
		op_send(e[LONG_SENDERS + 1], 1000 + i, SHORT_SIZE, 1000);
		op_expect(last, SIM_S, 0);
		op_holds(last, 1000 + i, SHORT_SIZE);
		took = last->done_at - start;
		worst = took > worst ? took : worst;
	}
	for (i = 0; i < LONG_SENDERS; i++)
		assert_false(r[i]->done);
	print_message("# 60 kB beside 6 x 4 MiB: at most %.0f us\n", (double)worst * 1e-3);
	assert_true(worst < 500 * SIM_US);
	for (i = 0; i < LONG_SENDERS; i++)
		op_expect(r[i], SIM_S, 0);
}

/* Short messages, as many as the port carries, and still a quarter for the long one. */
/* @behaviour R84 */
static void a_long_message_is_not_starved_by_short_ones(struct sim_case *c)
{
	struct scene *s = scene_open(c, &queue_at_port);
	struct scene_ep *e[LONG_SENDERS + 2];
	struct op *r, *in[LONG_SENDERS][4] = {{NULL}};
	uint64_t start, took;
	unsigned int i, k, n = 0;

	for (i = 1; i < LONG_SENDERS + 2; i++)
		e[i] = scene_up(s, i, 0);
	r = op_recv(s, 0, 4 << 20, 1ull << 40);
	start = sim_now(s->sim);
	op_send(e[LONG_SENDERS + 1], 7, 4 << 20, 1ull << 40);
	while (!r->done && sim_now(s->sim) < start + 200 * SIM_MS) {
		for (i = 0; i < LONG_SENDERS; i++) {
			for (k = 0; k < 4; k++) {
				if (in[i][k] && !in[i][k]->done)
					continue;
				in[i][k] = op_recv(s, 0, SHORT_SIZE, i * 10 + k);
				op_send(e[i + 1], i, SHORT_SIZE, i * 10 + k);
				n++;
			}
		}
		scene_run(s, 50 * SIM_US);
	}
	op_expect(r, SIM_S, 0);
	op_holds(r, 7, 4 << 20);
	took = r->done_at - start;
	print_message("# 4 MiB beside %u messages of 60 kB: %.1f ms\n", n, (double)took * 1e-6);
	/* Alone it takes 3.5 ms; a quarter of the pieces are its own. */
	assert_true(took < 25 * SIM_MS);
	assert_true(n > 100);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* Two lanes whose rates are as 1 to 4; claimed so, or claimed equal. */
static void unequal(struct sim_case *c, bool claimed, double low, double high, double fill)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .lazy = true};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;
	struct weft_lane_info l[2];
	struct op *r[20];
	uint64_t start;
	unsigned int i;
	double share, rate;

	for (i = 0; i < 4; i++) {
		struct sim_port_params p = {.ip = 0x0a000001 + ((i % 2) << 16) + i / 2,
					    .prefix = 24,
					    .net = i % 2,
					    .bandwidth = claimed ? 0 : 125e6,
					    .frame_size = 9014};
		char name[8];

		snprintf(name, sizeof(name), "u%u", i);
		p.name = name;
		p.up = (struct sim_link){.rate = i % 2 ? 4 * SIM_GBIT : SIM_GBIT, .delay_ns = 5000};
		s->port[i / 2][i % 2] = sim_port_create(s->sim, &p);
	}
	scene_start(s, 0);
	scene_start(s, 1);
	e = scene_up(s, 0, 1);
	scene_run(s, 10 * SIM_MS);
	for (i = 0; i < 20; i++)
		r[i] = op_recv(s, 1, 1000000, i);
	start = sim_now(s->sim);
	for (i = 0; i < 20; i++)
		op_send(e, i, 1000000, i);
	for (i = 0; i < 20; i++)
		op_expect(r[i], 5 * SIM_S, 0);
	rate = 20e6 * 8 / ((double)(sim_now(s->sim) - start) * 1e-9);
	l[0] = scene_lane(e, 0);
	l[1] = scene_lane(e, 1);
	share = (double)l[0].tx_bytes / (double)(l[0].tx_bytes + l[1].tx_bytes);
	if (!strcmp(l[1].name + strlen(l[1].name) - 2, "u0"))
		share = 1 - share;
	print_message("# the slow lane carries %.1f %%, together %.2f Gbit/s of 5\n", share * 100,
		      rate / 1e9);
	if (share < low || share > high || rate < fill * 5e9)
		fail_msg("the slow lane carries %.1f %%, together %.2f Gbit/s of 5", share * 100,
			 rate / 1e9);
}

/* @behaviour F5: lanes of 1:4 share according to their rates */
static void lanes_of_1_to_4_share_as_their_rates(struct sim_case *c)
{
	unequal(c, true, 0.18, 0.22, 0.85);
}

/* The nominal rates are a lie: what is queued tells the truth. */
/* @behaviour F5 */
static void lanes_that_claim_equal_rates_share_as_they_are(struct sim_case *c)
{
	unequal(c, false, 0.15, 0.30, 0.7);
}

/* @behaviour F8 */
static void two_equal_lanes_are_twice_as_fast(struct sim_case *c)
{
	double seconds[2];
	unsigned int lanes, i;

	for (lanes = 1; lanes <= 2; lanes++) {
		const struct scene_conf conf = {.lanes = {lanes, lanes},
						.up = {.rate = SIM_GBIT, .delay_ns = 5000},
						.port = {.frame_size = 9014}};
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *e = scene_up(s, 0, 1);
		uint64_t start;
		struct op *r[20];

		scene_run(s, 10 * SIM_MS);
		for (i = 0; i < 20; i++)
			r[i] = op_recv(s, 1, 1000000, i);
		start = sim_now(s->sim);
		for (i = 0; i < 20; i++)
			op_send(e, i, 1000000, i);
		for (i = 0; i < 20; i++)
			op_expect(r[i], 5 * SIM_S, 0);
		seconds[lanes - 1] = (double)(sim_now(s->sim) - start) * 1e-9;
	}
	print_message("# 20 MB: %.1f ms over one lane, %.1f ms over two\n", seconds[0] * 1e3,
		      seconds[1] * 1e3);
	assert_true(seconds[0] / seconds[1] > 1.8);
}

static enum sim_verdict note_port(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				  void *arg)
{
	unsigned int *count = arg;

	(void)port;
	(void)room;
	if (*len > 200 && data[12] == 8 && data[13] == 0)
		count[data[35] & 15]++;
	return SIM_PASS;
}

/* @behaviour Y7 */
static void several_paths_of_a_lane_use_several_source_ports(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.paths = 4}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	static unsigned int count[16];
	unsigned int i, used = 0;
	struct op *r;

	memset(count, 0, sizeof(count));
	sim_filter(s->port[0][0], note_port, count);
	r = op_recv(s, 1, 2000000, 1);
	op_send(e, 1, 2000000, 1);
	op_expect(r, SIM_S, 0);
	op_holds(r, 1, 2000000);
	for (i = 0; i < 16; i++)
		used += count[i] > 20;
	assert_int_equal(used, 4);
}

static struct sim_case cases[] = {
	SIM_CASE(flood_of_10000_small_messages),
	SIM_CASE(flood_of_1000_messages_of_64k_beyond_the_bound),
	SIM_CASE(flood_of_300_messages_of_256k_from_three_peers),
	SIM_CASE(small_messages_still_pass_when_credit_is_used_up),
	SIM_CASE(a_peer_that_fills_the_memory_for_unexpected_messages_ends_alone),
	SIM_CASE(a_full_window_resumes),
	SIM_CASE(more_messages_than_the_sequence_window),
	SIM_CASE(incast_terminates),
	SIM_CASE(a_short_message_waits_for_few_pieces_of_long_ones),
	SIM_CASE(a_long_message_is_not_starved_by_short_ones),
	SIM_CASE(lanes_of_1_to_4_share_as_their_rates),
	SIM_CASE(lanes_that_claim_equal_rates_share_as_they_are),
	SIM_CASE(two_equal_lanes_are_twice_as_fast),
	SIM_CASE(several_paths_of_a_lane_use_several_source_ports),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_flow", cases, sizeof(cases) / sizeof(cases[0]));
}
