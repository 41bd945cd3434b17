/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From lane messages in any order to receives in send order.
 *
 * Per endpoint: `rx_seq` is the next sequence to match. The first piece of it that arrives is
 * matched at once, whichever piece it is, and rx_seq moves on, matched or not. What is ahead waits
 * in rx_table; so do, by sequence, all messages that have begun and are not over, where later
 * pieces find them. A message that is one piece, in sequence and expected never gets a struct
 * weft_message.
 *
 * The piece that has just arrived is placed, and its receive completed, before anything that waited
 * is looked at, and then at most WEFT_RX_DRAIN are: so the lanes are always read.
 */

#include <errno.h>

#include "msg/msg.h"
#include "am/am.h"
#include "rma/rma.h"

/* ------------------------------------------------------------------ sequence */

/*
 * May a message with this sequence begin now? The lane has acknowledged it, so what must not be
 * dropped silently ends the endpoint.
 */
static bool may_begin(struct weft_msg_ep *me, uint32_t seq, bool eager, uint64_t total)
{
	/* Over already: the rest of an aborted message, or a replay. */
	if ((int32_t)(seq - me->rx_seq) < 0) {
		me->mw->count.old_seq++;
		return false;
	}
	if ((int32_t)(seq - me->rx_seq_told) >= 0) {
		me->mw->count.far_seq++;
		weft_msg_fail(me, -EPROTO, "message %u is beyond the window (%u is next)", seq,
			      me->rx_seq);
		return false;
	}
	if (!(eager ? weft_credit_take(me, total) : weft_credit_take_rts(me))) {
		me->mw->count.no_credit++;
		weft_msg_fail(me, -EPROTO, "the peer sends more than it was granted");
		return false;
	}
	return true;
}

static struct weft_message *new_message(struct weft_msg_ep *me, const struct weft_wire_eager *e,
					uint64_t total, bool with_data)
{
	struct weft_message *msg = weft_message_alloc(me->mw, me, total, with_data);

	if (!msg) {
		weft_msg_fail(me, -ENOMEM, "no memory for a message of %llu bytes",
			      (unsigned long long)total);
		return NULL;
	}
	msg->seq = weft_get32(e->seq);
	msg->match.tag = weft_get64(e->tag);
	msg->match.source = &me->source;
	return msg;
}

/* Wait for the turn, or for the rest of the pieces. */
static int keep_by_seq(struct weft_msg_ep *me, struct weft_message *msg)
{
	if (weft_rx_hash(me, msg) == 0)
		return 0;
	weft_message_free(msg);
	weft_msg_fail(me, -ENOMEM, "no memory for messages that are ahead");
	return -ENOMEM;
}

static int keep_ahead(struct weft_msg_ep *me, struct weft_message *msg)
{
	if (keep_by_seq(me, msg))
		return -ENOMEM;
	msg->flags |= WEFT_MSG_AHEAD;
	me->rx_ahead++;
	me->mw->count.ahead++;
	return 0;
}

/* The turn of a message that was ahead. */
static void turn(struct weft_msg_ep *me, struct weft_message *msg)
{
	struct weft_request *req;

	me->rx_seq++;
	me->rx_ahead--;
	if ((msg->flags & WEFT_MSG_RTS) && msg->rts.withdrawn) {
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
		return;
	}
	msg->flags &= (uint8_t)~WEFT_MSG_AHEAD;
	req = weft_rx_match(me, msg->match.tag);
	if (req) {
		me->mw->count.expected++;
		weft_rx_bind(msg, req, false);
		return;
	}
	if (weft_message_complete(msg))
		weft_rx_unhash(msg);
	weft_rx_queue(msg);
}

unsigned int weft_rx_drain(struct weft_msg_ep *me, unsigned int budget)
{
	struct weft_message *msg = NULL;
	unsigned int n = 0;

	weft_msg_ep_hold(me);
	while (n < budget && me->rx_ahead && (msg = weft_rx_lookup(me, me->rx_seq))) {
		turn(me, msg); /* may end the endpoint; rx_ahead is 0 then */
		n++;
	}
	if (n == budget && me->rx_ahead && weft_rx_lookup(me, me->rx_seq) && !me->draining) {
		me->draining = true;
		TAILQ_INSERT_TAIL(&me->mw->drain, me, drain_link);
	}
	if (!me->failed)
		weft_credit_update(me);
	weft_msg_ep_release(me);
	return n;
}

/* ------------------------------------------------------------------ what arrives */

static __attribute__((noinline)) void keep_whole(struct weft_msg_ep *me,
						 const struct weft_wire_eager *e,
						 const struct weft_wire_ref *sreq,
						 const void *payload, size_t len, bool ahead)
{
	struct weft_message *msg = new_message(me, e, len, true);

	if (!msg)
		return;
	memcpy(msg->data, payload, len);
	me->mw->count.rx_copied_bytes += len;
	msg->got.one = (struct weft_ival){0, len};
	msg->got.num = 1;
	msg->got.covered = len;
	if (sreq) {
		msg->flags |= WEFT_MSG_SYNC;
		msg->sreq = *sreq;
	}
	if (ahead)
		keep_ahead(me, msg);
	else
		weft_rx_queue(msg);
}

static inline void recv_whole(struct weft_msg_ep *me, const struct weft_wire_eager *e,
			      const struct weft_wire_ref *sreq, const void *payload, size_t len)
{
	uint32_t seq = weft_get32(e->seq);
	struct weft_request *req;

	if (me->rx_ahead && weft_rx_lookup(me, seq)) {
		me->mw->count.old_seq++;
		return;
	}
	if (!may_begin(me, seq, true, len))
		return;
	if (seq != me->rx_seq) {
		keep_whole(me, e, sreq, payload, len, true);
		return;
	}
	me->rx_seq++;
	req = weft_rx_match(me, weft_get64(e->tag));
	if (!req) {
		keep_whole(me, e, sreq, payload, len, false);
		return;
	}
	me->mw->count.expected++;
	weft_recv_matched(req, me, weft_get64(e->tag), len);
	weft_recv_place(req, 0, payload, len);
	weft_credit_give(me, len);
	if (sreq)
		weft_rndv_send_ats(me, WEFT_WIRE_SYNC_ACK, *sreq, 0);
	weft_recv_done(req, false);
}

/* The message of a piece that is the first to arrive. */
static struct weft_message *begin(struct weft_msg_ep *me, const struct weft_wire_frag *f)
{
	uint64_t total = weft_get64(f->total);
	uint32_t seq = weft_get32(f->e.seq);
	struct weft_request *req = NULL;
	struct weft_message *msg;
	bool ahead = seq != me->rx_seq;

	if (!may_begin(me, seq, true, total))
		return NULL;
	if (!ahead) {
		me->rx_seq++;
		req = weft_rx_match(me, weft_get64(f->e.tag));
	}
	if (req) {
		me->mw->count.expected++;
		weft_recv_matched(req, me, weft_get64(f->e.tag), total);
		weft_credit_give(me, total);
	}
	msg = new_message(me, &f->e, total, !req);
	if (msg && (ahead ? keep_ahead(me, msg) : keep_by_seq(me, msg)))
		msg = NULL;
	if (msg && req)
		weft_rx_await_rest(msg, req);
	else if (req)
		weft_request_complete(req, -ENOMEM);
	else if (msg && !ahead)
		weft_rx_queue(msg);
	return msg;
}

static bool same_message(struct weft_msg_ep *me, const struct weft_message *msg,
			 const struct weft_wire_frag *f)
{
	if (!(msg->flags & WEFT_MSG_RTS) && msg->total == weft_get64(f->total) &&
	    msg->match.tag == weft_get64(f->e.tag))
		return true;
	me->mw->count.mismatch++;
	return false;
}

static void recv_frag(struct weft_msg_ep *me, const struct weft_wire_frag *f,
		      const struct weft_wire_ref *sreq, const void *payload, size_t len)
{
	uint64_t off = weft_get64(f->offset);
	struct weft_message *msg = weft_rx_lookup(me, weft_get32(f->e.seq));

	if (msg ? !same_message(me, msg, f) : !(msg = begin(me, f)))
		return;
	if (msg->error)
		return; /* aborted: the rest is of no use */
	if (sreq && !(msg->flags & WEFT_MSG_SYNC)) {
		msg->flags |= WEFT_MSG_SYNC;
		msg->sreq = *sreq;
		if (msg->recv)
			weft_rx_ack(msg, 0);
		else if (me->closing && (msg->flags & WEFT_MSG_QUEUED))
			weft_rx_refuse(msg);
	}
	if (weft_rx_note(me, &msg->got, off, len))
		return;
	if (msg->recv) {
		weft_recv_place(msg->recv, off, payload, len);
	} else {
		memcpy(msg->data + off, payload, len);
		me->mw->count.rx_copied_bytes += len;
	}
	if (weft_message_complete(msg))
		weft_rx_over(msg);
}

/* An end without pieces, seen before any piece. */
static void begin_aborted(struct weft_msg_ep *me, const struct weft_wire_abort *a, int status)
{
	bool ahead = weft_get32(a->e.seq) != me->rx_seq;
	struct weft_request *req = NULL;
	struct weft_message *msg;

	if (!may_begin(me, weft_get32(a->e.seq), true, weft_get64(a->total)))
		return;
	if (!ahead) {
		me->rx_seq++;
		req = weft_rx_match(me, weft_get64(a->e.tag));
	}
	if (req) {
		weft_recv_matched(req, me, weft_get64(a->e.tag), weft_get64(a->total));
		weft_credit_give(me, weft_get64(a->total));
		req->status = status;
		weft_recv_done(req, false);
		return;
	}
	msg = new_message(me, &a->e, weft_get64(a->total), false);
	if (!msg)
		return;
	msg->error = (int16_t)status;
	if (ahead)
		keep_ahead(me, msg);
	else
		weft_rx_queue(msg);
}

static void recv_abort(struct weft_msg_ep *me, const struct weft_wire_abort *a)
{
	int status = -(int)weft_get32(a->status);
	struct weft_message *msg;

	if (a->rreq.generation.v) {
		weft_rndv_recv_abort(me, a);
		return;
	}
	if (weft_get32(a->flags) & WEFT_ABORT_F_AM) {
		weft_am_recv_abort(me, a);
		return;
	}
	msg = weft_rx_lookup(me, weft_get32(a->e.seq));
	if (!msg) {
		begin_aborted(me, a, status);
		return;
	}
	if (msg->error || msg->total != weft_get64(a->total)) {
		me->mw->count.mismatch++;
		return;
	}
	msg->error = (int16_t)status;
	/* What is kept of it has its credit until somebody has received it. */
	if (msg->recv) {
		msg->recv->status = status;
	} else {
		/*
		 * Where its pieces are is of no use any more; it may outlive the endpoint that
		 * counts them.
		 */
		if (!(msg->flags & WEFT_MSG_RTS))
			weft_rx_forget(me, &msg->got);
		weft_message_free_data(msg);
	}
	weft_rx_over(msg);
}

static void recv_rts(struct weft_msg_ep *me, const struct weft_wire_rts *rts, size_t length)
{
	uint32_t seq = weft_get32(rts->e.seq);
	uint64_t total = weft_get64(rts->total);
	bool ahead = seq != me->rx_seq;
	struct weft_request *req = NULL;
	struct weft_rndv_offer offer;
	struct weft_message *msg;

	if (weft_rx_lookup(me, seq)) {
		me->mw->count.old_seq++;
		return;
	}
	if (!may_begin(me, seq, false, total))
		return;
	weft_rndv_offer_read(&offer, rts->req, rts->flags, rts + 1, length - sizeof(*rts));
	me->mw->count.rts++;
	if (!ahead) {
		me->rx_seq++;
		req = weft_rx_match(me, weft_get64(rts->e.tag));
	}
	if (req) {
		me->mw->count.expected++;
		weft_recv_matched(req, me, weft_get64(rts->e.tag), total);
		weft_credit_give_rts(me);
		weft_rndv_fetch(me, req, &offer, false);
		return;
	}
	msg = new_message(me, &rts->e, total, false);
	if (!msg)
		return;
	weft_message_set_offer(msg, &offer);
	if (ahead)
		keep_ahead(me, msg);
	else if (keep_by_seq(me, msg) == 0)
		weft_rx_queue(msg);
}

/* The RTS comes later, and shall find nothing to do. */
static void withdraw_early(struct weft_msg_ep *me, const struct weft_wire_withdraw *w)
{
	const struct weft_rndv_offer offer = {.sreq = w->sreq};
	struct weft_message *msg;

	if (weft_get32(w->e.seq) == me->rx_seq) {
		me->rx_seq++;
		weft_credit_give_rts(me);
		return;
	}
	msg = new_message(me, &w->e, 0, false);
	if (!msg)
		return;
	weft_message_set_offer(msg, &offer);
	msg->rts.withdrawn = true;
	keep_ahead(me, msg);
}

/*
 * The sender takes its message back. It is too late when a receive, or a matched probe, has it:
 * then
 * the sender learns that from what it is asked for. Who was first is decided here alone.
 */
static void recv_withdraw(struct weft_msg_ep *me, const struct weft_wire_withdraw *w)
{
	struct weft_message *msg = weft_rx_lookup(me, weft_get32(w->e.seq));

	if (!msg) {
		if ((int32_t)(weft_get32(w->e.seq) - me->rx_seq) < 0 ||
		    !may_begin(me, weft_get32(w->e.seq), false, 0))
			return;
		withdraw_early(me, w);
	} else if (!(msg->flags & WEFT_MSG_RTS) || msg->error || msg->rts.withdrawn ||
		   memcmp(&msg->sreq, &w->sreq, sizeof(w->sreq))) {
		me->mw->count.mismatch++;
		return;
	} else if (msg->flags & WEFT_MSG_AHEAD) {
		msg->rts.withdrawn = true;
	} else if (msg->flags & WEFT_MSG_QUEUED) {
		weft_match_msg_remove(&me->mw->match, &msg->match);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
	} else {
		return;
	}
	me->mw->count.withdrawn++;
	if (!me->failed)
		weft_rndv_refuse(me, w->sreq, -ECANCELED);
}

/* After a tagged message, or a piece, the turn of others may have come. */
static inline void tagged_done(struct weft_msg_ep *me)
{
	if (me->failed)
		return;
	if (me->rx_ahead && !me->draining)
		weft_rx_drain(me, WEFT_RX_DRAIN);
	else
		weft_credit_update(me);
}

/* What else there is than short eager messages. */
static void recv_tagged(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length)
{
	const struct weft_wire_eager_sync *es = data;
	const struct weft_wire_frag_sync *fs = data;

	switch (id) {
	case WEFT_WIRE_EAGER_SYNC:
		recv_whole(me, &es->e, &es->req, es + 1, length - sizeof(*es));
		break;
	case WEFT_WIRE_FRAG:
		recv_frag(me, &fs->f, NULL, &fs->f + 1, length - sizeof(fs->f));
		break;
	case WEFT_WIRE_FRAG_SYNC:
		recv_frag(me, &fs->f, &fs->req, fs + 1, length - sizeof(*fs));
		break;
	case WEFT_WIRE_RTS:
		recv_rts(me, data, length);
		break;
	case WEFT_WIRE_ABORT:
		recv_abort(me, data);
		break;
	case WEFT_WIRE_WITHDRAW:
		recv_withdraw(me, data);
		break;
	}
	tagged_done(me);
}

static const uint8_t header_size[] = {
	[WEFT_WIRE_EAGER] = sizeof(struct weft_wire_eager),
	[WEFT_WIRE_EAGER_SYNC] = sizeof(struct weft_wire_eager_sync),
	[WEFT_WIRE_FRAG] = sizeof(struct weft_wire_frag),
	[WEFT_WIRE_FRAG_SYNC] = sizeof(struct weft_wire_frag_sync),
	[WEFT_WIRE_RTS] = sizeof(struct weft_wire_rts),
	[WEFT_WIRE_RTR] = sizeof(struct weft_wire_rtr),
	[WEFT_WIRE_DATA] = sizeof(struct weft_wire_data),
	[WEFT_WIRE_ATS] = sizeof(struct weft_wire_ats),
	[WEFT_WIRE_SYNC_ACK] = sizeof(struct weft_wire_ats),
	[WEFT_WIRE_CREDIT] = sizeof(struct weft_wire_credit),
	[WEFT_WIRE_ABORT] = sizeof(struct weft_wire_abort),
	[WEFT_WIRE_PULL] = sizeof(struct weft_wire_pull),
	[WEFT_WIRE_WITHDRAW] = sizeof(struct weft_wire_withdraw),
	[WEFT_WIRE_PUT_DONE] = sizeof(struct weft_wire_put_done),
	[WEFT_WIRE_AM] = sizeof(struct weft_wire_am),
	[WEFT_WIRE_AM_RTS] = sizeof(struct weft_wire_am_rts),
	[WEFT_WIRE_AM_FRAG] = sizeof(struct weft_wire_am_frag),
	[WEFT_WIRE_PUT] = sizeof(struct weft_wire_put),
	[WEFT_WIRE_GET] = sizeof(struct weft_wire_get),
	[WEFT_WIRE_GET_DATA] = sizeof(struct weft_wire_data),
	[WEFT_WIRE_AMO] = sizeof(struct weft_wire_amo),
	[WEFT_WIRE_AMO_REP] = sizeof(struct weft_wire_amo_rep),
	[WEFT_WIRE_RMA_NAK] = sizeof(struct weft_wire_rma_nak),
	[WEFT_WIRE_RMA_FLUSH] = sizeof(struct weft_wire_rma_flush),
	[WEFT_WIRE_RMA_FLUSHED] = sizeof(struct weft_wire_rma_flushed),
};

/* The commonest message needs no more of the gate than its length. */
static inline void recv_eager(struct weft_msg_ep *me, struct weft_ep_lane_info *info,
			      const struct weft_wire_eager *e, size_t len)
{
	info->rx_msgs++;
	info->rx_bytes += len;
	weft_msg_ep_hold(me);
	recv_whole(me, e, NULL, e + 1, len);
	tagged_done(me);
	weft_msg_ep_release(me);
}

int weft_msg_recv(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
		  size_t length, void *desc)
{
	struct weft_msg_ep *me = ep->msg;

	if (me->failed)
		return 0;
	if (id == WEFT_WIRE_EAGER && length >= sizeof(struct weft_wire_eager)) {
		recv_eager(me, &ep->lane_info[lane], data, length - sizeof(struct weft_wire_eager));
		return 0;
	}
	if (weft_wire_check(id, data, length)) {
		me->mw->count.malformed++;
		weft_msg_fail(me, -EPROTO, "malformed message, id %u, %zu bytes", id, length);
		return 0;
	}
	ep->lane_info[lane].rx_msgs++;
	ep->lane_info[lane].rx_bytes += length - header_size[id];
	weft_msg_ep_hold(me);
	switch (id) {
	case WEFT_WIRE_RTR:
		weft_rndv_recv_rtr(me, data, length);
		break;
	case WEFT_WIRE_PULL:
		weft_rndv_recv_pull(me, data);
		break;
	case WEFT_WIRE_PUT_DONE:
		weft_rndv_recv_put_done(me, data);
		break;
	case WEFT_WIRE_DATA:
		weft_rndv_recv_data(me, data, length - sizeof(struct weft_wire_data));
		break;
	case WEFT_WIRE_ATS:
	case WEFT_WIRE_SYNC_ACK:
		weft_rndv_recv_ats(me, id, data);
		break;
	case WEFT_WIRE_CREDIT:
		weft_credit_recv(me, data, length);
		break;
	case WEFT_WIRE_AM:
	case WEFT_WIRE_AM_RTS:
	case WEFT_WIRE_AM_FRAG:
		weft_am_recv(me, id, data, length);
		break;
	case WEFT_WIRE_PUT:
	case WEFT_WIRE_GET:
	case WEFT_WIRE_GET_DATA:
	case WEFT_WIRE_AMO:
	case WEFT_WIRE_AMO_REP:
	case WEFT_WIRE_RMA_NAK:
	case WEFT_WIRE_RMA_FLUSH:
	case WEFT_WIRE_RMA_FLUSHED:
		weft_rma_recv(me, id, data, length);
		break;
	default:
		recv_tagged(me, id, data, length);
		break;
	}
	weft_msg_ep_release(me);
	return 0;
}
