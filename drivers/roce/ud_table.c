/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which connection a datagram is for: by our number of it, or, while its sender does not know that,
 * by where it comes from and the sender's number. Our numbers are random, and what senders choose is
 * hashed with a key, so nobody chooses buckets.
 */

#include <string.h>

#include "ud.h"

static struct ud_leps *of_conn(struct ud_iface *u, uint32_t conn)
{
	return &u->by_conn[conn % UD_BUCKETS];
}

static struct ud_leps *of_peer(struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
			       uint32_t conn)
{
	struct {
		uint8_t gid[16];
		uint32_t qpn, conn;
	} key = {.qpn = qpn, .conn = conn};

	memcpy(key.gid, gid, sizeof(key.gid));
	return &u->by_peer[weft_siphash(&u->key, &key, sizeof(key)) % UD_BUCKETS];
}

void roce_ud_table_add(struct ud_lep *lep)
{
	struct ud_iface *u = lep->u;

	LIST_INSERT_HEAD(&u->leps, lep, link);
	LIST_INSERT_HEAD(&u->in_search, lep, resolving_link);
	LIST_INSERT_HEAD(of_conn(u, lep->conn), lep, conn_link);
	if (!lep->base.passive)
		return;
	LIST_INSERT_HEAD(&u->of_others, lep, passive_link);
	LIST_INSERT_HEAD(of_peer(u, lep->gid, lep->qpn, lep->remote_conn), lep, peer_link);
}

void roce_ud_table_settled(struct ud_lep *lep)
{
	if (lep->state != UD_RESOLVING)
		return;
	lep->u->resolving--;
	LIST_REMOVE(lep, resolving_link);
}

void roce_ud_table_remove(struct ud_lep *lep)
{
	roce_ud_table_settled(lep);
	LIST_REMOVE(lep, link);
	LIST_REMOVE(lep, conn_link);
	if (!lep->base.passive)
		return;
	LIST_REMOVE(lep, passive_link);
	LIST_REMOVE(lep, peer_link);
}

static bool is_from(const struct ud_lep *lep, const struct weft_roce_ud_packet *p, uint32_t src_qpn)
{
	return lep->qpn == src_qpn && memcmp(lep->gid, p->gid, sizeof(lep->gid)) == 0 &&
	       (lep->remote_conn == 0 || lep->remote_conn == p->src_conn);
}

struct ud_lep *roce_ud_find(struct ud_iface *u, const struct weft_roce_ud_packet *p,
			    uint32_t src_qpn)
{
	struct ud_lep *lep;

	if (p->dst_conn == 0) {
		LIST_FOREACH(lep, of_peer(u, p->gid, src_qpn, p->src_conn), peer_link) {
			u->count.looks++;
			if (lep->remote_conn == p->src_conn && is_from(lep, p, src_qpn))
				return lep;
		}
		return NULL;
	}
	LIST_FOREACH(lep, of_conn(u, p->dst_conn), conn_link) {
		u->count.looks++;
		if (lep->conn == p->dst_conn && is_from(lep, p, src_qpn))
			return lep;
	}
	return NULL;
}
