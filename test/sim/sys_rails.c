/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: rails that are missing, slower or narrower than their sisters
 * are said, once, and WEFT_MIN_LANES makes fewer lanes an error.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"
#include "scene.h"

/* For .config: what the first line of a worker says is wanted, too. */
static const char *with_log(const char *config)
{
	static char text[160];

	snprintf(text, sizeof(text), "LOG_FILE=%s %s", sim_log_begin(), config);
	return text;
}

static void expect_lines(const char *what, unsigned int times)
{
	if (sim_log_count(what) != times)
		fail_msg("'%s' is not there %u times in:\n%s", what, times, sim_logged());
}

/* ---- interfaces ----------------------------------------------------------------------------- */

/*
 * @behaviour T15: rails that are missing, down, slower or narrower are logged; `WEFT_MIN_LANES`
 * makes it an error
 */
static void a_rail_that_is_slower_or_has_smaller_frames_is_logged_at_the_start(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {3, 3},
					.port = {.link = WEFT_LANE_LINK_NIC, .frame_size = 9014},
					.config = with_log(""),
					.lazy = true};
	struct sim_port_params p = {.link = WEFT_LANE_LINK_NIC,
				    .name = "narrow",
				    .frame_size = 1514,
				    .up = {.rate = 10 * SIM_GBIT},
				    .ip = 0x0a020001,
				    .prefix = 24,
				    .net = 2};
	struct scene *s = scene_open(c, &conf);

	sim_port_speed(s->port[0][1], 1.25e8);
	s->port[0][2] = sim_port_create(s->sim, &p);
	scene_start(s, 0);
	expect_lines("slower than", 1);
	expect_lines("(sim-a1) is slower than dpdk:a0 (sim-a0): 0.99 Gb/s and 9.9 Gb/s", 1);
	expect_lines("(sim-narrow) has frames of 1514 bytes, dpdk:a0 (sim-a0) of 9014", 1);
	scene_start(s, 1);
	expect_lines("slower than", 1);
	expect_lines("has frames of", 1);
	sim_log_end();
}

/* @behaviour T15 */
static void a_link_that_becomes_slower_than_its_sister_is_logged_then(struct sim_case *c)
{
	const struct scene_conf conf = {
		.lanes = {2, 2}, .port = {.link = WEFT_LANE_LINK_NIC}, .config = with_log("")};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_run(s, 100 * SIM_MS);
	expect_lines("weft warning", 0);
	sim_port_speed(s->port[0][1], 1.25e8);
	scene_run(s, 2 * SIM_S);
	expect_lines("link speed is now 1 Gb/s", 1);
	expect_lines("slower than", 1);
	scene_talk_long(s, e, 1, 1);
	sim_log_end();
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* With the second peer of the kind there is no second line. */
/* @behaviour T15 */
static void an_interface_without_a_lane_is_logged_with_the_reason(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 3, .lanes = {2, 1, 1}, .config = with_log("")};
	struct scene *s = scene_open(c, &conf);

	scene_up(s, 0, 1);
	scene_run(s, 100 * SIM_MS);
	expect_lines("carries no lane to b: ", 1);
	scene_up(s, 0, 2);
	scene_run(s, 100 * SIM_MS);
	expect_lines("carries no lane", 1);
	sim_log_end();
}

static void an_interface_more_than_the_peer_has_is_logged_with_the_remedy(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 1}, .one_net = true, .config = with_log("")};
	struct scene *s = scene_open(c, &conf);

	scene_up(s, 0, 1);
	scene_run(s, 100 * SIM_MS);
	expect_lines(
		"carries no lane to b: the 1 interface of b carries lanes from other interfaces",
		1);
	expect_lines("open another one there, or leave this one out of WEFT_LANES", 1);
	sim_log_end();
}

static void one_more_interface_than_two_of_the_peer_is_logged(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {3, 2}, .one_net = true, .config = with_log("")};
	struct scene *s = scene_open(c, &conf);

	scene_up(s, 0, 1);
	scene_run(s, 100 * SIM_MS);
	expect_lines("carries no lane to b: all 2 interfaces of b carry lanes", 1);
	sim_log_end();
}

static enum sim_verdict only_small(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				   void *arg)
{
	(void)port;
	(void)data;
	(void)room;
	(void)arg;
	return *len > 1514 ? SIM_DROP : SIM_PASS;
}

/* @behaviour T15 */
static void a_path_with_a_smaller_mtu_than_its_sister_is_logged(struct sim_case *c)
{
	const struct scene_conf conf = {
		.lanes = {2, 2}, .port = {.frame_size = 9014}, .config = with_log("")};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;
	unsigned int i;

	for (i = 0; i < 2; i++)
		sim_filter(s->port[i][1], only_small, NULL);
	e = scene_up(s, 0, 1);
	scene_run(s, SIM_S);
	assert_int_equal(scene_lanes_up(e), 2);
	/* At both ends, which share the log here. */
	expect_lines("has a smaller MTU", 2);
	scene_talk_long(s, e, 1, 1);
	sim_log_end();
}

/* ---- WEFT_MIN_LANES ------------------------------------------------------------------------- */

static void fails(struct sim_case *c, unsigned int there, bool dead, const char *why)
{
	const struct scene_conf conf = {.lanes = {2, there},
					.config = with_log("MIN_LANES=2 CONNECT_TIMEOUT=2s")};
	const struct scene_conf one = {.lanes = {2, there},
				       .node_config = {conf.config, "CONNECT_TIMEOUT=2s"}};
	struct scene *s = scene_open(c, dead ? &conf : &one);
	struct scene_ep *e;

	if (dead)
		sim_port_up(s->port[1][1])->blackhole = true;
	e = scene_connect(s, 0, 1);
	assert_true(sim_run(s->sim, 20 * SIM_S, scene_ep_has_failed, e));
	/*
	 * The end that opens the lanes learns first; the other one is notified, or finds the same.
	 */
	if (!strstr(e->why, "WEFT_MIN_LANES requires 2") || !strstr(e->why, why))
		fail_msg("(%d) %s", e->status, e->why);
	sim_log_end();
}

/* @behaviour T15 */
static void fewer_lanes_than_wanted_end_the_endpoint_which_reports_what_is_missing(
	struct sim_case *c)
{
	fails(c, 1, false, "10.0.0.5 is not in our subnet");
}

/* @behaviour T15 */
static void a_dead_rail_ends_an_endpoint_that_wants_it(struct sim_case *c)
{
	fails(c, 2, true, "left out: ");
}

/* @behaviour T15 */
static void as_many_lanes_as_wanted_are_no_error(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = with_log("MIN_LANES=2")};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_talk_long(s, e, 1, 1);
	scene_run(s, 5 * SIM_S);
	assert_int_equal(e->errors, 0);
	assert_int_equal(scene_lanes_up(e), 2);
	expect_lines("weft ", 0);
	sim_log_end();
}

#define MANY 150

/* With its rail the lanes of all endpoints die: all are given up soon, and few lines say so. */
/*
 * @behaviour R36: The lanes of many endpoints that die with their interface are abandoned soon,
 * with few log lines; while it is dead they cost little
 */
static void a_rail_that_dies_under_many_endpoints_is_logged_in_few_lines(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = with_log("")};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e[MANY];
	struct op *r[MANY], *w[MANY];

	for (unsigned int i = 0; i < MANY; i++)
		e[i] = scene_up(s, 0, 1);
	scene_run(s, 20 * SIM_MS);
	sim_port_up(s->port[0][0])->blackhole = true;
	sim_port_up(s->port[1][0])->blackhole = true;
	for (unsigned int i = 0; i < MANY; i++) {
		r[i] = op_recv(s, 1, 100000, i);
		w[i] = op_send(e[i], i, 100000, i);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		op_expect(r[i], SIM_S, 0);
		op_expect(w[i], SIM_S, 0);
		op_holds(r[i], i, 100000);
	}
	scene_run(s, 2 * SIM_S);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_lost"), MANY);
	expect_lines(" is given up: ", 10);
	assert_in_range(sim_log_count(" more of its lanes were given up"), 2, 4);
	sim_log_end();
}

#define ENDPOINTS 2000 /* endpoints */
#define BATCH 100

static uint64_t timers_and_frames(struct scene *s)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < 2; i++)
		n += sim_node_counter(s->node[i], "timer.looks") +
		     sim_node_counter(s->node[i], "tx.frames");
	return n;
}

static void carries(struct scene *s, struct scene_ep *e, uint64_t tag)
{
	struct op *r = op_recv(s, 1, 64, tag), *w = op_send(e, tag, 64, tag);

	op_expect(r, 100 * SIM_MS, 0);
	op_expect(w, 100 * SIM_MS, 0);
}

static void connect_all_endpoints(struct scene *s, struct scene_ep *e[ENDPOINTS])
{
	for (unsigned int i = 0; i < ENDPOINTS; i += BATCH) {
		for (unsigned int k = i; k < i + BATCH; k++)
			e[k] = scene_connect(s, 0, 1);
		for (unsigned int k = i; k < i + BATCH; k++)
			assert_int_equal(scene_wait_up(e[k], 5 * SIM_S), 0);
	}
	scene_run(s, 100 * SIM_MS);
}

/* Their lanes are tried again and again: so much of it for each, however many there are. */
/* @behaviour R36 */
static void many_endpoints_over_a_dead_rail_cost_little_and_go_on(struct sim_case *c)
{
	const struct scene_conf conf = {
		.lanes = {2, 2},
		.config = with_log("MAX_UNCLAIMED_EPS=4096 KEEPALIVE_INTERVAL=1s")};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e[ENDPOINTS];
	uint64_t before;
	size_t had;

	connect_all_endpoints(s, e);
	had = sim_heap_used();
	for (unsigned int i = 0; i < 2; i++)
		sim_port_up(s->port[i][0])->blackhole = true;
	for (unsigned int i = 0; i < 40; i++) {
		carries(s, e[i * (ENDPOINTS / 40)], i);
		scene_run(s, 100 * SIM_MS);
	}
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_lost"), ENDPOINTS);
	before = timers_and_frames(s);
	scene_run(s, 2 * SIM_S);
	before = timers_and_frames(s) - before;
	if (before > 2ull * 50 * ENDPOINTS)
		fail_msg("%lu timers and frames of %u endpoints in 2 s", before, ENDPOINTS);
	assert_true(sim_heap_used() < had + (1 << 20));
	expect_lines(" is given up: ", 10);
	assert_in_range(sim_log_count("weft warning"), 12, 40);
	for (unsigned int i = 0; i < ENDPOINTS; i += 50)
		carries(s, e[i], ENDPOINTS + i);
	/* It comes back for all of them. */
	for (unsigned int i = 0; i < 2; i++)
		sim_port_up(s->port[i][0])->blackhole = false;
	scene_run(s, 2 * SIM_S);
	assert_int_equal(sim_node_counter(s->node[0], "ep.lanes_back"), ENDPOINTS);
	sim_log_end();
}

static struct sim_case cases[] = {
	SIM_CASE(many_endpoints_over_a_dead_rail_cost_little_and_go_on),
	SIM_CASE(a_rail_that_dies_under_many_endpoints_is_logged_in_few_lines),
	SIM_CASE(a_rail_that_is_slower_or_has_smaller_frames_is_logged_at_the_start),
	SIM_CASE(a_link_that_becomes_slower_than_its_sister_is_logged_then),
	SIM_CASE(an_interface_without_a_lane_is_logged_with_the_reason),
	SIM_CASE(an_interface_more_than_the_peer_has_is_logged_with_the_remedy),
	SIM_CASE(one_more_interface_than_two_of_the_peer_is_logged),
	SIM_CASE(a_path_with_a_smaller_mtu_than_its_sister_is_logged),
	SIM_CASE(fewer_lanes_than_wanted_end_the_endpoint_which_reports_what_is_missing),
	SIM_CASE(a_dead_rail_ends_an_endpoint_that_wants_it),
	SIM_CASE(as_many_lanes_as_wanted_are_no_error),
};

int main(int argc, char **argv)
{
	setenv("SIM_LOG", "warning", 1);
	return sim_test_main(argc, argv, "sys_rails", cases, sizeof(cases) / sizeof(cases[0]));
}
