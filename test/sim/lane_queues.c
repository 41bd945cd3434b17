/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several workers on one port, each with a queue of its own: flow rules steer UDP ports, and
 * everything else, ARP above all, comes to the first queue.
 */

#include <errno.h>

#include "lane_host.h"
#include "sim_test.h"

#define CONFIG "CONNECT_TIMEOUT=2s"

struct world {
	struct sim *sim;
	struct lane_host *queue[2]; /* of one port */
	struct lane_host *peer;
};

static struct world world(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}};
	struct world w = {.sim = case_sim(c)};
	struct sim_port *queue[2];

	w.peer = lane_host_create(w.sim, sim_port_create(w.sim, &p), CONFIG);
	sim_port_queues(w.sim, &p, SIM_SPREAD_RULES, 2, queue);
	w.queue[0] = lane_host_create(w.sim, queue[0], CONFIG);
	w.queue[1] = lane_host_create(w.sim, queue[1], CONFIG);
	return w;
}

static bool end_up(void *arg)
{
	return ((struct lane_end *)arg)->up;
}

static bool end_down(void *arg)
{
	return ((struct lane_end *)arg)->downs > 0;
}

static void a_worker_on_another_queue_finds_a_peer(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);

	if (!sim_run(w.sim, SIM_S, end_up, e))
		fail_msg("no connection: %s", e->text);
	/* The answer came to the first one, who had asked for nothing. */
	assert_int_equal(lane_counter(w.queue[1], "arp.received"), 0);
	assert_true(lane_counter(w.queue[0], "arp.received") > 0);
	assert_true(e->up_at < 20 * SIM_MS);
	assert_true(lane_send_all(e, 0, 100, SIM_S));
	assert_true(lane_exactly_once(w.peer, 0, 100));
	assert_true(lane_send_all(lane_passive(w.peer), 200, 300, SIM_S));
	assert_true(lane_exactly_once(w.queue[1], 200, 300));
	assert_int_equal(lane_received(w.queue[0]), 0);
}

static void both_find_it_by_one_question(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *a = lane_connect(w.queue[0], w.peer),
			*b = lane_connect(w.queue[1], w.peer);

	assert_true(sim_run(w.sim, SIM_S, end_up, a));
	assert_true(sim_run(w.sim, SIM_S, end_up, b));
	assert_int_equal(
		lane_counter(w.queue[0], "arp.asked") + lane_counter(w.queue[1], "arp.asked"), 1);
	assert_true(lane_send_all(a, 0, 100, SIM_S));
	assert_true(lane_send_all(b, 100, 200, SIM_S));
	assert_true(lane_exactly_once(w.peer, 0, 200));
}

static void a_peer_finds_both(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *a = lane_connect(w.peer, w.queue[0]),
			*b = lane_connect(w.peer, w.queue[1]);

	assert_true(sim_run(w.sim, SIM_S, end_up, a));
	assert_true(sim_run(w.sim, SIM_S, end_up, b));
	assert_true(lane_send_all(a, 0, 100, SIM_S));
	assert_true(lane_send_all(b, 200, 300, SIM_S));
	assert_true(lane_exactly_once(w.queue[0], 0, 100));
	assert_true(lane_exactly_once(w.queue[1], 200, 300));
}

/* Nobody looks at the first queue meanwhile: the others' questions are answered when it does. */
static void a_first_worker_that_computes_delays_and_does_not_lose_answers(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e;

	lane_host_pause(w.queue[0], 500 * SIM_MS);
	e = lane_connect(w.queue[1], w.peer);
	assert_false(sim_run(w.sim, 490 * SIM_MS, end_up, e));
	assert_true(sim_run(w.sim, SIM_S, end_up, e));
}

/* What one worker took for gone the other asks for anew. */
static void an_address_that_one_gives_up_is_asked_for_again(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);
	uint64_t asked;

	assert_true(sim_run(w.sim, SIM_S, end_up, e));
	asked = lane_counter(w.queue[0], "arp.asked") + lane_counter(w.queue[1], "arp.asked");
	lane_host_pause(w.peer, 5 * SIM_S);
	e = lane_connect(w.queue[1], w.peer);
	assert_true(sim_run(w.sim, 4 * SIM_S, end_down, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	sim_run(w.sim, 2 * SIM_S, NULL, NULL);
	e = lane_connect(w.queue[0], w.peer);
	assert_true(sim_run(w.sim, SIM_S, end_up, e));
	assert_true(lane_counter(w.queue[0], "arp.asked") + lane_counter(w.queue[1], "arp.asked") >
		    asked);
}

static struct sim_case cases[] = {
	SIM_CASE(a_worker_on_another_queue_finds_a_peer),
	SIM_CASE(both_find_it_by_one_question),
	SIM_CASE(a_peer_finds_both),
	SIM_CASE(a_first_worker_that_computes_delays_and_does_not_lose_answers),
	SIM_CASE(an_address_that_one_gives_up_is_asked_for_again),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_queues", cases, sizeof(cases) / sizeof(cases[0]));
}
