/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, and owners that sleep until one arrives. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "roce.h"
#include "roce_cq.h"
#include "roce_end.h"
#include "roce_recv.h"
#include "roce_send.h"

/* ------------------------------------------------------------------ completions */

/* Completions: requests that the device has completed, and messages that end with them. */

/* One request has completed. Its slot is already free, so that callbacks may send. */
static void slot_end(struct roce_chan *chan, const struct roce_slot *slot, int status)
{
	switch (slot->kind) {
	case ROCE_SLOT_SEND:
		chan->on_wire = slot->sent;
		break;
	case ROCE_SLOT_AMO:
		if (status == 0)
			memcpy(slot->result, roce_slot_mem(chan, slot), sizeof(uint64_t));
		/* fall through */
	case ROCE_SLOT_READ:
		chan->reads--;
		/* fall through */
	case ROCE_SLOT_WRITE:
		if (status < 0)
			status = roce_stopped_status(chan, slot, status);
		if (slot->comp && status != ROCE_PARKED)
			slot->comp->done(slot->comp, status);
		break;
	default:
		break;
	}
}

/*
 * The oldest @p n requests have completed. A worker that polls rarely sees this late. All that it
 * knows is that they had not completed at the last poll that left the queue empty.
 */
static void note_answer(struct roce_chan *chan, uint32_t n)
{
	const struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	uint64_t waited = 0, bytes = 0;
	uint32_t i;

	if (r->empty_before > chan->busy_since)
		waited = r->empty_before - chan->busy_since;
	for (i = 0; i < n; i++)
		bytes += chan->slots[(chan->sq.tail + i) & (ROCE_SQ_DEPTH - 1)].bytes;
	weft_roce_silence_note(&chan->lane_ep->silence, r->now, waited, bytes);
}

/* The oldest @p n requests have completed, the last one with @p status. */
static void complete_requests(struct roce_chan *chan, uint32_t n, int status)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	struct roce_slot slot;

	chan->busy_since = r->now;
	for (; n > 0; n--) {
		slot = chan->slots[chan->sq.tail & (ROCE_SQ_DEPTH - 1)];
		chan->sq.tail++;
		r->tx_room++;
		slot_end(chan, &slot, n == 1 ? status : 0);
	}
	chan->lane_ep->base.tx_room = true;
	roce_chan_done(chan);
}

void roce_chan_abandon(struct roce_chan *chan, uint32_t from)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	int status = chan->lane_ep->status ? chan->lane_ep->status : -ECANCELED;
	struct roce_slot slot;

	if ((int32_t)(chan->sq.tail - from) < 0)
		return; /* the device still has requests before it */
	chan->sq.posted = chan->sq.head;
	while (chan->sq.tail != chan->sq.head) {
		slot = chan->slots[chan->sq.tail & (ROCE_SQ_DEPTH - 1)];
		chan->sq.tail++;
		r->tx_room++;
		slot_end(chan, &slot, status);
	}
	roce_chan_done(chan);
}

/*
 * One past the newest message that is complete. On a lane that has ended no more counts of the peer
 * arrive, so completions of the device decide. For a stopped lane the peer still reports its state.
 */
static inline uint32_t over_until(const struct roce_chan *chan)
{
	uint32_t end = chan->on_wire;

	if (__builtin_expect(chan->lane_ep->state == ROCE_STOPPED && !chan->lane_ep->reaped, 0))
		return chan->done;
	if (chan->lane_ep->state < ROCE_FAILED && (int32_t)(chan->credit.acked - end) < 0)
		end = chan->credit.acked;
	return end;
}

static inline int unacked_status(const struct roce_lane_ep *lane_ep)
{
	if (lane_ep->state < ROCE_FAILED)
		return 0;
	return lane_ep->state == ROCE_FAILED ? lane_ep->status : -ECANCELED;
}

/*
 * A callback may end the lane, which calls this function again. So state and bound are checked
 * again in each iteration.
 */
void roce_chan_done(struct roce_chan *chan)
{
	struct roce_lane_ep *lane_ep = chan->lane_ep;
	struct roce_pool *pool = &roce_lane_ep_iface(lane_ep)->tx_pool;
	struct weft_lane_comp *comp;
	struct roce_unacked *u;
	bool acked;

	while ((int32_t)(over_until(chan) - chan->done) > 0) {
		acked = (int32_t)(chan->credit.acked - chan->done) > 0;
		u = &chan->unacked[chan->done++ & chan->unacked_mask];
		lane_ep->base.queued -= u->bytes;
		if (u->buf)
			roce_pool_put(pool, u->buf);
		comp = u->comp;
		u->comp = NULL;
		if (comp)
			comp->done(comp, acked ? 0 : unacked_status(lane_ep));
	}
	if (!STAILQ_EMPTY(&lane_ep->flushes))
		roce_flush_check(lane_ep);
}

static void send_done(struct roce_iface *r, const struct ibv_wc *wc)
{
	struct roce_slot *slot = (struct roce_slot *)(uintptr_t)wc->wr_id;
	struct roce_chan *chan = slot->chan;
	struct roce_lane_ep *lane_ep = chan->lane_ep;
	uint32_t n = weft_roce_sq_complete(&chan->sq, slot->at);

	if (n == 0) {
		r->count.stray++;
		return;
	}
	if (__builtin_expect(wc->status == IBV_WC_SUCCESS, 1)) {
		chan->received = true;
		note_answer(chan, n);
		complete_requests(chan, n, 0);
		/*
		 * Requests that the device refused follow the last of these, without completions.
		 */
		if (__builtin_expect(chan->lost, 0) && lane_ep->state >= ROCE_FAILED)
			roce_chan_abandon(chan, chan->lost_from);
		return;
	}
	if (lane_ep->state < ROCE_FAILED) {
		/* The operation caused the error, so it must not be repeated over other lanes. */
		if (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR ||
		    wc->status == IBV_WC_LOC_PROT_ERR || wc->status == IBV_WC_LOC_ACCESS_ERR) {
			chan->refused = weft_roce_wc_error(wc->status);
			chan->refused_at = slot->at;
		}
		roce_lane_ep_fail_wc(lane_ep, chan, wc->status);
	}
	complete_requests(chan, n, lane_ep->status ? lane_ep->status : -ECANCELED);
	if (chan->lost)
		roce_chan_abandon(chan, chan->lost_from);
}

static void recv_done(struct roce_iface *r, const struct ibv_wc *wc)
{
	struct roce_buf *buf = (struct roce_buf *)(uintptr_t)(wc->wr_id & ~1ull);
	struct roce_chan *chan;

	r->posted--;
	if (__builtin_expect(wc->status == IBV_WC_SUCCESS, 1)) {
		roce_recv(r, wc, buf);
		return;
	}
	roce_pool_put(&r->rx_pool, buf);
	chan = roce_chan_find(r, wc->qp_num);
	if (!chan || wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	r->count.oversize += wc->status == IBV_WC_LOC_LEN_ERR;
	if (chan->lane_ep->state < ROCE_FAILED)
		roce_lane_ep_fail_wc(chan->lane_ep, chan, wc->status);
}

unsigned int roce_cq_poll(struct roce_iface *r)
{
	struct ibv_wc wc[ROCE_POLL];
	int n, i;

	r->empty_before = r->empty_at;
	n = ibv_poll_cq(r->cq, ROCE_POLL, wc);
	if (n < ROCE_POLL) {
		r->empties++;
		r->empty_at = r->now;
	}
	for (i = 0; i < n; i++) {
		if (wc[i].wr_id & 1)
			recv_done(r, &wc[i]);
		else
			send_done(r, &wc[i]);
	}
	return n > 0 ? (unsigned int)n : 0;
}

/* ------------------------------------------------------------------ sleeping owners */

/*
 * Sleeping owners (lane.h, waiting): the device notifies of completions through a completion
 * channel. Completions from before the request for a notification cause none, so after the request
 * the completion queue is polled once more. arm() returns -EBUSY when it has just requested one,
 * and 0 when a progress() since then has found the queue empty.
 *
 * Two kinds of events cause no completion. Counts that peers write (when no message carries them)
 * are polled while messages are outstanding, after 50 us, 100 us, ... 1 ms. Events of the device,
 * and results of the threads that resolve addresses, are polled within the times below.
 */

#define LOOK_MIN_NS 50000u
/* between two checks of the device's events, while requests are outstanding */
#define SLOW_BUSY_NS 20000000u

/* ------------------------------------------------------------------ the channel */

void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx)
{
	int flags;

	/* Without a channel the interface works, but cannot wake its owner. */
	n->channel = ibv_create_comp_channel(ctx);
	if (!n->channel)
		return;
	flags = fcntl(n->channel->fd, F_GETFL);
	if (flags >= 0 && fcntl(n->channel->fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return;
	ibv_destroy_comp_channel(n->channel);
	n->channel = NULL;
}

void roce_notify_close(struct roce_notify *n)
{
	if (n->channel)
		ibv_destroy_comp_channel(n->channel);
	n->channel = NULL;
}

int roce_notify_fd(const struct roce_notify *n)
{
	return n->channel ? n->channel->fd : -ENOTSUP;
}

int roce_notify_arm(struct roce_notify *n, struct ibv_cq *cq, uint64_t empties)
{
	if (!n->channel)
		return 0;
	if (!n->requested) {
		if (ibv_req_notify_cq(cq, 0) != 0)
			return 0; /* the device is gone, which its events report */
		n->requested = true;
		n->empties = empties;
	}
	return empties != n->empties ? 0 : -EBUSY;
}

void roce_notify_taken(struct roce_notify *n)
{
	struct ibv_cq *cq;
	void *context;

	if (!n->channel)
		return;
	/* A request gives one notification, so the next arm() must request again. */
	while (ibv_get_cq_event(n->channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		n->requested = false;
	}
}

/* ------------------------------------------------------------------ lanes */

int roce_wait_fd(struct weft_lane_iface *base)
{
	return roce_notify_fd(&roce_iface_of(base)->notify);
}

/* The owner may sleep for long, so send pending counts to peers now. */
static void send_counts(struct roce_iface *r)
{
	struct roce_chan *chan;

	TAILQ_FOREACH(chan, &r->acks, ack_link)
		chan->ack_now = true;
	roce_acks_send(r);
	roce_tx_flush(&r->base);
}

int roce_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct roce_iface *r = roce_iface_of(base);

	if (base->tx_open || r->failing)
		return -EBUSY;
	if (!TAILQ_EMPTY(&r->acks))
		send_counts(r);
	roce_due_within(now_ns, due_ns, ROCE_ASLEEP_NS);
	/* With outstanding requests, check for a silent device earlier. */
	if (r->tx_room != r->tx_total)
		roce_due_within(now_ns, due_ns, SLOW_BUSY_NS);
	if (!TAILQ_EMPTY(&r->connecting) || !LIST_EMPTY(&r->dying) || !TAILQ_EMPTY(&r->acks))
		roce_due_within(now_ns, due_ns, ROCE_LOOK_MAX_NS);
	if (r->look_ns < LOOK_MIN_NS)
		r->look_ns = LOOK_MIN_NS;
	if (!TAILQ_EMPTY(&r->waits))
		roce_due_within(now_ns, due_ns, r->look_ns);
	return roce_notify_arm(&r->notify, r->cq, r->empties);
}

void roce_disarm(struct weft_lane_iface *base)
{
	struct roce_iface *r = roce_iface_of(base);

	roce_notify_taken(&r->notify);
	r->look_ns = r->look_ns * 2 < ROCE_LOOK_MAX_NS ? r->look_ns * 2 : ROCE_LOOK_MAX_NS;
}

void roce_look_soon(struct roce_iface *r)
{
	r->look_ns = LOOK_MIN_NS;
}
