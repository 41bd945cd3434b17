/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mixed traffic with full verification (traffic.h) over RoCE lanes on the
 * devices of fake/fake_verbs.h, alone and beside raw lanes: of two lanes one
 * dies, at any time and in any way, and comes back.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "fake/fake_priv.h"
#include "fake/fake_verbs.h"
#include "mock/rounds.h"
#include "roce/roce.h"
#include "sim_test.h"
#include "traffic.h"
#include "wireup/failover.h"

#define NODES 2
/* Threads would make no two runs the same. */
int __wrap_roce_job_start(struct roce_dev *dev, struct roce_job *job);

int __wrap_roce_job_start(struct roce_dev *dev, struct roce_job *job)
{
	(void)dev;
	job->err = 0;
	job->run(job);
	atomic_store(&job->done, true);
	return 0;
}

static struct {
	struct sim *sim;
	struct sim_rng rng;
	struct sim_node *node[NODES];
	struct fake_device *device[NODES][2]; /* of lane 0, 1; NULL = a raw lane */
	struct sim_port *port[NODES];
	uint64_t pace, next; /* ns: the devices do something */
	uint16_t frame;      /* of raw lanes: less than what RoCE lanes send, or more */
	unsigned int kills, left, lane;
	bool noticed; /* the last death */
} run;

static uint64_t deaths; /* of all runs of a case */

/* Devices carry out a few requests at a time, so that a lane may die between
 * any two. */
static void pump(uint64_t now)
{
	if (now < run.next)
		return;
	run.next = now + run.pace;
	fake.budget = 1 + (unsigned int)sim_below(&run.rng, 6);
	fake_pump(now + 1);
}

/* ---- death
 * ----------------------------------------------------------------------------------
 */

/* One dies when both are there. */
static bool both_up(void)
{
	struct weft_ep *ep;
	unsigned int i;

	for (i = 0; i < NODES; i++) {
		if (!sim_node_alive(run.node[i]))
			return false;
		LIST_FOREACH(ep, &sim_worker(run.node[i])->eps, entry)
			if (ep->peer && ep->lanes_up != 3)
				return false;
	}
	return true;
}

static void heal(void *arg)
{
	struct fake_device *d = arg;

	d->frozen = d->cut = false;
	if (d->port.state == IBV_PORT_ACTIVE)
		return;
	d->port.state = IBV_PORT_ACTIVE;
	fake_event(d, IBV_EVENT_PORT_ACTIVE);
}

static void carrier_back(void *arg)
{
	sim_port_carrier(arg, true);
}

/* A queue pair of the device that is connected; 0 = none is */
static uint32_t some_qp(const struct fake_device *d)
{
	uint32_t i, n = 0, found = 0;

	for (i = 0; i < fake_qps_end; i++) {
		const struct fake_qp *qp = fake_qps[i];

		if (qp && qp->d == d && qp->qp.qp_type == IBV_QPT_RC &&
		    qp->qp.state == IBV_QPS_RTS && sim_below(&run.rng, ++n) == 0)
			found = qp->qp.qp_num;
	}
	return found;
}

enum kill { KILL_QP, KILL_ACK, KILL_PORT, KILL_WIRE, KILL_ALL, KILLS };

static void kill_device(struct fake_device *d, enum kill kind, uint64_t until)
{
	uint32_t qpn = some_qp(d);

	switch (kind) {
	case KILL_QP:
		if (qpn)
			fake_qp_break(qpn);
		break;
	case KILL_ACK:
		if (qpn)
			fake_qp_lose_ack(qpn);
		break;
	case KILL_PORT:
		d->port.state = IBV_PORT_DOWN;
		fake_event(d, IBV_EVENT_PORT_ERR);
		break;
	case KILL_WIRE:
		d->cut = true;
		break;
	default:
		d->frozen = true;
	}
	sim_at(run.sim, until, heal, d);
}

static void kill_one(void *arg)
{
	uint64_t now = sim_now(run.sim), until = now + sim_between(&run.rng, 1, 300) * SIM_MS;
	unsigned int i = (unsigned int)sim_below(&run.rng, NODES);
	struct fake_device *d;

	(void)arg;
	if (run.left == 0)
		return;
	run.noticed = run.noticed || !both_up();
	if (both_up()) {
		/* One lane is to live: the same dies until that was noticed, and mended. */
		if (run.noticed)
			run.lane = (unsigned int)sim_below(&run.rng, 2);
		run.noticed = false;
		d = run.device[i][run.lane];
		run.left--;
		run.kills++;
		if (d) {
			kill_device(d, (enum kill)sim_below(&run.rng, KILLS), until);
		} else {
			sim_port_carrier(run.port[i], false);
			sim_at(run.sim, until, carrier_back, run.port[i]);
		}
	}
	sim_at(run.sim, now + sim_below(&run.rng, 2 * SIM_MS), kill_one, NULL);
}

/* ---- traffic
 * --------------------------------------------------------------------------------
 */

static struct sim_node *make_node(struct sim *sim, unsigned int i, bool raw, const char *config)
{
	static const char *const names[NODES][2] = {{"a0", "a1"}, {"b0", "b1"}};
	struct sim_node_params np = {
		.config = config,
		.driver = &weft_roce_driver,
		.pump = pump,
		.lanes = i ? "roce:b0;roce:b1" : "roce:a0;roce:a1",
	};
	struct sim_port_params pp = {
		.name = i ? "b" : "a",
		.ip = 0x0a090001 + i,
		.prefix = 24,
		.frame_size = run.frame,
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
	};
	uint8_t ip[4] = {10, 0, 0, (uint8_t)(1 + i)};
	unsigned int l;

	for (l = 0; l < (raw ? 1u : 2u); l++) {
		ip[2] = (uint8_t)l;
		run.device[i][l] = fake_device_add(names[i][l], ip);
	}
	/* One process writes one capture. */
	if (i && getenv("SIM_CAPTURE"))
		np.beside = run.node[0];
	if (raw) {
		run.port[i] = sim_port_create(sim, &pp);
		np.ports = &run.port[i];
		np.num_ports = 1;
		np.lanes = i ? "roce:b0" : "roce:a0";
	}
	return sim_node_create(sim, &np);
}

/* @p config NULL = any */
static void begin(struct sim *sim, bool raw, const char *config)
{
	static const char *const configs[] = {"RNDV_THRESH=8k", "", "RNDV_SCHEME=put",
					      "RNDV_THRESH=8k RNDV_SCHEME=put",
					      "MULTI_EAGER_LIMIT=0"};
	const char *capture = getenv("SIM_CAPTURE"); /* for test/proc/dissector.py */
	char with_capture[400];
	unsigned int i;

	memset(&run, 0, sizeof(run));
	fake_reset();
	run.sim = sim;
	run.rng = sim_stream(sim, 30);
	run.noticed = true;
	run.frame = sim_chance(&run.rng, 0.5) ? 1514 : 9014;
	if (!config)
		config = configs[sim_below(&run.rng, sizeof(configs) / sizeof(configs[0]))];
	if (capture) {
		snprintf(with_capture, sizeof(with_capture), "CAPTURE=%s %s", capture, config);
		config = with_capture;
	}
	for (i = 0; i < NODES; i++)
		run.node[i] = make_node(sim, i, raw, config);
}

static void one_run(struct sim *sim, bool raw, unsigned int kills)
{
	static const uint64_t paces[] = {0, 2 * SIM_US, 20 * SIM_US, 100 * SIM_US, 500 * SIM_US};
	struct traffic_conf tc = traffic_mixed;
	struct traffic *t;
	const char *why;

	begin(sim, raw, NULL);
	run.left = kills;
	run.pace = paces[sim_below(&run.rng, 5)];
	tc.messages = kills ? 200 : 60;
	tc.rma = kills ? 200 : tc.rma;
	t = traffic_create(sim, run.node, NODES, &tc);
	sim_at(sim, sim_now(sim) + sim_below(&run.rng, 3 * SIM_MS), kill_one, NULL);
	why = traffic_run(t, 120 * SIM_S);
	run.left = 0;
	if (why)
		fail_msg("%s", why);
	deaths += run.kills;
	sim_close_nodes(sim);
	traffic_destroy(t);
	assert_int_equal(fake.alive.qps + fake.alive.cqs + fake.alive.srqs + fake.alive.mrs, 0);
	assert_int_equal(fake.count.rnr + fake.count.cq_overrun, 0);
}

static void sweep(struct sim_case *c, bool raw, unsigned int kills, unsigned int seeds)
{
	uint64_t first = c->seed, last = first + (c->seeds ? c->seeds : test_rounds(seeds));

	deaths = 0;
	for (; c->seed < last; c->seed++) {
		one_run(case_sim_seed(c, c->seed), raw, kills);
		case_end(c);
	}
	if (c->seeds && kills)
		printf("%llu deaths\n", (unsigned long long)deaths);
	c->seed = first;
}

static void mixed_traffic_over_two_roce_lanes(struct sim_case *c)
{
	sweep(c, false, 0, 5);
}

static void mixed_traffic_over_a_roce_and_a_raw_lane(struct sim_case *c)
{
	sweep(c, true, 0, 5);
}

/* @behaviour R30 */
static void of_two_roce_lanes_one_dies_and_returns(struct sim_case *c)
{
	sweep(c, false, 4, 8);
	if (!c->seeds)
		assert_true(deaths > test_rounds(8));
}

/* @behaviour R30 */
static void of_a_roce_and_a_raw_lane_one_dies_and_returns(struct sim_case *c)
{
	sweep(c, true, 4, 8);
	if (!c->seeds)
		assert_true(deaths > test_rounds(8));
}

static struct weft_ep *join(void)
{
	struct weft_ep *ep;

	assert_int_equal(sim_ep_create(run.node[0], run.node[1], NULL, &ep), 0);
	return ep;
}

static bool all_up(void *arg)
{
	(void)arg;
	return !LIST_EMPTY(&sim_worker(run.node[1])->eps) && both_up();
}

static bool one_up(void *arg)
{
	(void)arg;
	return !both_up();
}

/* A queue pair breaks, or a port goes down: of either lane, at either end. It has lasted before. */
/* @behaviour R33 */
static void a_lane_is_back_within_a_second_of_its_device(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	unsigned int i;

	begin(sim, false, "");
	join();
	assert_true(sim_run(sim, SIM_S, all_up, NULL));
	for (i = 0; i < 4; i++) {
		uint64_t mended;

		sim_run(sim, 11 * SIM_S, NULL, NULL);
		mended = sim_now(sim) + (i & 1 ? 400 * SIM_MS : 0);
		kill_device(run.device[i >> 1][i & 1], i & 1 ? KILL_PORT : KILL_QP, mended);
		assert_true(sim_run(sim, 300 * SIM_MS, one_up, NULL));
		assert_true(sim_run(sim, 2 * SIM_S, all_up, NULL));
		assert_true(sim_now(sim) < mended + SIM_S);
	}
	assert_int_equal(sim_worker(run.node[0])->count.lanes_back, 4);
	assert_int_equal(sim_worker(run.node[1])->count.lanes_back, 4);
	sim_close_nodes(sim);
}

static struct weft_ep *ep_of(unsigned int i)
{
	return LIST_FIRST(&sim_worker(run.node[i])->eps);
}

/*
 * The leader has stopped a lane, and the peer, which is to say what it received, computes for
 * longer than WEFT_PEER_TIMEOUT. Its device takes all that is said to it.
 */
/* @behaviour R39 */
static void a_peer_that_computes_while_a_lane_is_stopped_is_waited_for(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	unsigned int i;

	begin(sim, false, "PEER_TIMEOUT=5s");
	join();
	assert_true(sim_run(sim, SIM_S, all_up, NULL));
	i = weft_failover_leads(ep_of(0)) ? 0 : 1;
	sim_node_pause(run.node[!i], 40 * SIM_S);
	kill_device(run.device[i][1], KILL_QP, sim_now(sim));
	sim_run(sim, 39 * SIM_S, NULL, NULL);
	assert_int_equal(ep_of(i)->failover->lane[1].life, WEFT_LANE_CLOSING);
	assert_int_equal(ep_of(i)->state, WEFT_EP_UP);
	assert_true(sim_run(sim, 3 * SIM_S, all_up, NULL));
	sim_close_nodes(sim);
}

/* Tries have gone on for a day or two, or lanes have come back some ten thousand times. */
/* @behaviour R33 */
static void numbers_of_tries_and_of_connections_wrap(struct sim_case *c)
{
	static const uint16_t epochs[] = {0, 40000, 65535}, tries[] = {0, 32766, 32767, 64510};
	struct sim *sim = case_sim(c);
	unsigned int i, k, n;

	begin(sim, false, "");
	join();
	assert_true(sim_run(sim, SIM_S, all_up, NULL));
	for (i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++) {
		for (k = 0; k < sizeof(tries) / sizeof(tries[0]); k++) {
			for (n = 0; n < NODES; n++) {
				struct weft_failover_lane *l = &ep_of(n)->failover->lane[1];

				l->epoch = epochs[i];
				l->link = (uint16_t)(epochs[i] + tries[k]);
				l->returns = 0;
			}
			/* The second time with the number that came of it. */
			for (n = 0; n < 2; n++) {
				sim_run(sim, 11 * SIM_S, NULL, NULL);
				kill_device(run.device[0][1], KILL_QP, sim_now(sim));
				assert_true(sim_run(sim, 300 * SIM_MS, one_up, NULL));
				assert_true(sim_run(sim, SIM_S, all_up, NULL));
			}
		}
	}
	sim_close_nodes(sim);
}

static bool received(void *arg)
{
	return weft_request_test(arg, NULL) != WEFT_INPROGRESS;
}

/* @return ns until it is there */
static uint64_t message(struct weft_ep *ep, size_t length)
{
	static uint8_t from[100000], to[100000];
	uint64_t at = sim_now(run.sim);
	struct weft_request *r, *w = NULL;

	memset(from, (int)(at / 1000), length);
	assert_int_equal(weft_tag_recv(sim_worker(run.node[1]), NULL, to, length, 1,
				       WEFT_TAG_MASK_FULL, NULL, &r),
			 WEFT_INPROGRESS);
	assert_in_range(weft_tag_send(ep, from, length, 1, NULL, &w), 0, 1);
	assert_true(sim_run(run.sim, SIM_S, received, r));
	assert_memory_equal(from, to, length);
	at = sim_now(run.sim) - at;
	if (w) {
		assert_true(sim_run(run.sim, SIM_S, received, w));
		weft_request_free(w);
	}
	weft_request_free(r);
	return at;
}

/* @return the longest that one of @p n messages took */
static uint64_t longest(struct weft_ep *ep, size_t length, unsigned int n)
{
	uint64_t ns, worst = 0;

	while (n-- > 0) {
		ns = message(ep, length);
		worst = ns > worst ? ns : worst;
	}
	return worst;
}

/*
 * Of either lane, at either end, under messages of each kind. What a frozen device reads itself is
 * its own until it gives it back, or a second has passed.
 */
/* @behaviour R31 */
static void a_device_that_is_silent_stalls_no_peer_for_long(struct sim_case *c)
{
	static const size_t lengths[] = {8, 5000, 100000};
	struct sim *sim = case_sim(c);
	unsigned int i, k, n;
	struct weft_ep *ep;
	uint64_t ns;

	begin(sim, false, "");
	ep = join();
	assert_true(sim_run(sim, SIM_S, all_up, NULL));
	for (i = 0; i < 8; i++) {
		struct fake_device *d = run.device[i >> 1 & 1][i & 1];

		for (k = i & 1; k < (i < 4 ? 3 : 2) && !test_left_out(i); k += 2) {
			/* It has shown how fast it is, and forgotten the death before. */
			for (n = 0; n < 24; n++) {
				longest(ep, lengths[k], 2);
				longest(ep, 100000, 2);
				sim_run(sim, SIM_S, NULL, NULL);
			}
			assert_true(both_up());
			*(i < 4 ? &d->cut : &d->frozen) = true;
			ns = longest(ep, lengths[k], 50);
			if (ns > 100 * SIM_MS || both_up() != (ns < 10 * SIM_MS))
				fail_msg("%s, %zu bytes: %.1f ms", d->base.name, lengths[k],
					 (double)ns / 1e6);
			heal(d);
			assert_true(sim_run(sim, 3 * SIM_S, all_up, NULL));
		}
	}
	sim_close_nodes(sim);
}

static struct sim_case cases[] = {
	SIM_CASE(a_peer_that_computes_while_a_lane_is_stopped_is_waited_for),
	SIM_CASE(numbers_of_tries_and_of_connections_wrap),
	SIM_CASE(a_device_that_is_silent_stalls_no_peer_for_long),
	SIM_CASE(mixed_traffic_over_two_roce_lanes),
	SIM_CASE(mixed_traffic_over_a_roce_and_a_raw_lane),
	SIM_CASE(a_lane_is_back_within_a_second_of_its_device),
	SIM_CASE(of_two_roce_lanes_one_dies_and_returns),
	SIM_CASE(of_a_roce_and_a_raw_lane_one_dies_and_returns),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_roce", cases, sizeof(cases) / sizeof(cases[0]));
}
