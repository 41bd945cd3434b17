/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Termination of lane_eps: by a failure, by BYE of the peer, or because their owner destroys them;
 * and flushes, which end before or with them. qp.c has the states.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"

/* for receives of a device that has never reported QP_LAST_WQE_REACHED (rdma_rxe of Linux 6.1) */
#define DRAIN_NS 10000000

int roce_lane_ep_to_error(struct roce_lane_ep *lane_ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	unsigned int i;
	int err, rc = 0;

	for (i = 0; i < lane_ep->num_qps; i++) {
		err = ibv_modify_qp(lane_ep->chans[i]->qp, &attr, IBV_QP_STATE);
		if (rc == 0)
			rc = -err;
	}
	return rc;
}

/* Send BYE, the last message: nothing else is sent from here on. */
static void send_bye(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	unsigned int i;

	lane_ep->closing = true;
	lane_ep->close.begin = r->now;
	lane_ep->close.give_up = r->now + r->give_up_ns;
	for (i = 0; i < lane_ep->num_qps; i++) {
		/*
		 * A peer that was sent messages gets the device's timeout, also if it was silent.
		 */
		lane_ep->close.received = lane_ep->close.received || lane_ep->chans[i]->received ||
					  lane_ep->chans[i]->credit.sent != 0;
		roce_chan_ring(lane_ep->chans[i]);
		roce_chan_bye(lane_ep->chans[i]);
	}
}

void roce_lane_ep_bye(struct roce_lane_ep *lane_ep)
{
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++)
		if (!lane_ep->chans[i]->bye)
			return;
	if (lane_ep->close.seen_at == 0)
		lane_ep->close.seen_at = roce_lane_ep_iface(lane_ep)->now;
}

static bool lane_drained(const struct roce_lane_ep *lane_ep)
{
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++)
		if (lane_ep->chans[i]->sq.tail != lane_ep->chans[i]->sq.head)
			return false;
	return true;
}

bool roce_lane_ep_close(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);

	if (lane_ep->close.acked_at == 0 && lane_drained(lane_ep))
		lane_ep->close.acked_at = r->now;
	if (!weft_roce_close_over(&lane_ep->close, r->now))
		return false;
	lane_ep->closing = false;
	lane_ep->since = r->now;
	roce_lane_ep_to_error(lane_ep);
	return true;
}

struct weft_lane_comp *roce_flush_take(struct roce_lane_ep *lane_ep)
{
	struct roce_flush *f = STAILQ_FIRST(&lane_ep->flushes);
	struct weft_lane_comp *comp;

	if (!f)
		return NULL;
	STAILQ_REMOVE_HEAD(&lane_ep->flushes, link);
	comp = f->comp;
	weft_mpool_put(&roce_lane_ep_iface(lane_ep)->flush_pool, f);
	return comp;
}

/* Are the messages not only complete, but also processed by the peer? */
static bool flush_delivered(const struct roce_lane_ep *lane_ep, const struct roce_flush *f)
{
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++)
		if ((int32_t)(lane_ep->chans[i]->credit.acked - f->sent[i]) < 0 ||
		    (int32_t)(lane_ep->chans[i]->sq.tail - f->tail[i]) < 0)
			return false;
	return true;
}

static void end_flushes(struct roce_lane_ep *lane_ep, int status)
{
	const struct roce_flush *f;
	struct weft_lane_comp *comp;
	int rc;

	while ((f = STAILQ_FIRST(&lane_ep->flushes))) {
		rc = flush_delivered(lane_ep, f) ? 0 : status;
		comp = roce_flush_take(lane_ep);
		comp->done(comp, rc);
	}
}

void roce_lane_ep_fail(struct roce_lane_ep *lane_ep, enum weft_lane_event event, int status,
		       const char *text)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	unsigned int i;

	if (lane_ep->state >= ROCE_FAILED)
		return;
	/* Hand collected requests to the device too, which will complete them with an error. */
	for (i = 0; i < lane_ep->num_qps; i++)
		if (lane_ep->state == ROCE_UP)
			roce_chan_ring(lane_ep->chans[i]);
	lane_ep->status = status;
	lane_ep->base.up = false;
	lane_ep->base.tx_room = false;
	lane_ep->since = r->now;
	if (lane_ep->connecting)
		lane_ep->bye_due = event == WEFT_LANE_EV_GONE;
	else if (event == WEFT_LANE_EV_GONE && lane_ep->state == ROCE_UP)
		send_bye(lane_ep);
	else
		roce_lane_ep_to_error(lane_ep);
	lane_ep->state = ROCE_FAILED;
	if (event == WEFT_LANE_EV_DOWN)
		r->count.failed++;
	for (i = 0; i < lane_ep->num_qps; i++) {
		roce_chan_done(lane_ep->chans[i]);
		if (lane_ep->chans[i]->lost)
			roce_chan_abandon(lane_ep->chans[i], lane_ep->chans[i]->lost_from);
	}
	end_flushes(lane_ep, status);
	if (lane_ep->state == ROCE_FAILED)
		r->event(r->arg, &lane_ep->base, event, status, text);
}

void roce_lane_ep_fail_wc(struct roce_lane_ep *lane_ep, struct roce_chan *chan,
			  enum ibv_wc_status status)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_names names = roce_names(lane_ep);
	char text[320];

	weft_roce_text_wc(&names, status, r->now - chan->busy_since, text, sizeof(text));
	roce_lane_ep_lost(lane_ep, weft_roce_wc_error(status), text);
}

/*
 * BYE of a peer that receives messages and closes at once may arrive, over another queue pair,
 * before its counts are read. Read them, so that messages that it has processed do not fail.
 */
static void read_last_words(struct roce_lane_ep *lane_ep)
{
	unsigned int i;
	uint32_t count;

	for (i = 0; i < lane_ep->num_qps; i++) {
		struct roce_chan *chan = lane_ep->chans[i];

		if (weft_roce_word_read(chan->word, &count) && count != chan->word_seen &&
		    weft_roce_credit_word(&chan->credit, count) == WEFT_ROCE_ACK_BAD)
			roce_lane_ep_iface(lane_ep)->count.bad_ack++;
	}
}

void roce_ep_destroy(struct weft_lane_ep *base)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	enum roce_lane_ep_state was = lane_ep->state;
	unsigned int i;

	if (was >= ROCE_BYE)
		return;
	LIST_REMOVE(lane_ep, link);
	LIST_INSERT_HEAD(&r->dying, lane_ep, link);
	base->up = false;
	lane_ep->state = ROCE_DRAIN;
	lane_ep->since = r->now;
	if (was == ROCE_UP) {
		read_last_words(lane_ep);
		send_bye(lane_ep);
	} else if (was == ROCE_CONNECTING) {
		lane_ep->bye_due = true;
	}
	if (lane_ep->connecting)
		roce_job_cancel(r->dev, &lane_ep->job);
	if (lane_ep->closing)
		lane_ep->state = ROCE_BYE;
	if (was == ROCE_STOPPED)
		roce_stopped_destroy(lane_ep);
	/*
	 * End messages that wait only for the peer's count; the others end when the device has
	 * completed them, and no longer uses the memory.
	 */
	for (i = 0; i < lane_ep->num_qps; i++)
		roce_chan_done(lane_ep->chans[i]);
	/* Requests that the device refused get no completion, so they end here. */
	for (i = 0; i < lane_ep->num_qps; i++)
		if (lane_ep->chans[i]->lost)
			roce_chan_abandon(lane_ep->chans[i], lane_ep->chans[i]->lost_from);
	end_flushes(lane_ep, -ECANCELED);
}

void roce_lane_ep_ended_meanwhile(struct roce_lane_ep *lane_ep)
{
	lane_ep->since = roce_lane_ep_iface(lane_ep)->now;
	if (lane_ep->job.err != 0 || !lane_ep->bye_due) {
		roce_lane_ep_to_error(lane_ep);
		return;
	}
	send_bye(lane_ep);
	if (lane_ep->state == ROCE_DRAIN)
		lane_ep->state = ROCE_BYE;
}

/* ------------------------------------------------------------------ reap */

static void lane_abandon(struct roce_lane_ep *lane_ep)
{
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++) {
		lane_ep->chans[i]->abandoned = true;
		roce_chan_abandon(lane_ep->chans[i], lane_ep->chans[i]->sq.tail);
	}
}

/*
 * Have all receives of its queue pairs been taken from the completion queue? Destroying a queue
 * pair silently removes its completions (on mlx5), and their buffers would leak.
 */
static bool receives_are_back(const struct roce_lane_ep *lane_ep)
{
	const struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	uint64_t bound = r->reports_last_wqe ? ROCE_ABANDON_NS : DRAIN_NS;
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++) {
		const struct roce_chan *chan = lane_ep->chans[i];

		if (!(chan->last_wqe && r->empties != chan->last_wqe_at) &&
		    !roce_empty_since(r, lane_ep->since, bound))
			return false;
	}
	return true;
}

void roce_reap(struct roce_iface *r)
{
	struct roce_lane_ep *lane_ep, *next;

	for (lane_ep = LIST_FIRST(&r->dying); lane_ep; lane_ep = next) {
		next = LIST_NEXT(lane_ep, link);
		if (lane_ep->connecting)
			continue; /* roce_connect_progress() */
		if (lane_ep->state == ROCE_BYE) {
			if (roce_lane_ep_close(lane_ep))
				lane_ep->state = ROCE_DRAIN;
			continue;
		}
		if (lane_ep->job.run && !receives_are_back(lane_ep))
			continue;
		if (!lane_drained(lane_ep)) {
			if (!roce_empty_since(r, lane_ep->since, ROCE_ABANDON_NS))
				continue;
			lane_abandon(lane_ep);
		}
		LIST_REMOVE(lane_ep, link);
		roce_lane_ep_free(lane_ep);
	}
}

/* ------------------------------------------------------------------ flush */

static bool flush_over(const struct roce_lane_ep *lane_ep, const struct roce_flush *f)
{
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++)
		if ((int32_t)(lane_ep->chans[i]->done - f->sent[i]) < 0 ||
		    (int32_t)(lane_ep->chans[i]->sq.tail - f->tail[i]) < 0)
			return false;
	return true;
}

void roce_flush_check(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_lane_comp *comp;
	struct roce_flush *f;

	while (lane_ep->state < ROCE_FAILED && (f = STAILQ_FIRST(&lane_ep->flushes)) != NULL &&
	       flush_over(lane_ep, f)) {
		STAILQ_REMOVE_HEAD(&lane_ep->flushes, link);
		comp = f->comp;
		weft_mpool_put(&r->flush_pool, f);
		comp->done(comp, 0);
	}
}

int roce_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_flush *f;
	unsigned int i;

	if (lane_ep->status != 0)
		return lane_ep->status;
	f = weft_mpool_get(&r->flush_pool);
	if (!f)
		return -ENOMEM;
	f->comp = comp;
	for (i = 0; i < lane_ep->num_qps; i++) {
		struct roce_chan *chan = lane_ep->chans[i];
		uint32_t n = chan->sq.head - chan->sq.posted;

		/*
		 * The last message that is still here gets the flag that requests its count at
		 * once.
		 */
		if (n > 0 && chan->wr[n - 1].opcode == IBV_WR_SEND_WITH_IMM)
			chan->wr[n - 1].imm_data |= WEFT_ROCE_IMM_ACK_REQ;
		f->sent[i] = chan->credit.sent;
		f->tail[i] = chan->sq.head;
	}
	if (flush_over(lane_ep, f)) {
		weft_mpool_put(&r->flush_pool, f);
		return WEFT_LANE_IDLE;
	}
	STAILQ_INSERT_TAIL(&lane_ep->flushes, f, link);
	return 0;
}
