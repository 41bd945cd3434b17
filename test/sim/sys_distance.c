/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time, over paths of 20 to 300 ms: timers that are shorter than the
 * round trip would retransmit what is under way, and give up lanes that have no fault.
 */

#include <errno.h>
#include <string.h>

#include "core/worker.h"
#include "lane.h"
#include "scene.h"

static const uint64_t trips[] = {20 * SIM_MS, 60 * SIM_MS, 150 * SIM_MS, 300 * SIM_MS};

#define TRIPS (sizeof(trips) / sizeof(trips[0]))

static struct scene *open_at(struct sim_case *c, uint64_t trip, unsigned int lanes)
{
	const struct scene_conf conf = {
		.lanes = {lanes, lanes},
		.up = {.rate = SIM_GBIT / 10, .delay_ns = trip / 2},
	};

	return scene_open(c, &conf);
}

static struct scene_ep *up_at(struct scene *s, unsigned int from, uint64_t trip)
{
	struct scene_ep *e = scene_connect(s, from, !from);

	assert_int_equal(scene_wait_up(e, SIM_S + 40 * trip), 0);
	return e;
}

static uint64_t sent_again(const struct scene *s)
{
	static const char *const kinds[] = {"tx.retransmit.fast", "tx.retransmit.rto",
					    "tx.retransmit.probe"};
	uint64_t sum = 0;

	uint64_t n;

	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < 3; k++) {
			n = sim_node_counter(s->node[i], kinds[k]);
			if (n != 0)
				print_message("# node %u: %s %llu\n", i, kinds[k],
					      (unsigned long long)n);
			sum += n;
		}
	return sum;
}

static void no_lane_was_suspected(const struct scene *s, uint64_t trip)
{
	for (unsigned int i = 0; i < 2; i++)
		if (sim_node_counter(s->node[i], "ep.lanes_lost") +
			    sim_node_counter(s->node[i], "conn.suspect") !=
		    0)
			fail_msg("%llu ms: %llu lanes lost, %llu times suspect",
				 (unsigned long long)(trip / SIM_MS),
				 (unsigned long long)sim_node_counter(s->node[i], "ep.lanes_lost"),
				 (unsigned long long)sim_node_counter(s->node[i], "conn.suspect"));
}

/* One at a time, each answered; and idle times between, after which timers start anew. */
/* @behaviour R6 */
static void a_lone_message_is_sent_once(struct sim_case *c)
{
	for (unsigned int t = 0; t < TRIPS; t++) {
		struct scene *s = open_at(c, trips[t], 1);
		struct scene_ep *e = up_at(s, 0, trips[t]), *f = up_at(s, 1, trips[t]);

		for (unsigned int i = 0; i < 30; i++) {
			struct op *r = op_recv(s, !(i % 2), 8, i), *w;

			w = op_send(i % 2 ? f : e, i, 8, i);
			op_expect(r, 4 * trips[t], 0);
			op_holds(r, i, 8);
			op_expect(w, 4 * trips[t], 0);
			scene_run(s, i % 3 * trips[t]);
		}
		if (sent_again(s) != 0)
			fail_msg("%llu ms: %llu frames sent again",
				 (unsigned long long)(trips[t] / SIM_MS),
				 (unsigned long long)sent_again(s));
		no_lane_was_suspected(s, trips[t]);
	}
}

/* Messages of all protocols, both ways, over two lanes. */
/* @behaviour R39 */
static void lanes_without_a_fault_are_kept(struct sim_case *c)
{
	static const size_t sizes[] = {8, 16000, 200000};

	for (unsigned int t = 0; t < TRIPS; t++) {
		struct scene *s = open_at(c, trips[t], 2);
		struct scene_ep *e = up_at(s, 0, trips[t]), *f = up_at(s, 1, trips[t]);
		struct op *r[8], *w[8];

		for (unsigned int round = 0; round < 12; round++) {
			for (unsigned int i = 0; i < 8; i++) {
				r[i] = op_recv(s, i % 2, sizes[2], i);
				w[i] = op_send(i % 2 ? e : f, i, sizes[(round + i / 2) % 3], i);
			}
			for (unsigned int i = 0; i < 8; i++) {
				op_expect(r[i], SIM_S + 20 * trips[t], 0);
				op_holds(r[i], i, sizes[(round + i / 2) % 3]);
				op_expect(w[i], SIM_S + 20 * trips[t], 0);
			}
			scene_run(s, round * 37 * SIM_MS);
		}
		no_lane_was_suspected(s, trips[t]);
		assert_int_equal(sent_again(s), 0);
	}
}

/* The stall is some round trips long, and the lane is used again when it is back. */
static void a_lane_that_dies_far_away_is_left_and_used_again(struct sim_case *c)
{
	for (unsigned int t = 1; t < TRIPS; t++) {
		struct scene *s = open_at(c, trips[t], 2);
		struct scene_ep *e = up_at(s, 0, trips[t]);
		struct op *r[16], *w[16];
		uint64_t from;

		scene_run(s, 20 * trips[t]);
		assert_int_equal(scene_lanes_up(e), 2);
		for (unsigned int i = 0; i < 16; i++) {
			r[i] = op_recv(s, 1, 200000, i);
			w[i] = op_send(e, i, 200000, i);
		}
		scene_run(s, trips[t]);
		sim_port_up(s->port[0][0])->blackhole = true;
		sim_port_up(s->port[1][0])->blackhole = true;
		from = sim_now(s->sim);
		for (unsigned int i = 0; i < 16; i++) {
			op_expect(r[i], 60 * trips[t], 0);
			op_holds(r[i], i, 200000);
			op_expect(w[i], 60 * trips[t], 0);
		}
		print_message("# %llu ms: all there %.1f round trips after the death\n",
			      (unsigned long long)(trips[t] / SIM_MS),
			      (double)(sim_now(s->sim) - from) / (double)trips[t]);
		assert_true(sim_now(s->sim) - from < 30 * trips[t]);
		assert_int_equal(sim_node_counter(s->node[0], "ep.lanes_lost"), 1);
		scene_run(s, 5 * trips[t]);
		sim_port_up(s->port[0][0])->blackhole = false;
		sim_port_up(s->port[1][0])->blackhole = false;
		scene_run(s, 2 * SIM_S + 20 * trips[t]);
		assert_int_equal(scene_lanes_up(e), 2);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_lost"), 1);
			assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_back"), 1);
		}
		assert_int_equal(e->errors, 0);
	}
}

static struct sim_case cases[] = {
	SIM_CASE(a_lone_message_is_sent_once),
	SIM_CASE(lanes_without_a_fault_are_kept),
	SIM_CASE(a_lane_that_dies_far_away_is_left_and_used_again),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_distance", cases, sizeof(cases) / sizeof(cases[0]));
}
