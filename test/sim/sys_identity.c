/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: workers with another host's network address.
 */

#include "scene.h"

/* Node 2 has node 1's IP address, and a MAC of its own, and node 0's worker address. */
/* @behaviour S8 */
static void a_neighbour_with_a_peers_address_ends_nothing(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 3, .one_net = true, .lazy = true};
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .prefix = 24};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e, *back, *x;
	unsigned int i;

	p.ip = 0x0a000000 | (1 * SCENE_LANES + 1);
	s->port[2][0] = sim_port_create(s->sim, &p);
	scene_start(s, 0);
	scene_start(s, 1);
	e = scene_up(s, 0, 1);
	back = scene_up(s, 1, 0);
	scene_talk(s, e, 1, 1);
	scene_start(s, 2);
	for (i = 0; i < 5; i++) {
		x = scene_connect(s, 2, 0);
		scene_run(s, SIM_S);
		assert_int_equal(e->errors + back->errors, 0);
		scene_talk(s, e, 1, 2 + i);
		scene_talk(s, back, 0, 20 + i);
		if (x->errors == 0)
			op_close(x, 0);
	}
	scene_run(s, 40 * SIM_S);
	assert_int_equal(e->errors + back->errors, 0);
	scene_talk(s, e, 1, 50);
	scene_talk(s, back, 0, 51);
}

static struct sim_case cases[] = {
	SIM_CASE(a_neighbour_with_a_peers_address_ends_nothing),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_identity", cases, sizeof(cases) / sizeof(cases[0]));
}
