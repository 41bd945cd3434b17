/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several switches: trunks between nets, shortest paths, ECMP, failures. Tables are made anew when
 * a trunk or a switch has changed and the next frame comes.
 */

#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"

#define NO_PATH UINT8_MAX

/* ---- tables --------------------------------------------------------------------------------- */

static bool usable(const struct sim *sim, const struct sim_trunk *t)
{
	return t->up && !sim->net_down[t->end[0].net] && !sim->net_down[t->end[1].net];
}

/* Distances from @root, breadth first. @tree: gets the trunks that were taken; may be NULL */
static void spread(struct sim *sim, unsigned int root, bool *tree)
{
	uint8_t *dist = sim->dist[root], reach;
	const struct sim_trunk *t;
	unsigned int i, e;
	bool more = true;

	memset(dist, NO_PATH, sizeof(sim->dist[root]));
	dist[root] = 0;
	for (reach = 0; more; reach++) {
		more = false;
		for (i = 0; i < 2 * sim->num_trunks; i++) {
			t = sim->trunks[i / 2];
			e = i % 2;
			if (!usable(sim, t) || dist[t->end[e].net] != reach ||
			    dist[t->end[!e].net] != NO_PATH)
				continue;
			dist[t->end[!e].net] = (uint8_t)(reach + 1);
			more = true;
			if (tree)
				tree[i / 2] = true;
		}
	}
}

/* Nets that no tree has reached yet begin one of their own. */
static void route(struct sim *sim)
{
	unsigned int net, low;

	memset(sim->tree, 0, sizeof(sim->tree));
	for (net = 0; net < SIM_MAX_NETS; net++) {
		for (low = 0; low < net && sim->dist[low][net] == NO_PATH; low++)
			;
		spread(sim, net, low == net ? sim->tree : NULL);
	}
	sim->routed = true;
}

/* ---- frames --------------------------------------------------------------------------------- */

static void send_on(struct sim *sim, struct sim_trunk_end *from, struct sim_frame *f)
{
	struct sim_trunk_end *to = &from->trunk->end[from == from->trunk->end];

	sim_wire_forward(sim, &from->out, SIM_EV_TRUNK, to, f);
}

static struct sim_trunk_end *end_at(struct sim_trunk *t, unsigned int net)
{
	return t->end[0].net == net ? &t->end[0] : t->end[1].net == net ? &t->end[1] : NULL;
}

/* One step towards @to. */
static bool forward(struct sim *sim, unsigned int net, unsigned int to, struct sim_frame *f)
{
	struct sim_trunk_end *equal[SIM_MAX_TRUNKS], *e;
	unsigned int i, n = 0;
	uint64_t hash;

	for (i = 0; i < sim->num_trunks; i++) {
		e = end_at(sim->trunks[i], net);
		if (e && usable(sim, sim->trunks[i]) &&
		    sim->dist[to][e->trunk->end[e == e->trunk->end].net] + 1 == sim->dist[to][net])
			equal[n++] = e;
	}
	if (!n) {
		free(f);
		return false;
	}
	hash = sim_mix64(sim_link_flow_hash(f->data, f->len) + ((uint64_t)net << 32));
	send_on(sim, equal[hash % n], f);
	return true;
}

static void flood(struct sim *sim, unsigned int net, const struct sim_trunk *in,
		  const struct sim_frame *f)
{
	struct sim_trunk_end *e;
	unsigned int i;

	for (i = 0; i < sim->num_trunks; i++) {
		e = end_at(sim->trunks[i], net);
		if (e && sim->tree[i] && sim->trunks[i] != in)
			send_on(sim, e, sim_frame_new(f->data, f->len));
	}
}

/* Where the address is: learnt without ever being wrong. */
static int net_of(const struct sim *sim, const struct sim_frame *f)
{
	unsigned int i;

	for (i = 0; i < sim->num_ports; i++)
		if (!memcmp(sim->ports[i]->fp.mac, f->data, 6))
			return (int)sim->ports[i]->net;
	return -1;
}

bool sim_fabric_switch(struct sim *sim, unsigned int net, const struct sim_port *from,
		       const struct sim_trunk *in, struct sim_frame *f)
{
	int to;

	if (!sim->num_trunks && (net >= SIM_MAX_NETS || !sim->net_down[net]))
		return sim_net_deliver(sim, net, from, f);
	if (net >= SIM_MAX_NETS || sim->net_down[net] || f->len < 6) {
		free(f);
		return true;
	}
	if (!sim->routed)
		route(sim);
	if (f->data[0] & 1) {
		flood(sim, net, in, f);
		return sim_net_deliver(sim, net, from, f) || !from;
	}
	to = net_of(sim, f);
	if (to < 0 || to == (int)net)
		return sim_net_deliver(sim, net, from, f);
	return forward(sim, net, (unsigned int)to, f);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct sim_trunk *sim_trunk_create(struct sim *sim, unsigned int a, unsigned int b,
				   const struct sim_link *ab, const struct sim_link *ba)
{
	struct sim_trunk *t = sim_alloc(sizeof(*t));
	unsigned int i;

	if (sim->num_trunks == SIM_MAX_TRUNKS || a >= SIM_MAX_NETS || b >= SIM_MAX_NETS || a == b) {
		fprintf(stderr, "sim: no trunk from net %u to %u\n", a, b);
		abort();
	}
	*t = (struct sim_trunk){.sim = sim, .up = true};
	for (i = 0; i < 2; i++) {
		t->end[i].trunk = t;
		t->end[i].net = i ? b : a;
		if (i ? ba : ab)
			t->end[i].out.link = i ? *ba : *ab;
		sim_link_init(&t->end[i].out.state, sim->seed, 200000 + 2 * sim->num_trunks + i);
	}
	sim->trunks[sim->num_trunks++] = t;
	sim->routed = false;
	return t;
}

struct sim_link *sim_trunk_link(struct sim_trunk *trunk, unsigned int from)
{
	return &end_at(trunk, from)->out.link;
}

const struct sim_link_stats *sim_trunk_stats(const struct sim_trunk *trunk, unsigned int from)
{
	return &trunk->end[trunk->end[0].net != from].out.state.stats;
}

void sim_trunk_set(struct sim_trunk *trunk, bool up)
{
	trunk->up = up;
	trunk->sim->routed = false;
}

void sim_switch_set(struct sim *sim, unsigned int net, bool up)
{
	if (net >= SIM_MAX_NETS)
		abort();
	sim->net_down[net] = !up;
	sim->routed = false;
}

uint64_t sim_congestion_drops(const struct sim *sim)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < sim->num_ports; i++)
		sum += sim_link_congestion(&sim->ports[i]->up.state.stats) +
		       sim_link_congestion(&sim->ports[i]->down.state.stats);
	for (i = 0; i < sim->num_trunks; i++)
		sum += sim_link_congestion(&sim->trunks[i]->end[0].out.state.stats) +
		       sim_link_congestion(&sim->trunks[i]->end[1].out.state.stats);
	return sum;
}

void sim_fabric_free(struct sim *sim)
{
	unsigned int i;

	for (i = 0; i < sim->num_trunks; i++)
		free(sim->trunks[i]);
}
