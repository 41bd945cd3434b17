/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: connecting, lanes, closing.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "mock/counter_help.h"
#include "scene.h"

/* A message each way over an endpoint and its counterpart (any receive). */
/*
 * ---- which end connects
 * ---------------------------------------------------------------------------
 */

static void one_sided_connect_carries_messages(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_talk(s, e, 1, 7);
	assert_int_equal(scene_lanes_up(e), 1);
}

static void simultaneous_connects_share_one_connection(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *a = scene_connect(s, 0, 1), *b = scene_connect(s, 1, 0);

	assert_int_equal(scene_wait_up(a, SIM_S), 0);
	assert_int_equal(scene_wait_up(b, SIM_S), 0);
	scene_talk(s, a, 1, 7);
	scene_talk(s, b, 0, 8);
	scene_run(s, 50 * SIM_MS);
	assert_int_equal(scene_lanes_up(a), 2);
	assert_int_equal(scene_lanes_up(b), 2);
	/* Nothing was made beside them: a directed receive sees the message. */
	assert_int_equal(sim_node_counter(s->node[0], "eps_accepted") +
				 sim_node_counter(s->node[1], "eps_accepted"),
			 0);
}

static void a_later_endpoint_adopts_the_connection(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *a = scene_up(s, 0, 1), *b;
	struct op *r;

	scene_talk(s, a, 1, 7);
	b = scene_up(s, 1, 0);
	r = op_recv_mask(s, 1, b->ep, 100, 9, WEFT_TAG_MASK_FULL);
	op_expect(op_send(a, 9, 100, 9), SIM_S, 0);
	op_expect(r, SIM_S, 0);
	op_holds(r, 9, 100);
	assert_ptr_equal(r->c.ep, b->ep);
	scene_talk(s, b, 0, 10);
}

/* @behaviour A15 */
static void loopback_works(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 0);
	uint64_t frames;
	struct op *r;
	size_t size;

	scene_run(s, SIM_S); /* the ARP probes that an interface begins with are out */
	frames = sim_port_stats(s->port[0][0])->tx_frames;
	for (size = 0; size < 3000000; size = size * 5 + 1) {
		r = op_recv(s, 0, size + 10, size);
		op_expect(op_send(e, size, size, size), SIM_S, 0);
		op_expect(r, SIM_S, 0);
		op_holds(r, size, size);
	}
	/* Not over the wire. */
	assert_int_equal(sim_port_stats(s->port[0][0])->tx_frames, frames);
}

/* Endpoints that have carried a message each way, and have nothing to do. */
static void idle_endpoints(struct scene *s, unsigned int n)
{
	struct scene_ep *e;
	uint64_t v = 1;

	while (n-- > 0) {
		e = scene_up(s, 0, 1);
		assert_int_equal(weft_tag_send(e->ep, &v, sizeof(v), 3, NULL, NULL), 0);
		op_expect(op_recv(s, 1, sizeof(v), 3), SIM_S, 0);
	}
	scene_run(s, 12 * SIM_S); /* a keepalive, after which a connection has returned memory */
}

/* What the simulator keeps per endpoint and message counts, too; both ends of 256 endpoints. */
/* @behaviour T42: measurement: memory of an endpoint end */
static void an_idle_endpoint_costs_at_most_3450_B(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	size_t before, after;

	idle_endpoints(s, 64);
	before = sim_heap_used();
	if (before == 0)
		return; /* a sanitizer's heap has no such figure */
	idle_endpoints(s, 256);
	after = sim_heap_used();
	print_message("# %zu B\n", (after - before) / (2 * 256));
	assert_in_range((after - before) / (2 * 256), 1024, 3450);
}

/* @behaviour U61 */
static void many_endpoints_between_many_nodes(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 8};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e[8][8];
	unsigned int i, j;

	for (i = 0; i < 8; i++)
		for (j = 0; j < 8; j++)
			e[i][j] = scene_connect(s, i, j);
	for (i = 0; i < 8; i++)
		for (j = 0; j < 8; j++)
			assert_int_equal(scene_wait_up(e[i][j], SIM_S), 0);
	for (i = 0; i < 8; i++)
		for (j = 0; j < 8; j++)
			scene_talk(s, e[i][j], j, i * 8 + j);
}

static void several_endpoints_between_two_workers_are_apart(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *a[3], *b[3];
	struct op *r;
	unsigned int i, hits = 0, k;

	for (i = 0; i < 3; i++) {
		a[i] = scene_connect(s, 0, 1);
		b[i] = scene_connect(s, 1, 0);
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(scene_wait_up(a[i], SIM_S), 0);
		assert_int_equal(scene_wait_up(b[i], SIM_S), 0);
	}
	for (i = 0; i < 3; i++) {
		scene_talk(s, a[i], 1, 100 + i);
		/* Exactly one of the peer's endpoints is its other end. */
		r = op_recv(s, 1, 100, 200 + i);
		op_expect(op_send(a[i], 1, 100, 200 + i), SIM_S, 0);
		op_expect(r, SIM_S, 0);
		for (k = 0; k < 3; k++)
			hits += r->c.ep == b[k]->ep;
	}
	assert_int_equal(hits, 3);
}

static void accept_callback_hands_over_the_endpoint(struct sim_case *c)
{
	const struct scene_conf conf = {.lazy = true};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *a;

	s->accept = true;
	scene_start(s, 0);
	scene_start(s, 1);
	a = scene_up(s, 0, 1);
	scene_talk(s, a, 1, 5);
	assert_non_null(s->accepted[1]);
	scene_talk(s, s->accepted[1], 0, 6);
	op_expect(op_close(s->accepted[1], 0), SIM_S, 0);
}

/* @behaviour U62 */
static void messages_before_the_connection_arrive_in_order(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_connect(s, 0, 1);
	struct op *w[50], *r[50];
	unsigned int i;

	for (i = 0; i < 50; i++)
		w[i] = op_send(e, i, i * 97, 1);
	for (i = 0; i < 50; i++)
		r[i] = op_recv(s, 1, 10000, 1);
	for (i = 0; i < 50; i++) {
		op_expect(w[i], SIM_S, 0);
		op_expect(r[i], SIM_S, 0);
		op_holds(r[i], i, i * 97);
	}
}

/* ---- lost frames ---------------------------------------------------------------------------- */

static void connect_without(struct sim_case *c, unsigned int side, unsigned int k, unsigned int n,
			    bool both)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct sim_dropper d[2] = {{k, k + n, 0}, {k, k + n, 0}};
	struct scene_ep *a, *b = NULL;
	struct op *r = op_recv(s, 1, 50000, 3);

	sim_filter(s->port[side][0], sim_drop_some, &d[0]);
	sim_filter(s->port[side][1], sim_drop_some, &d[1]);
	a = scene_connect(s, 0, 1);
	if (both)
		b = scene_connect(s, 1, 0);
	op_send(a, 3, 50000, 3);
	if (!op_wait(r, 3 * SIM_S))
		fail_msg("no message without frames %u..%u of node %u%s: %s", k, k + n - 1, side,
			 both ? ", both" : "", a->why);
	op_holds(r, 3, 50000);
	if (both) {
		assert_int_equal(scene_wait_up(b, SIM_S), 0);
		scene_talk(s, b, 0, 4);
	}
	scene_run(s, SIM_S);
	assert_int_equal(scene_lanes_up(a), 2);
}

/* @behaviour U84, R4 */
static void any_lost_frame_of_wireup_is_recovered(struct sim_case *c)
{
	unsigned int k, side;

	for (k = 0; k < 12; k++) {
		for (side = 0; side < 2; side++) {
			connect_without(c, side, k, 1, false);
			connect_without(c, side, k, 4, false);
			connect_without(c, side, k, 1, true);
		}
	}
}

/* @behaviour U84 */
static void connects_under_loss_duplication_and_reordering(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {3, 3},
					.up = {.rate = SIM_GBIT,
					       .delay_ns = 20000,
					       .loss = 0.1,
					       .dup = 0.1,
					       .reorder = 0.2,
					       .reorder_ns = SIM_MS}};
	uint64_t first = c->seed, last = first + (c->seeds ? c->seeds : 30);

	for (; c->seed < last; c->seed++) {
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *a = scene_connect(s, 0, 1), *b = scene_connect(s, 1, 0);

		assert_int_equal(scene_wait_up(a, 10 * SIM_S), 0);
		assert_int_equal(scene_wait_up(b, 10 * SIM_S), 0);
		scene_talk(s, a, 1, 7);
		scene_talk(s, b, 0, 8);
		scene_run(s, 2 * SIM_S);
		assert_int_equal(scene_lanes_up(a), 3);
		assert_int_equal(scene_lanes_up(b), 3);
	}
	c->seed = first;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* @behaviour F8 */
static void two_nics_in_one_subnet_make_two_lanes(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .one_net = true};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r;
	unsigned int i;

	scene_run(s, 20 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 2);
	r = op_recv(s, 1, 1000000, 1);
	op_send(e, 1, 1000000, 1);
	op_expect(r, SIM_S, 0);
	op_holds(r, 1, 1000000);
	/* Both cards of both hosts worked. */
	for (i = 0; i < 4; i++)
		assert_true(sim_port_stats(s->port[i / 2][i % 2])->tx_frames > 50 ||
			    sim_port_stats(s->port[i / 2][i % 2])->rx_frames > 50);
	assert_true(scene_lane(e, 0).tx_bytes > 100000 && scene_lane(e, 1).tx_bytes > 100000);
}

/* @behaviour F9: unequal rail counts */
static void unequal_rail_counts_use_what_both_have(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {4, 1}}, conf2 = {.lanes = {3, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_run(s, 50 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 1);
	scene_talk(s, e, 1, 1);
	s = scene_open(c, &conf2);
	e = scene_up(s, 0, 1);
	scene_run(s, 50 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 2);
	scene_talk(s, e, 1, 1);
}

/*
 * @behaviour F8: more than one lane is used, by its counters
 * @behaviour U37
 */
static void four_lanes_all_carry_bytes(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {4, 4}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r = op_recv(s, 1, 4000000, 1);
	unsigned int i;

	scene_run(s, 50 * SIM_MS);
	op_send(e, 1, 4000000, 1);
	op_expect(r, SIM_S, 0);
	op_holds(r, 1, 4000000);
	for (i = 0; i < 4; i++)
		if (scene_lane(e, i).tx_bytes < 500000)
			fail_msg("lane %u carried %llu bytes", i,
				 (unsigned long long)scene_lane(e, i).tx_bytes);
}

/* @behaviour F9 */
static void a_lane_that_does_not_work_is_left_out(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = "CONNECT_TIMEOUT=2s"};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;

	/* Something on the second rail's way eats everything. */
	sim_port_up(s->port[1][1])->blackhole = true;
	e = scene_connect(s, 0, 1);
	assert_int_equal(scene_wait_up(e, 10 * SIM_S), 0);
	scene_talk(s, e, 1, 1);
	scene_run(s, 5 * SIM_S);
	assert_int_equal(scene_lanes_up(e), 1);
	assert_int_equal(e->errors, 0);
	scene_talk(s, e, 1, 2);
}

/* @behaviour F9 */
static void the_bootstrap_lane_is_replaced_when_it_does_not_work(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = "CONNECT_TIMEOUT=8s"};
	unsigned int bad;

	for (bad = 0; bad < 2; bad++) {
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *e;

		sim_port_up(s->port[1][bad])->blackhole = true;
		e = scene_connect(s, 0, 1);
		if (scene_wait_up(e, 30 * SIM_S))
			fail_msg("with rail %u dead: %s", bad, e->why);
		scene_talk(s, e, 1, 1);
	}
}

/* @behaviour U50 */
static void lanes_of_different_mtu_work_together(struct sim_case *c)
{
	struct scene_conf conf = {.lanes = {2, 2}, .lazy = true};
	struct scene *s = scene_open(c, &conf);
	struct sim_port_params p = {
		.frame_size = 9014, .ip = 0x0a010001, .prefix = 24, .net = 1, .name = "big"};
	struct scene_ep *e;
	struct op *r, *r2;

	s->port[0][1] = sim_port_create(s->sim, &p);
	p.ip++;
	p.name = "big2";
	s->port[1][1] = sim_port_create(s->sim, &p);
	scene_start(s, 0);
	scene_start(s, 1);
	e = scene_up(s, 0, 1);
	scene_run(s, 20 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 2);
	r = op_recv(s, 1, 200000, 1);
	r2 = op_recv(s, 1, 3000000, 2);
	op_send(e, 1, 200000, 1);
	op_send(e, 2, 3000000, 2);
	op_expect(r, SIM_S, 0);
	op_expect(r2, SIM_S, 0);
	op_holds(r, 1, 200000);
	op_holds(r2, 2, 3000000);
}

/* @behaviour U50 */
static void peers_of_different_frame_size_agree(struct sim_case *c)
{
	struct scene_conf conf = {.lazy = true};
	struct scene *s = scene_open(c, &conf);
	struct sim_port_params p = {
		.frame_size = 9014, .ip = 0x0a000064, .prefix = 24, .name = "big"};
	struct scene_ep *e;

	s->port[1][0] = sim_port_create(s->sim, &p);
	scene_start(s, 0);
	scene_start(s, 1);
	e = scene_up(s, 0, 1);
	scene_talk(s, e, 1, 1);
	scene_talk(s, scene_up(s, 1, 0), 0, 2);
}

/* The simulator's lanes are of no driver that the library lists. */
static int no_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	return 0;
}

static int no_open(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		   size_t why_len)
{
	return -ENODEV;
}

static const struct weft_lane_driver as_raw = {
	.name = "raw",
	.abi = WEFT_LANE_ABI,
	.query = no_query,
	.open = no_open,
	.counters = weft_raw_counter_help,
};

static void look(const char *name, uint64_t value, void *arg)
{
	char own[160];

	if (strstr(name, ".sim.")) /* the port's own, as of a PMD */
		return;
	snprintf(own, sizeof(own), "%s%s", strncmp(name, "dpdk:", 5) ? "" : "raw:",
		 strncmp(name, "dpdk:", 5) ? name : name + 5);
	counter_help_look(own, value, arg);
}

/* With connections and paths that are up. */
static void every_counter_has_a_description(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = "CC=delay"};
	struct scene *s = scene_open(c, &conf);
	struct counter_help seen = {0};

	assert_int_equal(weft_lane_driver_add(&as_raw), 0);
	scene_talk(s, scene_up(s, 0, 1), 1, 7);
	weft_worker_counters(sim_worker(s->node[0]), look, &seen);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.counters > 200 && seen.levels > 20);
}

static struct sim_case cases[] = {
	SIM_CASE(one_sided_connect_carries_messages),
	SIM_CASE(simultaneous_connects_share_one_connection),
	SIM_CASE(a_later_endpoint_adopts_the_connection),
	SIM_CASE(loopback_works),
	SIM_CASE(an_idle_endpoint_costs_at_most_3450_B),
	SIM_CASE(many_endpoints_between_many_nodes),
	SIM_CASE(several_endpoints_between_two_workers_are_apart),
	SIM_CASE(accept_callback_hands_over_the_endpoint),
	SIM_CASE(messages_before_the_connection_arrive_in_order),
	SIM_CASE(any_lost_frame_of_wireup_is_recovered),
	SIM_CASE(connects_under_loss_duplication_and_reordering),
	SIM_CASE(two_nics_in_one_subnet_make_two_lanes),
	SIM_CASE(unequal_rail_counts_use_what_both_have),
	SIM_CASE(four_lanes_all_carry_bytes),
	SIM_CASE(a_lane_that_does_not_work_is_left_out),
	SIM_CASE(the_bootstrap_lane_is_replaced_when_it_does_not_work),
	SIM_CASE(lanes_of_different_mtu_work_together),
	SIM_CASE(peers_of_different_frame_size_agree),
	SIM_CASE(every_counter_has_a_description),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_connect", cases, sizeof(cases) / sizeof(cases[0]));
}
