/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bytes have come of a message in pieces, of a rendezvous' data, or of the reply to a get.
 * The received ranges of a fragmented message cost memory that no credit bounds. There is a floor
 * for each endpoint and a limit for all (WEFT_RX_RANGES_LIMIT).
 */

#include <errno.h>

#include "msg/receive.h"

/* The endpoint with the most ranges of this worker; @me unless another one has more. */
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
 * May @me have its ranges? Endpoints with more may have to fail for it: at the end of progress,
 * since callers here expect no other endpoint to fail.
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
			"the peer fragments its messages into more ranges than its share");
	}
	return true;
}

int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len)
{
	uint32_t before = got->num, more;
	int rc = me->rx_fragmented ? -E2BIG : weft_ivals_add(got, off, off + len);

	/* Ranges beyond the first of each message: only these cost memory. */
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
		weft_msg_fail(me, rc, "the peer fragments its messages into more than %u ranges",
			      me->rx_ranges - 1);
	}
	return rc;
}

void weft_rx_refused(struct weft_msg_ep *me, const struct weft_seq_window *w, uint32_t seq,
		     const char *what)
{
	if (weft_seq_old(w, seq)) {
		/* The rest of an aborted message, or a duplicate of a message. */
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
