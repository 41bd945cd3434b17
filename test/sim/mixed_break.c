/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A network that chokes and breaks under mixed traffic: each lane has two leaf switches and two
 * spines with short queues, cross traffic goes through the first one, and paths, switches and
 * receivers fail and return.
 */

#include <stdlib.h>

#include "mixed_priv.h"
#include "tcp.h"

#define SPINES 2
#define NETS (2 + SPINES) /* of a lane: leaves, then spines */
#define TCP_RATE (SIM_GBIT / 5)
#define OUTAGES 12
#define OUTAGE_MAX (300 * SIM_MS)

struct breaker {
	struct sim *sim;
	struct sim_rng rng;
	struct sim_trunk *trunk[MIXED_LANES][SPINES][2]; /* of each leaf */
	struct sim_node *node[MIXED_NODES];
	unsigned int lanes, nodes, left;
	struct tcp_flow *tcp;
	/* The outage under way; one at a time. */
	enum outage { OUT_TRUNK, OUT_HOLE, OUT_ONE_WAY, OUT_SPINE, OUT_SLOW, OUTAGE_KINDS } kind;
	unsigned int lane, spine, leaf, slow;
};

/* The arguments of what is still in the simulation's queue when it ends early. */
static struct breaker b;

unsigned int mixed_break_net(unsigned int lane, unsigned int node)
{
	return lane * NETS + node % 2;
}

static struct sim_link dice_trunk(void)
{
	static const uint64_t rates[] = {SIM_GBIT, 10 * SIM_GBIT, 25 * SIM_GBIT};
	struct sim_link l = {.rate = rates[sim_below(&b.rng, 3)],
			     .delay_ns = sim_below(&b.rng, 50000),
			     .queue_bytes = sim_between(&b.rng, 30, 300) * 1000};

	if (sim_chance(&b.rng, 0.5))
		l.ecn_bytes = l.queue_bytes / 4;
	if (sim_chance(&b.rng, 0.3)) {
		l.bursts = 0.01;
		l.burst_len = (double)sim_between(&b.rng, 2, 50);
	}
	if (sim_chance(&b.rng, 0.2))
		l.police_rate = l.rate / 2;
	if (sim_chance(&b.rng, 0.2))
		l.flow_rate = l.rate / 4;
	return l;
}

static void make_fabric(unsigned int lane)
{
	unsigned int spine, leaf;
	struct sim_link up, down;

	for (spine = 0; spine < SPINES; spine++) {
		for (leaf = 0; leaf < 2; leaf++) {
			up = dice_trunk();
			down = dice_trunk();
			b.trunk[lane][spine][leaf] = sim_trunk_create(
				b.sim, lane * NETS + leaf, lane * NETS + 2 + spine, &up, &down);
		}
	}
}

static void make_cross_traffic(void)
{
	const struct sim_port_params from = {.net = 0, .up = {.rate = TCP_RATE}},
				     to = {.net = 1, .up = {.rate = TCP_RATE}};

	b.tcp = tcp_flow_create(b.sim, sim_chance(&b.rng, 0.5) ? &tcp_cubic : &tcp_bbr,
				sim_port_create(b.sim, &from), sim_port_create(b.sim, &to));
	tcp_flow_start(b.tcp);
}

/* ---- outages -------------------------------------------------------------------------------- */

static void set(bool broken)
{
	struct sim_trunk *t = b.trunk[b.lane][b.spine][b.leaf];
	unsigned int leaf = b.lane * NETS + b.leaf, spine = b.lane * NETS + 2 + b.spine;

	switch (b.kind) {
	case OUT_TRUNK:
		sim_trunk_set(t, !broken);
		break;
	case OUT_HOLE:
		sim_trunk_link(t, spine)->blackhole = broken;
		/* fall through */
	case OUT_ONE_WAY:
		sim_trunk_link(t, leaf)->blackhole = broken;
		break;
	case OUT_SPINE:
		sim_switch_set(b.sim, spine, !broken);
		break;
	default:
		sim_node_slow(b.node[b.slow], broken ? 200 * SIM_US : 0);
	}
}

static void out(void *arg);

static void back(void *arg)
{
	set(false);
	if (--b.left)
		sim_at(b.sim, sim_now(b.sim) + sim_below(&b.rng, OUTAGE_MAX), out, arg);
}

static void out(void *arg)
{
	b.kind = (enum outage)sim_below(&b.rng, OUTAGE_KINDS);
	b.lane = (unsigned int)sim_below(&b.rng, b.lanes);
	b.spine = (unsigned int)sim_below(&b.rng, SPINES);
	b.leaf = (unsigned int)sim_below(&b.rng, 2);
	b.slow = (unsigned int)sim_below(&b.rng, b.nodes);
	if (!sim_node_alive(b.node[b.slow]))
		b.kind = OUT_TRUNK;
	set(true);
	sim_at(b.sim, sim_now(b.sim) + sim_below(&b.rng, OUTAGE_MAX), back, arg);
}

void mixed_break_begin(struct sim *sim, struct sim_node *const *node, unsigned int nodes,
		       unsigned int lanes)
{
	unsigned int i;

	b = (struct breaker){.sim = sim,
			     .rng = sim_stream(sim, 12),
			     .lanes = lanes,
			     .nodes = nodes,
			     .left = OUTAGES};
	for (i = 0; i < nodes; i++)
		b.node[i] = node[i];
	for (i = 0; i < lanes; i++)
		make_fabric(i);
	make_cross_traffic();
	sim_at(sim, sim_now(sim) + sim_below(&b.rng, OUTAGE_MAX), out, NULL);
}

void mixed_break_end(void)
{
	tcp_flow_stop(b.tcp);
}

void mixed_free(void)
{
	tcp_flow_free(b.tcp);
	b.tcp = NULL;
}
