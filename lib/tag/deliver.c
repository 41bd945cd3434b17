/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives, and the messages that find them: from the match to the completion, and the ends that
 * neither has hoped for.
 */

#include <errno.h>
#include <stdlib.h>

#include "msg/msg.h"

/* ------------------------------------------------------------------ receives */

struct weft_request *weft_rx_match(struct weft_msg_ep *me, uint64_t tag)
{
	struct weft_match_recv *recv = weft_match_arrive(&me->mw->match, &me->source, tag);
	struct weft_request *req;

	if (!recv)
		return NULL;
	req = container_of(recv, struct weft_request, recv.match);
	req->flags &= ~WEFT_REQ_POSTED;
	return req;
}

/* ------------------------------------------------------------------ a message and its receive */

void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req)
{
	msg->recv = req;
	req->recv.msg = msg;
	req->flags |= WEFT_REQ_ACTIVE;
	TAILQ_INSERT_TAIL(&msg->me->rx_active, req, link);
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
	req->source_id = msg->source_id;
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
	weft_match_msg_remove(&msg->mw->match, &msg->match);
	msg->flags = (uint8_t)((msg->flags & ~WEFT_MSG_QUEUED) | WEFT_MSG_PROBED);
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
	 * The rest of its pieces must be consumed: a receive that takes everything and keeps
	 * nothing.
	 */
	sink = weft_request_alloc(msg->mw, WEFT_REQ_RECV, NULL, false);
	if (!sink)
		return; /* stays with its endpoint until that ends */
	sink->dt = (struct weft_dt){.length = msg->total};
	sink->flags |= WEFT_REQ_UNPACKERR;
	weft_rx_bind(msg, sink, false);
}

/* All pieces are here. */
void weft_rx_over(struct weft_message *msg)
{
	struct weft_request *req = msg->recv;

	if (req) {
		TAILQ_REMOVE(&msg->me->rx_active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		weft_rx_free(msg);
		weft_recv_done(req, false);
		return;
	}
	if (msg->flags & WEFT_MSG_AHEAD)
		return; /* found by its sequence when its turn comes */
	weft_rx_unhash(msg);
	if (msg->flags & WEFT_MSG_PROBED)
		weft_rx_hold_probed(msg);
}

/*
 * Its sender waits for a match, and the owner of this end has closed it: two closing peers would
 * wait for each other.
 */
void weft_rx_refuse(struct weft_message *msg)
{
	if (msg->flags & WEFT_MSG_QUEUED)
		weft_match_msg_remove(&msg->mw->match, &msg->match);
	msg->flags &= (uint8_t)~WEFT_MSG_QUEUED;
	if (msg->flags & WEFT_MSG_RTS) {
		weft_rndv_refuse(msg->me, msg->sreq, -ECONNRESET);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
	} else {
		weft_rx_ack(msg, -ECONNRESET);
		weft_rx_drop(msg);
	}
}

/* The same of one that a probe has taken out: whoever has its handle finds the error. */
static void refuse_probed(struct weft_message *msg)
{
	if (!(msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC)) || msg->error)
		return;
	if (msg->flags & WEFT_MSG_RTS) {
		weft_rndv_refuse(msg->me, msg->sreq, -ECONNRESET);
	} else {
		weft_rx_ack(msg, -ECONNRESET);
		weft_message_free_data(msg);
	}
	msg->error = -ECONNRESET;
}

static void refuse_all_probed(struct weft_msg_ep *me)
{
	struct weft_message *msg;

	for (uint32_t i = 0; me->rx_table && i >> me->rx_table_bits == 0; i++) {
		LIST_FOREACH(msg, &me->rx_table[i], link) {
			if (msg->flags & WEFT_MSG_PROBED)
				refuse_probed(msg);
		}
	}
	LIST_FOREACH(msg, &me->probed, link)
		refuse_probed(msg);
}

void weft_rx_closing(struct weft_msg_ep *me)
{
	struct weft_match_msg *m, *next;

	refuse_all_probed(me);

	for (m = TAILQ_FIRST(&me->source.msgs); m; m = next) {
		struct weft_message *msg = container_of(m, struct weft_message, match);

		next = TAILQ_NEXT(m, source_link);
		if (msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC))
			weft_rx_refuse(msg);
	}
}

/* Nobody has posted a receive for it. */
void weft_rx_queue(struct weft_message *msg)
{
	struct weft_msg_worker *mw = msg->mw;

	if (msg->me->closing && (msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC))) {
		weft_rx_refuse(msg);
		return;
	}
	mw->count.unexpected++;
	msg->flags |= WEFT_MSG_QUEUED;
	weft_match_msg_add(&mw->match, &msg->match);
	if (__builtin_expect(weft_match_crowded(&mw->match), 0))
		weft_msg_match_grow(mw);
	weft_credit_kept(msg->me);
}

/* ------------------------------------------------------------------ the end of an endpoint */

static void fail_active(struct weft_msg_ep *me, int status)
{
	struct weft_request *req;

	while ((req = TAILQ_FIRST(&me->rx_active))) {
		TAILQ_REMOVE(&me->rx_active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		if (!req->recv.msg) {
			weft_rndv_fetch_fail(req, status);
			continue;
		}
		weft_rx_free(req->recv.msg);
		weft_request_complete(req, status);
	}
}

/*
 * A message that will not be complete. Somebody may have its handle from a probe: then it stays, as
 * an error.
 */
static void fail_message(struct weft_message *msg, int status)
{
	if (msg->flags & WEFT_MSG_QUEUED)
		weft_match_msg_remove(&msg->mw->match, &msg->match);
	msg->error = (int16_t)status;
	if (!(msg->flags & WEFT_MSG_PROBED)) {
		weft_rx_free(msg);
		return;
	}
	weft_rx_unhash(msg);
	if (!(msg->flags & WEFT_MSG_RTS))
		weft_rx_forget(msg->me, &msg->got);
	weft_message_free_data(msg);
	weft_credit_left(msg, true);
	msg->me = NULL;
	weft_rx_hold_probed(msg);
}

/* Whole ones, whose senders are told, or see for themselves, that nobody has matched them. */
static void fail_synchronous(struct weft_msg_ep *me, int status)
{
	struct weft_match_msg *m, *next;
	struct weft_message *msg;

	for (m = TAILQ_FIRST(&me->source.msgs); m; m = next) {
		next = TAILQ_NEXT(m, source_link);
		msg = container_of(m, struct weft_message, match);
		if (msg->flags & WEFT_MSG_SYNC)
			fail_message(msg, status);
	}
	LIST_FOREACH(msg, &me->probed, link) {
		if (!(msg->flags & WEFT_MSG_SYNC) || msg->error)
			continue;
		msg->error = (int16_t)status;
		weft_message_free_data(msg);
	}
}

void weft_rx_fail(struct weft_msg_ep *me, int status)
{
	struct weft_match_recv *recv;
	struct weft_message *msg;

	me->rx_ahead = 0;
	fail_active(me, status);
	for (uint32_t i = 0; me->rx_table && i >> me->rx_table_bits == 0; i++) {
		while ((msg = LIST_FIRST(&me->rx_table[i])))
			fail_message(msg, status);
	}
	fail_synchronous(me, status);
	while ((recv = TAILQ_FIRST(&me->source.recvs))) {
		struct weft_request *req = container_of(recv, struct weft_request, recv.match);

		weft_match_cancel(&me->mw->match, recv);
		req->flags &= ~WEFT_REQ_POSTED;
		req->length = 0;
		weft_request_complete(req, status);
	}
}

void weft_rx_detach(struct weft_msg_ep *me)
{
	struct weft_match_msg *m;
	struct weft_message *msg;

	TAILQ_FOREACH(m, &me->source.msgs, source_link) {
		msg = container_of(m, struct weft_message, match);
		weft_credit_left(msg, true);
		msg->me = NULL;
	}
	weft_match_source_fini(&me->mw->match, &me->source);
	while ((msg = LIST_FIRST(&me->probed))) {
		LIST_REMOVE(msg, link);
		weft_credit_left(msg, true);
		msg->me = NULL;
		weft_rx_hold_probed(msg);
	}
	if (me->draining)
		TAILQ_REMOVE(&me->mw->drain, me, drain_link);
	me->draining = false;
	free(me->rx_table);
	me->rx_table = NULL;
	weft_credit_fini(me);
}
