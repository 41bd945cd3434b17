/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a peer may send unasked.
 *
 * A window of eager bytes per peer, out of the worker's WEFT_UNEXP_LIMIT: a new peer gets at most a
 * quarter of what is left, at most WEFT_EAGER_CREDIT. A message of more than WEFT_EAGER_FREE bytes
 * is booked with its whole length when it begins, at both ends, and comes back whole at its match:
 * from then on its bytes go to the user. So what a peer has in our memory never exceeds its window,
 * and the sum of windows never the limit. Shorter messages are counted instead, WEFT_SMALL_WINDOW
 * of them, so that envelopes are bounded too.
 *
 * All values told are totals since the connection was made: CREDIT messages may overtake each
 * other.
 */

#include "msg.h"

void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_msg_worker *mw = me->mw;
	uint64_t left = mw->granted < mw->conf.unexp_limit ? mw->conf.unexp_limit - mw->granted : 0;

	if (me->rx_window == 0) {
		me->rx_window = left / 4 < mw->conf.eager_credit ? left / 4 : mw->conf.eager_credit;
		mw->granted += me->rx_window;
		me->rx_allowed = me->rx_window;
	}
	me->rx_told = me->rx_allowed;
	me->rx_seq_told = me->rx_seq + WEFT_SEQ_WINDOW;
	me->rx_small_told = me->rx_small_allowed;
	me->rx_am_told = me->rx_am_seq + WEFT_SEQ_WINDOW;
	*credit = (struct weft_wire_credit){
		.bytes = weft_put64(me->rx_told),
		.seq = weft_put32(me->rx_seq_told),
		.small = weft_put32(me->rx_small_told),
		.am_seq = weft_put32(me->rx_am_told),
	};
}

void weft_credit_send(struct weft_msg_ep *me)
{
	struct weft_wire_credit c = {
		.bytes = weft_put64(me->rx_allowed),
		.seq = weft_put32(me->rx_seq + WEFT_SEQ_WINDOW),
		.small = weft_put32(me->rx_small_allowed),
		.am_seq = weft_put32(me->rx_am_seq + WEFT_SEQ_WINDOW),
	};

	if (me->failed)
		return;
	/* Without room it is tried again with the values of then. */
	me->credit_due = weft_tx_envelope_any(me, WEFT_WIRE_CREDIT, &c, sizeof(c)) != 0;
	if (me->credit_due) {
		weft_tx_kick(me);
		return;
	}
	me->rx_told = me->rx_allowed;
	me->rx_small_told = me->rx_small_allowed;
	me->rx_seq_told = me->rx_seq + WEFT_SEQ_WINDOW;
	me->rx_am_told = me->rx_am_seq + WEFT_SEQ_WINDOW;
}

void weft_credit_recv(struct weft_msg_ep *me, const struct weft_wire_credit *c)
{
	uint64_t bytes = weft_get64(c->bytes);
	uint32_t seq = weft_get32(c->seq), small = weft_get32(c->small);
	uint32_t am_seq = weft_get32(c->am_seq);

	if ((int64_t)(bytes - me->tx_credit) > 0)
		me->tx_credit = bytes;
	/* Never more than a window ahead of what we have sent, whatever the peer says. */
	if ((int32_t)(seq - me->tx_seq_end) > 0 && seq - me->tx_seq <= WEFT_SEQ_WINDOW)
		me->tx_seq_end = seq;
	if ((int32_t)(am_seq - me->tx_am_seq_end) > 0 && am_seq - me->tx_am_seq <= WEFT_SEQ_WINDOW)
		me->tx_am_seq_end = am_seq;
	if ((int32_t)(small - me->tx_small_end) > 0 && small - me->tx_small <= WEFT_SMALL_WINDOW)
		me->tx_small_end = small;
	if (!TAILQ_EMPTY(&me->pending))
		weft_tx_kick(me);
}

void weft_credit_fini(struct weft_msg_ep *me, uint64_t left)
{
	me->mw->granted -= me->rx_window;
	me->mw->granted += left;
	me->rx_window = 0;
}
