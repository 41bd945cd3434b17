/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports with several queues: frames are distributed by flow rules if the port takes them
 * (port/steer.c), else by the port's hash. This file reads the parameters of the hash that the
 * driver reports; connections search suitable UDP ports (engine/path_probe.c).
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "port/hint.h"
#include "port/priv.h"

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
		s->hashed = !weft_port_can_steer(d, q);
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
	/* Frames of the queue's last worker. */
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
