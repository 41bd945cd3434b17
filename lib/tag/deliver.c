/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives and the messages that they match: from the match to the completion, and early ends of
 * both.
 */

#include <errno.h>
#include <stdlib.h>

#include "tag/tag.h"

/* ------------------------------------------------------------------ receives */

struct weft_request *weft_rx_match(struct weft_msg_ep *me, uint64_t tag, const struct weft_ext *x)
{
	const struct weft_match_chan chan = {x ? x->channel : 0, 1 + (x ? x->source_channel : 0)};
	struct weft_match_recv *recv =
		weft_match_arrive(&me->mw->tag->match, &me->tag->source->match, tag, chan);
	struct weft_request *req;

	if (!recv)
		return NULL;
	req = weft_tag_req_of(recv);
	req->flags &= ~WEFT_REQ_POSTED;
	if (x)
		req->ext = *x;
	return req;
}

/* ------------------------------------------------------------------ a message and its receive */

void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req)
{
	msg->recv = req;
	msg->flags |= WEFT_MSG_BOUND;
	req->recv.fetch = NULL;
	weft_tag_recv_of(req)->msg = msg;
	req->flags |= WEFT_REQ_ACTIVE;
	TAILQ_INSERT_TAIL(&msg->me->tag->active, req, link);
}

static void copy_kept(struct weft_message *msg, struct weft_request *req)
{
	struct weft_ival_pos pos = {0};
	const struct weft_ival *v;

	while ((v = weft_ivals_next(&msg->got, &pos)))
		weft_recv_place(req, v->lo, msg->data + v->lo, v->hi - v->lo);
}

void weft_rx_ack(struct weft_message *msg, int status)
{
	if (!msg->me || (msg->flags & (WEFT_MSG_SYNC | WEFT_MSG_ACKED)) != WEFT_MSG_SYNC)
		return;
	msg->flags |= WEFT_MSG_ACKED;
	weft_rndv_send_ats(msg->me, WEFT_WIRE_SYNC_ACK, msg->sreq, status);
}

void weft_rx_bind(struct weft_message *msg, struct weft_request *req, bool now)
{
	struct weft_msg_ep *me = msg->me;
	struct weft_rndv_offer offer;

	weft_recv_matched(req, me, msg->match.tag, msg->total);
	req->ext = weft_message_ext(msg);
	req->source_id = weft_message_source_id(msg);
	weft_credit_give_msg(msg);
	if (me)
		weft_credit_update(me);
	if (msg->error) {
		req->status = msg->error;
		weft_rx_free(msg);
		weft_recv_done(req, now);
		return;
	}
	if (msg->flags & WEFT_MSG_RTS) {
		weft_message_get_offer(msg, &offer);
		weft_rx_free(msg);
		weft_rndv_fetch(me, req, &offer, now);
		return;
	}
	weft_rx_ack(msg, 0);
	copy_kept(msg, req);
	if (!weft_message_complete(msg)) {
		weft_message_free_data(msg);
		weft_rx_await_rest(msg, req);
	} else {
		weft_rx_free(msg);
		weft_recv_done(req, now);
	}
}

void weft_rx_take(struct weft_message *msg)
{
	weft_match_msg_remove(&msg->tw->match, &msg->match);
	msg->flags = (uint16_t)((msg->flags & ~WEFT_MSG_QUEUED) | WEFT_MSG_PROBED);
	if (!(msg->flags & WEFT_MSG_HASHED))
		weft_rx_hold_probed(msg);
}

void weft_rx_drop(struct weft_message *msg)
{
	struct weft_request *sink;

	if (msg->flags & WEFT_MSG_RTS) {
		if (msg->me && !msg->error)
			weft_rndv_refuse(msg->me, msg->sreq, 0);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
		return;
	}
	/*
	 * The rest of its pieces must be consumed: bind it to a receive that accepts everything and
	 * stores nothing.
	 */
	sink = weft_request_alloc(msg->tw->mw, &weft_tag_recv_ops, NULL, false);
	if (!sink)
		return; /* it stays with its endpoint until that ends */
	sink->dt = (struct weft_dt){.length = msg->total};
	sink->flags |= WEFT_REQ_UNPACKERR;
	weft_rx_bind(msg, sink, false);
}

/* All pieces are here. */
void weft_rx_over(struct weft_message *msg)
{
	struct weft_request *req = msg->recv;

	if (msg->flags & WEFT_MSG_BOUND) {
		TAILQ_REMOVE(&msg->me->tag->active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		weft_rx_free(msg);
		weft_recv_done(req, false);
		return;
	}
	if (msg->flags & WEFT_MSG_AHEAD)
		return; /* it stays in the table: weft_rx_drain() finds it by its number */
	weft_rx_unhash(msg);
	if (msg->flags & WEFT_MSG_PROBED)
		weft_rx_hold_probed(msg);
}

/*
 * The sender waits for a match, and the user has closed this end. Without a refusal, two closing
 * peers would wait for each other.
 */
void weft_rx_refuse(struct weft_message *msg)
{
	if (msg->flags & WEFT_MSG_QUEUED)
		weft_match_msg_remove(&msg->tw->match, &msg->match);
	msg->flags &= (uint16_t)~WEFT_MSG_QUEUED;
	if (msg->flags & WEFT_MSG_RTS) {
		weft_rndv_refuse(msg->me, msg->sreq, -ECONNRESET);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
	} else {
		weft_rx_ack(msg, -ECONNRESET);
		weft_rx_drop(msg);
	}
}

/* No receive for it is posted. */
void weft_rx_queue(struct weft_message *msg)
{
	struct weft_tag_worker *tw = msg->tw;

	if (msg->me->closing && (msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC))) {
		weft_rx_refuse(msg);
		return;
	}
	tw->mw->count.unexpected++;
	msg->flags |= WEFT_MSG_QUEUED;
	weft_match_msg_add(&tw->match, &msg->match);
	if (__builtin_expect(weft_match_overloaded(&tw->match), 0))
		weft_tag_match_grow(tw);
	weft_credit_kept(msg->me);
	if (__builtin_expect(weft_credit_short(msg->me), 0))
		weft_tag_spill(msg);
}
