/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bytes of what is coming have come, whatever it is: a message in pieces, the data of a
 * rendezvous, the answer to a get. What a peer tears into many islands costs memory that no credit
 * bounds: there is a floor for each endpoint and a limit for all (WEFT_ISLANDS_LIMIT).
 */

#include <errno.h>

#include "msg/recv.h"

/* Who has most of the worker's islands: @me, if nobody has more. */
static struct weft_msg_ep *most_torn(struct weft_msg_ep *me)
{
	struct weft_msg_ep *most = me;
	struct weft_ep *ep;

	LIST_FOREACH(ep, &me->mw->worker->eps, entry) {
		if (ep->msg && !ep->msg->rx_torn && ep->msg->rx_islands > most->rx_islands)
			most = ep->msg;
	}
	return most;
}

/* May @me have what it has? Others may have to end for it: soon, as nobody expects that here. */
static bool islands_room(struct weft_msg_ep *me)
{
	struct weft_msg_worker *mw = me->mw;
	struct weft_msg_ep *most;

	if (me->rx_torn || me->rx_islands > WEFT_IVAL_MAX)
		return false;
	while (mw->rx_islands > WEFT_ISLANDS_LIMIT && me->rx_islands > WEFT_ISLANDS_FLOOR) {
		most = most_torn(me);
		if (most == me)
			return false;
		mw->rx_islands -= weft_rx_islands_above(most);
		most->rx_torn = true;
		mw->count.torn++;
		weft_msg_fail_later(most, -EPROTO,
				    "the peer tears its messages into more islands than its share");
	}
	return true;
}

int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len)
{
	uint32_t before = got->num, more;
	int rc = me->rx_torn ? -E2BIG : weft_ivals_add(got, off, off + len);

	/* Those beyond the first of each message: they are what costs memory. */
	more = (got->num ? got->num - 1 : 0) - (before ? before - 1 : 0);
	weft_rx_islands(me, (int32_t)more);
	if (rc == 0 && ((int32_t)more <= 0 || islands_room(me)))
		return 0;
	if (rc == -EEXIST) {
		me->mw->count.overlap++;
	} else if (rc == -ENOMEM) {
		weft_msg_fail(me, rc, "no memory to keep track of what has come");
	} else {
		rc = -EPROTO;
		me->mw->count.torn += !me->rx_torn;
		weft_msg_fail(me, rc, "the peer tears its messages into more than %u islands",
			      me->rx_islands - 1);
	}
	return rc;
}
