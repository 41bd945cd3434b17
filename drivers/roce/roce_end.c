/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce.h"
#include "roce_async.h"
#include "roce_cq.h"
#include "roce_end.h"
#include "roce_qp.h"
#include "roce_send.h"

/* ------------------------------------------------------------------ termination */

/* ns after the error state, if QP_LAST_WQE_REACHED was never reported (rdma_rxe, Linux 6.1) */
#define DRAIN_NS 10000000

static int lane_ep_to_error(struct roce_lane_ep *lane_ep)
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

/* BYE is the last message. */
static void send_bye(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	unsigned int i;

	lane_ep->closing = true;
	lane_ep->close.begin = r->now;
	lane_ep->close.give_up = r->now + r->give_up_ns;
	for (i = 0; i < lane_ep->num_qps; i++) {
		/* If messages were sent, the close may last until the device gives up. */
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
	lane_ep_to_error(lane_ep);
	return true;
}

static struct weft_lane_comp *flush_take(struct roce_lane_ep *lane_ep)
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
		comp = flush_take(lane_ep);
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
	/* Hand collected requests to the device, too, so that each gets a completion. */
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
		lane_ep_to_error(lane_ep);
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

/* BYE may overtake the peer's counts: messages that the peer has processed must not fail. */
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

void roce_lane_ep_ended_meanwhile(struct roce_lane_ep *lane_ep)
{
	lane_ep->since = roce_lane_ep_iface(lane_ep)->now;
	if (lane_ep->job.err != 0 || !lane_ep->bye_due) {
		lane_ep_to_error(lane_ep);
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

/* Destroying a queue pair removes its completions (on mlx5), and their buffers would leak. */
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
			continue; /* a thread connects it; roce_connect_progress() goes on */
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

		/* If the last request is a message not yet posted, request its count at once. */
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

/* ------------------------------------------------------------------ failover */

/*
 * The state of receiving is a count for each queue pair, since each delivers in order. The queue
 * pairs of a stopped lane are in the error state before this state is sent to the peer. So messages
 * that are still in the completion queue are dropped, and the peer sends them over another lane.
 * Reads, writes and atomics of the peer no longer access our memory after that. So reads and writes
 * of the lane wait for the peer's state, and may be repeated when it has arrived. It is unknown
 * which atomics the peer's device has executed, except for those that were never posted.
 */

/* Consecutive checks that must find silence: after a pause of the host, the device is late, too. */
#define SILENT_CHECKS 2u

/* ------------------------------------------------------------------ suspicion */

static void lane_suspect(struct roce_lane_ep *lane_ep, int status, const char *text)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);

	r->count.suspect++;
	r->event(r->arg, &lane_ep->base, WEFT_LANE_EV_SUSPECT, status, text);
}

void roce_lane_ep_lost(struct roce_lane_ep *lane_ep, int status, const char *text)
{
	bool up = lane_ep->state == ROCE_UP;

	/* Queue pairs that have given up do not recover: report more than silence (-ETIMEDOUT). */
	if (up)
		lane_suspect(lane_ep, status == -ETIMEDOUT ? -EIO : status, text);
	if (!up || lane_ep->state == ROCE_UP)
		roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_DOWN, status, text);
}

static uint64_t bytes_under_way(const struct roce_lane_ep *lane_ep)
{
	uint64_t bytes = 0;
	unsigned int i;
	uint32_t n;

	for (i = 0; i < lane_ep->num_qps; i++) {
		const struct roce_chan *chan = lane_ep->chans[i];

		for (n = chan->sq.tail; n != chan->sq.head; n++)
			bytes += chan->slots[n & (ROCE_SQ_DEPTH - 1)].bytes;
	}
	return bytes;
}

static bool no_answer(const struct roce_lane_ep *lane_ep, uint64_t *since)
{
	const struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	uint64_t limit = WEFT_ROCE_SILENCE_MIN_NS;
	bool limit_known = false;
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++) {
		const struct roce_chan *chan = lane_ep->chans[i];

		*since = chan->busy_since;
		if (chan->sq.head == chan->sq.tail || !roce_empty_since(r, *since, limit))
			continue;
		if (!limit_known)
			limit = weft_roce_silence_limit(&lane_ep->silence,
							bytes_under_way(lane_ep));
		limit_known = true;
		if (roce_empty_since(r, *since, limit))
			return true;
	}
	return false;
}

static bool is_silent(struct roce_lane_ep *lane_ep, uint64_t *since)
{
	if (!no_answer(lane_ep, since)) {
		lane_ep->silent_checks = 0;
		return false;
	}
	lane_ep->silent_checks += lane_ep->silent_checks < SILENT_CHECKS;
	return lane_ep->silent_checks == SILENT_CHECKS;
}

void roce_suspect_look(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	char text[160];
	uint64_t since;

	if (lane_ep->state != ROCE_UP)
		return;
	if (!r->watched.up)
		snprintf(text, sizeof(text), "%s: port %u is down", r->dev->name, r->port);
	else if (is_silent(lane_ep, &since))
		snprintf(text, sizeof(text), "%s: peer %s has not answered for %.0f ms",
			 r->dev->name, lane_ep->peer, (double)(r->now - since) * 1e-6);
	else
		return;
	lane_suspect(lane_ep, 0, text);
}

/* The device of a suspended process acknowledges, too: only messages and counts are evidence. */
uint64_t roce_ep_seen(const struct weft_lane_ep *base)
{
	const struct roce_lane_ep *lane_ep = (const struct roce_lane_ep *)base;
	uint64_t seen = 0;
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++)
		if (lane_ep->chans[i]->last_rx_at > seen)
			seen = lane_ep->chans[i]->last_rx_at;
	return seen;
}

void roce_ep_check(struct weft_lane_ep *base)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_chan *chan = lane_ep->chans[0];

	/* While messages are outstanding, a live peer will acknowledge them without a PING. */
	if (lane_ep->state == ROCE_UP && chan->credit.sent == chan->credit.acked)
		roce_chan_ping(chan);
}

/* ------------------------------------------------------------------ stop */

int roce_ep_quiesce(struct weft_lane_ep *base, void *buf)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_rx_state *state = buf;
	struct ibv_device_attr attr;
	unsigned int i;
	int rc;

	if (lane_ep->state != ROCE_UP)
		return -ENOTCONN;
	rc = lane_ep_to_error(lane_ep);
	/* A device that is gone accesses no memory, so its error does not matter. */
	if (rc < 0 && !r->ended && ibv_query_device(r->dev->ctx, &attr) == 0)
		return rc;
	base->up = false;
	base->tx_room = false;
	lane_ep->state = ROCE_STOPPED;
	lane_ep->status = -ENOTCONN;
	lane_ep->since = r->now;
	r->count.stopped++;
	for (i = 0; i < lane_ep->num_qps; i++) {
		struct roce_chan *chan = lane_ep->chans[i];

		state->processed[i] = weft_put32(chan->credit.processed);
		/* Collected requests are never posted to the device. */
		if (!chan->lost) {
			chan->lost = true;
			chan->lost_from = chan->sq.posted;
		}
		roce_chan_abandon(chan, chan->lost_from);
	}
	return (int)(lane_ep->num_qps * sizeof(state->processed[0]));
}

/* ------------------------------------------------------------------ native operations */

static int lost_status(const struct roce_chan *chan, const struct roce_slot *slot)
{
	if (slot->kind != ROCE_SLOT_AMO || (int32_t)(slot->at - chan->lost_from) >= 0)
		return -ECANCELED;
	return -EIO;
}

int roce_stopped_status(struct roce_chan *chan, const struct roce_slot *slot, int status)
{
	const struct roce_lane_ep *lane_ep = chan->lane_ep;
	uint32_t i = slot->at & (ROCE_SQ_DEPTH - 1);

	if (chan->refused < 0 && chan->refused_at == slot->at)
		return chan->refused;
	if (lane_ep->reaped)
		return lost_status(chan, slot);
	if (lane_ep->state != ROCE_STOPPED)
		return status;
	chan->parked[i / 64] |= 1ull << i % 64;
	return ROCE_PARKED;
}

/* End parked operations in the order of posting. @p status 0: each ends with lost_status() */
static void end_parked(struct roce_chan *chan, int status)
{
	uint32_t k, i;

	for (k = 0; k < ROCE_SQ_DEPTH; k++) {
		struct roce_slot *slot;

		i = (chan->sq.tail + k) & (ROCE_SQ_DEPTH - 1);
		slot = &chan->slots[i];
		if (!(chan->parked[i / 64] >> i % 64 & 1))
			continue;
		chan->parked[i / 64] &= ~(1ull << i % 64);
		slot->comp->done(slot->comp, status ? status : lost_status(chan, slot));
	}
}

static void stopped_destroy(struct roce_lane_ep *lane_ep)
{
	unsigned int i;

	for (i = 0; i < lane_ep->num_qps; i++)
		end_parked(lane_ep->chans[i], -ECANCELED);
}

/* ------------------------------------------------------------------ return of messages */

/* A zero-copy message ends when another lane has delivered it and our device has completed it. */
struct twice {
	struct weft_lane_comp arrived, released;
	struct weft_lane_comp *comp;
	struct twice *next;
	unsigned int left;
	int status;
};

static void one_of_two(struct twice *t)
{
	if (--t->left > 0)
		return;
	t->comp->done(t->comp, t->status);
	free(t);
}

static void flush_arrived(struct weft_lane_comp *comp, int status)
{
	struct twice *t = (struct twice *)((char *)comp - offsetof(struct twice, arrived));

	t->status = status;
	one_of_two(t);
}

static void give_released(struct weft_lane_comp *comp, int status)
{
	(void)status;
	one_of_two((struct twice *)((char *)comp - offsetof(struct twice, released)));
}

struct give {
	weft_lane_reap_cb cb;
	void *arg;
	uint8_t *room; /* memory in which a zero-copy message is made contiguous */
	struct twice *twice;
};

static void give_free(struct give *g)
{
	struct twice *t;

	free(g->room);
	while ((t = g->twice)) {
		g->twice = t->next;
		free(t);
	}
}

/* All memory is allocated first: once a message is returned, nothing may fail. */
static int prepare_returns(struct roce_lane_ep *lane_ep, struct give *g)
{
	unsigned int i;
	uint32_t n;

	for (i = 0; i < lane_ep->num_qps; i++) {
		const struct roce_chan *chan = lane_ep->chans[i];

		for (n = chan->credit.acked; n != chan->credit.sent; n++) {
			struct twice *t;

			if (!chan->unacked[n & chan->unacked_mask].comp)
				continue;
			t = malloc(sizeof(*t));
			if (!t)
				return -ENOMEM;
			t->next = g->twice;
			g->twice = t;
		}
	}
	g->room = malloc(lane_ep->base.max_msg);
	return g->room ? 0 : -ENOMEM;
}

static struct weft_lane_comp *wait_twice(struct give *g, struct roce_unacked *u)
{
	struct twice *t = g->twice;

	g->twice = t->next;
	*t = (struct twice){
		.arrived.done = flush_arrived,
		.released.done = give_released,
		.comp = u->comp,
		.left = 2,
	};
	u->comp = &t->released;
	return &t->arrived;
}

static void give_message(struct roce_chan *chan, uint32_t n, struct give *g)
{
	struct roce_unacked *u = &chan->unacked[n & chan->unacked_mask];
	const uint8_t *place = roce_place(chan, n), *msg = place;
	const struct iovec *iov = (const struct iovec *)(const void *)(place + ROCE_ZCOPY_HDR);
	struct weft_lane_comp *comp = NULL;
	size_t len = u->hdr_len;
	unsigned int i;

	if (u->id == ROCE_NO_MESSAGE)
		return;
	if (u->buf) {
		msg = u->buf->data;
	} else if (u->comp) {
		memcpy(g->room, place, len);
		for (i = 0; i < u->iovcnt; len += iov[i++].iov_len)
			memcpy(g->room + len, iov[i].iov_base, iov[i].iov_len);
		msg = g->room;
	}
	if (u->comp)
		comp = wait_twice(g, u);
	g->cb(g->arg, u->id, msg, u->bytes, comp);
}

static bool take_counts(struct roce_lane_ep *lane_ep, const struct weft_roce_rx_state *state,
			size_t length)
{
	unsigned int i;

	if (length != lane_ep->num_qps * sizeof(state->processed[0]))
		return false;
	for (i = 0; i < lane_ep->num_qps; i++) {
		const struct weft_roce_credit *c = &lane_ep->chans[i]->credit;

		if (weft_get32(state->processed[i]) - c->acked > c->sent - c->acked)
			return false;
	}
	for (i = 0; i < lane_ep->num_qps; i++)
		lane_ep->chans[i]->credit.acked = weft_get32(state->processed[i]);
	return true;
}

static void give_flushes(struct roce_lane_ep *lane_ep, struct give *g)
{
	struct weft_lane_comp *comp;

	while ((comp = flush_take(lane_ep)))
		g->cb(g->arg, 0, NULL, 0, comp);
}

int roce_ep_reap(struct weft_lane_ep *base, const void *state, size_t length, weft_lane_reap_cb cb,
		 void *arg)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct give g = {.cb = cb, .arg = arg};
	unsigned int i;
	uint32_t n;
	int rc;

	if (lane_ep->state != ROCE_STOPPED || lane_ep->reaped)
		return -EINVAL;
	if (!take_counts(lane_ep, state, length))
		return -EPROTO;
	rc = prepare_returns(lane_ep, &g);
	if (rc < 0) {
		give_free(&g);
		return rc;
	}
	lane_ep->reaped = true;
	for (i = 0; i < lane_ep->num_qps; i++)
		for (n = lane_ep->chans[i]->credit.acked; n != lane_ep->chans[i]->credit.sent; n++)
			give_message(lane_ep->chans[i], n, &g);
	give_flushes(lane_ep, &g);
	give_free(&g);
	for (i = 0; i < lane_ep->num_qps; i++) {
		end_parked(lane_ep->chans[i], 0);
		roce_chan_done(lane_ep->chans[i]);
	}
	return 0;
}

/* ------------------------------------------------------------------ destroying */

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
		stopped_destroy(lane_ep);
	/* Messages that the device has not completed end later: it still uses their memory. */
	for (i = 0; i < lane_ep->num_qps; i++)
		roce_chan_done(lane_ep->chans[i]);
	/* Requests that the device refused get no completion, so they end here. */
	for (i = 0; i < lane_ep->num_qps; i++)
		if (lane_ep->chans[i]->lost)
			roce_chan_abandon(lane_ep->chans[i], lane_ep->chans[i]->lost_from);
	end_flushes(lane_ep, -ECANCELED);
}
