/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce_async.h"
#include "ud.h"
#include "ud_ep.h"

/* ------------------------------------------------------------------ finding a connection */

/*
 * Find the connection of a datagram: by our number of it, or, before the sender has that number,
 * by the source address and the sender's number. Our numbers are random, and values from senders
 * are hashed with a key, so senders can't choose buckets.
 */

static uint64_t peer_key(const struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
			 uint32_t conn)
{
	struct {
		uint8_t gid[16];
		uint32_t qpn, conn;
	} key = {.qpn = qpn, .conn = conn};

	memcpy(key.gid, gid, sizeof(key.gid));
	return weft_siphash(&u->key, &key, sizeof(key));
}

static void table_add(struct ud_lane_ep *lane_ep)
{
	struct ud_iface *u = lane_ep->u;

	LIST_INSERT_HEAD(&u->lane_eps, lane_ep, link);
	LIST_INSERT_HEAD(&u->in_search, lane_ep, resolving_link);
	weft_table_add(&u->by_conn, &lane_ep->by_conn, lane_ep->conn);
	if (!lane_ep->base.passive)
		return;
	LIST_INSERT_HEAD(&u->of_others, lane_ep, passive_link);
	weft_table_add(&u->by_peer, &lane_ep->by_peer,
		       peer_key(u, lane_ep->gid, lane_ep->qpn, lane_ep->remote_conn));
}

static void table_settled(struct ud_lane_ep *lane_ep)
{
	if (lane_ep->state != UD_RESOLVING)
		return;
	lane_ep->u->resolving--;
	LIST_REMOVE(lane_ep, resolving_link);
}

static void table_remove(struct ud_lane_ep *lane_ep)
{
	table_settled(lane_ep);
	LIST_REMOVE(lane_ep, link);
	weft_table_remove(&lane_ep->u->by_conn, &lane_ep->by_conn);
	if (!lane_ep->base.passive)
		return;
	LIST_REMOVE(lane_ep, passive_link);
	weft_table_remove(&lane_ep->u->by_peer, &lane_ep->by_peer);
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
	struct weft_table_node *n;

	if (p->dst_conn == 0) {
		n = weft_table_bucket(&u->by_peer, peer_key(u, p->gid, src_qpn, p->src_conn));
		for (; n; n = SLIST_NEXT(n, link)) {
			u->count.looks++;
			lane_ep = container_of(n, struct ud_lane_ep, by_peer);
			if (lane_ep->remote_conn == p->src_conn && is_from(lane_ep, p, src_qpn))
				return lane_ep;
		}
		return NULL;
	}
	for (n = weft_table_bucket(&u->by_conn, p->dst_conn); n; n = SLIST_NEXT(n, link)) {
		u->count.looks++;
		lane_ep = container_of(n, struct ud_lane_ep, by_conn);
		if (lane_ep->conn == p->dst_conn && is_from(lane_ep, p, src_qpn))
			return lane_ep;
	}
	return NULL;
}

/* ------------------------------------------------------------------ creating */

/* Runs in a thread of the device. */
static void resolve_job(struct roce_job *job)
{
	struct ud_lane_ep *lane_ep =
		(struct ud_lane_ep *)((char *)job - offsetof(struct ud_lane_ep, job));
	struct ud_iface *u = lane_ep->u;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = (uint8_t)u->port,
		.grh = {.sgid_index = lane_ep->sgid_index,
			.hop_limit = UD_HOPS,
			.traffic_class = (uint8_t)u->opts.tc},
	};

	memcpy(attr.grh.dgid.raw, lane_ep->gid, 16);
	errno = 0;
	lane_ep->ah = ibv_create_ah(u->dev->pd, &attr);
	job->err = lane_ep->ah ? 0 : errno ? errno : EIO;
}

/* @return NULL: there is no memory, no random number or no thread for the lane_ep */
static struct ud_lane_ep *ud_lane_ep_new(struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
					 uint32_t qkey, uint32_t max_msg)
{
	struct ud_lane_ep *lane_ep = calloc(1, sizeof(*lane_ep));

	if (!lane_ep)
		return NULL;
	do {
		if (u->platform->random(u->platform->arg, &lane_ep->conn, sizeof(lane_ep->conn)) <
		    0) {
			free(lane_ep);
			return NULL;
		}
	} while (lane_ep->conn == 0);
	lane_ep->base =
		(struct weft_lane_ep){.iface = &u->base, .ops = u->base.ops, .max_msg = max_msg};
	lane_ep->u = u;
	memcpy(lane_ep->gid, gid, 16);
	weft_roce_gid_print(gid, lane_ep->peer, sizeof(lane_ep->peer));
	lane_ep->qpn = qpn;
	lane_ep->qkey = qkey;
	lane_ep->last_rx = u->now;
	lane_ep->sgid_index = u->gid.index;
	lane_ep->job.run = resolve_job;
	memcpy(lane_ep->job.host, gid, sizeof(lane_ep->job.host));
	if (roce_job_start(u->dev, &lane_ep->job) < 0) {
		free(lane_ep);
		return NULL;
	}
	u->resolving++;
	return lane_ep;
}

/* ------------------------------------------------------------------ cookies */

/*
 * An initiator must first prove that it receives at its source address. A first datagram without a
 * cookie that was sent there is dropped, and creates no connection. The cookie is a keyed hash of
 * address, queue pair, its key and connection number and the time, so the acceptor keeps no state
 * for it. The acceptor must keep an address handle: to send even one datagram, the kernel has to
 * resolve the host's Ethernet address. There is one handle (an asker) for each such host, for
 * UD_ASKER_NS, and at most UD_ASKERS in all: a further host replaces the oldest one.
 *
 * An initiator keeps its last datagram, and sends it again, once, when it receives the cookie. So
 * for each datagram that it sends, any number of RETRYs cost it one more datagram at most.
 */

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

/* Does the datagram have the cookie of its source? A cookie is valid for 8 to 16 s. */
static bool shows_cookie(const struct ud_iface *u, const struct weft_roce_ud_packet *p,
			 uint32_t src_qpn)
{
	uint64_t period = u->now / COOKIE_NS;

	return p->cookie == cookie_of(u, p, src_qpn, period) ||
	       p->cookie == cookie_of(u, p, src_qpn, period - 1);
}

/* The reply is for the host's last datagram: its other processes that wait retry. */
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

static void send_cookie(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn)
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
		asker = ud_lane_ep_new(u, p->gid, src_qpn, p->src_qkey, 0);
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

/* @return events */
static unsigned int askers_progress(struct ud_iface *u)
{
	struct ud_lane_ep *asker, *next;
	unsigned int n = 0;

	for (asker = LIST_FIRST(&u->askers); asker; asker = next) {
		next = LIST_NEXT(asker, link);
		if (asker->state != UD_RESOLVING || !roce_job_done(&asker->job))
			continue;
		n++;
		if (asker->job.err != 0) {
			asker_end(asker); /* the host's Ethernet address is unknown */
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

/* ------------------------------------------------------------------ connections */

int roce_ud_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		       struct weft_lane_ep **out)
{
	struct ud_iface *u = ud_iface_of(base);
	struct weft_roce_addr a;
	struct ud_lane_ep *lane_ep;
	uint32_t max_msg;
	int rc = weft_roce_addr_check(addr, len, WEFT_ROCE_UD, NULL, 0);

	if (rc < 0) {
		u->count.bad_addr++;
		return rc;
	}
	if (u->gid_gone)
		return -EADDRNOTAVAIL;
	memcpy(&a, addr, sizeof(a));
	max_msg = 128u << (a.mtu < u->mtu ? a.mtu : u->mtu);
	lane_ep = ud_lane_ep_new(u, a.gid, weft_get32(a.qpn), weft_get32(a.qkey),
				 max_msg - (uint32_t)sizeof(struct weft_roce_ud_head));
	if (!lane_ep)
		return -ENOMEM;
	table_add(lane_ep);
	lane_ep->base.user = user;
	*out = &lane_ep->base;
	return 0;
}

static void give_first_back(struct ud_lane_ep *lane_ep)
{
	if (lane_ep->first)
		roce_pool_put(&lane_ep->u->rx_pool, lane_ep->first);
	lane_ep->first = NULL;
}

void roce_ud_ep_destroy(struct weft_lane_ep *base)
{
	struct ud_lane_ep *lane_ep = ud_lane_ep_of(base);
	struct ud_iface *u = lane_ep->u;

	if (lane_ep->state == UD_DEAD)
		return;
	if (lane_ep->state == UD_UP)
		roce_ud_send(lane_ep, WEFT_ROCE_UD_BYE, "", 0, NULL, 0);
	table_remove(lane_ep);
	roce_job_cancel(u->dev, &lane_ep->job);
	u->passive -= base->passive;
	give_first_back(lane_ep);
	base->up = false;
	lane_ep->state = UD_DEAD;
	LIST_INSERT_HEAD(&u->dead, lane_ep, link);
}

void roce_ud_lane_ep_over(struct ud_lane_ep *lane_ep, enum weft_lane_event ev, int status,
			  const char *text)
{
	struct ud_iface *u = lane_ep->u;

	table_settled(lane_ep);
	lane_ep->state = UD_OVER;
	lane_ep->base.up = false;
	give_first_back(lane_ep);
	u->event(u->arg, &lane_ep->base, ev, status, text);
}

void roce_ud_reap(struct ud_iface *u)
{
	struct ud_lane_ep *lane_ep, *next;

	if (u->tx_room != UD_TX)
		return;
	for (lane_ep = LIST_FIRST(&u->dead); lane_ep; lane_ep = next) {
		next = LIST_NEXT(lane_ep, link);
		if (!roce_job_done(&lane_ep->job))
			continue;
		if (lane_ep->ah)
			ibv_destroy_ah(lane_ep->ah);
		LIST_REMOVE(lane_ep, link);
		free(lane_ep->held);
		free(lane_ep);
	}
}

/* Hosts in one bucket count as one host; the key of the hash keeps buckets secret. */
static uint8_t host_bucket(const struct ud_iface *u, const uint8_t gid[16])
{
	return (uint8_t)weft_siphash(&u->key, gid, 16);
}

/* All places are taken: end the oldest lane_ep of the host with most, for a host with fewer. */
static bool make_room(struct ud_iface *u, const uint8_t gid[16])
{
	unsigned int of[256] = {0}, mine, most = 0;
	struct ud_lane_ep *lane_ep, *goes = NULL;
	char text[128];

	LIST_FOREACH(lane_ep, &u->of_others, passive_link) {
		/* The owner of an ended lane_ep must still destroy it: do not end another one. */
		if (lane_ep->state >= UD_OVER)
			return false;
		of[host_bucket(u, lane_ep->gid)]++;
	}
	mine = of[host_bucket(u, gid)];
	/* The list begins with the newest one. */
	LIST_FOREACH(lane_ep, &u->of_others, passive_link) {
		if (of[host_bucket(u, lane_ep->gid)] < most)
			continue;
		most = of[host_bucket(u, lane_ep->gid)];
		goes = lane_ep;
	}
	/*
	 * A host without a place gets one from any host. A host with places gets another one only
	 * from a host with at least two more, so that two hosts do not evict each other in turn.
	 */
	if (!goes || most <= mine + (mine > 0))
		return false;
	snprintf(text, sizeof(text),
		 "%s: peer %s has the most control channels, and another peer needs one",
		 u->dev->name, goes->peer);
	roce_ud_lane_ep_over(goes, WEFT_LANE_EV_GONE, -EUSERS, text);
	return u->passive < UD_PASSIVE_MAX;
}

/* UD_PASSIVE_SHARE leaves places for other hosts; make_room() does so if several hosts take all. */
static bool has_place(struct ud_iface *u, const uint8_t gid[16])
{
	const struct ud_lane_ep *lane_ep;
	unsigned int n = 0;

	LIST_FOREACH(lane_ep, &u->of_others, passive_link)
		n += memcmp(lane_ep->gid, gid, 16) == 0;
	if (n >= UD_PASSIVE_SHARE)
		return false;
	return u->passive < UD_PASSIVE_MAX || make_room(u, gid);
}

bool roce_ud_accept_first(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn,
			  struct roce_buf *buf, size_t len)
{
	/* A sender without an MTU in its head gets 256 bytes, which every path carries. */
	uint8_t mtu = p->mtu == 0 ? 1 : p->mtu < u->mtu ? p->mtu : u->mtu;
	struct ud_lane_ep *lane_ep;

	if (p->dst_conn != 0 || p->am_id == WEFT_ROCE_UD_BYE) {
		u->count.late++;
		return false;
	}
	if (!shows_cookie(u, p, src_qpn)) {
		send_cookie(u, p, src_qpn);
		return false;
	}
	if (!has_place(u, p->gid)) {
		u->count.full++;
		return false;
	}
	lane_ep = ud_lane_ep_new(u, p->gid, src_qpn, p->src_qkey,
				 (128u << mtu) - (uint32_t)sizeof(struct weft_roce_ud_head));
	if (!lane_ep)
		return false;
	lane_ep->base.passive = true;
	lane_ep->remote_conn = p->src_conn;
	table_add(lane_ep);
	lane_ep->first = buf;
	lane_ep->first_len = len;
	u->passive++;
	return true;
}

unsigned int roce_ud_resolved(struct ud_iface *u)
{
	struct weft_roce_ud_packet p;
	struct weft_roce_names names;
	struct ud_lane_ep *lane_ep;
	struct roce_buf *buf;
	unsigned int n = askers_progress(u);
	char text[256];

	for (;;) {
		LIST_FOREACH(lane_ep, &u->in_search, resolving_link)
			if (roce_job_done(&lane_ep->job))
				break;
		if (!lane_ep)
			return n;
		n++;
		if (lane_ep->job.err != 0) {
			names = (struct weft_roce_names){u->dev->name, lane_ep->peer};
			weft_roce_text_connect(&names, lane_ep->job.err, text, sizeof(text));
			roce_ud_lane_ep_over(lane_ep, WEFT_LANE_EV_DOWN, -EHOSTUNREACH, text);
			continue;
		}
		table_settled(lane_ep);
		lane_ep->state = UD_UP;
		lane_ep->base.up = true;
		lane_ep->base.tx_room = true;
		snprintf(text, sizeof(text), "%s: control channel to %s", u->dev->name,
			 lane_ep->peer);
		u->event(u->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, text);
		buf = lane_ep->first;
		lane_ep->first = NULL;
		if (!buf)
			continue;
		if (lane_ep->state == UD_UP &&
		    weft_roce_ud_check(buf->data, lane_ep->first_len, &p) == 0)
			roce_ud_deliver(lane_ep, &p);
		roce_pool_put(&u->rx_pool, buf);
	}
}

/* ------------------------------------------------------------------ termination */

void roce_ud_idle(struct ud_iface *u)
{
	struct ud_lane_ep *lane_ep;
	char text[96];

	/* End one lane_ep per call: the callback may destroy others. */
	LIST_FOREACH(lane_ep, &u->of_others, passive_link)
		if (lane_ep->state == UD_UP && u->now - lane_ep->last_rx > UD_IDLE_NS)
			break;
	if (!lane_ep)
		return;
	snprintf(text, sizeof(text), "%s: nothing was received from %s for 60 s", u->dev->name,
		 lane_ep->peer);
	roce_ud_lane_ep_over(lane_ep, WEFT_LANE_EV_GONE, -ETIMEDOUT, text);
}

void roce_ud_fail_all(struct ud_iface *u, int status, const char *what)
{
	struct ud_lane_ep *lane_ep;
	char text[320];

	for (;;) {
		LIST_FOREACH(lane_ep, &u->lane_eps, link)
			if (lane_ep->state < UD_OVER)
				break;
		if (!lane_ep)
			return;
		snprintf(text, sizeof(text), "%s: %s; peer %s can't be reached any more",
			 u->dev->name, what, lane_ep->peer);
		roce_ud_lane_ep_over(lane_ep, WEFT_LANE_EV_DOWN, status, text);
	}
}

/* ------------------------------------------------------------------ small */

/* Datagrams of a connection are accepted from this source address and queue pair only. */
bool roce_ud_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	const struct ud_lane_ep *lane_ep = ud_lane_ep_of(base);
	struct weft_roce_addr a;

	if (lane_ep->remote_conn == 0 || weft_roce_addr_check(addr, len, WEFT_ROCE_UD, NULL, 0) < 0)
		return false;
	memcpy(&a, addr, sizeof(a));
	return memcmp(a.gid, lane_ep->gid, sizeof(lane_ep->gid)) == 0 &&
	       weft_get32(a.qpn) == lane_ep->qpn;
}

uint64_t roce_ud_ep_host(const struct weft_lane_ep *base)
{
	const struct ud_lane_ep *lane_ep = (const struct ud_lane_ep *)base;

	return weft_siphash(&lane_ep->u->key, lane_ep->gid, sizeof(lane_ep->gid));
}

int roce_ud_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	(void)base;
	(void)comp;
	return WEFT_LANE_IDLE; /* nothing is ever acknowledged */
}

void roce_ud_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	struct ud_lane_ep *lane_ep = ud_lane_ep_of(base);

	snprintf(buf, size, "control channel to %s, %s", lane_ep->peer,
		 lane_ep->state == UD_UP          ? "up"
		 : lane_ep->state == UD_RESOLVING ? "connecting"
						  : "over");
}
