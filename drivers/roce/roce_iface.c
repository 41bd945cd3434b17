/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"
#include "roce_async.h"
#include "roce_cq.h"
#include "roce_dev.h"
#include "roce_end.h"
#include "roce_qp.h"
#include "roce_send.h"

#define TX_REQUESTS \
	8192 /* outstanding requests per iface, at most: each has a place in the completion queue */
#define TX_BUFS 4096
#define RINGS 8192 /* at most: each queue pair has one, or more if its window is large */
#define RMA_MAX \
	(1u << 20) /* bytes of one read or write: larger ones would delay others, unbalance rails */
#define CLOSE_NS 3000000000ull /* close() waits at most for give_up_ns and this time */

/* ------------------------------------------------------------------ effect of events on lanes */

#define SLOW_NS 5000000 /* ns between two runs of roce_slow() */

/* Callbacks may destroy lane_eps, so each round begins at the head. */
static void fail_all(struct roce_iface *r, int status, const char *what)
{
	struct roce_lane_ep *lane_ep;
	char text[320];

	for (;;) {
		LIST_FOREACH(lane_ep, &r->lane_eps, link)
			if (lane_ep->state < ROCE_FAILED)
				break;
		if (!lane_ep)
			return;
		snprintf(text, sizeof(text), "%s: %s; peer %s can't be reached any more",
			 r->dev->name, what, lane_ep->peer);
		roce_lane_ep_lost(lane_ep, status, text);
	}
}

static void report_event(struct roce_iface *r, enum weft_lane_iface_event ev, const char *text)
{
	if (r->iface_event)
		r->iface_event(r->arg, &r->base, ev, text);
}

/* A link may come back with another speed. */
static void port_changed(struct roce_iface *r, enum ibv_event_type type)
{
	double rate = 0;
	char speed[32] = "";

	roce_port_event(&r->watched, type, r->now);
	if (!r->watched.up) {
		report_event(r, WEFT_LANE_IFACE_EV_LINK_DOWN, "");
		return;
	}
	rate = roce_dev_port_rate(r->dev, r->port);
	if (rate > 0) {
		snprintf(speed, sizeof(speed), "%.3g Gb/s", rate * 8e-9);
		if (!(r->base.attr.features & WEFT_LANE_F_BW_SET))
			r->base.attr.bandwidth = rate;
		r->base.attr.bandwidth_known = true;
	}
	report_event(r, WEFT_LANE_IFACE_EV_LINK_UP, speed);
}

static void gid_changed(struct roce_iface *r)
{
	char what[160];

	if (roce_gid_changed(r->dev, r->port, &r->gid, &r->gid_gone, what, sizeof(what)))
		fail_all(r, -EADDRNOTAVAIL, what);
}

static void handle_event(struct roce_iface *r, const struct roce_event *e)
{
	struct roce_chan *chan;
	struct weft_roce_names names;
	char text[256];

	r->count.events++;
	weft_debug("%s: event %s", r->base.name, ibv_event_type_str(e->type));
	if (roce_is_qp_event(e->type)) {
		chan = roce_chan_find(r, e->qpn);
		if (!chan || chan->lane_ep->state >= ROCE_FAILED)
			return;
		names = roce_names(chan->lane_ep);
		weft_roce_text_qp_event(&names, e->type, text, sizeof(text));
		roce_lane_ep_lost(chan->lane_ep, e->type == IBV_EVENT_QP_FATAL ? -EIO : -EPROTO,
				  text);
		return;
	}
	switch (e->type) {
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		r->reports_last_wqe = true;
		chan = roce_chan_find(r, e->qpn);
		if (!chan)
			break;
		chan->last_wqe = true;
		chan->last_wqe_at = r->empties;
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		port_changed(r, e->type);
		break;
	case IBV_EVENT_GID_CHANGE:
		gid_changed(r);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		r->watched.up = false;
		r->ended = true;
		report_event(r, WEFT_LANE_IFACE_EV_ENDED, ROCE_DEVICE_GONE);
		fail_all(r, -ENODEV, ROCE_DEVICE_GONE);
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
		/* The device is shared: the queue may be of another worker. */
		if (e->queue == r->cq || e->queue == r->srq)
			fail_all(r, -EIO, ROCE_QUEUE_GONE);
		break;
	default:
		/*
		 * These events need no action: COMM_EST, SQ_DRAINED, PATH_MIG, PATH_MIG_ERR,
		 * SRQ_LIMIT_REACHED (never armed), LID_CHANGE, PKEY_CHANGE, SM_CHANGE,
		 * CLIENT_REREGISTER, WQ_FATAL.
		 */
		break;
	}
}

/* ------------------------------------------------------------------ rare work */

static void check_lane_eps(struct roce_iface *r)
{
	struct roce_lane_ep *lane_ep, *next;
	unsigned int i;

	/* Event callbacks may destroy lane_eps, but none is freed in this loop. */
	for (lane_ep = LIST_FIRST(&r->lane_eps); lane_ep; lane_ep = next) {
		next = LIST_NEXT(lane_ep, link);
		roce_suspect_look(lane_ep);
		if (lane_ep->state == ROCE_FAILED && lane_ep->closing)
			roce_lane_ep_close(lane_ep);
		for (i = 0; i < lane_ep->num_qps; i++) {
			struct roce_chan *chan = lane_ep->chans[i];
			bool idle = chan->sq.head == chan->sq.tail;

			/* No request for the keepalive interval: send one, to check the peer. */
			if (lane_ep->state == ROCE_UP && idle && r->keepalive_ns != 0 &&
			    r->now - chan->busy_since > r->keepalive_ns)
				roce_chan_count_send(chan);
			/* A callback may destroy the lane_ep: the next check goes on. */
			if ((lane_ep->state == ROCE_FAILED || lane_ep->state == ROCE_STOPPED) &&
			    !lane_ep->closing && !lane_ep->connecting && !idle &&
			    roce_empty_since(r, lane_ep->since, ROCE_ABANDON_NS)) {
				chan->abandoned = true;
				roce_chan_abandon(chan, chan->sq.tail);
				return;
			}
		}
	}
}

static void check_port(struct roce_iface *r)
{
	char what[96];

	if (roce_port_gone(&r->watched, r->port, r->now, r->give_up_ns, what, sizeof(what)))
		fail_all(r, -ENETDOWN, what);
}

void roce_slow(struct roce_iface *r)
{
	struct roce_event e;

	if (r->now < r->next_slow)
		return;
	r->next_slow = r->now + SLOW_NS;
	roce_watch_poll(r->dev);
	while (roce_watch_next(r->dev, &r->watch, &e))
		handle_event(r, &e);
	check_port(r);
	check_lane_eps(r);
}

/* ------------------------------------------------------------------ progress */

static unsigned int fail_broken(struct roce_iface *r)
{
	struct weft_roce_names names;
	struct roce_lane_ep *lane_ep;
	char text[160];
	unsigned int n = 0;

	for (;;) {
		LIST_FOREACH(lane_ep, &r->lane_eps, link)
			if (lane_ep->broken != 0 && lane_ep->state < ROCE_FAILED)
				break;
		if (!lane_ep)
			break;
		names = roce_names(lane_ep);
		snprintf(text, sizeof(text), "%s: peer %s can't be sent to: the device refuses: %s",
			 names.device, names.peer, strerror(lane_ep->broken));
		roce_lane_ep_lost(lane_ep, -EIO, text);
		n++;
	}
	r->failing = false;
	return n;
}

static unsigned int roce_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct roce_iface *r = roce_iface_of(base);
	unsigned int n;

	r->now = now_ns;
	n = TAILQ_EMPTY(&r->connecting) ? 0 : roce_connect_progress(r);
	n += roce_cq_poll(r);
	if (!TAILQ_EMPTY(&r->waits))
		n += roce_words_read(r);
	if (r->posted < r->promised + ROCE_POLL)
		roce_srq_fill(r);
	if (!TAILQ_EMPTY(&r->acks))
		roce_acks_send(r);
	if (__builtin_expect(r->failing, 0))
		n += fail_broken(r);
	if (!LIST_EMPTY(&r->dying))
		roce_reap(r);
	roce_slow(r);
	roce_tx_flush(base);
	if (n > 0)
		roce_look_soon(r);
	return n;
}

/* ------------------------------------------------------------------ cold */

static void roce_get_address(struct weft_lane_iface *base, void *buf)
{
	struct roce_iface *r = roce_iface_of(base);
	struct weft_roce_addr a;

	roce_addr_fill(&a, WEFT_ROCE_RC, r->gid.gid, r->mtu, r->opts.seg);
	a.v1 = !r->gid.v2;
	memcpy(buf, &a, sizeof(a));
}

static int roce_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			     size_t why_len)
{
	struct roce_iface *r = roce_iface_of(base);

	if (r->ended) {
		snprintf(why, why_len, "%s: %s", base->name, ROCE_DEVICE_GONE);
		return -ENODEV;
	}
	return roce_reachable(&r->gid, r->gid_gone, r->netdev, WEFT_ROCE_RC, addr, len, why,
			      why_len);
}

static bool roce_link_up(struct weft_lane_iface *base)
{
	return roce_iface_of(base)->watched.up && !roce_iface_of(base)->gid_gone;
}

static void roce_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	static const char *const states[] = {"not connected", "connecting", "up",     "failed",
					     "stopped",       "closing",    "closing"};
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	uint32_t sent = 0, acked = 0;
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++) {
		sent += lane_ep->chans[i]->credit.sent;
		acked += lane_ep->chans[i]->credit.acked;
	}
	snprintf(buf, size,
		 "peer %s, %s, %u queue pair%s, path MTU %u, %u of %u messages outstanding",
		 lane_ep->peer, states[lane_ep->state], lane_ep->num_qps,
		 lane_ep->num_qps == 1 ? "" : "s", lane_ep->mtu ? 128u << lane_ep->mtu : 0,
		 sent - acked, sent);
}

#define LEVELS(X)                                                                       \
	X(r->kept, "rx.kept", "Receive buffers now that the program has not released.") \
	X(r->posted, "rx.posted", "Receive buffers now that the device has.")           \
	X(r->promised, "rx.promised", "Receive buffers now in the windows of peers.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	ROCE_COUNTERS(WEFT_COUNTER_HELP)
	LEVELS(WEFT_LEVEL_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void roce_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct roce_iface *r = roce_iface_of(base);

#define COUNTER(field, name, help) cb(name, r->count.field, arg);
	ROCE_COUNTERS(COUNTER)
#undef COUNTER
#define COUNTER(value, name, help) cb(name, value, arg);
	LEVELS(COUNTER)
#undef COUNTER
}

static void free_iface(struct roce_iface *r)
{
	struct roce_chan *chan;
	unsigned int i;

	roce_watch_remove(r->dev, &r->watch);
	if (r->srq)
		ibv_destroy_srq(r->srq);
	if (r->cq)
		ibv_destroy_cq(r->cq);
	roce_notify_close(&r->notify);
	while ((chan = TAILQ_FIRST(&r->graves))) {
		TAILQ_REMOVE(&r->graves, chan, ack_link);
		free(chan->slots);
		free(chan);
	}
	roce_pool_fini(&r->rx_pool);
	roce_pool_fini(&r->tx_pool);
	roce_pool_fini(&r->ring_pool);
	weft_mpool_fini(&r->flush_pool);
	for (i = 0; i < 4096; i++)
		free(r->by_qpn[i]);
	roce_dev_put(r->dev);
	free(r);
}

static void roce_close(struct weft_lane_iface *base)
{
	struct roce_iface *r = roce_iface_of(base);
	unsigned int polls = 0;
	uint64_t end;

	while (!LIST_EMPTY(&r->lane_eps))
		roce_ep_destroy(&LIST_FIRST(&r->lane_eps)->base);
	/* Wait for BYE and for completions: milliseconds, or the timeout of a dead peer. */
	end = r->platform->now(r->platform->arg) + r->give_up_ns + CLOSE_NS;
	while (!LIST_EMPTY(&r->dying) && r->now < end) {
		roce_progress(base, r->platform->now(r->platform->arg));
		/* The time starts when no lane_ep connects: the kernel limits the connecting. */
		if (!TAILQ_EMPTY(&r->connecting))
			end = r->now + r->give_up_ns + CLOSE_NS;
		/* On a core with busy processes each yield costs their time slices. */
		if (++polls % ROCE_POLLS_YIELD == 0)
			sched_yield();
	}
	if (!LIST_EMPTY(&r->dying))
		weft_error("%s: the device has not completed all requests in time; queue pairs "
			   "with open requests are not freed",
			   r->base.name);
	free_iface(r);
}

static const struct weft_lane_ops roce_ops = {
	.am_short = roce_am_short,
	.am_bcopy = roce_am_bcopy,
	.am_zcopy = roce_am_zcopy,
	.tx_flush = roce_tx_flush,
	.progress = roce_progress,
	.release = roce_release,
	.get_zcopy = roce_get_zcopy,
	.put_zcopy = roce_put_zcopy,
	.amo64 = roce_amo64,
	.ep_create = roce_ep_create,
	.ep_get_address = roce_ep_get_address,
	.ep_connect_ep = roce_ep_connect_ep,
	.ep_destroy = roce_ep_destroy,
	.ep_check = roce_ep_check,
	.ep_flush = roce_ep_flush,
	.ep_seen = roce_ep_seen,
	.ep_quiesce = roce_ep_quiesce,
	.ep_reap = roce_ep_reap,
	.wait_fd = roce_wait_fd,
	.arm = roce_arm,
	.disarm = roce_disarm,
	.get_address = roce_get_address,
	.is_reachable = roce_is_reachable,
	.print_address = roce_print_address,
	.link_up = roce_link_up,
	.ep_print = roce_ep_print,
	.counters = roce_counters,
	.close = roce_close,
};

/* ------------------------------------------------------------------ open */

/*
 * No attribute has the device's limit of inline data, so create queue pairs.
 * @return bytes, one of sizes[]; -1: the device can create no reliable queue pair
 */
static int probe_inline(struct roce_iface *r)
{
	static const uint32_t sizes[] = {ROCE_PLACE, 128, 96, 64, 32, 0};
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp;
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		attr = (struct ibv_qp_init_attr){
			.send_cq = r->cq,
			.recv_cq = r->cq,
			.srq = r->srq,
			.cap = {.max_send_wr = ROCE_SQ_DEPTH,
				.max_send_sge = r->max_sge,
				.max_inline_data = sizes[i]},
			.qp_type = IBV_QPT_RC,
		};
		qp = ibv_create_qp(r->dev->pd, &attr);
		if (!qp)
			continue;
		ibv_destroy_qp(qp);
		return (int)sizes[i];
	}
	return -1;
}

static int open_queues(struct roce_iface *r, char *why, size_t why_len)
{
	uint32_t cqe;
	int rc, inlined;

	rc = roce_srq_open(r, why, why_len);
	if (rc < 0)
		return rc;
	cqe = r->rx_total + TX_REQUESTS;
	if (cqe > (uint32_t)r->dev->attr.max_cqe)
		cqe = (uint32_t)r->dev->attr.max_cqe;
	if (cqe < r->rx_total + 2 * ROCE_SQ_DEPTH) {
		snprintf(why, why_len,
			 "%s: its completion queues hold %u entries, %u are needed: lower "
			 "WEFT_RX_BUFS",
			 r->dev->name, cqe, r->rx_total + 2 * ROCE_SQ_DEPTH);
		return -EINVAL;
	}
	roce_notify_open(&r->notify, r->dev->ctx);
	r->cq = ibv_create_cq(r->dev->ctx, (int)cqe, r, r->notify.channel, 0);
	if (!r->cq) {
		rc = -errno;
		roce_setup_failed(r->dev, "completion queue", -rc, why, why_len);
		return rc;
	}
	r->tx_room = r->tx_total = cqe - r->rx_total;
	r->max_sge =
		r->dev->attr.max_sge < ROCE_MAX_SGE ? (uint32_t)r->dev->attr.max_sge : ROCE_MAX_SGE;
	inlined = probe_inline(r);
	if (inlined < 0) {
		snprintf(why, why_len, "%s: no reliable queue pair can be made: %s", r->dev->name,
			 strerror(errno));
		return -ENOTSUP;
	}
	r->max_inline = (uint32_t)inlined;
	roce_pool_init(&r->tx_pool, r->dev, r->opts.seg, TX_BUFS);
	roce_pool_init(&r->ring_pool, r->dev, ROCE_RING_SIZE, RINGS);
	weft_mpool_init(&r->flush_pool, sizeof(struct roce_flush), 16, 0);
	return 0;
}

static void fill_attr(struct roce_iface *r, const struct ibv_port_attr *port)
{
	struct weft_lane_attr *a = &r->base.attr;
	/* Software devices (rdma_rxe, siw) have no vendor id, and higher costs. */
	bool soft = r->dev->attr.vendor_id == 0 || r->dev->attr.vendor_id == 0xffffff;
	size_t rma = port->max_msg_sz && port->max_msg_sz < RMA_MAX ? port->max_msg_sz : RMA_MAX;

	*a = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY |
			    WEFT_LANE_F_ZCOPY_REG | WEFT_LANE_F_TO_EP | WEFT_LANE_F_GET |
			    WEFT_LANE_F_PUT,
		.bandwidth = roce_port_rate(port),
		.bandwidth_known = roce_port_rate(port) > 0,
		.latency = soft ? 20e-6 : 1.2e-6,
		.send_overhead = soft ? 2e-6 : 60e-9,
		.recv_overhead = soft ? 1e-6 : 60e-9,
		.reg_cost = r->dev->reg_cost,
		.reg_growth = r->dev->reg_growth,
		/* Without inline data, the device reads a short message from its place. */
		.max_short = r->max_inline ? r->max_inline : ROCE_PLACE,
		.max_bcopy = r->opts.seg,
		.max_zcopy = r->opts.seg,
		.max_zcopy_hdr = ROCE_ZCOPY_HDR,
		.max_iov = r->max_sge - 1,
		.opt_align = 128u << r->mtu,
		.frame_size = 14 + 40 + 8 + 12 + 16 + (128u << r->mtu) + 4,
		.max_get = rma,
		.max_put = rma,
		.max_rma_iov = r->max_sge,
		.ep_addr_len = sizeof(struct weft_roce_ep_addr),
		.dev_addr_len = sizeof(struct weft_roce_addr),
		.link = WEFT_LANE_LINK_HOST,
	};
	/* Some devices allow fewer scatter entries for reads than for sends. */
	if (r->dev->attr.max_sge_rd > 0 && (uint32_t)r->dev->attr.max_sge_rd < a->max_rma_iov)
		a->max_rma_iov = (unsigned int)r->dev->attr.max_sge_rd;
	if (r->dev->attr.atomic_cap != IBV_ATOMIC_NONE)
		a->features |= WEFT_LANE_F_AMO64;
	/* Reads need resources at both ends. */
	if (r->dev->attr.max_qp_rd_atom < 1 || r->dev->attr.max_qp_init_rd_atom < 1)
		a->features &= ~(WEFT_LANE_F_GET | WEFT_LANE_F_AMO64);
	roce_dev_identity(r->dev, r->device, sizeof(r->device));
	a->device = r->device;
	a->domain = r->dev->name;
}

static int roce_open(const struct weft_lane_open *params, struct weft_lane_iface **out, char *why,
		     size_t why_len)
{
	struct roce_port_info info;
	struct roce_iface *r;
	char gid[48];
	int rc;

	rc = roce_port_open(params, &info, why, why_len);
	if (rc < 0)
		return rc;
	r = calloc(1, sizeof(*r));
	if (!r) {
		roce_dev_put(info.dev);
		return -ENOMEM;
	}
	r->dev = info.dev;
	r->port = info.port;
	r->opts = info.opts;
	r->gid = info.gid;
	r->mtu = info.mtu;
	memcpy(r->gid_why, info.why, sizeof(r->gid_why));
	memcpy(r->netdev, info.netdev, sizeof(r->netdev));
	r->watched.up = info.attr.state == IBV_PORT_ACTIVE;
	r->recv = params->recv;
	r->event = params->event;
	r->iface_event = params->iface_event;
	r->arg = params->arg;
	r->platform = params->platform;
	r->now = params->platform->now(params->platform->arg);
	r->keepalive_ns = params->conf->keepalive_ns;
	r->give_up_ns = weft_roce_give_up_ns(&r->opts);
	r->rx_total = params->conf->rx_bufs;
	r->base.ops = &roce_ops;
	r->base.driver = &weft_roce_driver;
	snprintf(r->name, sizeof(r->name), "roce:%.58s", params->resource);
	r->base.name = r->name;
	TAILQ_INIT(&r->acks);
	TAILQ_INIT(&r->batches);
	TAILQ_INIT(&r->waits);
	TAILQ_INIT(&r->graves);
	TAILQ_INIT(&r->connecting);
	LIST_INIT(&r->lane_eps);
	LIST_INIT(&r->dying);
	roce_watch_add(r->dev, &r->watch, r->port);
	rc = open_queues(r, why, why_len);
	if (rc < 0) {
		free_iface(r);
		return rc;
	}
	fill_attr(r, &info.attr);
	r->base.note = r->note;
	snprintf(r->note, sizeof(r->note),
		 "%.15s, GID %u, %.60s; path MTU %u, tc %u, gives up after %.1f s", r->netdev,
		 r->gid.index, r->gid_why, 128u << r->mtu, r->opts.tc,
		 (double)r->give_up_ns * 1e-9);
	weft_roce_gid_print(r->gid.gid, gid, sizeof(gid));
	weft_info("%s: GID %u, %s: %s; path MTU %u", r->base.name, r->gid.index, gid, r->gid_why,
		  128u << r->mtu);
	*out = &r->base;
	return 0;
}

static int roce_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	return roce_dev_list(add, arg);
}

const struct weft_lane_driver weft_roce_driver = {
	.name = "roce",
	.counters = counter_help,
	.abi = WEFT_LANE_ABI,
	.query = roce_query,
	.open = roce_open,
	.mem_register = roce_mem_register,
	.mem_deregister = roce_mem_deregister,
	.mem_key = roce_mem_key,
	.control = &weft_roce_ud_driver,
	.options = WEFT_ROCE_OPTS_KNOWN,
};
