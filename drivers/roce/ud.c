/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The driver `roce_ud`: an unreliable control channel over a UD queue pair, for wire-up where no other lane connects to an interface's address.
 * Datagrams get lost, doubled and reordered, and nothing here minds: wire-up retries, and recognises what it has seen.
 *
 * A connection is a pair of random numbers, one of each end. The first datagram of a connection makes the passive lep at its addressee; it is kept until the
 * way back is known (the kernel resolves the peer's Ethernet address, in the device's thread) and delivered then. The queue pair's key is random
 * and part of the interface's address, so strangers who have not seen the address are dropped by the device.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "roce.h"

#define UD_RX 256 /* receive buffers */
#define UD_TX 128
#define UD_PASSIVE_MAX 1024 /* connections that others have begun */
#define UD_IDLE_NS 60000000000ull
#define UD_SLOW_NS 20000000
#define UD_CLOSE_NS 2000000000ull
#define UD_HOPS 64

enum ud_state { UD_RESOLVING, UD_UP, UD_OVER, UD_DEAD };

struct ud_lep {
	struct weft_lane_ep base; /* first */
	enum ud_state state;
	struct roce_job job;
	struct ud_iface *u;
	LIST_ENTRY(ud_lep) link;
	struct ibv_ah *ah;
	uint8_t gid[16];
	uint32_t qpn, qkey;         /* the peer's */
	uint32_t conn, remote_conn; /* remote_conn 0 = not known yet */
	struct roce_buf *first;     /* datagram that waits for the way back */
	size_t first_len;
	uint64_t heard;
	char peer[48];
};

struct ud_iface {
	struct weft_lane_iface base; /* first */
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct weft_roce_gid gid;
	char netdev[64];
	uint8_t mtu;
	bool port_up;
	uint64_t now, next_slow;
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	const struct weft_platform *platform;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t qkey;
	struct roce_pool rx_pool, tx_pool;
	uint32_t posted, tx_room, passive;
	LIST_HEAD(, ud_lep) leps, dead;
	unsigned int resolving;
	struct roce_watch watch;
	struct {
		uint64_t tx, rx, no_room, bad, stray, full, late, tx_error;
	} count;
};

static inline struct ud_iface *ud_iface_of(struct weft_lane_iface *iface)
{
	return (struct ud_iface *)iface;
}

static inline struct ud_lep *ud_lep_of(struct weft_lane_ep *lep)
{
	return (struct ud_lep *)lep;
}

/* ------------------------------------------------------------------ send */

static int ud_send(struct ud_lep *lep, uint8_t am_id, const void *hdr, size_t hdr_len,
		   const void *payload, size_t length)
{
	struct ud_iface *u = lep->u;
	struct weft_roce_ud_head h = {
		.magic = weft_put16(WEFT_ROCE_UD_MAGIC),
		.version = WEFT_ROCE_VERSION,
		.am_id = am_id,
		.src_conn = weft_put32(lep->conn),
		.dst_conn = weft_put32(lep->remote_conn),
		.src_qkey = weft_put32(u->qkey),
		.length = weft_put16((uint16_t)(hdr_len + length)),
	};
	struct roce_buf *buf = u->tx_room > 0 ? roce_pool_get(&u->tx_pool) : NULL;
	struct ibv_send_wr wr = {0}, *bad;
	struct ibv_sge sge;

	if (buf == NULL) {
		u->count.no_room++;
		return -EAGAIN;
	}
	memcpy(buf->data, &h, sizeof(h));
	memcpy(buf->data + sizeof(h), hdr, hdr_len);
	if (length > 0)
		memcpy(buf->data + sizeof(h) + hdr_len, payload, length);
	sge = (struct ibv_sge){
		.addr = (uintptr_t)buf->data,
		.length = (uint32_t)(sizeof(h) + hdr_len + length),
		.lkey = buf->lkey,
	};
	wr.wr_id = (uintptr_t)buf;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = lep->ah;
	wr.wr.ud.remote_qpn = lep->qpn;
	wr.wr.ud.remote_qkey = lep->qkey;
	if (ibv_post_send(u->qp, &wr, &bad) != 0) {
		/* To the peer it is a datagram that got lost. */
		roce_pool_put(&u->tx_pool, buf);
		u->count.tx_error++;
		return 0;
	}
	u->tx_room--;
	u->count.tx++;
	return 0;
}

static int ud_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		       const void *payload, size_t length)
{
	struct ud_lep *lep = ud_lep_of(base);

	if (lep->state != UD_UP)
		return lep->state == UD_RESOLVING ? -EAGAIN : -ECONNRESET;
	if (hdr_len > base->max_msg || length > base->max_msg - hdr_len)
		return -EMSGSIZE;
	return ud_send(lep, am_id, hdr, hdr_len, payload, length);
}

/* ------------------------------------------------------------------ connections */

/* In the device's thread. */
static void resolve_job(struct roce_job *job)
{
	struct ud_lep *lep = (struct ud_lep *)((char *)job - offsetof(struct ud_lep, job));
	struct ud_iface *u = lep->u;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = (uint8_t)u->port,
		.grh = {.sgid_index = u->gid.index,
			.hop_limit = UD_HOPS,
			.traffic_class = (uint8_t)u->opts.tc},
	};

	memcpy(attr.grh.dgid.raw, lep->gid, 16);
	errno = 0;
	lep->ah = ibv_create_ah(u->dev->pd, &attr);
	job->err = lep->ah != NULL ? 0 : errno ? errno : EIO;
}

static struct ud_lep *lep_new(struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
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
	lep->job.run = resolve_job;
	if (roce_job_start(u->dev, &lep->job) < 0) {
		free(lep);
		return NULL;
	}
	u->resolving++;
	LIST_INSERT_HEAD(&u->leps, lep, link);
	return lep;
}

static int ud_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
			 struct weft_lane_ep **out)
{
	struct ud_iface *u = ud_iface_of(base);
	struct weft_roce_addr a;
	struct ud_lep *lep;
	uint32_t max_msg;
	int rc = weft_roce_addr_check(addr, len, WEFT_ROCE_UD, NULL, 0);

	if (rc < 0)
		return rc;
	memcpy(&a, addr, sizeof(a));
	max_msg = 128u << (a.mtu < u->mtu ? a.mtu : u->mtu);
	lep = lep_new(u, a.gid, weft_get32(a.qpn), weft_get32(a.qkey),
		      max_msg - (uint32_t)sizeof(struct weft_roce_ud_head));
	if (lep == NULL)
		return -ENOMEM;
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

static void ud_ep_destroy(struct weft_lane_ep *base)
{
	struct ud_lep *lep = ud_lep_of(base);
	struct ud_iface *u = lep->u;

	if (lep->state == UD_DEAD)
		return;
	if (lep->state == UD_UP)
		ud_send(lep, WEFT_ROCE_UD_BYE, "", 0, NULL, 0);
	if (lep->state == UD_RESOLVING)
		u->resolving--;
	u->passive -= base->passive;
	give_first_back(lep);
	base->up = false;
	lep->state = UD_DEAD;
	LIST_REMOVE(lep, link);
	LIST_INSERT_HEAD(&u->dead, lep, link);
}

static void lep_over(struct ud_lep *lep, enum weft_lane_event ev, int status, const char *text)
{
	struct ud_iface *u = lep->u;

	if (lep->state == UD_RESOLVING)
		u->resolving--;
	lep->state = UD_OVER;
	lep->base.up = false;
	give_first_back(lep);
	u->event(u->arg, &lep->base, ev, status, text);
}

/* Address handles serve requests that the device may still have: freed when all of those are back. */
static void reap(struct ud_iface *u)
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
		free(lep);
	}
}

/* ------------------------------------------------------------------ receive */

static void deliver(struct ud_lep *lep, const struct weft_roce_ud_packet *p)
{
	struct ud_iface *u = lep->u;
	char text[96];

	lep->heard = u->now;
	if (p->am_id == WEFT_ROCE_UD_BYE) {
		snprintf(text, sizeof(text), "%s: peer %s has closed the control channel",
			 u->dev->name, lep->peer);
		lep_over(lep, WEFT_LANE_EV_GONE, -ECONNRESET, text);
		return;
	}
	u->count.rx++;
	u->recv(u->arg, &lep->base, p->am_id, p->data, p->length, NULL);
}

/* Whose datagram it is; the sender must be where the connection's other end is. */
static struct ud_lep *find(struct ud_iface *u, const struct weft_roce_ud_packet *p,
			   uint32_t src_qpn)
{
	struct ud_lep *lep;

	LIST_FOREACH(lep, &u->leps, link) {
		if (p->dst_conn != 0 ? lep->conn != p->dst_conn
				     : !lep->base.passive || lep->remote_conn != p->src_conn)
			continue;
		if (lep->qpn == src_qpn && memcmp(lep->gid, p->gid, 16) == 0 &&
		    (lep->remote_conn == 0 || lep->remote_conn == p->src_conn))
			return lep;
	}
	return NULL;
}

/* Somebody begins. @return true when the buffer is kept */
static bool accept_first(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn,
			 struct roce_buf *buf, size_t len)
{
	struct ud_lep *lep;

	if (p->dst_conn != 0 || p->am_id == WEFT_ROCE_UD_BYE) {
		u->count.late++;
		return false;
	}
	if (u->passive >= UD_PASSIVE_MAX) {
		u->count.full++;
		return false;
	}
	lep = lep_new(u, p->gid, src_qpn, p->src_qkey,
		      (128u << u->mtu) - (uint32_t)sizeof(struct weft_roce_ud_head));
	if (lep == NULL)
		return false;
	lep->base.passive = true;
	lep->remote_conn = p->src_conn;
	lep->first = buf;
	lep->first_len = len;
	u->passive++;
	return true;
}

static void received(struct ud_iface *u, const struct ibv_wc *wc, struct roce_buf *buf)
{
	struct weft_roce_ud_packet p;
	struct ud_lep *lep;
	bool keep = false;

	if (wc->status != IBV_WC_SUCCESS) {
		u->count.stray++;
	} else if (!(wc->wc_flags & IBV_WC_GRH) ||
		   weft_roce_ud_check(buf->data, wc->byte_len, &p) < 0) {
		u->count.bad++;
	} else {
		lep = find(u, &p, wc->src_qp);
		if (lep == NULL) {
			keep = accept_first(u, &p, wc->src_qp, buf, wc->byte_len);
		} else if (lep->state == UD_UP) {
			lep->remote_conn = p.src_conn;
			deliver(lep, &p);
		} else {
			u->count.late++; /* still resolving: it comes again */
		}
	}
	if (!keep)
		roce_pool_put(&u->rx_pool, buf);
}

static void post_receives(struct ud_iface *u)
{
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct roce_buf *buf;
	struct ibv_sge sge;

	while (u->posted < UD_RX && (buf = roce_pool_get(&u->rx_pool)) != NULL) {
		sge = (struct ibv_sge){
			.addr = (uintptr_t)buf->data,
			.length = WEFT_ROCE_GRH + (128u << u->mtu),
			.lkey = buf->lkey,
		};
		wr.wr_id = (uintptr_t)buf | 1;
		wr.sg_list = &sge;
		if (ibv_post_recv(u->qp, &wr, &bad) != 0) {
			roce_pool_put(&u->rx_pool, buf);
			break;
		}
		u->posted++;
	}
}

/* ------------------------------------------------------------------ progress */

/* A way was found, or not. */
static unsigned int resolved(struct ud_iface *u)
{
	struct weft_roce_ud_packet p;
	struct weft_roce_who who;
	struct ud_lep *lep;
	struct roce_buf *buf;
	unsigned int n = 0;
	char text[256];

	for (;;) {
		LIST_FOREACH(lep, &u->leps, link)
			if (lep->state == UD_RESOLVING && roce_job_done(&lep->job))
				break;
		if (lep == NULL)
			return n;
		n++;
		if (lep->job.err != 0) {
			who = (struct weft_roce_who){u->dev->name, lep->peer};
			weft_roce_text_connect(&who, lep->job.err, text, sizeof(text));
			lep_over(lep, WEFT_LANE_EV_DOWN, -EHOSTUNREACH, text);
			continue;
		}
		u->resolving--;
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
			deliver(lep, &p);
		roce_pool_put(&u->rx_pool, buf);
	}
}

static void slow(struct ud_iface *u)
{
	struct roce_event e;
	struct ud_lep *lep;
	char text[96];

	u->next_slow = u->now + UD_SLOW_NS;
	roce_watch_poll(u->dev);
	while (roce_watch_next(u->dev, &u->watch, &e)) {
		if (e.type == IBV_EVENT_PORT_ACTIVE)
			u->port_up = true;
		else if (e.type == IBV_EVENT_PORT_ERR || e.type == IBV_EVENT_DEVICE_FATAL)
			u->port_up = false;
		if (e.type == IBV_EVENT_CQ_ERR && e.queue == u->cq) {
			u->port_up = false;
			weft_error(
				"%s: the completion queue of the control channel has failed; nobody "
				"new connects over it: start the program again",
				u->dev->name);
		}
	}
	/* One at a time: the callback may destroy others. */
	LIST_FOREACH(lep, &u->leps, link)
		if (lep->base.passive && lep->state == UD_UP && u->now - lep->heard > UD_IDLE_NS)
			break;
	if (lep != NULL) {
		snprintf(text, sizeof(text), "%s: nothing was heard of %s for 60 s", u->dev->name,
			 lep->peer);
		lep_over(lep, WEFT_LANE_EV_GONE, -ETIMEDOUT, text);
	}
}

static unsigned int ud_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct ud_iface *u = ud_iface_of(base);
	struct ibv_wc wc[ROCE_POLL];
	unsigned int events = 0;
	int n, i;

	u->now = now_ns;
	if (u->resolving > 0)
		events += resolved(u);
	n = ibv_poll_cq(u->cq, ROCE_POLL, wc);
	for (i = 0; i < n; i++) {
		struct roce_buf *buf = (struct roce_buf *)(uintptr_t)(wc[i].wr_id & ~1ull);

		if (wc[i].wr_id & 1) {
			u->posted--;
			received(u, &wc[i], buf);
		} else {
			u->tx_room++;
			u->count.tx_error += wc[i].status != IBV_WC_SUCCESS;
			roce_pool_put(&u->tx_pool, buf);
		}
		events++;
	}
	if (u->posted < UD_RX / 2)
		post_receives(u);
	if (!LIST_EMPTY(&u->dead))
		reap(u);
	if (now_ns >= u->next_slow)
		slow(u);
	return events;
}

/* ------------------------------------------------------------------ cold */

static void ud_tx_flush(struct weft_lane_iface *base)
{
	base->tx_open = false; /* nothing is held back */
}

static void ud_release(struct weft_lane_iface *base, void *desc)
{
	(void)base;
	(void)desc; /* buffers are never given away */
}

static int ud_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	(void)base;
	(void)comp;
	return WEFT_LANE_IDLE; /* nothing is ever acknowledged */
}

static void ud_get_address(struct weft_lane_iface *base, void *buf)
{
	struct ud_iface *u = ud_iface_of(base);
	struct weft_roce_addr a;

	roce_addr_fill(&a, WEFT_ROCE_UD, u->gid.gid, u->mtu, 128u << u->mtu);
	a.qpn = weft_put32(u->qp->qp_num);
	a.qkey = weft_put32(u->qkey);
	memcpy(buf, &a, sizeof(a));
}

static int ud_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			   size_t why_len)
{
	struct ud_iface *u = ud_iface_of(base);

	return roce_reachable(u->gid.gid, u->netdev, WEFT_ROCE_UD, addr, len, why, why_len);
}

static bool ud_link_up(struct weft_lane_iface *base)
{
	return ud_iface_of(base)->port_up;
}

static void ud_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	struct ud_lep *lep = ud_lep_of(base);

	snprintf(buf, size, "control channel to %s, %s", lep->peer,
		 lep->state == UD_UP          ? "up"
		 : lep->state == UD_RESOLVING ? "connecting"
					      : "over");
}

static void ud_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct ud_iface *u = ud_iface_of(base);

	cb("tx.messages", u->count.tx, arg);
	cb("tx.no_room", u->count.no_room, arg);
	cb("tx.errors", u->count.tx_error, arg);
	cb("rx.messages", u->count.rx, arg);
	cb("drop.malformed", u->count.bad, arg);
	cb("drop.late", u->count.late, arg);
	cb("drop.too_many_peers", u->count.full, arg);
	cb("drop.stray_completion", u->count.stray, arg);
}

static void ud_free(struct ud_iface *u)
{
	roce_watch_remove(u->dev, &u->watch);
	if (u->qp != NULL)
		ibv_destroy_qp(u->qp);
	if (u->cq != NULL)
		ibv_destroy_cq(u->cq);
	roce_pool_fini(&u->rx_pool);
	roce_pool_fini(&u->tx_pool);
	roce_dev_put(u->dev);
	free(u);
}

static void ud_close(struct weft_lane_iface *base)
{
	struct ud_iface *u = ud_iface_of(base);
	uint64_t end;

	while (!LIST_EMPTY(&u->leps))
		ud_ep_destroy(&LIST_FIRST(&u->leps)->base);
	end = u->platform->now(u->platform->arg) + UD_CLOSE_NS;
	while (!LIST_EMPTY(&u->dead)) {
		ud_progress(base, u->platform->now(u->platform->arg));
		/* What the device does not give back by then it never will. */
		if (u->now >= end)
			u->tx_room = UD_TX;
		sched_yield();
	}
	ud_free(u);
}

static const struct weft_lane_ops ud_ops = {
	.am_short = ud_am_short,
	.tx_flush = ud_tx_flush,
	.progress = ud_progress,
	.release = ud_release,
	.ep_connect = ud_ep_connect,
	.ep_destroy = ud_ep_destroy,
	.ep_flush = ud_ep_flush,
	.get_address = ud_get_address,
	.is_reachable = ud_is_reachable,
	.print_address = roce_print_address,
	.link_up = ud_link_up,
	.ep_print = ud_ep_print,
	.counters = ud_counters,
	.close = ud_close,
};

/* ------------------------------------------------------------------ open */

static int open_qp(struct ud_iface *u, char *why, size_t why_len)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = UD_TX,
			.max_recv_wr = UD_RX,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = {.port_num = (uint8_t)u->port, .qkey = u->qkey};
	int err;

	u->cq = ibv_create_cq(u->dev->ctx, UD_TX + UD_RX, NULL, NULL, 0);
	if (u->cq == NULL) {
		err = errno;
		roce_setup_failed(u->dev, "completion queue", err, why, why_len);
		return -err;
	}
	init.send_cq = init.recv_cq = u->cq;
	u->qp = ibv_create_qp(u->dev->pd, &init);
	err = u->qp == NULL ? errno : 0;
	attr.qp_state = IBV_QPS_INIT;
	if (err == 0)
		err = ibv_modify_qp(u->qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (err == 0)
		err = ibv_modify_qp(u->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (err == 0)
		err = ibv_modify_qp(u->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err != 0) {
		roce_setup_failed(u->dev, "UD queue pair", err, why, why_len);
		return -err;
	}
	u->tx_room = UD_TX;
	/* Some more than are posted: those that wait for a way back. */
	roce_pool_init(&u->rx_pool, u->dev, WEFT_ROCE_GRH + (128u << u->mtu),
		       UD_RX + UD_PASSIVE_MAX);
	roce_pool_init(&u->tx_pool, u->dev, 128u << u->mtu, UD_TX);
	post_receives(u);
	if (u->posted == 0) {
		snprintf(why, why_len, "%s: receive buffers can't be posted", u->dev->name);
		return -EIO;
	}
	return 0;
}

static int ud_open(const struct weft_lane_open *params, struct weft_lane_iface **out, char *why,
		   size_t why_len)
{
	struct roce_port_info info;
	struct ud_iface *u;
	int rc;

	rc = roce_port_open(params, &info, why, why_len);
	if (rc < 0)
		return rc;
	u = calloc(1, sizeof(*u));
	if (u == NULL) {
		roce_dev_put(info.dev);
		return -ENOMEM;
	}
	u->dev = info.dev;
	u->port = info.port;
	u->opts = info.opts;
	u->gid = info.gid;
	u->mtu = info.mtu;
	memcpy(u->netdev, info.netdev, sizeof(u->netdev));
	u->port_up = info.attr.state == IBV_PORT_ACTIVE;
	u->recv = params->recv;
	u->event = params->event;
	u->arg = params->arg;
	u->platform = params->platform;
	u->now = params->platform->now(params->platform->arg);
	u->base.ops = &ud_ops;
	u->base.driver = &weft_roce_ud_driver;
	snprintf(u->base.name, sizeof(u->base.name), "roce_ud:%.55s", params->resource);
	snprintf(u->base.note, sizeof(u->base.note), "GID %u, %.60s", u->gid.index, info.why);
	LIST_INIT(&u->leps);
	LIST_INIT(&u->dead);
	roce_watch_add(u->dev, &u->watch, u->port);
	rc = params->platform->random(params->platform->arg, &u->qkey, sizeof(u->qkey));
	u->qkey &= 0x7fffffff; /* the upper half is for the kernel's own */
	if (rc == 0)
		rc = open_qp(u, why, why_len);
	if (rc < 0) {
		ud_free(u);
		return rc;
	}
	u->base.attr = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_CONTROL,
		.bandwidth = roce_port_rate(&info.attr),
		/* More than any lane that can carry data: those bootstrap better. */
		.latency = 100e-6,
		.send_overhead = 1e-6,
		.recv_overhead = 1e-6,
		.max_short = (128u << u->mtu) - sizeof(struct weft_roce_ud_head),
		.opt_align = 1,
		.frame_size = 14 + 40 + 8 + 12 + 8 + (128u << u->mtu) + 4,
		.dev_addr_len = sizeof(struct weft_roce_addr),
	};
	roce_dev_identity(u->dev, u->base.attr.device, sizeof(u->base.attr.device));
	snprintf(u->base.attr.domain, sizeof(u->base.attr.domain), "%.31s", u->dev->name);
	*out = &u->base;
	return 0;
}

/* Opened beside the interface of the driver `roce` on the same port. */
static int ud_query(const struct weft_lane_conf *conf, struct weft_lane_resource **list)
{
	(void)conf;
	return roce_dev_list(list);
}

const struct weft_lane_driver weft_roce_ud_driver = {
	.name = "roce_ud",
	.abi = WEFT_LANE_ABI,
	.query = ud_query,
	.open = ud_open,
	.options = WEFT_ROCE_OPTS_KNOWN,
};
