/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lanes that die and come back under mixed traffic: one after the other, each in a way of its own,
 * and the next may die before the last one is used again.
 */

#include "mixed_priv.h"

#define DEATHS 40
#define FIRST_MAX (2 * SIM_MS)
#define GAP_MAX (20 * SIM_MS)
#define DEATH_MAX (120 * SIM_MS)

struct reaper {
	struct sim *sim;
	struct sim_rng rng;
	struct sim_port *(*port)[MIXED_LANES];
	const unsigned int *lanes;
	unsigned int nodes, left;
	/* The one under way. */
	enum death { DIES_UP, DIES_DOWN, DIES_BOTH, DIES_ALL, DIES_LINK, DEATH_KINDS } kind;
	unsigned int node, lane;
};

/* The argument of what is still in the simulation's queue when it ends early. */
static struct reaper d;

static void set(bool dead)
{
	struct sim_port *port = d.port[d.node][d.lane];

	switch (d.kind) {
	case DIES_LINK:
		sim_port_carrier(port, !dead);
		return;
	case DIES_ALL:
		for (unsigned int i = 0; i < d.nodes; i++)
			if (d.lane < d.lanes[i])
				sim_port_up(d.port[i][d.lane])->blackhole = dead;
		return;
	case DIES_UP:
	case DIES_BOTH:
		sim_port_up(port)->blackhole = dead;
		if (d.kind == DIES_UP)
			return;
		/* fall through */
	default:
		sim_port_down(port)->blackhole = dead;
	}
}

static void out(void *arg);

static void back(void *arg)
{
	set(false);
	if (--d.left)
		sim_at(d.sim, sim_now(d.sim) + sim_below(&d.rng, GAP_MAX), out, arg);
}

static void out(void *arg)
{
	uint64_t most = sim_chance(&d.rng, 0.1) ? 10 * DEATH_MAX : DEATH_MAX;

	d.kind = (enum death)sim_below(&d.rng, DEATH_KINDS);
	d.node = (unsigned int)sim_below(&d.rng, d.nodes);
	d.lane = (unsigned int)sim_below(&d.rng, d.lanes[d.node]);
	set(true);
	sim_at(d.sim, sim_now(d.sim) + sim_below(&d.rng, most), back, arg);
}

void mixed_lanes_begin(struct sim *sim, struct sim_port *(*port)[MIXED_LANES],
		       const unsigned int *lanes, unsigned int nodes)
{
	d = (struct reaper){.sim = sim,
			    .rng = sim_stream(sim, 14),
			    .port = port,
			    .lanes = lanes,
			    .nodes = nodes,
			    .left = DEATHS};
	sim_at(sim, sim_now(sim) + sim_below(&d.rng, FIRST_MAX), out, NULL);
}
