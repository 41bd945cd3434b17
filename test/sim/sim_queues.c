/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports with several queues: which queue a frame comes to, and what the port reports of it.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_ring.h>
#include <rte_udp.h>

#include "sim_priv.h"

#define RETA 128
#define RING 512
#define FLOWS (1u << 20) /* so that no flow drives out another, as in a tap device */

struct sim_queues {
	enum sim_spread how;
	uint16_t n;
	struct sim_port *port[SIM_QUEUES_MAX];
	struct rte_ring *ring[SIM_QUEUES_MAX];
	struct weft_rss rss, reported;
	struct {
		uint32_t hash;
		uint16_t queue;
		bool used;
	} flow[FLOWS];
};

/*
 * ---- the receiver of a frame
 * -----------------------------------------------------------------------
 */

struct flow {
	uint32_t src_ip, dst_ip;
	uint16_t src_port, dst_port;
};

static bool flow_of(const struct sim_frame *f, struct flow *flow)
{
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp = sim_find_udp((uint8_t *)(uintptr_t)f->data, f->len, &ip);

	if (!udp)
		return false;
	*flow = (struct flow){
		.src_ip = rte_be_to_cpu_32(ip->src_addr),
		.dst_ip = rte_be_to_cpu_32(ip->dst_addr),
		.src_port = rte_be_to_cpu_16(udp->src_port),
		.dst_port = rte_be_to_cpu_16(udp->dst_port),
	};
	return true;
}

/* The same in both directions, as a tap device's. */
static uint32_t tap_hash(const struct flow *f)
{
	uint64_t a = (uint64_t)f->src_ip << 16 | f->src_port;
	uint64_t b = (uint64_t)f->dst_ip << 16 | f->dst_port;

	return (uint32_t)(((a * b) ^ (a + b)) * 0x9e3779b97f4a7c15ull >> 32);
}

static uint16_t tap_queue(const struct sim_queues *qs, const struct flow *f)
{
	uint32_t hash = tap_hash(f);

	if (qs->flow[hash % FLOWS].used && qs->flow[hash % FLOWS].hash == hash)
		return qs->flow[hash % FLOWS].queue;
	return (uint16_t)(hash % qs->n);
}

static uint16_t choose(const struct sim_queues *qs, const struct flow *f)
{
	int owner;

	switch (qs->how) {
	case SIM_SPREAD_RULES:
		owner = weft_port_owner(qs->port[0]->fp.udp_port, qs->n, f->dst_port);
		return owner < 0 ? 0 : (uint16_t)owner;
	case SIM_SPREAD_FIRST:
		return 0;
	case SIM_SPREAD_TAP:
		return tap_queue(qs, f);
	default:
		return weft_rss_queue(&qs->rss, f->src_ip, f->dst_ip, f->src_port, f->dst_port);
	}
}

struct sim_port *sim_queue_for(struct sim_port *port, const struct sim_frame *frame)
{
	const struct sim_queues *qs = port->queues;
	struct flow f;

	/* What is no UDP, ARP above all, has no hash. */
	return qs && flow_of(frame, &f) ? qs->port[choose(qs, &f)] : port;
}

void sim_queue_sent(struct sim_port *port, const struct sim_frame *frame)
{
	struct sim_queues *qs = port->queues;
	struct flow f;
	uint32_t hash;

	if (!qs || qs->how != SIM_SPREAD_TAP || !flow_of(frame, &f))
		return;
	hash = tap_hash(&f);
	qs->flow[hash % FLOWS].hash = hash;
	qs->flow[hash % FLOWS].queue = port->fp.steering.queue;
	qs->flow[hash % FLOWS].used = true;
}

/* ---- life ----------------------------------------------------------------------------------- */

void sim_queues_drain(struct sim_port *port)
{
	struct sim_queues *qs = port->queues;
	void *m;
	uint16_t q;

	for (q = 0; qs && q < qs->n; q++)
		while (rte_ring_dequeue(qs->ring[q], &m) == 0)
			rte_pktmbuf_free(m);
}

void sim_queues_free(struct sim_port *port)
{
	struct sim_queues *qs = port->queues;
	uint16_t q;

	if (!qs || port->fp.steering.queue)
		return;
	for (q = 0; q < qs->n; q++)
		free(qs->ring[q]);
	free(qs);
}

static struct rte_ring *ring_create(void)
{
	struct rte_ring *r = aligned_alloc(64, (size_t)rte_ring_get_memsize(RING));

	if (!r || rte_ring_init(r, "queue", RING, RING_F_SC_DEQ))
		abort();
	return r;
}

static void random_rss(struct sim_rng *rng, struct weft_rss *rss, uint16_t queues)
{
	uint16_t i, k, swap;

	sim_fill(rng, rss->key, sizeof(rss->key));
	rss->reta_size = RETA;
	for (i = 0; i < RETA; i++)
		rss->reta[i] = i % queues;
	for (i = 0; i < RETA; i++) {
		k = (uint16_t)sim_below(rng, RETA);
		swap = rss->reta[i];
		rss->reta[i] = rss->reta[k];
		rss->reta[k] = swap;
	}
}

static void make_queue(struct sim_queues *qs, uint16_t q)
{
	struct weft_frame_port *fp = &qs->port[q]->fp, *first = &qs->port[0]->fp;

	memcpy(fp->mac, first->mac, sizeof(fp->mac));
	memcpy(fp->device, first->device, sizeof(fp->device));
	fp->arp = &qs->port[0]->arp;
	fp->udp_port = qs->port[q]->params.udp_port;
	fp->steering = (struct weft_steering){
		.queue = q,
		.queues = qs->n,
		.hashed = qs->how != SIM_SPREAD_RULES,
		.rss = qs->how == SIM_SPREAD_RSS   ? &qs->rss
		       : qs->how == SIM_SPREAD_LIE ? &qs->reported
						   : NULL,
		.handed = qs->ring,
	};
	qs->port[q]->queues = qs;
}

void sim_port_queues(struct sim *sim, const struct sim_port_params *params, enum sim_spread how,
		     unsigned int n, struct sim_port **out)
{
	struct sim_queues *qs = sim_alloc(sizeof(*qs));
	struct sim_port_params p = *params;
	struct sim_rng rng = sim_rng_make(sim->seed, 5000 + sim->num_ports);
	uint16_t q;

	qs->how = how;
	qs->n = (uint16_t)n;
	random_rss(&rng, &qs->rss, qs->n);
	random_rss(&rng, &qs->reported, qs->n);
	if (!p.udp_port)
		p.udp_port = 9338;
	for (q = 0; q < n; q++) {
		qs->ring[q] = ring_create();
		qs->port[q] = out[q] = sim_port_create(sim, &p);
		p.queue_of = out[0];
		p.udp_port++;
	}
	for (q = 0; q < n; q++)
		make_queue(qs, q);
}
