/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections of the control channel: who is at the other end, and the way there. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ud.h"

/* In the device's thread. */
static void resolve_job(struct roce_job *job)
{
	struct ud_lep *lep = (struct ud_lep *)((char *)job - offsetof(struct ud_lep, job));
	struct ud_iface *u = lep->u;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = (uint8_t)u->port,
		.grh = {.sgid_index = lep->sgid_index,
			.hop_limit = UD_HOPS,
			.traffic_class = (uint8_t)u->opts.tc},
	};

	memcpy(attr.grh.dgid.raw, lep->gid, 16);
	errno = 0;
	lep->ah = ibv_create_ah(u->dev->pd, &attr);
	job->err = lep->ah != NULL ? 0 : errno ? errno : EIO;
}

struct ud_lep *roce_ud_lep_new(struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
			       uint32_t qkey, uint32_t max_msg)
{
	struct ud_lep *lep = calloc(1, sizeof(*lep));

	if (lep == NULL)
		return NULL;
	do {
		if (u->platform->random(u->platform->arg, &lep->conn, sizeof(lep->conn)) < 0) {
			free(lep);
			return NULL;
		}
	} while (lep->conn == 0);
	lep->base =
		(struct weft_lane_ep){.iface = &u->base, .ops = u->base.ops, .max_msg = max_msg};
	lep->u = u;
	memcpy(lep->gid, gid, 16);
	weft_roce_gid_print(gid, lep->peer, sizeof(lep->peer));
	lep->qpn = qpn;
	lep->qkey = qkey;
	lep->heard = u->now;
	lep->sgid_index = u->gid.index;
	lep->job.run = resolve_job;
	memcpy(lep->job.host, gid, sizeof(lep->job.host));
	if (roce_job_start(u->dev, &lep->job) < 0) {
		free(lep);
		return NULL;
	}
	u->resolving++;
	return lep;
}

int roce_ud_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		       struct weft_lane_ep **out)
{
	struct ud_iface *u = ud_iface_of(base);
	struct weft_roce_addr a;
	struct ud_lep *lep;
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
	lep = roce_ud_lep_new(u, a.gid, weft_get32(a.qpn), weft_get32(a.qkey),
			      max_msg - (uint32_t)sizeof(struct weft_roce_ud_head));
	if (lep == NULL)
		return -ENOMEM;
	roce_ud_table_add(lep);
	lep->base.user = user;
	*out = &lep->base;
	return 0;
}

static void give_first_back(struct ud_lep *lep)
{
	if (lep->first != NULL)
		roce_pool_put(&lep->u->rx_pool, lep->first);
	lep->first = NULL;
}

void roce_ud_ep_destroy(struct weft_lane_ep *base)
{
	struct ud_lep *lep = ud_lep_of(base);
	struct ud_iface *u = lep->u;

	if (lep->state == UD_DEAD)
		return;
	if (lep->state == UD_UP)
		roce_ud_send(lep, WEFT_ROCE_UD_BYE, "", 0, NULL, 0);
	roce_ud_table_remove(lep);
	roce_job_cancel(u->dev, &lep->job);
	u->passive -= base->passive;
	give_first_back(lep);
	base->up = false;
	lep->state = UD_DEAD;
	LIST_INSERT_HEAD(&u->dead, lep, link);
}

void roce_ud_lep_over(struct ud_lep *lep, enum weft_lane_event ev, int status, const char *text)
{
	struct ud_iface *u = lep->u;

	roce_ud_table_settled(lep);
	lep->state = UD_OVER;
	lep->base.up = false;
	give_first_back(lep);
	u->event(u->arg, &lep->base, ev, status, text);
}

void roce_ud_reap(struct ud_iface *u)
{
	struct ud_lep *lep, *next;

	if (u->tx_room != UD_TX)
		return;
	for (lep = LIST_FIRST(&u->dead); lep != NULL; lep = next) {
		next = LIST_NEXT(lep, link);
		if (!roce_job_done(&lep->job))
			continue;
		if (lep->ah != NULL)
			ibv_destroy_ah(lep->ah);
		LIST_REMOVE(lep, link);
		free(lep->said);
		free(lep);
	}
}

/* Hosts in one bucket pass for one: which ones do only we know. */
static uint8_t bucket(const struct ud_iface *u, const uint8_t gid[16])
{
	return (uint8_t)weft_siphash(&u->key, gid, 16);
}

/* All places are taken: the oldest one of the host that has most goes, for one that has less. */
static bool make_room(struct ud_iface *u, const uint8_t gid[16])
{
	unsigned int of[256] = {0}, mine, most = 0;
	struct ud_lep *lep, *goes = NULL;
	char text[128];

	LIST_FOREACH(lep, &u->of_others, passive_link) {
		/* Its owner has yet to give that one back: a second one would go for nothing. */
		if (lep->state >= UD_OVER)
			return false;
		of[bucket(u, lep->gid)]++;
	}
	mine = of[bucket(u, gid)];
	/* The list begins with the newest. */
	LIST_FOREACH(lep, &u->of_others, passive_link) {
		if (of[bucket(u, lep->gid)] < most)
			continue;
		most = of[bucket(u, lep->gid)];
		goes = lep;
	}
	/* Who has none gets one in any case; others not by turns. */
	if (goes == NULL || most <= mine + (mine > 0))
		return false;
	snprintf(text, sizeof(text),
		 "%s: peer %s has most control channels of all, and others need one", u->dev->name,
		 goes->peer);
	roce_ud_lep_over(goes, WEFT_LANE_EV_GONE, -EUSERS, text);
	return u->passive < UD_PASSIVE_MAX;
}

/* What one host may have begun leaves places for others, and so do several. */
static bool has_place(struct ud_iface *u, const uint8_t gid[16])
{
	const struct ud_lep *lep;
	unsigned int n = 0;

	LIST_FOREACH(lep, &u->of_others, passive_link)
		n += memcmp(lep->gid, gid, 16) == 0;
	if (n >= UD_PASSIVE_SHARE)
		return false;
	return u->passive < UD_PASSIVE_MAX || make_room(u, gid);
}

bool roce_ud_accept_first(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn,
			  struct roce_buf *buf, size_t len)
{
	/* Who does not tell gets what every way carries. */
	uint8_t mtu = p->mtu == 0 ? 1 : p->mtu < u->mtu ? p->mtu : u->mtu;
	struct ud_lep *lep;

	if (p->dst_conn != 0 || p->am_id == WEFT_ROCE_UD_BYE) {
		u->count.late++;
		return false;
	}
	if (!roce_ud_shows_cookie(u, p, src_qpn)) {
		roce_ud_ask(u, p, src_qpn);
		return false;
	}
	if (!has_place(u, p->gid)) {
		u->count.full++;
		return false;
	}
	lep = roce_ud_lep_new(u, p->gid, src_qpn, p->src_qkey,
			      (128u << mtu) - (uint32_t)sizeof(struct weft_roce_ud_head));
	if (lep == NULL)
		return false;
	lep->base.passive = true;
	lep->remote_conn = p->src_conn;
	roce_ud_table_add(lep);
	lep->first = buf;
	lep->first_len = len;
	u->passive++;
	return true;
}

unsigned int roce_ud_resolved(struct ud_iface *u)
{
	struct weft_roce_ud_packet p;
	struct weft_roce_who who;
	struct ud_lep *lep;
	struct roce_buf *buf;
	unsigned int n = roce_ud_asked(u);
	char text[256];

	for (;;) {
		LIST_FOREACH(lep, &u->in_search, resolving_link)
			if (roce_job_done(&lep->job))
				break;
		if (lep == NULL)
			return n;
		n++;
		if (lep->job.err != 0) {
			who = (struct weft_roce_who){u->dev->name, lep->peer};
			weft_roce_text_connect(&who, lep->job.err, text, sizeof(text));
			roce_ud_lep_over(lep, WEFT_LANE_EV_DOWN, -EHOSTUNREACH, text);
			continue;
		}
		roce_ud_table_settled(lep);
		lep->state = UD_UP;
		lep->base.up = true;
		lep->base.tx_room = true;
		snprintf(text, sizeof(text), "%s: control channel to %s", u->dev->name, lep->peer);
		u->event(u->arg, &lep->base, WEFT_LANE_EV_UP, 0, text);
		buf = lep->first;
		lep->first = NULL;
		if (buf == NULL)
			continue;
		if (lep->state == UD_UP && weft_roce_ud_check(buf->data, lep->first_len, &p) == 0)
			roce_ud_deliver(lep, &p);
		roce_pool_put(&u->rx_pool, buf);
	}
}

/* ------------------------------------------------------------------ how they end */

void roce_ud_idle(struct ud_iface *u)
{
	struct ud_lep *lep;
	char text[96];

	/* One at a time: the callback may destroy others. There are UD_PASSIVE_MAX at most. */
	LIST_FOREACH(lep, &u->of_others, passive_link)
		if (lep->state == UD_UP && u->now - lep->heard > UD_IDLE_NS)
			break;
	if (lep == NULL)
		return;
	snprintf(text, sizeof(text), "%s: nothing was heard of %s for 60 s", u->dev->name,
		 lep->peer);
	roce_ud_lep_over(lep, WEFT_LANE_EV_GONE, -ETIMEDOUT, text);
}

void roce_ud_fail_all(struct ud_iface *u, int status, const char *what)
{
	struct ud_lep *lep;
	char text[320];

	for (;;) {
		LIST_FOREACH(lep, &u->leps, link)
			if (lep->state < UD_OVER)
				break;
		if (lep == NULL)
			return;
		snprintf(text, sizeof(text), "%s: %s; peer %s can't be reached any more",
			 u->dev->name, what, lep->peer);
		roce_ud_lep_over(lep, WEFT_LANE_EV_DOWN, status, text);
	}
}

/* ------------------------------------------------------------------ small */

/* By the datagrams' own headers: where they come from, and the queue pair that sends them. */
bool roce_ud_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	const struct ud_lep *lep = ud_lep_of(base);
	struct weft_roce_addr a;

	if (lep->remote_conn == 0 || weft_roce_addr_check(addr, len, WEFT_ROCE_UD, NULL, 0) < 0)
		return false;
	memcpy(&a, addr, sizeof(a));
	return memcmp(a.gid, lep->gid, sizeof(lep->gid)) == 0 && weft_get32(a.qpn) == lep->qpn;
}

uint64_t roce_ud_ep_host(const struct weft_lane_ep *base)
{
	const struct ud_lep *lep = (const struct ud_lep *)base;

	return weft_siphash(&lep->u->key, lep->gid, sizeof(lep->gid));
}

int roce_ud_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	(void)base;
	(void)comp;
	return WEFT_LANE_IDLE; /* nothing is ever acknowledged */
}

void roce_ud_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	struct ud_lep *lep = ud_lep_of(base);

	snprintf(buf, size, "control channel to %s, %s", lep->peer,
		 lep->state == UD_UP          ? "up"
		 : lep->state == UD_RESOLVING ? "connecting"
					      : "over");
}
