/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "mixed_priv.h"
#include "random_sim.h"

struct sim_lanes {
	struct sim *sim;
	struct sim_port *port[RANDOM_NODES][MIXED_LANES];
	unsigned int num[RANDOM_NODES];
};

static void open_node(struct rnode *n)
{
	struct world *w = n->w;
	struct sim_lanes *lanes = w->lanes;
	struct sim_port **ports = lanes->port[n->index];
	struct sim_port_params pp = {0};
	struct sim_node_params np = {.ports = ports};
	unsigned int l, num = (unsigned int)sim_between(&w->rng, w->dying ? 2 : 1, 3);
	char config[200], name[16];
	struct sim_node *node;

	random_config(w, config, sizeof(config));
	for (l = 0; l < num; l++) {
		snprintf(name, sizeof(name), "%c%u", 'a' + n->index, l);
		pp.name = name;
		pp.net = l;
		pp.ip = 0x0a000001 + (l << 16) + n->index;
		pp.prefix = 24;
		pp.bufs = 1024;
		pp.up = (struct sim_link){.rate = 10 * SIM_GBIT,
					  .delay_ns = sim_below(&w->rng, 20000),
					  .loss = w->faulty ? 0.01 : 0,
					  .dup = w->faulty ? 0.01 : 0,
					  .reorder = w->faulty ? 0.05 : 0};
		ports[l] = sim_port_create(lanes->sim, &pp);
	}
	lanes->num[n->index] = np.num_ports = num;
	np.config = config;
	np.flags = random_flags(w);
	if (w->accept) {
		np.accept_cb = end_accepted;
		np.accept_arg = n;
	}
	node = sim_node_create(lanes->sim, &np);
	n->ctx = sim_context(node);
	n->worker = sim_worker(node);
	random_trace(w, "%c: %u lanes, %s", 'a' + n->index, num, config);
}

static void cut(struct world *w)
{
	struct sim_lanes *lanes = w->lanes;

	mixed_lanes_begin(lanes->sim, lanes->port, lanes->num, w->nodes);
}

static void run(struct world *w, uint64_t ns)
{
	struct sim_lanes *lanes = w->lanes;

	sim_run(lanes->sim, ns, NULL, NULL);
}

static uint64_t now(const struct world *w)
{
	const struct sim_lanes *lanes = w->lanes;

	return sim_now(lanes->sim);
}

static void free_lanes(struct world *w)
{
	free(w->lanes);
}

static const struct random_net net = {
	.nodes_max = RANDOM_NODES,
	.dying = 0.3,
	.timeout = 3000,
	.open = open_node,
	.cut = cut,
	.run = run,
	.now = now,
	.free = free_lanes,
};

struct world *random_world_sim(struct sim *sim)
{
	struct sim_lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		abort();
	lanes->sim = sim;
	return random_world(&net, lanes, sim_seed(sim));
}
