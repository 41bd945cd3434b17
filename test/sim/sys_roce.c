/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mixed traffic with full verification (traffic.h) over RoCE lanes on the devices of
 * fake/fake_verbs.h, alone and beside raw lanes: of two lanes one dies, at any time and in any way,
 * and comes back.
 */

#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "core/endpoint.h"
#include "fake/fake_priv.h"
#include "fake/fake_verbs.h"
#include "mock/rounds.h"
#include "roce/roce.h"
#include "sim_test.h"
#include "traffic.h"

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
	unsigned int kills, left;
} run;

/* Devices carry out a few requests at a time, so that a lane may die between any two. */
static void pump(uint64_t now)
{
	fake.budget = 1 + (unsigned int)sim_below(&run.rng, 6);
	fake_pump(now + 1);
}

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
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
	};
	uint8_t ip[4] = {10, 0, 0, (uint8_t)(1 + i)};
	unsigned int l;

	for (l = 0; l < (raw ? 1u : 2u); l++) {
		ip[2] = (uint8_t)l;
		run.device[i][l] = fake_device_add(names[i][l], ip);
	}
	if (raw) {
		run.port[i] = sim_port_create(sim, &pp);
		np.ports = &run.port[i];
		np.num_ports = 1;
		np.lanes = i ? "roce:b0" : "roce:a0";
	}
	return sim_node_create(sim, &np);
}

static void one_run(struct sim *sim, bool raw, unsigned int kills)
{
	static const char *const configs[] = {"RNDV_THRESH=8k", "", "RNDV_SCHEME=put",
					      "RNDV_THRESH=8k RNDV_SCHEME=put",
					      "MULTI_EAGER_LIMIT=0"};
	struct traffic_conf tc = traffic_mixed;
	struct traffic *t;
	const char *why;
	unsigned int i;

	memset(&run, 0, sizeof(run));
	fake_reset();
	run.sim = sim;
	run.rng = sim_stream(sim, 30);
	run.left = kills;
	tc.messages = 60;
	why = configs[sim_below(&run.rng, sizeof(configs) / sizeof(configs[0]))];
	for (i = 0; i < NODES; i++)
		run.node[i] = make_node(sim, i, raw, why);
	t = traffic_create(sim, run.node, NODES, &tc);
	why = traffic_run(t, 120 * SIM_S);
	if (why)
		fail_msg("%s", why);
	sim_close_nodes(sim);
	traffic_destroy(t);
	assert_int_equal(fake.alive.qps + fake.alive.cqs + fake.alive.srqs + fake.alive.mrs, 0);
	assert_int_equal(fake.count.rnr + fake.count.cq_overrun, 0);
}

static void sweep(struct sim_case *c, bool raw, unsigned int kills, unsigned int seeds)
{
	uint64_t first = c->seed, last = first + (c->seeds ? c->seeds : test_rounds(seeds));

	for (; c->seed < last; c->seed++) {
		one_run(case_sim_seed(c, c->seed), raw, kills);
		case_end(c);
	}
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

static struct sim_case cases[] = {
	SIM_CASE(mixed_traffic_over_two_roce_lanes),
	SIM_CASE(mixed_traffic_over_a_roce_and_a_raw_lane),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_roce", cases, sizeof(cases) / sizeof(cases[0]));
}
