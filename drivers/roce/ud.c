/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce_async.h"
#include "roce_cq.h"
#include "roce_dev.h"
#include "ud.h"
#include "ud_ep.h"

/* ------------------------------------------------------------------ send */

int roce_ud_post(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_head *h, const void *hdr,
		 size_t hdr_len, const void *payload, size_t length)
{
	struct ud_iface *u = lane_ep->u;
	struct roce_buf *buf = u->tx_room > 0 && !u->sick ? roce_pool_get(&u->tx_pool) : NULL;
	struct ibv_send_wr wr = {0}, *bad;
	struct ibv_sge sge;

	if (!buf) {
		u->count.no_room++;
		return -EAGAIN;
	}
	memcpy(buf->data, h, sizeof(*h));
	memcpy(buf->data + sizeof(*h), hdr, hdr_len);
	if (length > 0)
		memcpy(buf->data + sizeof(*h) + hdr_len, payload, length);
	sge = (struct ibv_sge){
		.addr = (uintptr_t)buf->data,
		.length = (uint32_t)(sizeof(*h) + hdr_len + length),
		.lkey = buf->lkey,
	};
	wr.wr_id = (uintptr_t)buf;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = lane_ep->ah;
	wr.wr.ud.remote_qpn = lane_ep->qpn;
	wr.wr.ud.remote_qkey = lane_ep->qkey;
	if (ibv_post_send(u->qp, &wr, &bad) != 0) {
		/* For the peer this is a lost datagram. */
		roce_pool_put(&u->tx_pool, buf);
		u->count.tx_error++;
		return 0;
	}
	u->tx_room--;
	u->count.tx++;
	return 0;
}

int roce_ud_send(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length)
{
	const struct weft_roce_ud_head h = {
		.magic = weft_put16(WEFT_ROCE_UD_MAGIC),
		.version = WEFT_ROCE_VERSION,
		.am_id = am_id,
		.src_conn = weft_put32(lane_ep->conn),
		.dst_conn = weft_put32(lane_ep->remote_conn),
		.src_qkey = weft_put32(lane_ep->u->qkey),
		.length = weft_put16((uint16_t)(hdr_len + length)),
		.mtu = lane_ep->u->mtu,
		.cookie = weft_put64(lane_ep->remote_conn == 0 ? lane_ep->cookie : 0),
	};

	return roce_ud_post(lane_ep, &h, hdr, hdr_len, payload, length);
}

static int ud_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		       const void *payload, size_t length)
{
	struct ud_lane_ep *lane_ep = ud_lane_ep_of(base);
	int rc;

	if (lane_ep->state != UD_UP)
		return lane_ep->state == UD_RESOLVING ? -EAGAIN : -ECONNRESET;
	if (hdr_len > base->max_msg || length > base->max_msg - hdr_len)
		return -EMSGSIZE;
	rc = roce_ud_send(lane_ep, am_id, hdr, hdr_len, payload, length);
	if (rc == 0 && lane_ep->remote_conn == 0)
		roce_ud_hold(lane_ep, am_id, hdr, hdr_len, payload, length);
	return rc;
}

/* ------------------------------------------------------------------ receive */

void roce_ud_deliver(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_packet *p)
{
	struct ud_iface *u = lane_ep->u;
	char text[96];

	lane_ep->last_rx = u->now;
	if (p->am_id == WEFT_ROCE_UD_BYE) {
		snprintf(text, sizeof(text), "%s: peer %s has closed the control channel",
			 u->dev->name, lane_ep->peer);
		roce_ud_lane_ep_over(lane_ep, WEFT_LANE_EV_GONE, -ECONNRESET, text);
		return;
	}
	u->count.rx++;
	u->recv(u->arg, &lane_ep->base, p->am_id, p->data, p->length, NULL);
}

static void ud_received(struct ud_iface *u, const struct ibv_wc *wc, struct roce_buf *buf)
{
	struct weft_roce_ud_packet p;
	struct ud_lane_ep *lane_ep;
	bool keep = false;

	if (wc->status != IBV_WC_SUCCESS) {
		u->count.stray += wc->status != IBV_WC_WR_FLUSH_ERR;
	} else if (!(wc->wc_flags & IBV_WC_GRH) ||
		   weft_roce_ud_check(buf->data, wc->byte_len, &p) < 0) {
		u->count.bad++;
	} else if (p.am_id == WEFT_ROCE_UD_RETRY) {
		roce_ud_retry(u, &p, wc->src_qp);
	} else {
		lane_ep = roce_ud_find(u, &p, wc->src_qp);
		if (!lane_ep) {
			keep = roce_ud_accept_first(u, &p, wc->src_qp, buf, wc->byte_len);
		} else if (lane_ep->state == UD_UP) {
			lane_ep->remote_conn = p.src_conn;
			roce_ud_deliver(lane_ep, &p);
		} else {
			u->count.late++; /* still resolving: the sender retries */
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

/* slow_poll() ends present and later connections. @p what: a phrase */
static void iface_broken(struct ud_iface *u, int status, const char *what)
{
	u->status = status;
	u->what = what;
	u->watched.up = false;
}

/* Keys with bit 31 set are privileged. */
static uint32_t roce_ud_qkey(uint64_t iface_id)
{
	return (uint32_t)(iface_id >> 32) & 0x7fffffff;
}

/* After a failure the queue pair's number and key stay, so that peers need no update. */
static int qp_up(struct ud_iface *u)
{
	struct ibv_qp_attr attr = {.port_num = (uint8_t)u->port, .qkey = u->qkey};
	int err;

	attr.qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(u->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (err == 0)
		err = ibv_modify_qp(u->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (err == 0)
		err = ibv_modify_qp(u->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

/*
 * A request failed, so the device executes no requests to any peer. All requests must complete
 * before the queue pair is set up again, because the set-up would silently drop them.
 */
static void fall_sick(struct ud_iface *u)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (u->sick || u->status != 0)
		return;
	u->sick = true;
	u->sick_since = u->now;
	if (u->count.resets++ == 0)
		weft_warn("%s: the queue pair of the control channel failed and is set up again "
			  "(logged once; 'qp.resets' counts)",
			  u->dev->name);
	ibv_modify_qp(u->qp, &attr, IBV_QP_STATE);
}

/*
 * If the requests do not complete in ROCE_ABANDON_NS, the iface has failed. The worker's clock
 * alone is not enough: the application may have computed without polling.
 * @param empty  the last poll left the completion queue empty
 */
static void iface_recover(struct ud_iface *u, bool empty)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	int err = EIO;

	if (u->posted > 0 || u->tx_room != UD_TX) {
		if (!empty || u->now - u->sick_since < ROCE_ABANDON_NS)
			return;
	} else {
		err = ibv_modify_qp(u->qp, &attr, IBV_QP_STATE);
		if (err == 0)
			err = qp_up(u);
	}
	u->sick = false;
	if (err != 0)
		iface_broken(u, -EIO, ROCE_QUEUE_GONE);
}

static void handle_event(struct ud_iface *u, const struct roce_event *e)
{
	char what[160];

	/* The iface of the driver `roce` on the same port logs events of the port. */
	roce_port_event(&u->watched, e->type, u->now);
	if (e->type == IBV_EVENT_DEVICE_FATAL)
		iface_broken(u, -ENODEV, ROCE_DEVICE_GONE);
	else if (e->type == IBV_EVENT_CQ_ERR && e->queue == u->cq)
		iface_broken(u, -EIO, ROCE_QUEUE_GONE);
	else if (e->type == IBV_EVENT_QP_FATAL && e->qpn == u->qp->qp_num)
		fall_sick(u);
	else if (e->type == IBV_EVENT_GID_CHANGE &&
		 roce_gid_changed(u->dev, u->port, &u->gid, &u->gid_gone, what, sizeof(what))) {
		roce_ud_fail_all(u, -EADDRNOTAVAIL, what);
		roce_ud_askers_end(u, 0); /* their address handles are for the old source address */
	}
}

static void slow_poll(struct ud_iface *u)
{
	struct roce_event e;
	char what[96];

	u->next_slow = u->now + UD_SLOW_NS;
	roce_watch_poll(u->dev);
	while (roce_watch_next(u->dev, &u->watch, &e))
		handle_event(u, &e);
	/* In each call: connections may begin after the failure. */
	if (u->status != 0)
		roce_ud_fail_all(u, u->status, u->what);
	else if (roce_port_gone(&u->watched, u->port, u->now, u->give_up_ns, what, sizeof(what)))
		roce_ud_fail_all(u, -ENETDOWN, what);
	roce_ud_idle(u);
	roce_ud_askers_end(u, UD_ASKER_NS);
}

static unsigned int ud_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct ud_iface *u = ud_iface_of(base);
	struct ibv_wc wc[ROCE_POLL];
	unsigned int events = 0;
	int n, i;

	u->now = now_ns;
	if (u->resolving > 0)
		events += roce_ud_resolved(u);
	n = ibv_poll_cq(u->cq, ROCE_POLL, wc);
	u->empties += n < ROCE_POLL;
	for (i = 0; i < n; i++) {
		struct roce_buf *buf = (struct roce_buf *)(uintptr_t)(wc[i].wr_id & ~1ull);

		/* A failed receive breaks the queue pair, too; all others are then flushed. */
		if (__builtin_expect(wc[i].status != IBV_WC_SUCCESS, 0) &&
		    (wc[i].status == IBV_WC_WR_FLUSH_ERR || !(wc[i].wr_id & 1))) {
			fall_sick(u);
			u->next_slow = 0; /* read events now: one belongs to this failure */
		}
		if (wc[i].wr_id & 1) {
			u->posted--;
			ud_received(u, &wc[i], buf);
		} else {
			u->tx_room++;
			u->count.tx_error += wc[i].status != IBV_WC_SUCCESS;
			roce_pool_put(&u->tx_pool, buf);
		}
		events++;
	}
	if (__builtin_expect(u->sick, 0))
		iface_recover(u, n < ROCE_POLL);
	if (u->posted < UD_RX / 2 && !u->sick && u->status == 0)
		post_receives(u);
	if (!LIST_EMPTY(&u->dead))
		roce_ud_reap(u);
	if (now_ns >= u->next_slow)
		slow_poll(u);
	return events;
}

/* ------------------------------------------------------------------ cold */

static void ud_tx_flush(struct weft_lane_iface *base)
{
	base->tx_open = false; /* nothing is collected */
}

static void ud_release(struct weft_lane_iface *base, void *desc)
{
	(void)base;
	(void)desc; /* the protocol layer never gets buffers */
}

static void ud_get_address(struct weft_lane_iface *base, void *buf)
{
	struct ud_iface *u = ud_iface_of(base);
	struct weft_roce_addr a;

	roce_addr_fill(&a, WEFT_ROCE_UD, u->gid.gid, u->mtu, 128u << u->mtu);
	a.v1 = !u->gid.v2;
	a.qpn = weft_put32(u->qp->qp_num);
	a.qkey = weft_put32(u->qkey);
	memcpy(buf, &a, sizeof(a));
}

#define BOOT_V1 1u /* variant: RoCE v1 */

/*
 * The bytes omit the key, which peers derive from the iface id, and the path MTU: unpack() assumes
 * the smallest one.
 */
static void ud_boot_pack(struct weft_lane_iface *base, struct weft_lane_boot *boot)
{
	struct ud_iface *u = ud_iface_of(base);
	uint32_t qpn = u->qp->qp_num;

	boot->variant = u->gid.v2 ? 0 : BOOT_V1;
	boot->length = sizeof(u->gid.gid) + 3;
	memcpy(boot->bytes, u->gid.gid, sizeof(u->gid.gid));
	for (unsigned int i = 0; i < 3; i++)
		boot->bytes[sizeof(u->gid.gid) + i] = (uint8_t)(qpn >> 8 * i);
}

static int ud_boot_unpack(struct weft_lane_iface *iface, const struct weft_lane_boot *boot,
			  uint64_t iface_id, void *addr)
{
	const uint8_t *qpn = boot->bytes + sizeof(((struct weft_roce_addr *)0)->gid);
	struct weft_roce_addr a;

	(void)iface;
	if (boot->length != sizeof(a.gid) + 3 || boot->variant & ~BOOT_V1)
		return -EINVAL;
	roce_addr_fill(&a, WEFT_ROCE_UD, boot->bytes, 1, 128u << 1);
	a.v1 = boot->variant;
	a.qpn = weft_put32((uint32_t)qpn[0] | (uint32_t)qpn[1] << 8 | (uint32_t)qpn[2] << 16);
	a.qkey = weft_put32(roce_ud_qkey(iface_id));
	memcpy(addr, &a, sizeof(a));
	return 0;
}

static const struct weft_lane_boot_ops ud_boot_ops = {
	.kind = WEFT_LANE_BOOT_ROCE_UD,
	.pack = ud_boot_pack,
	.unpack = ud_boot_unpack,
};

static int ud_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			   size_t why_len)
{
	struct ud_iface *u = ud_iface_of(base);

	if (u->status != 0) {
		snprintf(why, why_len, "%s: %s", base->name, u->what);
		return u->status;
	}
	return roce_reachable(&u->gid, u->gid_gone, u->netdev, WEFT_ROCE_UD, addr, len, why,
			      why_len);
}

static bool ud_link_up(struct weft_lane_iface *base)
{
	return ud_iface_of(base)->watched.up && !ud_iface_of(base)->gid_gone;
}

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	UD_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void ud_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct ud_iface *u = ud_iface_of(base);

#define COUNTER(field, name, help) cb(name, u->count.field, arg);
	UD_COUNTERS(COUNTER)
#undef COUNTER
}

static void ud_free(struct ud_iface *u)
{
	roce_watch_remove(u->dev, &u->watch);
	if (u->qp)
		ibv_destroy_qp(u->qp);
	if (u->cq)
		ibv_destroy_cq(u->cq);
	roce_notify_close(&u->notify);
	roce_pool_fini(&u->rx_pool);
	roce_pool_fini(&u->tx_pool);
	roce_dev_put(u->dev);
	weft_table_fini(&u->by_conn);
	weft_table_fini(&u->by_peer);
	free(u);
}

static void ud_close(struct weft_lane_iface *base)
{
	struct ud_iface *u = ud_iface_of(base);
	unsigned int polls = 0;
	uint64_t end;

	while (!LIST_EMPTY(&u->lane_eps))
		roce_ud_ep_destroy(&LIST_FIRST(&u->lane_eps)->base);
	roce_ud_askers_end(u, 0);
	end = u->platform->now(u->platform->arg) + UD_CLOSE_NS;
	while (!LIST_EMPTY(&u->dead)) {
		ud_progress(base, u->platform->now(u->platform->arg));
		/* After this time the requests count as complete. */
		if (u->now >= end)
			u->tx_room = UD_TX;
		if (++polls % ROCE_POLLS_YIELD == 0)
			sched_yield();
	}
	ud_free(u);
}

/* ------------------------------------------------------------------ sleeping */

static int ud_wait_fd(struct weft_lane_iface *base)
{
	return roce_notify_fd(&ud_iface_of(base)->notify);
}

static int ud_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct ud_iface *u = ud_iface_of(base);

	roce_due_within(now_ns, due_ns, ROCE_ASLEEP_NS);
	if (u->resolving > 0 || u->sick || !LIST_EMPTY(&u->dead))
		roce_due_within(now_ns, due_ns, ROCE_LOOK_MAX_NS);
	return roce_notify_arm(&u->notify, u->cq, u->empties);
}

static void ud_disarm(struct weft_lane_iface *base)
{
	roce_notify_taken(&ud_iface_of(base)->notify);
}

static const struct weft_lane_ops ud_ops = {
	.am_short = ud_am_short,
	.tx_flush = ud_tx_flush,
	.progress = ud_progress,
	.release = ud_release,
	.ep_connect = roce_ud_ep_connect,
	.ep_destroy = roce_ud_ep_destroy,
	.ep_is_from = roce_ud_ep_is_from,
	.ep_host = roce_ud_ep_host,
	.ep_flush = roce_ud_ep_flush,
	.wait_fd = ud_wait_fd,
	.arm = ud_arm,
	.disarm = ud_disarm,
	.get_address = ud_get_address,
	.is_reachable = ud_is_reachable,
	.print_address = roce_print_address,
	.link_up = ud_link_up,
	.ep_print = roce_ud_ep_print,
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
	int err;

	roce_notify_open(&u->notify, u->dev->ctx);
	u->cq = ibv_create_cq(u->dev->ctx, UD_TX + UD_RX, NULL, u->notify.channel, 0);
	if (!u->cq) {
		err = errno;
		roce_setup_failed(u->dev, "completion queue", err, why, why_len);
		return -err;
	}
	init.send_cq = init.recv_cq = u->cq;
	u->qp = ibv_create_qp(u->dev->pd, &init);
	err = !u->qp ? errno : qp_up(u);
	if (err != 0) {
		roce_setup_failed(u->dev, "UD queue pair", err, why, why_len);
		return -err;
	}
	u->tx_room = UD_TX;
	/* More buffers than are posted: first datagrams keep theirs during address resolution. */
	roce_pool_init(&u->rx_pool, u->dev, WEFT_ROCE_GRH + (128u << u->mtu),
		       UD_RX + UD_PASSIVE_MAX);
	roce_pool_init(&u->tx_pool, u->dev, 128u << u->mtu, UD_TX);
	post_receives(u);
	if (u->posted == 0) {
		snprintf(why, why_len,
			 "%s: no receive buffer could be registered and posted: "
			 "check the limit of locked memory (ulimit -l)",
			 u->dev->name);
		return -EIO;
	}
	return 0;
}

static void set_texts(struct ud_iface *u, const char *resource, const char *gid_why)
{
	snprintf(u->name, sizeof(u->name), "roce_ud:%.55s", resource);
	snprintf(u->note, sizeof(u->note), "GID %u, %.60s", u->gid.index, gid_why);
	u->base.name = u->name;
	u->base.note = u->note;
	roce_dev_identity(u->dev, u->device, sizeof(u->device));
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
	if (!u) {
		roce_dev_put(info.dev);
		return -ENOMEM;
	}
	u->dev = info.dev;
	u->port = info.port;
	u->opts = info.opts;
	u->gid = info.gid;
	u->mtu = info.mtu;
	memcpy(u->netdev, info.netdev, sizeof(u->netdev));
	u->watched.up = info.attr.state == IBV_PORT_ACTIVE;
	u->recv = params->recv;
	u->event = params->event;
	u->arg = params->arg;
	u->platform = params->platform;
	u->now = params->platform->now(params->platform->arg);
	u->give_up_ns = weft_roce_give_up_ns(&u->opts);
	u->base.ops = &ud_ops;
	u->base.driver = &weft_roce_ud_driver;
	set_texts(u, params->resource, info.why);
	LIST_INIT(&u->lane_eps);
	LIST_INIT(&u->dead);
	LIST_INIT(&u->askers);
	roce_watch_add(u->dev, &u->watch, u->port);
	u->qkey = roce_ud_qkey(params->iface_id);
	rc = params->platform->random(params->platform->arg, &u->key, sizeof(u->key));
	if (rc == 0 && (weft_table_reserve(&u->by_conn) || weft_table_reserve(&u->by_peer)))
		rc = -ENOMEM;
	if (rc == 0)
		rc = open_qp(u, why, why_len);
	if (rc < 0) {
		ud_free(u);
		return rc;
	}
	u->base.attr = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_CONTROL,
		.bandwidth = roce_port_rate(&info.attr),
		/* Higher than that of any lane for data: such lanes are better for bootstrap. */
		.latency = 100e-6,
		.send_overhead = 1e-6,
		.recv_overhead = 1e-6,
		.max_short = (128u << u->mtu) - sizeof(struct weft_roce_ud_head),
		.opt_align = 1,
		.frame_size = 14 + 40 + 8 + 12 + 8 + (128u << u->mtu) + 4,
		.dev_addr_len = sizeof(struct weft_roce_addr),
		.device = u->device,
		.domain = u->dev->name,
	};
	*out = &u->base;
	return 0;
}

/* An interface is opened together with that of the driver `roce` on the same port. */
static int ud_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	return roce_dev_list(add, arg);
}

const struct weft_lane_driver weft_roce_ud_driver = {
	.name = "roce_ud",
	.counters = counter_help,
	.abi = WEFT_LANE_ABI,
	.query = ud_query,
	.open = ud_open,
	.options = WEFT_ROCE_OPTS_KNOWN,
	.boot = &ud_boot_ops,
};
