/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts with IPv6 alone: messages of every kind, two lanes, one of which dies and comes back. */

#include <string.h>

#include "scene.h"
#include "sim_test.h"

/* Addresses are made from the MAC addresses, as with ip=fe80::/64. */
static const struct scene_conf two_lanes = {.lanes = {2, 2}, .port = {.ip6 = "fe80::"}};

static void talk(struct scene *s, struct scene_ep *e, uint64_t tag)
{
	scene_talk(s, e, 1, tag);
	scene_talk_long(s, e, 1, tag + 1);
	op_expect(op_flush(e), SIM_S, 0);
}

/* @behaviour R89 */
static void a_lane_that_dies_loses_no_message(struct sim_case *c)
{
	struct scene *s = scene_open(c, &two_lanes);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r[8], *w[8];

	scene_run(s, 20 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 2);
	assert_true(strncmp(scene_lane(e, 0).remote, "fe80::", 6) == 0);
	talk(s, e, 1);
	for (unsigned int i = 0; i < 8; i++) {
		r[i] = op_recv(s, 1, 300000, 100 + i);
		w[i] = op_send(e, 100 + i, 300000, 100 + i);
	}
	scene_run(s, 100 * SIM_US);
	sim_port_up(s->port[0][0])->blackhole = true;
	sim_port_up(s->port[1][0])->blackhole = true;
	for (unsigned int i = 0; i < 8; i++) {
		op_expect(r[i], 2 * SIM_S, 0);
		op_holds(r[i], 100 + i, 300000);
		op_expect(w[i], 2 * SIM_S, 0);
	}
	assert_int_equal(scene_lanes_up(e), 1);
	sim_port_up(s->port[0][0])->blackhole = false;
	sim_port_up(s->port[1][0])->blackhole = false;
	scene_run(s, 10 * SIM_S);
	assert_int_equal(scene_lanes_up(e), 2);
	talk(s, e, 200);
	op_expect(op_close(e, 0), SIM_S, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(a_lane_that_dies_loses_no_message),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_ip6", cases, sizeof(cases) / sizeof(cases[0]));
}
