/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_flow.h>
#include <rte_ring.h>

#include "port/event.h"
#include "port/port.h"
#include "port/spread.h"

/* ---- hints about networks ------------------------------------------------------------------- */

#define FLOW 5000u   /* Mb/s that AWS allows one flow */
#define GROUP 10000u /* Mb/s of one flow in a cluster placement group */
#define PATHS_MAX 16u
#define MTU 9001

static unsigned int paths_for(uint32_t mbps, uint32_t flow)
{
	uint32_t n = (mbps + flow - 1) / flow;

	return n > PATHS_MAX ? PATHS_MAX : n;
}

void weft_port_flow_hint(const char *driver, uint32_t mbps, uint16_t mtu, unsigned int paths,
			 char *text, size_t size)
{
	const char *jumbo = mtu < MTU ? "; inside a VPC mtu=9001 is carried" : "";

	text[0] = '\0';
	if (!driver || strcmp(driver, "net_ena") != 0)
		return;
	if (mbps == 0)
		snprintf(text, size,
			 "AWS gives each flow 5 Gb/s, 10 in a cluster placement group: %u paths at "
			 "most now, for a link of N Gb/s paths=N/5 or N/10 is needed%s",
			 paths, jumbo);
	else if (paths < paths_for(mbps, FLOW))
		snprintf(text, size,
			 "AWS gives each flow 5 Gb/s, so this link of %u Gb/s needs paths=%u, or "
			 "paths=%u in a cluster placement group (10 Gb/s a flow), and has "
			 "%u at most%s",
			 mbps / 1000, paths_for(mbps, FLOW), paths_for(mbps, GROUP), paths, jumbo);
	else if (*jumbo)
		snprintf(text, size, "%s", jumbo + 2);
}

/* ---- flow rules ----------------------------------------------------------------------------- */

struct rule {
	struct rte_flow_attr attr;
	struct rte_flow_item_udp spec, mask;
	struct rte_flow_action_queue queue;
	struct rte_flow_item items[5];
	struct rte_flow_action actions[2];
};

static void make_rule(struct rule *r, bool vlan, uint16_t udp_port, uint16_t mask, uint16_t queue)
{
	int i = 0;

	memset(r, 0, sizeof(*r));
	r->attr.ingress = 1;
	r->spec.hdr.dst_port = rte_cpu_to_be_16(udp_port);
	r->mask.hdr.dst_port = rte_cpu_to_be_16(mask);
	r->queue.index = queue;
	r->items[i++].type = RTE_FLOW_ITEM_TYPE_ETH;
	if (vlan)
		r->items[i++].type = RTE_FLOW_ITEM_TYPE_VLAN;
	r->items[i++].type = RTE_FLOW_ITEM_TYPE_IPV4;
	r->items[i].type = RTE_FLOW_ITEM_TYPE_UDP;
	r->items[i].spec = &r->spec;
	r->items[i++].mask = &r->mask;
	r->items[i].type = RTE_FLOW_ITEM_TYPE_END;
	r->actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
	r->actions[0].conf = &r->queue;
	r->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

static bool can_steer(const struct weft_port_dev *d, uint16_t queue)
{
	struct rte_flow_error error = {0};
	struct rule r;

	make_rule(&r, d->vlan, (uint16_t)(d->base_udp_port + queue), 0xffff, queue);
	return rte_flow_validate(d->port_id, &r.attr, r.items, r.actions, &error) == 0;
}

/*
 * Steer the UDP ports of connections that this queue opens: by one rule if the NIC supports masks,
 * else by one rule for each of a few ports. Frames to other ports arrive at other queues, whose
 * workers hand them over.
 */
static void steer_range(struct weft_port *p)
{
	struct weft_port_range range =
		weft_port_range(p->dev->base_udp_port, p->queue, p->dev->num_queues);
	struct rte_flow_error error = {0};
	struct rule r;
	uint16_t i;

	make_rule(&r, p->dev->vlan, range.first, range.mask, p->queue);
	p->flow[1] = rte_flow_create(p->port_id, &r.attr, r.items, r.actions, &error);
	if (p->flow[1])
		return;
	p->fp.steering.range_max = WEFT_FRAME_PATHS_MAX;
	for (i = 0; i < WEFT_FRAME_PATHS_MAX; i++) {
		make_rule(&r, p->dev->vlan, (uint16_t)(range.first + i), 0xffff, p->queue);
		p->flow[1 + i] = rte_flow_create(p->port_id, &r.attr, r.items, r.actions, &error);
	}
}

int weft_port_steer(struct weft_port *p, char *why, size_t why_len)
{
	struct rte_flow_error error = {0};
	struct rule r;

	if (!p->dev->spread || p->dev->spread->hashed)
		return 0;
	make_rule(&r, p->dev->vlan, p->fp.udp_port, 0xffff, p->queue);
	p->flow[0] = rte_flow_create(p->port_id, &r.attr, r.items, r.actions, &error);
	if (p->flow[0]) {
		steer_range(p);
		return 0;
	}
	snprintf(why, why_len, "port %u (%s) can't steer UDP port %u to queue %u (%s)", p->port_id,
		 p->dev->name, p->fp.udp_port, p->queue,
		 error.message ? error.message : rte_strerror(rte_errno));
	return rte_errno ? -rte_errno : -ENOTSUP;
}

void weft_port_unsteer(struct weft_port *p)
{
	struct rte_flow_error error;

	for (size_t i = 0; i < RTE_DIM(p->flow); i++) {
		if (p->flow[i] && !weft_port_is_taken(p->dev))
			rte_flow_destroy(p->port_id, p->flow[i], &error);
		p->flow[i] = NULL;
	}
}

/* ---- several queues ------------------------------------------------------------------------- */

/* frames that arrived at another worker's queue and wait for the right one */
#define RING 512
#define KEY_DEFAULT 40 /* bytes, if the driver does not report the length */
#define KEY_LEAST 16   /* bytes needed to hash addresses and ports */
#define UDP_HASH RTE_ETH_RSS_NONFRAG_IPV4_UDP

void weft_port_spread_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf)
{
	if (d->num_queues < 2 || !(d->info.flow_type_rss_offloads & UDP_HASH))
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = UDP_HASH;
}

static bool read_key(const struct weft_port_dev *d, struct weft_rss *rss)
{
	struct rte_eth_rss_conf conf = {
		.rss_key = (uint8_t *)rss->key,
		.rss_key_len = d->info.hash_key_size ? d->info.hash_key_size : KEY_DEFAULT,
	};
	uint32_t any = 0;

	if (conf.rss_key_len < KEY_LEAST || conf.rss_key_len > sizeof(rss->key))
		return false;
	if (rte_eth_dev_rss_hash_conf_get(d->port_id, &conf) || !(conf.rss_hf & UDP_HASH))
		return false;
	/* Some drivers report success and fill in nothing. */
	for (size_t i = 0; i < KEY_LEAST / 4; i++)
		any |= rss->key[i];
	return any != 0;
}

/* Set equal shares if the table can be written, and read its contents in any case. */
static bool read_table(const struct weft_port_dev *d, struct weft_rss *rss)
{
	struct rte_eth_rss_reta_entry64 reta[WEFT_RSS_RETA_MAX / RTE_ETH_RETA_GROUP_SIZE] = {0};
	uint16_t size = d->info.reta_size, i;

	if (size == 0 || size > WEFT_RSS_RETA_MAX || !rte_is_power_of_2(size))
		return false;
	for (i = 0; i < size; i++) {
		reta[i / RTE_ETH_RETA_GROUP_SIZE].mask |= 1ull << i % RTE_ETH_RETA_GROUP_SIZE;
		reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			i % d->num_queues;
	}
	rte_eth_dev_rss_reta_update(d->port_id, reta, size);
	if (rte_eth_dev_rss_reta_query(d->port_id, reta, size))
		return false;
	rss->reta_size = size;
	for (i = 0; i < size; i++)
		rss->reta[i] = reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	return true;
}

static int make_rings(const struct weft_port_dev *d, struct weft_port_spread *s)
{
	char name[RTE_RING_NAMESIZE];

	s->handed = calloc(d->num_queues, sizeof(*s->handed));
	if (!s->handed)
		return -ENOMEM;
	for (uint16_t q = 0; q < d->num_queues; q++) {
		snprintf(name, sizeof(name), "weft_handed_%u_%u", d->port_id, q);
		/* Any worker adds frames; only the queue's own worker removes them. */
		s->handed[q] = rte_ring_create(name, RING, rte_eth_dev_socket_id(d->port_id),
					       RING_F_SC_DEQ);
		if (!s->handed[q])
			return -ENOMEM;
	}
	return 0;
}

int weft_port_spread_open(struct weft_port_dev *d, char *why, size_t why_len)
{
	struct weft_port_spread *s;

	if (d->num_queues < 2)
		return 0;
	s = d->spread = calloc(1, sizeof(*s));
	if (!s || make_rings(d, s)) {
		snprintf(why, why_len, "no memory for the queues of port %u (%s)", d->port_id,
			 d->name);
		return -ENOMEM;
	}
	for (uint16_t q = 0; q < d->num_queues && !s->hashed; q++)
		s->hashed = !can_steer(d, q);
	s->rss_known = s->hashed && read_key(d, &s->rss) && read_table(d, &s->rss);
	return 0;
}

static void ring_empty(struct rte_ring *ring)
{
	void *m;

	while (rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
}

void weft_port_spread_close(struct weft_port_dev *d)
{
	struct weft_port_spread *s = d->spread;

	for (uint16_t q = 0; s && s->handed && q < d->num_queues; q++) {
		if (s->handed[q])
			ring_empty(s->handed[q]);
		rte_ring_free(s->handed[q]);
	}
	if (s)
		free(s->handed);
	free(s);
	d->spread = NULL;
}

void weft_port_spread_fill(struct weft_port *p)
{
	const struct weft_port_spread *s = p->dev->spread;

	if (!s)
		return;
	/* Drop the frames for the queue's previous worker. */
	ring_empty(s->handed[p->queue]);
	p->fp.arp = &p->dev->arp;
	p->fp.udp_port = (uint16_t)(p->dev->base_udp_port + p->queue);
	p->fp.steering = (struct weft_steering){
		.queue = p->queue,
		.queues = p->dev->num_queues,
		.hashed = s->hashed,
		.rss = s->rss_known ? &s->rss : NULL,
		.handed = s->handed,
	};
}

void weft_port_spread_text(struct weft_frame_port *fp, char *text, size_t size)
{
	const struct weft_port_spread *s = weft_port_of(fp)->dev->spread;
	const char *how = "its hash brings them there, as its driver reports";

	text[0] = '\0';
	if (!s)
		return;
	if (!s->hashed)
		how = "flow rules bring them there";
	else if (!s->rss_known)
		how = "its driver does not report how they find it, so ports are tried";
	snprintf(text, size, "frames for UDP port %u are this worker's, queue %u of %u: %s",
		 fp->udp_port, fp->steering.queue, fp->steering.queues, how);
}

void weft_port_hint(struct weft_frame_port *fp, unsigned int paths, char *text, size_t size)
{
	const struct weft_port_dev *d = weft_port_of(fp)->dev;
	bool guess = fp->flags & WEFT_FRAME_PORT_GUESS;

	weft_port_flow_hint(d->info.driver_name, guess ? 0 : (uint32_t)(fp->bandwidth * 8 / 1e6),
			    (uint16_t)(d->frame_size - weft_port_l2(d->vlan)), paths, text, size);
}
