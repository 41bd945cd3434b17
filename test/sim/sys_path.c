/* SPDX-License-Identifier: BSD-3-Clause */
/* The path to the peer changes amid messages of every kind: only the log reports it. */

#include <string.h>

#include "scene.h"
#include "sim_test.h"

#define MESSAGES 24u

struct way {
	size_t mtu; /* longer frames are dropped; 0 = none are */
};

static enum sim_verdict narrow(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	const struct way *way = arg;

	(void)port;
	(void)data;
	(void)room;
	return way->mtu != 0 && *len > way->mtu + 14 ? SIM_DROP : SIM_PASS;
}

/* Eager, multi-eager and rendezvous. */
static size_t size_of(unsigned int i)
{
	static const size_t sizes[] = {8, 3000, 8000, 20000, 60000, 300000, 1000000, 5000};

	return sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void change_amid_messages(struct scene *s, struct scene_ep *e, struct way *way, size_t mtu,
				 unsigned int base)
{
	struct weft_lane_info lane = {.size = sizeof(lane)};
	struct op *w[MESSAGES], *r[MESSAGES];
	unsigned int i;
	uint64_t parts;

	for (i = 0; i < MESSAGES; i++) {
		r[i] = op_recv(s, 1, size_of(i), base + i);
		w[i] = op_send(e, base + i, size_of(i), base + i);
	}
	scene_run(s, 100 * SIM_US);
	way->mtu = mtu;
	for (i = 0; i < MESSAGES; i++) {
		op_expect(r[i], 2 * SIM_S, 0);
		op_holds(r[i], base + i, size_of(i));
		op_expect(w[i], 2 * SIM_S, 0);
	}
	assert_int_equal(e->errors, 0);
	scene_run(s, SIM_S);
	/* What is new is cut to what passes: no frame goes in parts. */
	parts = sim_node_counter(s->node[0], "tx.parts");
	assert_true(way->mtu == 0 || parts > 0);
	for (i = 0; i < MESSAGES; i++) {
		r[i] = op_recv(s, 1, size_of(i), base + i);
		w[i] = op_send(e, base + i, size_of(i), base + i);
	}
	for (i = 0; i < MESSAGES; i++) {
		op_expect(r[i], SIM_S, 0);
		op_holds(r[i], base + i, size_of(i));
		op_expect(w[i], SIM_S, 0);
	}
	assert_int_equal(sim_node_counter(s->node[0], "tx.parts"), parts);
	assert_int_equal(e->errors, 0);
	assert_int_equal(weft_ep_query_lane(e->ep, 0, &lane), 0);
	assert_in_range(lane.frame_size, way->mtu != 0 ? way->mtu + 14 - 7 : 9014,
			way->mtu != 0 ? way->mtu + 14 : 9014);
	assert_null(strstr(lane.remote, "frames"));
}

static void the_mtu_shrinks_over(struct sim_case *c, unsigned int lanes)
{
	const struct scene_conf conf = {.lanes = {lanes, lanes}, .port = {.frame_size = 9014}};
	struct scene *s = scene_open(c, &conf);
	struct way way = {0};
	struct scene_ep *e;
	unsigned int i;

	for (i = 0; i < lanes; i++) {
		sim_filter(s->port[0][i], narrow, &way);
		sim_filter(s->port[1][i], narrow, &way);
	}
	e = scene_up(s, 0, 1);
	change_amid_messages(s, e, &way, 0, 1000);
	change_amid_messages(s, e, &way, 1500, 2000);
	change_amid_messages(s, e, &way, 1400, 3000);
	/* Less than a new connection needs. */
	change_amid_messages(s, e, &way, 1000, 5000);
	change_amid_messages(s, e, &way, 576, 6000);
	/* Wide again; more is tried seconds later. */
	way.mtu = 0;
	scene_run(s, 20 * SIM_S);
	change_amid_messages(s, e, &way, 0, 4000);
	assert_int_equal(scene_lanes_up(e), lanes);
}

/* @behaviour X20, R46 */
static void the_mtu_shrinks_amid_messages(struct sim_case *c)
{
	the_mtu_shrinks_over(c, 1);
}

/* @behaviour X20, R46 */
static void the_mtu_of_two_lanes_shrinks(struct sim_case *c)
{
	the_mtu_shrinks_over(c, 2);
}

static struct sim_case cases[] = {
	SIM_CASE(the_mtu_shrinks_amid_messages),
	SIM_CASE(the_mtu_of_two_lanes_shrinks),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_path", cases, sizeof(cases) / sizeof(cases[0]));
}
