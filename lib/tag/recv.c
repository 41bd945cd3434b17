/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From lane messages in any order to receives in send order.
 *
 * Per endpoint, `rx_seq` is the next sequence number to match. The first piece of that message to
 * arrive is matched at once, and rx_seq advances, whether a receive matched or not. Messages
 * ahead of rx_seq wait in a table by sequence (base/container.h). The table also contains all
 * incomplete messages, so that later pieces find them. A message that is one piece, in sequence and
 * expected never gets a struct weft_message.
 *
 * The piece that has just arrived is copied, and its receive completed, before any waiting message
 * is checked. Then at most WEFT_RX_DRAIN of those are processed: lanes must be polled.
 */

#include <errno.h>

#include "base/bytes.h"
#include "base/log.h"
#include "rndv/rndv.h"
#include "tag/recv.h"
#include "tag/tag.h"
#include "tag/unexpected.h"

/* ------------------------------------------------------------------ plain receives */

/* Can complete_plain() complete the receive? */
static inline bool is_plain(const struct weft_request *req, size_t len)
{
	return req->dt.dt_class == WEFT_DT_CONTIG && len <= req->dt.length &&
	       req->status == WEFT_INPROGRESS;
}

/* The end of complete_plain() for a request that the user has: the callback may free it. */
static inline void end_held(struct weft_ep *ep, struct weft_request *req,
			    const struct weft_completion *c)
{
	req->status = 0;
	req->flags = (req->flags & ~WEFT_REQ_POSTED) | WEFT_REQ_DONE;
	req->tag = c->tag;
	req->length = c->length;
	req->source_id = c->source_id;
	req->ep_slot = ep->slot;
	req->ep_generation = ep->generation;
	if (!req->cb)
		return;
	req->flags |= WEFT_REQ_CALLING;
	req->cb(req, c, req->cb_arg);
	req->flags &= ~WEFT_REQ_CALLING;
	if (!(req->flags & WEFT_REQ_HELD))
		weft_request_give_back(req);
}

static __attribute__((noinline)) void end_held_of_batch(struct weft_ep *ep,
							struct weft_request *req,
							const struct weft_completion *c)
{
	end_held(ep, req, c);
}

/*
 * weft_recv_matched(), weft_recv_place() and weft_recv_done(), for a plain receive. A request that
 * the user does not have is free before its callback runs: the callback often posts the next one.
 * @param batch  constant; false: a message of its own, whose request the user often has
 */
static inline __attribute__((always_inline)) void complete_plain(
	struct weft_msg_ep *me, struct weft_ep *ep, struct weft_request *req,
	const struct weft_completion *c, const void *payload, const bool batch)
{
	weft_complete_cb cb = req->cb;
	void *arg = req->cb_arg;

	WEFT_PROBE4(match, req, me, c->tag, c->length);
	weft_copy(req->dt.buf, payload, c->length);
	WEFT_PROBE4(complete, req, 0, c->tag, c->length);
	if (!batch && req->flags & WEFT_REQ_HELD) {
		end_held(ep, req, c);
		return;
	}
	if (__builtin_expect(req->flags & WEFT_REQ_HELD, 0)) {
		end_held_of_batch(ep, req, c);
		return;
	}
	req->flags = WEFT_REQ_DONE;
	weft_request_give_back(req);
	if (cb)
		cb(NULL, c, arg);
}

/* complete_plain() for a message of its own. */
static inline __attribute__((always_inline)) void complete_one(struct weft_msg_ep *me,
							       struct weft_request *req,
							       uint64_t tag, const void *payload,
							       size_t len, const struct weft_ext *x)
{
	const struct weft_completion c = {
		.size = sizeof(c),
		.tag = tag,
		.length = len,
		.ep = weft_ep_of_user(me->ep),
		.source_id = me->ep->remote_id,
		.imm = x ? x->imm : 0,
		.flags = x && x->has_imm ? WEFT_COMPLETION_F_IMM : 0,
		.channel = x ? x->channel : 0,
		.source_channel = x ? x->source_channel : 0,
	};

	me->mw->count.rx_copied_bytes += len;
	complete_plain(me, me->ep, req, &c, payload, false);
}

/* The posted receive that matches, removed; NULL: there is none. @p x: NULL = no EXT */
static inline struct weft_request *match_recv(struct weft_msg_ep *me, uint64_t tag,
					      const struct weft_ext *x)
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

/* ------------------------------------------------------------------ sequence */

static bool may_begin(struct weft_msg_ep *me, uint32_t seq, uint64_t total)
{
	return weft_rx_may_begin(me, &me->rx_seq, seq, total, "message");
}

static struct weft_message *new_message(struct weft_msg_ep *me, const struct weft_wire_eager *e,
					uint64_t total, bool with_data, const struct weft_ext *x)
{
	struct weft_message *msg = weft_message_alloc(me, total, with_data);

	if (!msg) {
		weft_msg_fail(me, -ENOMEM, "no memory for a message of %llu bytes",
			      (unsigned long long)total);
		return NULL;
	}
	msg->match.tag = weft_get64(e->tag);
	msg->match.source = &me->tag->source->match;
	msg->match.channel = x ? x->channel : 0;
	msg->match.from = 1u + (x ? x->source_channel : 0);
	if (x && x->has_imm) {
		msg->imm = x->imm;
		msg->flags |= WEFT_MSG_IMM;
	}
	return msg;
}

/*
 * Store the message until it is in sequence, until all its pieces have come, or, with RTS, until a
 * receive gets it.
 * @return 0; -ENOMEM: the message is freed, and the endpoint has failed
 */
static int keep_by_seq(struct weft_msg_ep *me, struct weft_message *msg, weft_le32 seq)
{
	if (weft_rx_hash(me, msg, weft_get32(seq)) == 0)
		return 0;
	weft_message_free(msg);
	weft_msg_fail(me, -ENOMEM, "no memory for messages that are out of order");
	return -ENOMEM;
}

static int keep_ahead(struct weft_msg_ep *me, struct weft_message *msg, weft_le32 seq)
{
	if (keep_by_seq(me, msg, seq))
		return -ENOMEM;
	msg->flags |= WEFT_MSG_AHEAD;
	me->tag->ahead++;
	me->mw->count.out_of_order++;
	return 0;
}

/* Match a message that was ahead and is now in sequence. */
static void now_in_sequence(struct weft_msg_ep *me, struct weft_message *msg)
{
	struct weft_ext x = weft_message_ext(msg);
	struct weft_request *req;

	me->rx_seq.next++;
	me->tag->ahead--;
	if ((msg->flags & WEFT_MSG_RTS) && msg->rts.withdrawn) {
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
		return;
	}
	msg->flags &= (uint16_t)~WEFT_MSG_AHEAD;
	req = match_recv(me, msg->match.tag, &x);
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
	while (n < budget && me->tag->ahead && (msg = weft_rx_lookup(me, me->rx_seq.next))) {
		now_in_sequence(me, msg); /* may end the endpoint; ahead is 0 then */
		n++;
	}
	if (n == budget && me->tag->ahead && weft_rx_lookup(me, me->rx_seq.next) &&
	    !me->tag->draining) {
		me->tag->draining = true;
		me->mw->work++;
		TAILQ_INSERT_TAIL(&me->mw->tag->drain, me->tag, drain_link);
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
						 const void *payload, size_t len, bool ahead,
						 const struct weft_ext *x)
{
	struct weft_message *msg = new_message(me, e, len, true, x);

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
		keep_ahead(me, msg, e->seq);
	else
		weft_rx_queue(msg);
}

static inline __attribute__((always_inline)) void recv_whole(struct weft_msg_ep *me,
							     const struct weft_wire_eager *e,
							     const struct weft_wire_ref *sreq,
							     const void *payload, size_t len,
							     const struct weft_ext *x)
{
	uint32_t seq = weft_get32(e->seq);
	struct weft_request *req;

	if (me->tag->ahead && weft_rx_lookup(me, seq)) {
		me->mw->count.old_seq++;
		return;
	}
	if (!may_begin(me, seq, len))
		return;
	if (seq != me->rx_seq.next) {
		keep_whole(me, e, sreq, payload, len, true, x);
		return;
	}
	me->rx_seq.next++;
	req = match_recv(me, weft_get64(e->tag), x);
	if (!req) {
		keep_whole(me, e, sreq, payload, len, false, x);
		return;
	}
	me->mw->count.expected++;
	weft_credit_give(me, len);
	if (!sreq && __builtin_expect(is_plain(req, len) && !me->mw->fini, 1)) {
		complete_one(me, req, weft_get64(e->tag), payload, len, x);
		return;
	}
	weft_recv_matched(req, me, weft_get64(e->tag), len);
	weft_recv_place(req, 0, payload, len);
	if (sreq)
		weft_rndv_send_ats(me, WEFT_WIRE_SYNC_ACK, *sreq, 0);
	weft_recv_done(req, false);
}

/* recv_whole() of less common messages. */
static __attribute__((noinline)) void recv_whole_other(struct weft_msg_ep *me,
						       const struct weft_wire_eager *e,
						       const struct weft_wire_ref *sreq,
						       const void *payload, size_t len,
						       const struct weft_ext *x)
{
	recv_whole(me, e, sreq, payload, len, x);
}

/*
 * recv_whole() of a short message in sequence, if all receives name a source, and the first one of
 * this source matches. @return false: nothing is done
 */
static inline __attribute__((always_inline)) bool recv_expected(struct weft_msg_ep *me,
								const struct weft_wire_eager *e,
								const void *payload, size_t len,
								const struct weft_ext *x)
{
	const struct weft_match_chan chan = {x->channel, 1u + x->source_channel};
	uint64_t tag = weft_get64(e->tag);
	struct weft_match_recv *r;
	struct weft_request *req;

	if (len > WEFT_EAGER_FREE || weft_get32(e->seq) != me->rx_seq.next ||
	    me->rx_seq.next == me->rx_seq.advertised || me->rx_small == me->rx_small_advertised ||
	    me->tag->ahead || me->mw->fini)
		return false;
	r = weft_match_take_fresh(&me->mw->tag->match, &me->tag->source->match, tag, chan);
	if (!r)
		return false;
	me->rx_seq.next++;
	me->rx_small++;
	me->rx_small_allowed++;
	me->mw->count.expected++;
	req = weft_tag_req_of(r);
	if (__builtin_expect(is_plain(req, len), 1)) {
		complete_one(me, req, tag, payload, len, x);
		return true;
	}
	req->flags &= ~WEFT_REQ_POSTED;
	req->ext = *x;
	weft_recv_matched(req, me, tag, len);
	weft_recv_place(req, 0, payload, len);
	weft_recv_done(req, false);
	return true;
}

/* The first piece of a message has arrived: begin the message. */
static struct weft_message *message_begin(struct weft_msg_ep *me, const struct weft_wire_frag *f,
					  const struct weft_ext *x)
{
	uint64_t total = weft_get64(f->total);
	uint32_t seq = weft_get32(f->e.seq);
	struct weft_request *req = NULL;
	struct weft_message *msg;
	bool ahead = seq != me->rx_seq.next;

	if (!may_begin(me, seq, total))
		return NULL;
	if (!ahead) {
		me->rx_seq.next++;
		req = match_recv(me, weft_get64(f->e.tag), x);
	}
	if (req) {
		me->mw->count.expected++;
		weft_recv_matched(req, me, weft_get64(f->e.tag), total);
		weft_credit_give(me, total);
	}
	msg = new_message(me, &f->e, total, !req, x);
	if (msg && (ahead ? keep_ahead(me, msg, f->e.seq) : keep_by_seq(me, msg, f->e.seq)))
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
			 const struct weft_wire_frag *f, const struct weft_ext *x)
{
	if (!(msg->flags & WEFT_MSG_RTS) && msg->match.channel == (x ? x->channel : 0) &&
	    msg->total == weft_get64(f->total) && msg->match.tag == weft_get64(f->e.tag))
		return true;
	me->mw->count.mismatch++;
	return false;
}

static void recv_frag(struct weft_msg_ep *me, const struct weft_wire_frag *f,
		      const struct weft_wire_ref *sreq, const void *payload, size_t len,
		      const struct weft_ext *x)
{
	uint64_t off = weft_get64(f->offset);
	struct weft_message *msg = weft_rx_lookup(me, weft_get32(f->e.seq));

	if (msg ? !same_message(me, msg, f, x) : !(msg = message_begin(me, f, x)))
		return;
	if (msg->error)
		return; /* aborted or refused: later pieces are dropped */
	if (sreq && !(msg->flags & WEFT_MSG_SYNC)) {
		msg->flags |= WEFT_MSG_SYNC;
		msg->sreq = *sreq;
		if (msg->flags & WEFT_MSG_BOUND)
			weft_rx_ack(msg, 0);
		else if (me->closing && (msg->flags & WEFT_MSG_QUEUED))
			weft_rx_refuse(msg);
	}
	if (weft_rx_note(me, &msg->got, off, len))
		return;
	if (msg->flags & WEFT_MSG_BOUND) {
		weft_recv_place(msg->recv, off, payload, len);
	} else {
		memcpy(msg->data + off, payload, len);
		me->mw->count.rx_copied_bytes += len;
	}
	if (weft_message_complete(msg))
		weft_rx_over(msg);
}

/* Begin a message of which an ABORT arrives before any piece. */
static void begin_aborted(struct weft_msg_ep *me, const struct weft_wire_abort *a, int status,
			  const struct weft_ext *x)
{
	bool ahead = weft_get32(a->e.seq) != me->rx_seq.next;
	struct weft_request *req = NULL;
	struct weft_message *msg;

	if (!may_begin(me, weft_get32(a->e.seq), weft_get64(a->total)))
		return;
	if (!ahead) {
		me->rx_seq.next++;
		req = match_recv(me, weft_get64(a->e.tag), x);
	}
	if (req) {
		weft_recv_matched(req, me, weft_get64(a->e.tag), weft_get64(a->total));
		weft_credit_give(me, weft_get64(a->total));
		req->status = status;
		weft_recv_done(req, false);
		return;
	}
	msg = new_message(me, &a->e, weft_get64(a->total), false, x);
	if (!msg)
		return;
	msg->error = (int16_t)status;
	if (ahead)
		keep_ahead(me, msg, a->e.seq);
	else
		weft_rx_queue(msg);
}

static void recv_abort(struct weft_msg_ep *me, const struct weft_wire_abort *a,
		       const struct weft_ext *x)
{
	int status = -(int)weft_get32(a->status);
	struct weft_message *msg;

	msg = weft_rx_lookup(me, weft_get32(a->e.seq));
	if (!msg) {
		begin_aborted(me, a, status, x);
		return;
	}
	if (msg->error || msg->total != weft_get64(a->total)) {
		me->mw->count.mismatch++;
		return;
	}
	msg->error = (int16_t)status;
	/* A message without a receive holds its credit until a receive has got the error. */
	if (msg->flags & WEFT_MSG_BOUND) {
		msg->recv->status = status;
	} else {
		/*
		 * The ranges of its pieces are not needed any more; the message may outlive the
		 * endpoint that counts them.
		 */
		if (!(msg->flags & WEFT_MSG_RTS))
			weft_rx_forget(me, &msg->got);
		weft_message_free_data(msg);
	}
	weft_rx_over(msg);
}

static void recv_rts(struct weft_msg_ep *me, const struct weft_wire_rts *rts, size_t records,
		     const struct weft_ext *x)
{
	uint32_t seq = weft_get32(rts->e.seq);
	uint64_t total = weft_get64(rts->total);
	bool ahead = seq != me->rx_seq.next;
	struct weft_request *req = NULL;
	struct weft_rndv_offer offer;
	struct weft_message *msg;

	if (weft_rx_lookup(me, seq)) {
		me->mw->count.old_seq++;
		return;
	}
	if (!may_begin(me, seq, 0))
		return;
	weft_rndv_offer_read(&offer, rts->req, rts->flags, rts + 1, records);
	me->mw->count.rts++;
	if (!ahead) {
		me->rx_seq.next++;
		req = match_recv(me, weft_get64(rts->e.tag), x);
	}
	if (req) {
		me->mw->count.expected++;
		weft_recv_matched(req, me, weft_get64(rts->e.tag), total);
		weft_credit_give_rts(me);
		weft_rndv_fetch(me, req, &offer, false);
		return;
	}
	msg = new_message(me, &rts->e, total, false, x);
	if (!msg)
		return;
	weft_message_set_offer(msg, &offer);
	if (ahead)
		keep_ahead(me, msg, rts->e.seq);
	else if (keep_by_seq(me, msg, rts->e.seq) == 0)
		weft_rx_queue(msg);
}

/* The withdrawal has overtaken its RTS: make sure that the RTS has no effect when it arrives. */
static void withdraw_early(struct weft_msg_ep *me, const struct weft_wire_withdraw *w)
{
	const struct weft_rndv_offer offer = {.sreq = w->sreq};
	struct weft_message *msg;

	if (weft_get32(w->e.seq) == me->rx_seq.next) {
		me->rx_seq.next++;
		weft_credit_give_rts(me);
		return;
	}
	msg = new_message(me, &w->e, 0, false, NULL);
	if (!msg)
		return;
	weft_message_set_offer(msg, &offer);
	msg->rts.withdrawn = true;
	keep_ahead(me, msg, w->e.seq);
}

/*
 * The sender withdraws its message. If a receive, or a matched probe, has it already, it is too
 * late: requests for the data then notify the sender. Only the receiver decides which was first.
 */
static void recv_withdraw(struct weft_msg_ep *me, const struct weft_wire_withdraw *w)
{
	struct weft_message *msg = weft_rx_lookup(me, weft_get32(w->e.seq));

	if (!msg) {
		if ((int32_t)(weft_get32(w->e.seq) - me->rx_seq.next) < 0 ||
		    !may_begin(me, weft_get32(w->e.seq), 0))
			return;
		withdraw_early(me, w);
	} else if (!(msg->flags & WEFT_MSG_RTS) || msg->error || msg->rts.withdrawn ||
		   memcmp(&msg->sreq, &w->sreq, sizeof(w->sreq))) {
		me->mw->count.mismatch++;
		return;
	} else if (msg->flags & WEFT_MSG_AHEAD) {
		msg->rts.withdrawn = true;
	} else if (msg->flags & WEFT_MSG_QUEUED) {
		weft_match_msg_remove(&me->mw->tag->match, &msg->match);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
	} else {
		return;
	}
	me->mw->count.withdrawn++;
	if (!me->failed)
		weft_rndv_refuse(me, w->sreq, -ECANCELED);
}

/* After a tagged message, or a piece, other messages may be in sequence: match those. */
static inline void tagged_done(struct weft_msg_ep *me)
{
	if (me->failed)
		return;
	if (me->tag->ahead && !me->tag->draining)
		weft_rx_drain(me, WEFT_RX_DRAIN);
	else
		weft_credit_update(me);
}

/* ------------------------------------------------------------------ handlers */

void weft_tag_recv_eager(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_eager *e = data;

	recv_whole(me, e, NULL, e + 1, payload, NULL);
	tagged_done(me);
}

void weft_tag_recv_eager_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				  size_t length)
{
	recv_whole(me, header, NULL, payload, length, NULL);
	tagged_done(me);
}

int weft_tag_recv_eager_ext(struct weft_msg_ep *me, const struct weft_wire_ext *w, size_t payload)
{
	const struct weft_wire_eager *e = (const void *)(w + 1);
	const struct weft_ext x = weft_ext_from_wire(w);

	weft_msg_ep_hold(me);
	if (!recv_expected(me, e, e + 1, payload, &x)) {
		const struct weft_ext copy = x; /* so that x stays in registers */

		weft_tag_recv_ext(me, WEFT_WIRE_EAGER, e, payload, &copy);
	} else if (!me->failed) {
		weft_credit_update_small(me);
	}
	weft_msg_ep_release(me);
	return 0;
}

void weft_tag_recv_eager_sync(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_eager_sync *es = data;

	recv_whole_other(me, &es->e, &es->req, es + 1, payload, NULL);
	tagged_done(me);
}

void weft_tag_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_frag *f = data;

	recv_frag(me, f, NULL, f + 1, payload, NULL);
	tagged_done(me);
}

void weft_tag_recv_frag_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				 size_t length)
{
	recv_frag(me, header, NULL, payload, length, NULL);
	tagged_done(me);
}

void weft_tag_recv_frag_sync(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_frag_sync *fs = data;

	recv_frag(me, &fs->f, &fs->req, fs + 1, payload, NULL);
	tagged_done(me);
}

void weft_tag_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_rts(me, data, payload, NULL);
	tagged_done(me);
}

void weft_tag_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_abort(me, data, NULL);
	tagged_done(me);
}

void weft_tag_recv_withdraw(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_withdraw(me, data);
	tagged_done(me);
}

void weft_tag_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		       const struct weft_ext *x)
{
	const struct weft_wire_eager_sync *es = data;
	const struct weft_wire_frag_sync *fs = data;

	switch (id) {
	case WEFT_WIRE_EAGER:
		recv_whole_other(me, &es->e, NULL, &es->e + 1, payload, x);
		break;
	case WEFT_WIRE_EAGER_SYNC:
		recv_whole_other(me, &es->e, &es->req, es + 1, payload, x);
		break;
	case WEFT_WIRE_FRAG:
		recv_frag(me, &fs->f, NULL, &fs->f + 1, payload, x);
		break;
	case WEFT_WIRE_FRAG_SYNC:
		recv_frag(me, &fs->f, &fs->req, fs + 1, payload, x);
		break;
	case WEFT_WIRE_RTS:
		recv_rts(me, data, payload, x);
		break;
	default:
		recv_abort(me, data, x);
	}
	tagged_done(me);
}

/* ------------------------------------------------------------------ the messages of a frame */

/*
 * The short messages of a frame, received in one call. A message is taken if it is in sequence, no
 * message waits ahead, and a receive of the most common kind matches (weft_match_take_first()). Any
 * other message ends the batch: it goes the general way, which also detects what is malformed.
 */

/* A batch of messages: its endpoint, the present completion, bytes of plain receives so far. */
struct batch {
	struct weft_msg_ep *me;
	struct weft_ep *ep;
	struct weft_completion c;
	uint32_t bytes;
};

/* @return the receive of the message, still POSTED; NULL = the message goes the general way */
static inline struct weft_request *take(struct weft_msg_ep *me, const struct weft_lane_msg *msg)
{
	struct weft_tag_worker *tw = me->mw->tag;
	const struct weft_wire_eager *e = msg->data;
	struct weft_match_recv *r;

	/* A message that the peer must not send yet is refused by the general way. */
	if (msg->length < sizeof(*e) || msg->length - sizeof(*e) > WEFT_EAGER_FREE ||
	    weft_get32(e->seq) != me->rx_seq.next || me->rx_seq.next == me->rx_seq.advertised ||
	    me->rx_small == me->rx_small_advertised || me->tag->ahead)
		return NULL;
	r = weft_match_take_first(&tw->match, &me->tag->source->match, weft_get64(e->tag));
	if (!r)
		return NULL;
	me->rx_seq.next++;
	me->rx_small++;
	me->rx_small_allowed++;
	return weft_tag_req_of(r);
}

/* Count the messages that complete_plain() has completed. */
static void count(const struct batch *b, unsigned int lane, unsigned int plain)
{
	b->me->mw->count.expected += plain;
	b->me->mw->count.rx_copied_bytes += b->bytes;
	if (!b->me->ep)
		return;
	b->ep->lane_info[lane].rx_msgs += plain;
	b->ep->lane_info[lane].rx_bytes += b->bytes;
}

/* A callback of the user may have ended the endpoint, or the lane. */
static inline bool goes_on(const struct batch *b, unsigned int lane)
{
	return !b->me->failed && b->me->ep == b->ep && b->ep->lanes_up >> lane & 1;
}

static void complete_other(struct batch *b, unsigned int lane, struct weft_request *req,
			   uint64_t tag, const void *payload, size_t len)
{
	req->flags &= ~WEFT_REQ_POSTED;
	b->me->mw->count.expected++;
	b->ep->lane_info[lane].rx_msgs++;
	b->ep->lane_info[lane].rx_bytes += len;
	weft_recv_matched(req, b->me, tag, len);
	weft_recv_place(req, 0, payload, len);
	weft_recv_done(req, false);
}

unsigned int weft_tag_recv_batch(struct weft_msg_ep *me, unsigned int lane,
				 const struct weft_lane_msg *msgs, unsigned int num)
{
	unsigned int n = 0, plain = 0;
	struct batch b;

	if (me->failed || me->mw->fini)
		return 0;
	b = (struct batch){
		.me = me,
		.ep = me->ep,
		.c =
			{
				.size = sizeof(b.c),
				.ep = weft_ep_of_user(me->ep),
				.source_id = me->ep->remote_id,
			},
	};
	weft_msg_ep_hold(me);
	do {
		const struct weft_wire_eager *e = msgs[n].data;
		size_t len = msgs[n].length - sizeof(*e);
		struct weft_request *req = take(me, &msgs[n]);

		if (!req)
			break;
		if (__builtin_expect(is_plain(req, len), 1)) {
			b.bytes += (uint32_t)len;
			b.c.tag = weft_get64(e->tag);
			b.c.length = len;
			complete_plain(me, b.ep, req, &b.c, e + 1, true);
			plain++;
		} else {
			complete_other(&b, lane, req, weft_get64(e->tag), e + 1, len);
		}
	} while (++n < num && goes_on(&b, lane));
	if (n > 0) {
		count(&b, lane, plain);
		if (!me->failed)
			weft_credit_update(me);
	}
	weft_msg_ep_release(me);
	return n;
}
