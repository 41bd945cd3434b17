/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An initiator must first prove that it receives at its source address. Until its datagram has a
 * cookie that was sent there, the datagram is dropped, and no connection is created. The cookie is
 * a keyed hash of address, queue pair, its key and connection number and the time, so the acceptor
 * keeps no state for it. It must keep an address handle: to send even one datagram, the kernel has
 * to resolve the host's Ethernet address. There is one handle (an asker) for each such host, for
 * UD_ASKER_NS, and UD_ASKERS in all: a further host replaces the oldest one.
 *
 * An initiator keeps its last datagram, and sends it again, once, when it receives the cookie. So
 * any number of RETRY cost their receiver one datagram at most.
 */

#include <stdlib.h>
#include <string.h>

#include "ud.h"

#define COOKIE_NS 8000000000ull

/* ------------------------------------------------------------------ acceptor */

static uint64_t cookie_of(const struct ud_iface *u, const struct weft_roce_ud_packet *p,
			  uint32_t src_qpn, uint64_t period)
{
	struct weft_siphash s;

	weft_siphash_init(&s, &u->key);
	weft_siphash_add(&s, &period, sizeof(period));
	weft_siphash_add(&s, p->gid, sizeof(p->gid));
	weft_siphash_add(&s, &src_qpn, sizeof(src_qpn));
	weft_siphash_add(&s, &p->src_qkey, sizeof(p->src_qkey));
	weft_siphash_add(&s, &p->src_conn, sizeof(p->src_conn));
	return weft_siphash_end(&s) | 1; /* 0 = none */
}

bool roce_ud_shows_cookie(const struct ud_iface *u, const struct weft_roce_ud_packet *p,
			  uint32_t src_qpn)
{
	uint64_t period = u->now / COOKIE_NS;

	return p->cookie == cookie_of(u, p, src_qpn, period) ||
	       p->cookie == cookie_of(u, p, src_qpn, period - 1);
}

/* Reply to the last datagram of the host: other processes of the host that wait retry. */
static void answer_asker(struct ud_lane_ep *asker)
{
	struct ud_iface *u = asker->u;
	struct weft_roce_ud_packet p = {.src_conn = asker->remote_conn, .src_qkey = asker->qkey};
	struct weft_roce_ud_head h = {
		.magic = weft_put16(WEFT_ROCE_UD_MAGIC),
		.version = WEFT_ROCE_VERSION,
		.am_id = WEFT_ROCE_UD_RETRY,
		.dst_conn = weft_put32(asker->remote_conn),
		.src_qkey = weft_put32(u->qkey),
		.mtu = u->mtu,
	};

	if (u->tx_room <= UD_TX_KEPT) {
		u->count.no_room++;
		return; /* the initiator retries */
	}
	memcpy(p.gid, asker->gid, sizeof(p.gid));
	h.cookie = weft_put64(cookie_of(u, &p, asker->qpn, u->now / COOKIE_NS));
	if (roce_ud_post(asker, &h, "", 0, NULL, 0) == 0)
		u->count.cookie_requests++;
}

static void asker_end(struct ud_lane_ep *asker)
{
	struct ud_iface *u = asker->u;

	if (asker->state == UD_RESOLVING)
		u->resolving--;
	roce_job_cancel(u->dev, &asker->job);
	asker->state = UD_DEAD;
	LIST_REMOVE(asker, link);
	LIST_INSERT_HEAD(&u->dead, asker, link);
}

void roce_ud_query(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn)
{
	struct ud_lane_ep *asker, *oldest = NULL;
	unsigned int n = 0;

	LIST_FOREACH(asker, &u->askers, link) {
		if (memcmp(asker->gid, p->gid, sizeof(p->gid)) == 0)
			break;
		oldest = asker;
		n++;
	}
	if (!asker) {
		if (u->status != 0 || u->gid_gone)
			return;
		asker = roce_ud_lane_ep_new(u, p->gid, src_qpn, p->src_qkey, 0);
		if (!asker)
			return;
		LIST_INSERT_HEAD(&u->askers, asker, link);
		if (n >= UD_ASKERS)
			asker_end(oldest);
	}
	asker->qpn = src_qpn;
	asker->qkey = p->src_qkey;
	asker->remote_conn = p->src_conn;
	if (asker->state == UD_UP)
		answer_asker(asker);
}

unsigned int roce_ud_queries_progress(struct ud_iface *u)
{
	struct ud_lane_ep *asker, *next;
	unsigned int n = 0;

	for (asker = LIST_FIRST(&u->askers); asker; asker = next) {
		next = LIST_NEXT(asker, link);
		if (asker->state != UD_RESOLVING || !roce_job_done(&asker->job))
			continue;
		n++;
		if (asker->job.err != 0) {
			asker_end(asker); /* there is no such host */
			continue;
		}
		u->resolving--;
		asker->state = UD_UP;
		asker->last_rx = u->now;
		answer_asker(asker);
	}
	return n;
}

void roce_ud_askers_end(struct ud_iface *u, uint64_t age)
{
	struct ud_lane_ep *asker, *next;

	for (asker = LIST_FIRST(&u->askers); asker; asker = next) {
		next = LIST_NEXT(asker, link);
		if (age == 0 || (asker->state == UD_UP && u->now - asker->last_rx >= age))
			asker_end(asker);
	}
}

/* ------------------------------------------------------------------ initiator */

void roce_ud_hold(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length)
{
	uint8_t *held = realloc(lane_ep->held, hdr_len + length + 1);

	if (!held)
		return; /* its owner retries */
	memcpy(held, hdr, hdr_len);
	if (length > 0)
		memcpy(held + hdr_len, payload, length);
	lane_ep->held = held;
	lane_ep->held_len = hdr_len + length;
	lane_ep->held_id = am_id;
}

void roce_ud_retry(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn)
{
	struct ud_lane_ep *lane_ep = roce_ud_find(u, p, src_qpn);

	if (!lane_ep || lane_ep->state != UD_UP || lane_ep->remote_conn != 0) {
		u->count.late++;
		return;
	}
	u->count.shown++;
	lane_ep->cookie = p->cookie;
	if (!lane_ep->held)
		return;
	roce_ud_send(lane_ep, lane_ep->held_id, lane_ep->held, lane_ep->held_len, NULL, 0);
	free(lane_ep->held);
	lane_ep->held = NULL;
}
