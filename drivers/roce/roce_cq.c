/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce.h"
#include "roce_cq.h"
#include "roce_end.h"
#include "roce_send.h"

/* ------------------------------------------------------------------ the shared receive queue */

/*
 * The posted buffers are at least the sum of the windows promised to all peers (roce_wire.h), but
 * for the buffers of the current poll, for which there is a margin.
 */

#define DEFAULT_BUFS 16384 /* buffers at most, if not configured; allocated as peers connect */
#define MARGIN (2 * ROCE_POLL)

int roce_srq_open(struct roce_iface *r, char *why, size_t why_len)
{
	uint32_t wanted = r->rx_total ? r->rx_total : DEFAULT_BUFS;
	struct ibv_srq_init_attr attr = {.srq_context = r, .attr = {.max_sge = 1}};
	int rc;

	if (r->dev->attr.max_srq < 1) {
		snprintf(why, why_len,
			 "%s has no shared receive queues, without which RoCE lanes can't promise "
			 "buffers to many peers: use another device, or raw-DPDK lanes",
			 r->dev->name);
		return -ENOTSUP;
	}
	if (wanted > (uint32_t)r->dev->attr.max_srq_wr)
		wanted = (uint32_t)r->dev->attr.max_srq_wr;
	if (wanted < 2 * MARGIN)
		wanted = 2 * MARGIN;
	r->rx_total = wanted;
	attr.attr.max_wr = wanted;
	r->srq = ibv_create_srq(r->dev->pd, &attr);
	if (!r->srq) {
		rc = -errno;
		roce_setup_failed(r->dev, "shared receive queue", -rc, why, why_len);
		return rc;
	}
	roce_pool_init(&r->rx_pool, r->dev, r->opts.seg, wanted);
	rc = roce_pool_reserve(&r->rx_pool, MARGIN);
	if (rc < 0) {
		roce_setup_failed(r->dev, "receive buffers", -rc, why, why_len);
		return rc;
	}
	roce_srq_fill(r);
	if (r->posted < MARGIN) {
		snprintf(why, why_len,
			 "%s: the device accepts fewer receive buffers than a lane needs",
			 r->dev->name);
		return -EIO;
	}
	return 0;
}

/* @param n  at most ROCE_POLL. @return the number posted */
static uint32_t post_buffers(struct roce_iface *r, uint32_t n)
{
	struct ibv_recv_wr wr[ROCE_POLL], *bad = NULL;
	struct ibv_sge sge[ROCE_POLL];
	struct roce_buf *buf[ROCE_POLL];
	uint32_t i, k;

	for (i = 0; i < n && (buf[i] = roce_pool_get(&r->rx_pool)) != NULL; i++) {
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)buf[i]->data,
			.length = (uint32_t)r->rx_pool.size,
			.lkey = buf[i]->lkey,
		};
		/* Bit 0 is set for receives: failed completions have no opcode. */
		wr[i] = (struct ibv_recv_wr){
			.wr_id = (uintptr_t)buf[i] | 1,
			.next = &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	if (i == 0)
		return 0;
	wr[i - 1].next = NULL;
	if (ibv_post_srq_recv(r->srq, wr, &bad) == 0)
		return i;
	k = bad ? (uint32_t)(bad - wr) : 0;
	while (i > k)
		roce_pool_put(&r->rx_pool, buf[--i]);
	return k;
}

static uint32_t target_of(const struct roce_iface *r)
{
	uint32_t target = r->promised + MARGIN;

	return target < r->rx_total - r->kept ? target : r->rx_total - r->kept;
}

void roce_srq_fill(struct roce_iface *r)
{
	uint32_t target = target_of(r), n;

	while (r->posted < target) {
		n = target - r->posted;
		n = post_buffers(r, n < ROCE_POLL ? n : ROCE_POLL);
		if (n == 0)
			break;
		r->posted += n;
	}
}

int roce_srq_cover(struct roce_iface *r)
{
	uint32_t target = target_of(r);
	int rc = 0;

	if (r->posted < target)
		rc = roce_pool_reserve(&r->rx_pool, target - r->posted);
	roce_srq_fill(r);
	if (r->posted >= r->promised)
		return 0;
	return rc < 0 ? rc : -EIO;
}

void roce_release(struct weft_lane_iface *base, void *desc)
{
	struct roce_iface *r = roce_iface_of(base);

	r->kept--;
	roce_pool_put(&r->rx_pool, desc);
}

/* ------------------------------------------------------------------ receiving */

/*
 * The hardware has already acknowledged a message that violates the protocol, so the peer will not
 * retransmit it. Such a message is dropped and counted, and its lane ends.
 */

/* Delay in ns after which a count is written by itself, if no message has carried it. */
#define ACK_DELAY_NS 30000

/* ------------------------------------------------------------------ which queue pair */

struct roce_chan *roce_chan_find(const struct roce_iface *r, uint32_t qpn)
{
	const struct roce_qpns *page = r->by_qpn[qpn >> 12 & 4095];

	return page ? page->chan[qpn & 4095] : NULL;
}

int roce_chan_enter(struct roce_iface *r, struct roce_chan *chan)
{
	uint32_t qpn = chan->qp->qp_num;
	struct roce_qpns **page = &r->by_qpn[qpn >> 12 & 4095];

	if (!*page) {
		*page = calloc(1, sizeof(**page));
		if (!*page)
			return -ENOMEM;
	}
	(*page)->chan[qpn & 4095] = chan;
	(*page)->used++;
	return 0;
}

void roce_chan_leave(struct roce_iface *r, struct roce_chan *chan)
{
	uint32_t qpn = chan->qp->qp_num;
	struct roce_qpns **page = &r->by_qpn[qpn >> 12 & 4095];

	if (roce_chan_find(r, qpn) != chan)
		return;
	(*page)->chan[qpn & 4095] = NULL;
	/* The device assigns numbers in sequence, so in a long run all pages would be used. */
	if (--(*page)->used == 0) {
		free(*page);
		*page = NULL;
	}
}

/* ------------------------------------------------------------------ counts */

static void peer_misbehaves(struct roce_lane_ep *lane_ep, const char *how)
{
	struct weft_roce_names names = roce_names(lane_ep);
	char text[160];

	snprintf(text, sizeof(text), "%s: peer %s breaks the protocol: %s", names.device,
		 names.peer, how);
	roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_DOWN, -EPROTO, text);
}

static void messages_acked(struct roce_chan *chan, enum weft_roce_ack what)
{
	struct roce_lane_ep *lane_ep = chan->lane_ep;

	switch (what) {
	case WEFT_ROCE_ACK_NEW:
		lane_ep->base.tx_room = true;
		roce_chan_done(chan);
		break;
	case WEFT_ROCE_ACK_BAD:
		roce_lane_ep_iface(lane_ep)->count.bad_ack++;
		peer_misbehaves(lane_ep, "it acknowledges messages that were not sent");
		break;
	default:
		break;
	}
}

unsigned int roce_words_read(struct roce_iface *r)
{
	struct roce_chan *chan, *next;
	unsigned int events = 0;
	uint32_t count;

	for (chan = TAILQ_FIRST(&r->waits); chan; chan = next) {
		next = TAILQ_NEXT(chan, wait_link);
		if (chan->lane_ep->state != ROCE_UP || chan->credit.acked == chan->credit.sent) {
			TAILQ_REMOVE(&r->waits, chan, wait_link);
			chan->in_wait = false;
			continue;
		}
		if (!weft_roce_word_read(chan->word, &count)) {
			/* a write is in progress: read the word at the next poll */
			r->count.partial_word++;
			continue;
		}
		/* Messages may have carried newer counts: the word is used only when it changes. */
		if (count != chan->word_seen) {
			uint32_t before = chan->credit.acked;

			chan->word_seen = count;
			chan->received = true;
			chan->last_rx_at = r->now;
			messages_acked(chan, weft_roce_credit_word(&chan->credit, count));
			events += chan->credit.acked != before;
			/* Callbacks of messages may have removed other entries of the list. */
			next = chan->in_wait ? TAILQ_NEXT(chan, wait_link) : TAILQ_FIRST(&r->waits);
		}
	}
	return events;
}

void roce_acks_send(struct roce_iface *r)
{
	struct roce_chan *chan, *next;

	for (chan = TAILQ_FIRST(&r->acks); chan; chan = next) {
		next = TAILQ_NEXT(chan, ack_link);
		if (chan->lane_ep->state == ROCE_UP &&
		    chan->credit.reported != chan->credit.processed) {
			if (!chan->ack_now && !weft_roce_credit_due(&chan->credit) &&
			    r->now - chan->ack_since < ACK_DELAY_NS)
				continue;
			if (roce_chan_count_send(chan) != 0)
				continue;
		}
		TAILQ_REMOVE(&r->acks, chan, ack_link);
		chan->in_acks = false;
		chan->ack_now = false;
	}
}

/* ------------------------------------------------------------------ messages */

static void control_message(struct roce_chan *chan, uint32_t imm)
{
	struct roce_lane_ep *lane_ep = chan->lane_ep;
	struct weft_roce_names names = roce_names(lane_ep);
	char text[128];

	if (weft_roce_imm_id(imm) != WEFT_ROCE_BYE) {
		roce_lane_ep_iface(lane_ep)->count.bad_imm++;
		peer_misbehaves(lane_ep, "an unknown control message");
		return;
	}
	chan->bye = true;
	roce_lane_ep_bye(lane_ep);
	if (lane_ep->close.seen_at == 0)
		return;
	snprintf(text, sizeof(text), "%s: peer %s has closed the lane", names.device, names.peer);
	roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_GONE, -ECONNRESET, text);
}

static bool may_deliver(struct roce_iface *r, struct roce_chan *chan, const struct ibv_wc *wc,
			uint32_t *imm)
{
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->opcode != IBV_WC_RECV) {
		r->count.bad_imm++;
		peer_misbehaves(chan->lane_ep, "a message without immediate data");
		return false;
	}
	*imm = ntohl(wc->imm_data);
	messages_acked(chan, weft_roce_credit_ack(&chan->credit, *imm & WEFT_ROCE_COUNT_MASK));
	if (chan->lane_ep->state >= ROCE_FAILED)
		return false;
	if ((*imm & WEFT_ROCE_IMM_CONTROL) && weft_roce_imm_id(*imm) != WEFT_ROCE_PING) {
		control_message(chan, *imm);
		return false;
	}
	if (chan->bye ||
	    chan->credit.processed - chan->credit.reported >= chan->credit.own_window) {
		r->count.bad_imm++;
		peer_misbehaves(chan->lane_ep, chan->bye ? "a message after the last one"
							 : "more messages than it was allowed");
		return false;
	}
	return true;
}

/* Both ends close at the same time, or the lane ended while connecting and its BYE is due. */
static bool bye_crossed(struct roce_chan *chan, const struct ibv_wc *wc)
{
	uint32_t imm = ntohl(wc->imm_data);

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || !(imm & WEFT_ROCE_IMM_CONTROL) ||
	    weft_roce_imm_id(imm) != WEFT_ROCE_BYE)
		return false;
	chan->bye = true;
	roce_lane_ep_bye(chan->lane_ep);
	return true;
}

static void message_recv(struct roce_iface *r, const struct ibv_wc *wc, struct roce_buf *buf)
{
	struct roce_chan *chan = roce_chan_find(r, wc->qp_num);
	struct roce_lane_ep *lane_ep;
	uint32_t imm;
	bool may_keep;
	int keep = 0;

	if (chan) {
		chan->received = true;
		chan->last_rx_at = r->now;
	}
	if (!chan || chan->lane_ep->state >= ROCE_FAILED) {
		if (!chan || !bye_crossed(chan, wc))
			r->count.late++;
		roce_pool_put(&r->rx_pool, buf);
		return;
	}
	if (!may_deliver(r, chan, wc, &imm)) {
		roce_pool_put(&r->rx_pool, buf);
		return;
	}
	lane_ep = chan->lane_ep;
	may_keep = roce_srq_may_keep(r);
	if (__builtin_expect(!(imm & WEFT_ROCE_IMM_CONTROL), 1)) {
		r->count.rx++;
		r->count.rx_bytes += wc->byte_len;
		r->count.rx_copied += !may_keep;
		keep = r->recv(r->arg, &lane_ep->base, weft_roce_imm_id(imm), buf->data,
			       wc->byte_len, may_keep ? buf : NULL);
	}
	/* The callback may have destroyed the lane_ep; it is freed later. */
	if (keep == WEFT_LANE_KEEP && may_keep)
		r->kept++;
	else
		roce_pool_put(&r->rx_pool, buf);
	chan->credit.processed++;
	chan->ack_now = chan->ack_now || (imm & WEFT_ROCE_IMM_ACK_REQ);
	if (!chan->in_acks) {
		chan->in_acks = true;
		chan->ack_since = r->now;
		TAILQ_INSERT_TAIL(&r->acks, chan, ack_link);
	}
}

/* ------------------------------------------------------------------ completions */

/* The slot is already free, so that callbacks may send. */
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
 * A worker that polls rarely sees completions late. It is certain only that the requests were
 * outstanding at the last poll that left the completion queue empty.
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
		return;
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
 * On a lane that has ended no more counts of the peer arrive, so completions of the device decide.
 * Messages of a stopped lane wait for the peer's state (roce_ep_reap()).
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

/* A callback may end the lane, which calls this function: check state and bound each time. */
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
		/* Requests that the device refused follow these, without completions. */
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
		message_recv(r, wc, buf);
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
 * the completion queue is polled once more. arm() returns -EBUSY until a progress() after the
 * request has found the queue empty, and then 0.
 *
 * Two kinds of events cause no completion. Counts that peers write (when no message carries them)
 * are polled while messages are outstanding, after 50 us, 100 us, ... 1 ms. Events of the device
 * are polled after ROCE_ASLEEP_NS or SLOW_BUSY_NS, results of the threads that resolve addresses
 * after ROCE_LOOK_MAX_NS.
 */

#define LOOK_MIN_NS 50000u
/* ns between two checks of the device's events by a sleeping owner, with outstanding requests */
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
			return 0; /* the device is gone: an event reports that */
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
