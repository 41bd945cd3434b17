/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"
#include "roce_async.h"
#include "roce_cq.h"
#include "roce_end.h"
#include "roce_qp.h"

/* ------------------------------------------------------------------ queue pairs */

/*
 * The states of a lane_ep:
 *
 *	CREATED ── ep_connect_ep() ──> CONNECTING ── the thread is done ──> UP ──> FAILED, STOPPED
 *	   └───────────── ep_destroy() ────────┴──> BYE, if due ──> DRAIN ──> freed
 *
 * FAILED: an error, or the peer has closed. STOPPED: its owner has other lanes. BYE: BYE was sent,
 * and the close has not finished. DRAIN: outstanding requests complete with errors.
 *
 * When the peer has closed, our BYE in reply is sent in state FAILED. roce_wire.h decides its end,
 * as in state BYE.
 *
 * A lane_ep may end while a thread connects it: destroyed (DRAIN), or failed. Then the thread still
 * owns its queue pairs, and they are not touched until it has finished (lane_ep->connecting).
 * Afterwards BYE is sent if it is due (lane_ep->bye_due: the peer's end may be up and may send), or
 * the queue pairs go into the error state. The times of FAILED and DRAIN start at that point.
 *
 * Destroying a queue pair drops its completions, and with them buffers of the shared queue. So a
 * queue pair goes into the error state, all of its requests complete, and then it is destroyed.
 */

#define READS_MAX 16 /* outstanding reads and atomics per queue pair, at most */

/* ------------------------------------------------------------------ create */

static unsigned int reads_max(int device)
{
	return device < 0 ? 0 : device < READS_MAX ? (unsigned int)device : READS_MAX;
}

static int init_qp(struct roce_iface *r, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)r->port,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			(r->base.attr.features & WEFT_LANE_F_AMO64 ? IBV_ACCESS_REMOTE_ATOMIC : 0),
	};

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void chan_free(struct roce_iface *r, struct roce_chan *chan)
{
	unsigned int i;

	if (chan->in_acks)
		TAILQ_REMOVE(&r->acks, chan, ack_link);
	if (chan->in_wait)
		TAILQ_REMOVE(&r->waits, chan, wait_link);
	if (chan->in_batch)
		TAILQ_REMOVE(&r->batches, chan, batch_link);
	if (chan->qp) {
		roce_chan_leave(r, chan);
		ibv_destroy_qp(chan->qp);
	}
	r->byes -= !chan->bye_sent;
	for (i = 0; i < ROCE_MAX_RINGS && chan->rings[i]; i++)
		roce_pool_put(&r->ring_pool, chan->rings[i]);
	free(chan->unacked);
	if (chan->abandoned) {
		TAILQ_INSERT_TAIL(&r->graves, chan, ack_link);
		return;
	}
	free(chan->slots);
	free(chan);
}

static int chan_setup(struct roce_iface *r, struct roce_chan *chan)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = chan,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.srq = r->srq,
		.cap = {.max_send_wr = ROCE_SQ_DEPTH,
			.max_send_sge = r->max_sge,
			.max_inline_data = r->max_inline},
		.qp_type = IBV_QPT_RC,
	};
	unsigned int i;
	int rc;

	chan->sq.depth = ROCE_SQ_DEPTH;
	chan->slots = calloc(ROCE_SQ_DEPTH, sizeof(*chan->slots));
	chan->rings[0] = roce_pool_get(&r->ring_pool);
	if (!chan->slots || !chan->rings[0])
		return -ENOMEM;
	for (i = 0; i < ROCE_SQ_DEPTH; i++)
		chan->slots[i].chan = chan;
	chan->qp = ibv_create_qp(r->dev->pd, &attr);
	if (!chan->qp)
		return errno ? -errno : -EIO;
	rc = init_qp(r, chan->qp);
	return rc == 0 ? roce_chan_enter(r, chan) : rc;
}

static int chan_create(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_chan *chan = calloc(1, sizeof(*chan));
	uint32_t left = weft_roce_left(r->rx_total, r->promised, r->kept);
	int rc;

	if (!chan)
		return -ENOMEM;
	/* BYEs of queue pairs take at most half of the completion queue's places for requests. */
	if (r->byes >= r->tx_total / 2) {
		free(chan);
		weft_warn("%s: its completion queue serves %u queue pairs at most: lower the "
			  "lane option qps or use another worker",
			  r->base.name, r->tx_total / 2);
		return -ENOBUFS;
	}
	chan->lane_ep = lane_ep;
	chan->credit.own_window = weft_roce_window(r->opts.window, left);
	if (chan->credit.own_window == 0) {
		free(chan);
		weft_warn("%s: no receive buffers are left for another peer: %u are promised, "
			  "%u are kept by the application; raise WEFT_RX_BUFS",
			  r->base.name, r->promised, r->kept);
		return -ENOBUFS;
	}
	r->byes++;
	rc = chan_setup(r, chan);
	if (rc < 0) {
		chan_free(r, chan);
		return rc;
	}
	chan->word = &lane_ep->words[lane_ep->num_qps];
	lane_ep->promised += chan->credit.own_window + 1;
	r->promised += chan->credit.own_window + 1;
	lane_ep->chans[lane_ep->num_qps++] = chan;
	return 0;
}

void roce_lane_ep_free(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);

	while (lane_ep->num_qps > 0)
		chan_free(r, lane_ep->chans[--lane_ep->num_qps]);
	if (lane_ep->word_mr)
		ibv_dereg_mr(lane_ep->word_mr);
	free(lane_ep->words);
	r->promised -= lane_ep->promised;
	free(lane_ep);
}

static int words_setup(struct roce_iface *r, struct roce_lane_ep *lane_ep)
{
	size_t size = WEFT_ROCE_MAX_QPS * sizeof(struct weft_roce_word);
	unsigned int i;

	lane_ep->words = aligned_alloc(64, size);
	if (!lane_ep->words)
		return -ENOMEM;
	for (i = 0; i < WEFT_ROCE_MAX_QPS; i++)
		lane_ep->words[i] = weft_roce_word(0);
	/* Each lane_ep has its own registration, so no peer can write the words of another peer. */
	lane_ep->word_mr =
		ibv_reg_mr_iova(r->dev->pd, lane_ep->words, size, roce_iova(lane_ep->words),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return lane_ep->word_mr ? 0 : errno ? -errno : -EIO;
}

int roce_ep_create(struct weft_lane_iface *base, void *user, struct weft_lane_ep **out)
{
	struct roce_iface *r = roce_iface_of(base);
	struct roce_lane_ep *lane_ep;
	const char *what = "queue pair for another lane";
	char why[256];
	unsigned int i;
	int rc;

	if (r->gid_gone) {
		roce_gid_gone_text(&r->gid, why, sizeof(why));
		weft_warn("%s: no new lane: %s", r->base.name, why);
		return -EADDRNOTAVAIL;
	}
	lane_ep = calloc(1, sizeof(*lane_ep));
	if (!lane_ep)
		return -ENOMEM;
	lane_ep->base = (struct weft_lane_ep){.iface = base, .ops = base->ops, .user = user};
	snprintf(lane_ep->peer, sizeof(lane_ep->peer), "not known yet");
	STAILQ_INIT(&lane_ep->flushes);
	lane_ep->sgid_index = r->gid.index;
	rc = words_setup(r, lane_ep);
	if (rc == 0)
		rc = r->platform->random(r->platform->arg, &lane_ep->psn, sizeof(lane_ep->psn));
	lane_ep->psn &= 0xffffff;
	for (i = 0; rc == 0 && i < r->opts.qps; i++)
		rc = chan_create(lane_ep);
	if (rc == 0) {
		what = "receive buffers for another lane";
		rc = roce_srq_cover(r);
	}
	if (rc < 0) {
		roce_setup_failed(r->dev, what, -rc, why, sizeof(why));
		weft_warn("%s", why);
		roce_lane_ep_free(lane_ep);
		return rc;
	}
	LIST_INSERT_HEAD(&r->lane_eps, lane_ep, link);
	*out = &lane_ep->base;
	return 0;
}

void roce_ep_get_address(struct weft_lane_ep *base, void *buf)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_ep_addr a = {
		.version = WEFT_ROCE_VERSION,
		.num_qps = lane_ep->num_qps,
		.reads = (uint8_t)reads_max(r->dev->attr.max_qp_rd_atom),
		.window = weft_put32(lane_ep->chans[0]->credit.own_window),
		.psn = weft_put32(lane_ep->psn),
		.word_rkey = weft_put32(lane_ep->word_mr->rkey),
		.word_addr = weft_put64(roce_iova(lane_ep->words)),
	};
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++) {
		a.qpn[i] = weft_put32(lane_ep->chans[i]->qp->qp_num);
		/* All queue pairs get the smallest window: the address has one number for all. */
		if (lane_ep->chans[i]->credit.own_window < weft_get32(a.window))
			a.window = weft_put32(lane_ep->chans[i]->credit.own_window);
	}
	memcpy(buf, &a, sizeof(a));
}

/* ------------------------------------------------------------------ connecting */

/* Calls into the kernel run in a thread of the device; the worker polls for their end. */

static int to_rtr(struct roce_lane_ep *lane_ep, unsigned int i)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)lane_ep->mtu,
		.dest_qp_num = lane_ep->remote_qpn[i],
		.rq_psn = lane_ep->remote_psn,
		.max_dest_rd_atomic = (uint8_t)reads_max(r->dev->attr.max_qp_rd_atom),
		.min_rnr_timer = (uint8_t)r->opts.rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)r->port,
			    .grh = {.sgid_index = lane_ep->sgid_index,
				    .hop_limit = 64,
				    .traffic_class = (uint8_t)r->opts.tc,
				    /* Becomes the UDP source port: switches that hash it
				     * spread queue pairs over paths. */
				    .flow_label = (lane_ep->psn ^ (i * 0x3c6efu)) & 0xfffff}},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, lane_ep->remote_gid, 16);
	return ibv_modify_qp(lane_ep->chans[i]->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct roce_lane_ep *lane_ep, unsigned int i)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)r->opts.timeout,
		.retry_cnt = (uint8_t)r->opts.retry,
		.rnr_retry = 6,
		.sq_psn = lane_ep->psn,
		.max_rd_atomic = (uint8_t)lane_ep->chans[i]->max_reads,
	};

	return ibv_modify_qp(lane_ep->chans[i]->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Runs in a thread of the device: the kernel resolves the peer's Ethernet address in this call. */
static void connect_job(struct roce_job *job)
{
	struct roce_lane_ep *lane_ep =
		(struct roce_lane_ep *)((char *)job - offsetof(struct roce_lane_ep, job));
	unsigned int i;
	int err = 0;

	for (i = 0; i < lane_ep->num_qps && err == 0; i++) {
		err = to_rtr(lane_ep, i);
		if (err == 0)
			err = to_rts(lane_ep, i);
	}
	job->err = err < 0 ? -err : err;
}

static void drop_extra(struct roce_lane_ep *lane_ep, unsigned int keep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_chan *chan;

	while (lane_ep->num_qps > keep) {
		chan = lane_ep->chans[--lane_ep->num_qps];
		lane_ep->promised -= chan->credit.own_window + 1;
		r->promised -= chan->credit.own_window + 1;
		chan_free(r, chan);
	}
}

static int connect_qp(struct roce_lane_ep *lane_ep, unsigned int i,
		      const struct weft_roce_ep_addr *e)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_chan *chan = lane_ep->chans[i];
	/*
	 * Messages keep their places until the peer has processed and the device has completed
	 * them: at most as many as the window, or as ROCE_SQ_DEPTH if that is larger.
	 */
	uint32_t places = ROCE_RING_PLACES, k;

	lane_ep->remote_qpn[i] = weft_get32(e->qpn[i]);
	chan->credit.window = weft_get32(e->window);
	chan->word_remote = weft_get64(e->word_addr) + i * sizeof(struct weft_roce_word);
	chan->max_reads = reads_max(r->dev->attr.max_qp_init_rd_atom);
	if (chan->max_reads > e->reads)
		chan->max_reads = e->reads;
	/* Without read resources a read would wait for ever, so messages carry the data instead. */
	if (chan->max_reads == 0)
		lane_ep->base.lacks = WEFT_LANE_F_GET | WEFT_LANE_F_AMO64;
	while (places < chan->credit.window)
		places *= 2;
	chan->unacked_mask = places - 1;
	chan->unacked = calloc(places, sizeof(*chan->unacked));
	if (!chan->unacked)
		return -ENOMEM;
	for (k = 1; k < places / ROCE_RING_PLACES; k++) {
		chan->rings[k] = roce_pool_get(&r->ring_pool);
		if (!chan->rings[k])
			return -ENOMEM;
	}
	return 0;
}

int roce_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
		       const void *ep_addr, size_t ep_len)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_ep_addr e;
	struct weft_roce_addr a;
	char why[160];
	unsigned int i;
	int rc;

	rc = weft_roce_addr_check(dev_addr, dev_len, WEFT_ROCE_RC, why, sizeof(why));
	if (rc == 0)
		rc = weft_roce_ep_addr_check(ep_addr, ep_len, why, sizeof(why));
	if (rc < 0) {
		r->count.bad_addr++;
		weft_warn("%s: cannot connect to a peer: %s", r->base.name, why);
		return rc;
	}
	if (lane_ep->state != ROCE_CREATED)
		return -EALREADY;
	memcpy(&a, dev_addr, sizeof(a));
	memcpy(&e, ep_addr, sizeof(e));
	memcpy(lane_ep->remote_gid, a.gid, 16);
	weft_roce_gid_print(a.gid, lane_ep->peer, sizeof(lane_ep->peer));
	drop_extra(lane_ep, e.num_qps);
	lane_ep->mtu = a.mtu < r->mtu ? a.mtu : r->mtu;
	lane_ep->remote_psn = weft_get32(e.psn);
	lane_ep->remote_rkey = weft_get32(e.word_rkey);
	base->max_msg =
		(uint32_t)(weft_get32(a.seg) < r->opts.seg ? weft_get32(a.seg) : r->opts.seg);
	for (i = 0; i < lane_ep->num_qps; i++) {
		rc = connect_qp(lane_ep, i, &e);
		if (rc < 0)
			return rc;
	}
	lane_ep->job.run = connect_job;
	memcpy(lane_ep->job.host, lane_ep->remote_gid, sizeof(lane_ep->job.host));
	rc = roce_job_start(r->dev, &lane_ep->job);
	if (rc < 0) {
		lane_ep->job.run = NULL; /* no thread executes the job */
		return rc;
	}
	lane_ep->state = ROCE_CONNECTING;
	lane_ep->connecting = true;
	lane_ep->since = r->now;
	TAILQ_INSERT_TAIL(&r->connecting, lane_ep, connect_link);
	return 0;
}

/* ------------------------------------------------------------------ the thread has finished */

static void lane_connected(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_names names = roce_names(lane_ep);
	char text[256];
	unsigned int i;

	if (lane_ep->job.err != 0) {
		weft_roce_text_connect(&names, lane_ep->job.err, text, sizeof(text));
		roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_DOWN, -EHOSTUNREACH, text);
		return;
	}
	lane_ep->state = ROCE_UP;
	lane_ep->base.up = true;
	lane_ep->base.tx_room = true;
	/* The keepalive interval starts here. */
	for (i = 0; i < lane_ep->num_qps; i++)
		lane_ep->chans[i]->busy_since = lane_ep->chans[i]->last_rx_at = r->now;
	snprintf(text, sizeof(text), "%s: peer %s, path MTU %u, %u queue pair%s", names.device,
		 names.peer, 128u << lane_ep->mtu, lane_ep->num_qps,
		 lane_ep->num_qps > 1 ? "s" : "");
	r->event(r->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, text);
}

unsigned int roce_connect_progress(struct roce_iface *r)
{
	struct roce_lane_ep *lane_ep, *next;
	unsigned int events = 0;

	for (lane_ep = TAILQ_FIRST(&r->connecting); lane_ep; lane_ep = next) {
		next = TAILQ_NEXT(lane_ep, connect_link);
		if (!roce_job_done(&lane_ep->job))
			continue;
		TAILQ_REMOVE(&r->connecting, lane_ep, connect_link);
		lane_ep->connecting = false;
		if (lane_ep->state != ROCE_CONNECTING) {
			roce_lane_ep_ended_meanwhile(lane_ep);
			continue;
		}
		events++;
		lane_connected(lane_ep);
		next = TAILQ_FIRST(&r->connecting); /* the callback may have changed the list */
	}
	return events;
}
