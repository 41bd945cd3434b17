/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lane endpoints and their queue pairs: created here, connected in connect.c, ended in ends.c. The
 * states of a lane_ep:
 *
 *	CREATED ── ep_connect_ep() ──> CONNECTING ── the thread is done ──> UP ──> FAILED, STOPPED
 *	   └───────────── ep_destroy() ────────┴──> BYE ──> DRAIN ──> freed
 *
 * FAILED: an error, or the peer has closed. STOPPED: its owner has other lanes (stop.c). BYE: BYE
 * was sent and is not complete. DRAIN: outstanding requests complete with errors.
 *
 * When the peer has closed, our BYE in reply is sent in state FAILED. roce_close.h decides its end,
 * as in state BYE.
 *
 * A lane_ep may end while a thread connects it: destroyed (DRAIN), or failed. Then the thread still
 * owns its queue pairs, and they are not touched until it has finished (lane_ep->connecting).
 * Afterwards BYE is sent if it is due (lane_ep->bye_due: the peer's end may be up and may send), or
 * the queue pairs go into the error state. The times of FAILED and DRAIN start at that point.
 *
 * Destroying a queue pair drops its completions, and with them buffers of the shared queue. So a
 * queue pair first goes into the error state, then all of its requests complete, and only then it
 * is destroyed.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"

#define READS_MAX 16 /* outstanding reads and atomics per queue pair */

struct weft_roce_names roce_names(const struct roce_lane_ep *lane_ep)
{
	return (struct weft_roce_names){.device = roce_lane_ep_iface(lane_ep)->dev->name,
					.peer = lane_ep->peer};
}

/* ------------------------------------------------------------------ create */

unsigned int roce_reads_max(int device)
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

void roce_chan_free(struct roce_iface *r, struct roce_chan *chan)
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
	/* Half of the completion queue is reserved for data messages. */
	if (r->byes >= r->tx_total / 2) {
		free(chan);
		weft_warn("%s: its completion queue has no place for another lane", r->base.name);
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
		roce_chan_free(r, chan);
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
		roce_chan_free(r, lane_ep->chans[--lane_ep->num_qps]);
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
	/* A registration for each lane_ep: no peer can write the words of another peer. */
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
		.reads = (uint8_t)roce_reads_max(r->dev->attr.max_qp_rd_atom),
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
