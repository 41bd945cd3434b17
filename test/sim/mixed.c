/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "frame/frame_port.h"
#include "mixed_priv.h"

#define NODES MIXED_NODES
#define LANES MIXED_LANES

uint64_t mixed_messages, mixed_bytes, mixed_withdrawn, mixed_lanes_lost;
char mixed_text[400];

static struct sim_link dice_link(enum mixed_kind kind, struct sim_rng *r)
{
	static const uint64_t rates[] = {SIM_GBIT, 10 * SIM_GBIT, 25 * SIM_GBIT};
	struct sim_link l = {.rate = rates[sim_below(r, 3)], .delay_ns = sim_below(r, 50000)};

	/* Slow enough for several deaths; or the one comes at any step of the fast. */
	if (kind == MIXED_LANES_DIE && sim_chance(r, 0.5))
		l.rate /= 20;
	if (kind == MIXED_CLEAN || kind == MIXED_BREAK ||
	    (kind == MIXED_LANES_DIE && sim_chance(r, 0.7)))
		return l;
	l.loss = 0.01;
	l.dup = 0.01;
	l.reorder = 0.05;
	l.reorder_ns = sim_between(r, 10, 500) * SIM_US;
	l.jitter_ns = sim_below(r, sim_chance(r, 0.25) ? 5 * SIM_MS : 20 * SIM_US);
	if (kind == MIXED_CORRUPT)
		l.corrupt = 0.02;
	return l;
}

/* Thresholds far apart and near, so that every protocol meets every size. */
static void dice_config(enum mixed_kind kind, struct sim_rng *r, char *text, size_t size)
{
	static const char *const rndv[] = {"auto", "auto", "8k", "64k", "inf", "1"};
	static const char *const limit[] = {"256k", "256k", "32k", "0"};
	size_t at;

	at = (size_t)snprintf(text, size, "RNDV_THRESH=%s MULTI_EAGER_LIMIT=%s ZCOPY=%s",
			      rndv[sim_below(r, 6)], limit[sim_below(r, 4)],
			      sim_chance(r, 0.7) ? "y" : "n");
	if (kind == MIXED_CORRUPT)
		at += (size_t)snprintf(text + at, size - at, " CSUM=crc32c");
	if (kind == MIXED_WRAP)
		at += (size_t)snprintf(text + at, size - at, " SEQ_START=4294967260");
	if (kind == MIXED_SMALL)
		snprintf(text + at, size - at, " EAGER_CREDIT=%s UNEXP_LIMIT=64k WINDOW=16k",
			 sim_chance(r, 0.5) ? "4k" : "16k");
}

static void dice_port(enum mixed_kind kind, struct sim_rng *r, struct sim_port_params *p)
{
	p->frame_size = sim_chance(r, 0.3) ? 9014 : 1514;
	p->bufs = 1024;
	p->paths = sim_chance(r, 0.3) ? 4 : 1;
	p->no_flags = sim_chance(r, 0.2) ? ~0u : 0;
	if (sim_chance(r, 0.25)) {
		p->flags |= WEFT_FRAME_PORT_REG;
		p->max_mems = sim_chance(r, 0.5) ? 4 : 0;
		p->scattered = sim_chance(r, 0.5);
	}
	if (kind == MIXED_WRAP) {
		p->set_first_seq = true;
		p->first_seq = UINT32_MAX - 30;
	}
	if (kind == MIXED_SMALL) {
		p->tx_depth = 32;
		p->rx_depth = 64;
		p->bufs = 512;
	}
}

struct pauses {
	struct sim *sim;
	struct sim_node *node[NODES];
	unsigned int nodes;
	struct sim_rng rng;
	unsigned int left;
};

static void pause_one(void *arg)
{
	struct pauses *p = arg;
	struct sim_node *node = p->node[sim_below(&p->rng, p->nodes)];

	if (sim_node_alive(node))
		sim_node_pause(node, sim_below(&p->rng, 2 * SIM_S));
	if (--p->left)
		sim_at(p->sim, sim_now(p->sim) + sim_below(&p->rng, 300 * SIM_MS), pause_one, p);
}

/* The arguments of what is still in the simulation's queue when it ends early. */
static struct pauses pauses;
static struct sim_port *ports[NODES][LANES];
static unsigned int lanes[NODES];

/* What happens to nodes and lanes while there is traffic. */
static void begin_later(enum mixed_kind kind, struct sim *sim, struct sim_node **node,
			unsigned int nodes)
{
	if (kind == MIXED_LANES_DIE)
		mixed_lanes_begin(sim, ports, lanes, nodes);
	if (kind != MIXED_PAUSES)
		return;
	pauses =
		(struct pauses){.sim = sim, .nodes = nodes, .rng = sim_stream(sim, 11), .left = 10};
	memcpy(pauses.node, node, nodes * sizeof(node[0]));
	sim_at(sim, 0, pause_one, &pauses);
}

/* Of even and of odd lanes' frames: what one lane has sent, another one may not carry. */
static uint16_t length[2];

static void dice_lengths(enum mixed_kind kind, struct sim *sim, uint16_t frame_size)
{
	struct sim_rng r = sim_stream(sim, 15);

	length[0] = length[1] = frame_size;
	if (kind == MIXED_LANES_DIE && sim_chance(&r, 0.5))
		length[1] = frame_size == 1514 ? 9014 : 1514;
}

static void describe(unsigned int nodes, const struct sim_port_params *p, const char *config)
{
	snprintf(mixed_text, sizeof(mixed_text),
		 "%u nodes, %u %u %u lanes, frames of %u and %u, %u paths%s, %s", nodes, lanes[0],
		 lanes[1], nodes > 2 ? lanes[2] : 0, length[0], length[1], p->paths,
		 p->no_flags                      ? ", bare port"
		 : p->flags & WEFT_FRAME_PORT_REG ? ", NIC"
						  : "",
		 config);
}

const char *mixed_run(struct sim *sim, const struct mixed_conf *conf, uint64_t *hash)
{
	static char error[320];
	struct sim_rng r = sim_stream(sim, 10);
	unsigned int nodes = (unsigned int)sim_between(&r, 2, NODES), i, l;
	struct sim_port_params pp = {0};
	struct sim_node *node[NODES];
	struct traffic_conf tc = traffic_mixed;
	struct traffic *t;
	char config[200], name[16];
	const char *why;

	dice_config(conf->kind, &r, config, sizeof(config));
	dice_port(conf->kind, &r, &pp);
	dice_lengths(conf->kind, sim, pp.frame_size);
	for (i = 0; i < nodes; i++) {
		struct sim_node_params np = {.ports = ports[i], .config = config};

		lanes[i] =
			(unsigned int)sim_between(&r, conf->kind == MIXED_LANES_DIE ? 2 : 1, LANES);
		for (l = 0; l < lanes[i]; l++) {
			snprintf(name, sizeof(name), "%c%u", 'a' + i, l);
			pp.name = name;
			pp.frame_size = length[l & 1];
			pp.net = conf->kind == MIXED_BREAK ? mixed_break_net(l, i) : l;
			pp.ip = 0x0a000001 + (l << 16) + i;
			pp.prefix = 24;
			pp.up = dice_link(conf->kind, &r);
			ports[i][l] = sim_port_create(sim, &pp);
		}
		np.num_ports = lanes[i];
		np.flags = i & 1 ? WEFT_WORKER_F_SEND_NOW : 0;
		node[i] = sim_node_create(sim, &np);
	}
	tc.messages = conf->messages ? conf->messages : 60;
	describe(nodes, &pp, config);
	if (conf->kind == MIXED_BREAK)
		mixed_break_begin(sim, node, nodes, LANES);
	t = traffic_create(sim, node, nodes, &tc);
	begin_later(conf->kind, sim, node, nodes);
	why = traffic_run(t, 120 * SIM_S);
	if (conf->kind == MIXED_BREAK)
		mixed_break_end();
	mixed_lanes_lost = 0;
	for (i = 0; i < nodes; i++)
		mixed_lanes_lost += sim_node_counter(node[i], "ep.lanes_lost");
	mixed_messages = traffic_done(t);
	mixed_bytes = traffic_bytes(t);
	mixed_withdrawn = traffic_withdrawn(t);
	if (hash)
		*hash = sim_hash(sim);
	if (why) {
		/* Requests still point into the traffic: it stays. */
		snprintf(error, sizeof(error), "%s", why);
		return error;
	}
	sim_close_nodes(sim);
	traffic_destroy(t);
	return NULL;
}
