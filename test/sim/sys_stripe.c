/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: how a stream of large messages shares lanes whose rates are
 * not known, which change while it runs, or which come and go; and many senders at one receiver.
 */

#include <string.h>

#include "scene.h"

#define DEPTH 8
#define SIZE 1000000

/* A stream of messages of SIZE bytes: DEPTH at a time. */
struct stream {
	struct scene *s;
	struct scene_ep *e;
	struct op *r[DEPTH], *w[DEPTH];
	uint64_t next, done;
};

static void stream_begin(struct stream *st, struct scene *s, struct scene_ep *e)
{
	*st = (struct stream){.s = s, .e = e};
	for (unsigned int i = 0; i < DEPTH; i++, st->next++) {
		st->r[i] = op_recv(s, 1, SIZE, st->next);
		st->w[i] = op_send(e, st->next, SIZE, st->next);
	}
}

static void stream_one(struct stream *st)
{
	unsigned int i = st->done % DEPTH;

	op_expect(st->r[i], 20 * SIM_S, 0);
	op_expect(st->w[i], 20 * SIM_S, 0);
	st->done++;
	st->r[i] = op_recv(st->s, 1, SIZE, st->next);
	st->w[i] = op_send(st->e, st->next, SIZE, st->next);
	st->next++;
}

/* Bytes per second of at least @p ns. */
static double stream_rate(struct stream *st, uint64_t ns)
{
	uint64_t begin = sim_now(st->s->sim), n = 0;

	while (sim_now(st->s->sim) - begin < ns) {
		stream_one(st);
		n++;
	}
	return (double)n * SIZE * 1e9 / (double)(sim_now(st->s->sim) - begin);
}

static void stream_end(struct stream *st)
{
	for (unsigned int i = 0; i < DEPTH; i++, st->done++) {
		op_expect(st->r[st->done % DEPTH], 20 * SIM_S, 0);
		op_expect(st->w[st->done % DEPTH], 20 * SIM_S, 0);
		op_holds(st->r[st->done % DEPTH], st->done, SIZE);
	}
}

static void set_rate(struct scene *s, unsigned int lane, uint64_t rate)
{
	sim_port_up(s->port[0][lane])->rate = rate;
}

/* Payload of what the wires carry: frames of 9014 and 24 more, headers of 42 + 42 + 20. */
static double payload(uint64_t bits)
{
	return (double)bits / 8 * 8900 / 9038;
}

static struct scene *two_rails(struct sim_case *c, uint64_t r0, uint64_t r1, const char *config)
{
	const struct scene_conf conf = {
		.lanes = {2, 2},
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 20000, .queue_bytes = 4 << 20},
		.port = {.frame_size = 9014, .bandwidth = 1.25e9},
		.config = config,
	};
	struct scene *s = scene_open(c, &conf);

	set_rate(s, 0, r0);
	set_rate(s, 1, r1);
	return s;
}

static void unknown_rates(struct sim_case *c, const char *config, double least)
{
	struct scene *s = two_rails(c, 1500 * SIM_GBIT / 1000, 500 * SIM_GBIT / 1000, config);
	struct stream st;
	double got;

	stream_begin(&st, s, scene_up(s, 0, 1));
	stream_rate(&st, 50 * SIM_MS);
	got = stream_rate(&st, 200 * SIM_MS) / payload(2 * SIM_GBIT);
	print_message("# 1.5 + 0.5 Gb/s: %.3f of the sum\n", got);
	assert_true(got > least);
	stream_end(&st);
}

/* @behaviour F4: a slow lane does not delay the others */
static void rails_of_unknown_unequal_rates_reach_their_sum(struct sim_case *c)
{
	unknown_rates(c, "CC=fixed", 0.95);
	unknown_rates(c, "CC=delay", 0.92);
}

static void cut_and_restored(struct sim_case *c, const char *config)
{
	struct scene *s = two_rails(c, SIM_GBIT, SIM_GBIT, config);
	struct stream st;
	double got;

	stream_begin(&st, s, scene_up(s, 0, 1));
	stream_rate(&st, 100 * SIM_MS);
	set_rate(s, 1, SIM_GBIT / 4);
	stream_rate(&st, 200 * SIM_MS); /* the bound in the world is 2 s */
	got = stream_rate(&st, 200 * SIM_MS) / payload(1250 * SIM_GBIT / 1000);
	print_message("# cut to a quarter: %.3f of what is there\n", got);
	assert_true(got > 0.9);
	set_rate(s, 1, SIM_GBIT);
	stream_rate(&st, 300 * SIM_MS);
	got = stream_rate(&st, 200 * SIM_MS) / payload(2 * SIM_GBIT);
	print_message("# restored: %.3f of the sum\n", got);
	assert_true(got > 0.9);
	stream_end(&st);
}

/* @behaviour F4 */
static void a_rail_cut_to_a_quarter_and_restored_is_followed(struct sim_case *c)
{
	cut_and_restored(c, "CC=fixed");
	cut_and_restored(c, "CC=delay");
}

static void stands_still(struct sim_case *c, const char *config)
{
	struct scene *s = two_rails(c, SIM_GBIT, SIM_GBIT, config);
	struct stream st;
	double got;

	stream_begin(&st, s, scene_up(s, 0, 1));
	stream_rate(&st, 100 * SIM_MS);
	sim_port_up(s->port[0][1])->blackhole = true;
	scene_run(s, 500 * SIM_MS);
	sim_port_up(s->port[0][1])->blackhole = false;
	stream_rate(&st, SIM_S);
	got = stream_rate(&st, 200 * SIM_MS) / payload(2 * SIM_GBIT);
	print_message("# after half a second of silence: %.3f of the sum\n", got);
	assert_true(got > 0.9);
	stream_end(&st);
}

/* @behaviour E5 */
static void a_rail_that_stands_still_for_a_while_stops_no_transfer_for_good(struct sim_case *c)
{
	stands_still(c, "PEER_TIMEOUT=60s CC=fixed");
	stands_still(c, "PEER_TIMEOUT=60s CC=delay");
}

static void pulled_messages_are_not_copied_by_the_sender(struct sim_case *c)
{
	struct scene *s = two_rails(c, SIM_GBIT, SIM_GBIT, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r = op_recv(s, 1, 5 * SIZE, 1);

	op_send(e, 1, 5 * SIZE, 1);
	op_expect(r, 5 * SIM_S, 0);
	op_holds(r, 1, 5 * SIZE);
	assert_int_equal(sim_node_counter(s->node[0], "copied_bytes"), 0);
	assert_true(sim_node_counter(s->node[1], "rndv.pulls") > 10);
	assert_int_equal(sim_node_counter(s->node[1], "rndv.outstanding"), 0);
}

/* @behaviour U37 */
static void U37_unequal_rails_carry_as_they_can(struct sim_case *c)
{
	struct scene *s = two_rails(c, SIM_GBIT, SIM_GBIT / 4, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct stream st;
	double b0, b1;

	stream_begin(&st, s, e);
	stream_rate(&st, 300 * SIM_MS);
	b0 = (double)scene_lane(e, 0).tx_bytes;
	b1 = (double)scene_lane(e, 1).tx_bytes;
	print_message("# 1 and 0.25 Gb/s: %.3f of the bytes over the slow one\n", b1 / (b0 + b1));
	assert_true(b1 / (b0 + b1) > 0.15 && b1 / (b0 + b1) < 0.25);
	stream_end(&st);
}

static void seven_senders_at_one_port_lose_nothing_to_its_ring(struct sim_case *c)
{
	const struct scene_conf conf = {
		.nodes = 8,
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
		.port = {.frame_size = 9014, .rx_depth = 512},
		.config = "RNDV_LIMIT=1M",
	};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e[8];
	struct op *r[8][4];
	uint64_t first = 0, last = 0;

	for (unsigned int i = 1; i < 8; i++)
		e[i] = scene_up(s, i, 0);
	for (unsigned int k = 0; k < 4; k++) {
		for (unsigned int i = 1; i < 8; i++) {
			r[i][k] = op_recv(s, 0, SIZE, i * 10 + k);
			op_send(e[i], i * 10 + k, SIZE, i * 10 + k);
		}
	}
	for (unsigned int i = 1; i < 8; i++) {
		for (unsigned int k = 0; k < 4; k++) {
			op_expect(r[i][k], 20 * SIM_S, 0);
			op_holds(r[i][k], i * 10 + k, SIZE);
		}
		if (!first || r[i][3]->done_at < first)
			first = r[i][3]->done_at;
		if (r[i][3]->done_at > last)
			last = r[i][3]->done_at;
	}
	/* No sender was served before the others: the ends lie close together. */
	print_message("# the last of 7 senders ends %.1f ms after the first\n",
		      (double)(last - first) * 1e-6);
	assert_true(last - first < 15 * SIM_MS);
	assert_int_equal(sim_port_stats(s->port[0][0])->rx_full, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(rails_of_unknown_unequal_rates_reach_their_sum),
	SIM_CASE(a_rail_cut_to_a_quarter_and_restored_is_followed),
	SIM_CASE(a_rail_that_stands_still_for_a_while_stops_no_transfer_for_good),
	SIM_CASE(pulled_messages_are_not_copied_by_the_sender),
	SIM_CASE(U37_unequal_rails_carry_as_they_can),
	SIM_CASE(seven_senders_at_one_port_lose_nothing_to_its_ring),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_stripe", cases, sizeof(cases) / sizeof(cases[0]));
}
