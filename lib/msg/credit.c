/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a peer may send unrequested.
 *
 * Until a receive matches it, every message takes one of two credits:
 *
 *	bytes     a message of more than WEFT_EAGER_FREE bytes that is sent whole or in pieces
 *	          takes its length
 *	messages  any other takes one: shorter ones, and all that are announced (RTS), whose data
 *	          stays at the sender
 *
 * Both ends book the credit when the message begins. The receiver frees it at the match: from then
 * on the bytes go to the user. The credit of an active message is free when its handler has
 * returned, or the user releases data that it retained. A message that its sender aborts or
 * withdraws takes credit, too. So every message that a peer makes this worker store has a credit.
 * Credits are bounded for each peer and for all (base/pacing.h). The endpoint of a peer that sends
 * more than was advertised to it fails.
 *
 * A correct sender without credit for a message announces it; without credit for an announcement it
 * waits. This wait must be short: operations that both ends have started must complete, whatever
 * other messages wait for a receive. So when half of a peer's message window is used and the pool
 * is exhausted, further unmatched tagged messages free their message credit at once. They are
 * counted in bytes instead, within WEFT_UNEXP_MEMORY for the whole worker (weft_credit_spill()).
 * Beyond that memory they keep their credit.
 *
 * A peer gets no credit while more than WEFT_CTL_HELD control messages for it wait here.
 *
 * Advertised values are totals of the connection, as CREDIT messages may overtake each other.
 */

#include <errno.h>

#include "msg/endpoint.h"
#include "msg/credit.h"
#include "msg/send.h"
#include "msg/transmit.h"

/* ------------------------------------------------------------------ credit of a peer */

/* The pool has one message credit for this number of bytes of WEFT_UNEXP_LIMIT. */
#define MSG_BYTES 256
/* A new peer gets this window when the pool is exhausted. */
#define BYTES_LEAST 4096
#define MSGS_LEAST 16

void weft_credit_worker_init(struct weft_msg_worker *mw)
{
	uint64_t limit = mw->conf.unexp_limit;

	weft_credit_pool_init(&mw->credit_bytes, limit, BYTES_LEAST, mw->conf.eager_credit,
			      mw->conf.eager_credit);
	weft_credit_pool_init(&mw->credit_msgs, limit / MSG_BYTES, MSGS_LEAST, WEFT_SEQ_WINDOW,
			      WEFT_SMALL_WINDOW);
}

bool weft_credit_spill(struct weft_msg_ep *me, uint64_t bytes)
{
	struct weft_msg_worker *mw = me->mw;
	uint64_t bound = mw->conf.unexp_memory;

	if (bound == 0)
		return false;
	if (mw->spilled + bytes > bound) {
		if (me->rx_spilled + bytes >
		    bound / (mw->worker->num_eps ? mw->worker->num_eps : 1))
			weft_msg_fail_later(me, -ENOMEM,
					    "unreceived messages of the sender fill "
					    "WEFT_UNEXP_MEMORY: raise it at the receiver, or post "
					    "receives earlier");
		return false;
	}
	mw->spilled += bytes;
	me->rx_spilled += bytes;
	me->rx_small_allowed++;
	mw->count.spilled++;
	return true;
}

void weft_credit_unspill(struct weft_msg_worker *mw, struct weft_msg_ep *me, uint64_t bytes)
{
	mw->spilled -= bytes;
	if (me)
		me->rx_spilled -= bytes;
}

/* The windows are checked when the unused credit of the peer is at most half a window. */
static void set_low(struct weft_msg_ep *me)
{
	me->rx_low = me->rx_advertised - me->rx_window / 2;
	me->rx_small_low = me->rx_small_advertised - me->rx_small_window / 2;
}

static void mark_advertised(struct weft_msg_ep *me, struct weft_wire_credit *credit)
{
	me->rx_advertised = me->rx_allowed;
	me->rx_small_advertised = me->rx_small_allowed;
	me->rx_seq.advertised = weft_seq_end(&me->rx_seq);
	me->rx_am_seq.advertised = weft_seq_end(&me->rx_am_seq);
	me->rx_window_advertised = me->rx_window;
	set_low(me);
	*credit = (struct weft_wire_credit){
		.bytes = weft_put64(me->rx_advertised),
		.seq = weft_put32(me->rx_seq.advertised),
		.small = weft_put32(me->rx_small_advertised),
		.am_seq = weft_put32(me->rx_am_seq.advertised),
	};
}

void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_msg_worker *mw = me->mw;

	if (me->rx_window == 0) {
		me->rx_window = weft_credit_pool_join(&mw->credit_bytes);
		me->rx_small_window = (uint32_t)weft_credit_pool_join(&mw->credit_msgs);
		me->rx_allowed = me->rx_window;
		me->rx_small_allowed = me->rx_small_window;
	}
	mark_advertised(me, credit);
}

/* A peer that has used half of its window may get a larger one. */
static void window_grow(struct weft_msg_ep *me)
{
	uint64_t more = 0;

	if ((int64_t)(me->rx_used - me->rx_low) >= 0)
		more = weft_credit_pool_grow(&me->mw->credit_bytes, me->rx_window);
	me->rx_window += more;
	me->rx_allowed += more;
	more = 0;
	if ((int32_t)(me->rx_small - me->rx_small_low) >= 0)
		more = weft_credit_pool_grow(&me->mw->credit_msgs, me->rx_small_window);
	me->rx_small_window += (uint32_t)more;
	me->rx_small_allowed += (uint32_t)more;
}

/*
 * When the pool is nearly empty, a window above the even share shrinks: returned credit is not
 * advertised again.
 */
static void window_shrink(struct weft_msg_ep *me)
{
	uint64_t kept;

	kept = weft_credit_pool_keep(&me->mw->credit_bytes, me->rx_window,
				     me->rx_allowed - me->rx_advertised);
	me->rx_window -= kept;
	me->rx_allowed -= kept;
	me->rx_shrunk = me->rx_shrunk || kept > 0;
	kept = weft_credit_pool_keep(&me->mw->credit_msgs, me->rx_small_window,
				     me->rx_small_allowed - me->rx_small_advertised);
	me->rx_small_window -= (uint32_t)kept;
	me->rx_small_allowed -= (uint32_t)kept;
}

void weft_credit_send(struct weft_msg_ep *me)
{
	struct weft_wire_credit_window c = {
		.credit = {.bytes = weft_put64(me->rx_allowed),
			   .seq = weft_put32(weft_seq_end(&me->rx_seq)),
			   .small = weft_put32(me->rx_small_allowed),
			   .am_seq = weft_put32(weft_seq_end(&me->rx_am_seq))},
		.type = weft_put16(WEFT_MSG_RECORD_WINDOW),
		.length = weft_put16(sizeof(c.window)),
		.window = weft_put64(me->rx_window),
	};
	size_t length = me->rx_shrunk ? sizeof(c) : sizeof(c.credit);

	/* If no lane has room, or too many control messages wait, CREDIT is sent later. */
	me->credit_due = !me->failed && (me->num_ctl > WEFT_CTL_HELD ||
					 weft_tx_envelope_any(me, WEFT_WIRE_CREDIT, &c, length));
	if (me->credit_due)
		weft_tx_kick(me);
	else if (!me->failed)
		mark_advertised(me, &c.credit);
}

void weft_credit_look(struct weft_msg_ep *me)
{
	uint64_t bytes = me->rx_allowed;
	uint32_t small = me->rx_small_allowed;

	if (me->credit_due || me->failed)
		return;
	window_grow(me);
	if (me->rx_allowed == bytes && me->rx_small_allowed == small)
		window_shrink(me);
	/* Without a CREDIT message the next check comes when half a window more is used. */
	me->rx_low = me->rx_used + me->rx_window / 2 + 1;
	me->rx_small_low = me->rx_small + me->rx_small_window / 2 + 1;
	if (me->rx_allowed != me->rx_advertised ||
	    me->rx_small_allowed != me->rx_small_advertised ||
	    weft_seq_end(&me->rx_seq) != me->rx_seq.advertised ||
	    weft_seq_end(&me->rx_am_seq) != me->rx_am_seq.advertised ||
	    (me->rx_shrunk && me->rx_window != me->rx_window_advertised))
		weft_credit_send(me);
}

/*
 * Reads the size of the window that the peer grants this end. The peer reports it in CREDIT after
 * it has shrunk the window. CREDIT messages may overtake each other. The total of credit is the
 * window and all bytes matched so far, and neither the total nor the bytes matched ever fall. So of
 * two messages with the same total, the one with the smaller window is the later one.
 */
static bool read_window_record(const struct weft_wire_credit_window *c, size_t length,
			       uint64_t *window)
{
	if (length < sizeof(*c) || weft_get16(c->type) != WEFT_MSG_RECORD_WINDOW ||
	    weft_get16(c->length) < sizeof(c->window))
		return false;
	*window = weft_get64(c->window);
	return true;
}

void weft_credit_recv(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_credit *c = data;
	uint64_t bytes = weft_get64(c->bytes);
	uint32_t seq = weft_get32(c->seq), small = weft_get32(c->small);
	uint32_t am_seq = weft_get32(c->am_seq);
	int64_t more = (int64_t)(bytes - me->tx_credit);
	uint64_t window;

	if (more > 0)
		me->tx_credit = bytes;
	if (read_window_record(data, sizeof(*c) + payload, &window)) {
		if (more > 0 || (more == 0 && window < me->tx_window))
			me->tx_window = window;
	} else if (me->tx_credit - me->tx_used > me->tx_window) {
		me->tx_window = me->tx_credit - me->tx_used;
	}
	/* The limits stay at most a window ahead of what is sent, whatever the peer advertises. */
	if ((int32_t)(seq - me->tx_seq_end) > 0 && seq - me->tx_seq <= WEFT_SEQ_WINDOW)
		me->tx_seq_end = seq;
	if ((int32_t)(am_seq - me->tx_am_seq_end) > 0 && am_seq - me->tx_am_seq <= WEFT_SEQ_WINDOW)
		me->tx_am_seq_end = am_seq;
	if ((int32_t)(small - me->tx_small_end) > 0 && small - me->tx_small <= WEFT_SMALL_WINDOW)
		me->tx_small_end = small;
	if (!TAILQ_EMPTY(&me->pending))
		weft_tx_kick(me);
}

void weft_credit_fini(struct weft_msg_ep *me)
{
	if (me->rx_window == 0)
		return;
	weft_credit_pool_leave(&me->mw->credit_bytes, me->rx_window);
	weft_credit_pool_leave(&me->mw->credit_msgs, me->rx_small_window);
	me->rx_window = 0;
}

void weft_credit_left(struct weft_msg_worker *mw, uint64_t total, bool more)
{
	bool counted = total <= WEFT_EAGER_FREE;
	struct weft_credit_pool *p = counted ? &mw->credit_msgs : &mw->credit_bytes;
	uint64_t n = counted ? 1 : total;

	p->granted = more ? p->granted + n : p->granted - n;
}

/* ------------------------------------------------------------------ received bytes */

/*
 * Received ranges are kept of a message in pieces, of a rendezvous' data, and of the reply to a
 * get. WEFT_RX_RANGES_LIMIT explains their limits.
 */

/* @return the endpoint of the worker that has the most ranges; @p me unless another has more */
static struct weft_msg_ep *most_fragmented(struct weft_msg_ep *me)
{
	struct weft_msg_ep *most = me;
	struct weft_ep *ep;

	LIST_FOREACH(ep, &me->mw->worker->eps, entry) {
		if (ep->msg && !ep->msg->rx_fragmented && ep->msg->rx_ranges > most->rx_ranges)
			most = ep->msg;
	}
	return most;
}

/*
 * May @p me keep its ranges? Endpoints that have more may fail instead. They fail at the end of
 * progress, since callers here expect no other endpoint to fail.
 */
static bool ranges_room(struct weft_msg_ep *me)
{
	struct weft_msg_worker *mw = me->mw;
	struct weft_msg_ep *most;

	if (me->rx_fragmented || me->rx_ranges > WEFT_IVAL_MAX)
		return false;
	while (mw->rx_ranges > WEFT_RX_RANGES_LIMIT && me->rx_ranges > WEFT_RX_RANGES_FLOOR) {
		most = most_fragmented(me);
		if (most == me)
			return false;
		mw->rx_ranges -= weft_rx_ranges_above(most);
		most->rx_fragmented = true;
		mw->count.fragmented++;
		weft_msg_fail_later(
			most, -EPROTO,
			"incomplete messages of the peer have more gaps between received bytes "
			"than its share");
	}
	return true;
}

int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len)
{
	uint32_t before = got->num, more;
	int rc = me->rx_fragmented ? -E2BIG : weft_ivals_add(got, off, off + len);

	/* The first range of a message costs no memory, and is not counted. */
	more = (got->num ? got->num - 1 : 0) - (before ? before - 1 : 0);
	weft_rx_ranges_add(me, (int32_t)more);
	if (rc == 0 && ((int32_t)more <= 0 || ranges_room(me)))
		return 0;
	if (rc == -EEXIST) {
		me->mw->count.overlap++;
	} else if (rc == -ENOMEM) {
		weft_msg_fail(me, rc, "no memory for the list of received ranges");
	} else {
		rc = -EPROTO;
		me->mw->count.fragmented += !me->rx_fragmented;
		weft_msg_fail(
			me, rc,
			"incomplete messages of the peer have more than %u gaps between received "
			"bytes, and there is no room for more",
			me->rx_ranges - 1);
	}
	return rc;
}

void weft_rx_refused(struct weft_msg_ep *me, const struct weft_seq_window *w, uint32_t seq,
		     const char *what)
{
	if (weft_seq_old(w, seq)) {
		/* This is a late piece of an aborted message, or a duplicate. */
		me->mw->count.old_seq++;
	} else if (!weft_seq_inside(w, seq)) {
		me->mw->count.far_seq++;
		weft_msg_fail(me, -EPROTO, "%s %u is beyond the window (%u is next)", what, seq,
			      w->next);
	} else {
		me->mw->count.no_credit++;
		weft_msg_fail(me, -EPROTO, "the peer sends more than it was granted");
	}
}
