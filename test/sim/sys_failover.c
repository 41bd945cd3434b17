/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: lanes that die while their endpoint goes on, and come back.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"
#include "scene.h"

/* Nobody has lost or found a lane but those who should. */
static void lost_and_back(struct scene *s, uint64_t lost, uint64_t back)
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_lost"), lost);
		assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_back"), back);
	}
}

/* Lane @p lane carries nothing in either direction, and nobody is told. */
static void cut(struct scene *s, unsigned int lane, bool dead)
{
	sim_port_up(s->port[0][lane])->blackhole = dead;
	sim_port_up(s->port[1][lane])->blackhole = dead;
}

/* ---- one lane dies -------------------------------------------------------------------------- */

/* All is delivered, and soon: what two lanes need, and the lane that is left alone. */
static void transfer(struct sim_case *c, const struct scene_conf *conf, size_t size, uint64_t at)
{
	struct scene *s = scene_open(c, conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	struct op *r[8], *w[8];
	uint64_t alone = size * 8 * 10 / 9 + 200 * SIM_US, from, lost;

	scene_run(s, 20 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), conf->lanes[0]);
	from = sim_now(s->sim);
	for (unsigned int i = 0; i < 8; i++) {
		r[i] = op_recv(s, i % 2, size, i);
		w[i] = op_send(i % 2 ? e : f, i, size, i);
	}
	scene_run(s, at);
	cut(s, 0, true);
	for (unsigned int i = 0; i < 8; i++) {
		op_expect(r[i], 2 * SIM_S, 0);
		op_holds(r[i], i, size);
		op_expect(w[i], 2 * SIM_S, 0);
	}
	/* Four of them each way at 10 Gb/s. */
	if (sim_now(s->sim) - from > at + 4 * alone / 10 + 100 * SIM_MS)
		fail_msg("%zu bytes, cut after %.3f ms: %.1f ms", size, (double)at / 1e6,
			 (double)(sim_now(s->sim) - from) / 1e6);
	scene_run(s, 300 * SIM_MS);
	/* One that had nothing to do is not missed. */
	lost = sim_node_counter(s->node[0], "ep.lanes_lost");
	assert_in_range(lost, size > 1000000 && at < SIM_MS, 2);
	lost_and_back(s, lost, 0);
	scene_talk(s, e, 1, 100);
	op_expect(op_flush(e), SIM_S, 0);
	op_expect(op_close(e, 0), SIM_S, 0);
}

static void a_lane_that_dies_loses_no_message(struct sim_case *c)
{
	static const size_t sizes[] = {100, 1000, 8000, 100000, 2000000};
	const struct scene_conf two = {.lanes = {2, 2}}, three = {.lanes = {3, 3}};

	for (unsigned int i = 0; i < 5; i++)
		for (uint64_t at = 5 * SIM_US; at < 4 * SIM_MS; at = at * 3 + 1000) {
			transfer(c, &two, sizes[i], at);
			transfer(c, &three, sizes[i], at);
		}
}

/* ---- the peer is silent --------------------------------------------------------------------- */

static void a_peer_that_pauses_loses_no_lane(struct sim_case *c)
{
	static const uint64_t pauses[] = {50, 100, 300, 1000, 5000, 20000};
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w[20], *r[20];

	for (unsigned int p = 0; p < 12; p++) {
		for (unsigned int i = 0; i < 20; i++) {
			r[i] = op_recv(s, 1, 300000, i);
			w[i] = op_send(e, i, i * 15000, i);
		}
		scene_run(s, p * 20 * SIM_US);
		sim_node_pause(s->node[p % 2], pauses[p / 2] * SIM_MS);
		for (unsigned int i = 0; i < 20; i++) {
			op_expect(r[i], pauses[p / 2] * SIM_MS + SIM_S, 0);
			op_holds(r[i], i, i * 15000);
			op_expect(w[i], SIM_S, 0);
		}
		lost_and_back(s, 0, 0);
	}
	assert_int_equal(e->errors, 0);
}

/* All links are cut for a while: nothing is decided, and all lanes go on. */
static void a_network_that_is_silent_loses_no_lane(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w, *r;

	for (unsigned int ms = 50; ms < 10000; ms *= 3) {
		r = op_recv(s, 1, 3000000, ms);
		w = op_send(e, ms, 3000000, ms);
		scene_run(s, 100 * SIM_US);
		cut(s, 0, true);
		cut(s, 1, true);
		scene_run(s, ms * SIM_MS);
		cut(s, 0, false);
		cut(s, 1, false);
		op_expect(r, 2 * SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, ms, 3000000);
		lost_and_back(s, 0, 0);
	}
}

/* ---- lanes that come back ------------------------------------------------------------------- */

static void a_lane_that_returns_is_used_within_a_second(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct weft_lane_info before, after;
	struct op *w, *r;

	for (unsigned int n = 1; n < 6; n++) {
		unsigned int lane = n % 2;

		r = op_recv(s, 1, 3000000, n);
		w = op_send(e, n, 3000000, n);
		scene_run(s, 100 * SIM_US);
		cut(s, lane, true);
		op_expect(r, 2 * SIM_S, 0);
		op_expect(w, SIM_S, 0);
		scene_run(s, n * 700 * SIM_MS);
		assert_int_equal(scene_lanes_up(e), 1);
		lost_and_back(s, n, n - 1);
		cut(s, lane, false);
		scene_run(s, SIM_S);
		assert_int_equal(scene_lanes_up(e), 2);
		lost_and_back(s, n, n);
		before = scene_lane(e, lane);
		r = op_recv(s, 1, 3000000, n);
		w = op_send(e, n, 3000000, n);
		op_expect(r, SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, n, 3000000);
		after = scene_lane(e, lane);
		assert_true(after.tx_bytes - before.tx_bytes > 1000000);
	}
	op_expect(op_close(e, 0), SIM_S, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(a_lane_that_dies_loses_no_message),
	SIM_CASE(a_peer_that_pauses_loses_no_lane),
	SIM_CASE(a_network_that_is_silent_loses_no_lane),
	SIM_CASE(a_lane_that_returns_is_used_within_a_second),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_failover", cases, sizeof(cases) / sizeof(cases[0]));
}
