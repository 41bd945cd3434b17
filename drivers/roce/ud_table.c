/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Finds the connection of a datagram: by our number of it, or, before the sender has that number,
 * by the source address and the sender's number. Our numbers are random, and values from senders
 * are hashed with a key, so senders can't choose buckets.
 */

#include <string.h>

#include "ud.h"

static struct ud_lane_eps *of_conn(struct ud_iface *u, uint32_t conn)
{
	return &u->by_conn[conn % UD_BUCKETS];
}

static struct ud_lane_eps *of_peer(struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
				   uint32_t conn)
{
	struct {
		uint8_t gid[16];
		uint32_t qpn, conn;
	} key = {.qpn = qpn, .conn = conn};

	memcpy(key.gid, gid, sizeof(key.gid));
	return &u->by_peer[weft_siphash(&u->key, &key, sizeof(key)) % UD_BUCKETS];
}

void roce_ud_table_add(struct ud_lane_ep *lane_ep)
{
	struct ud_iface *u = lane_ep->u;

	LIST_INSERT_HEAD(&u->lane_eps, lane_ep, link);
	LIST_INSERT_HEAD(&u->in_search, lane_ep, resolving_link);
	LIST_INSERT_HEAD(of_conn(u, lane_ep->conn), lane_ep, conn_link);
	if (!lane_ep->base.passive)
		return;
	LIST_INSERT_HEAD(&u->of_others, lane_ep, passive_link);
	LIST_INSERT_HEAD(of_peer(u, lane_ep->gid, lane_ep->qpn, lane_ep->remote_conn), lane_ep,
			 peer_link);
}

void roce_ud_table_settled(struct ud_lane_ep *lane_ep)
{
	if (lane_ep->state != UD_RESOLVING)
		return;
	lane_ep->u->resolving--;
	LIST_REMOVE(lane_ep, resolving_link);
}

void roce_ud_table_remove(struct ud_lane_ep *lane_ep)
{
	roce_ud_table_settled(lane_ep);
	LIST_REMOVE(lane_ep, link);
	LIST_REMOVE(lane_ep, conn_link);
	if (!lane_ep->base.passive)
		return;
	LIST_REMOVE(lane_ep, passive_link);
	LIST_REMOVE(lane_ep, peer_link);
}

static bool is_from(const struct ud_lane_ep *lane_ep, const struct weft_roce_ud_packet *p,
		    uint32_t src_qpn)
{
	return lane_ep->qpn == src_qpn && memcmp(lane_ep->gid, p->gid, sizeof(lane_ep->gid)) == 0 &&
	       (lane_ep->remote_conn == 0 || lane_ep->remote_conn == p->src_conn);
}

struct ud_lane_ep *roce_ud_find(struct ud_iface *u, const struct weft_roce_ud_packet *p,
				uint32_t src_qpn)
{
	struct ud_lane_ep *lane_ep;

	if (p->dst_conn == 0) {
		LIST_FOREACH(lane_ep, of_peer(u, p->gid, src_qpn, p->src_conn), peer_link) {
			u->count.looks++;
			if (lane_ep->remote_conn == p->src_conn && is_from(lane_ep, p, src_qpn))
				return lane_ep;
		}
		return NULL;
	}
	LIST_FOREACH(lane_ep, of_conn(u, p->dst_conn), conn_link) {
		u->count.looks++;
		if (lane_ep->conn == p->dst_conn && is_from(lane_ep, p, src_qpn))
			return lane_ep;
	}
	return NULL;
}
