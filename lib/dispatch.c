/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages received from lanes. A short tagged message goes to its module at once. Any other
 * message is validated and goes to its handler (lib/tables.c), wire-up messages go to the
 * connections.
 */

#include <errno.h>

#include "am/am.h"
#include "core/lane_show.h"
#include "dispatch.h"
#include "rma/rma.h"
#include "tag/tag.h"
#include "wireup/wireup.h"

/* Header length of the message behind EXT. */
static inline size_t inner_header(const struct weft_msg_ep *me, uint8_t id, const void *data)
{
	const struct weft_wire_ext *x = data;

	if (id != WEFT_WIRE_EXT)
		return 0;
	return x->id == WEFT_WIRE_PUT ? sizeof(struct weft_wire_put_note)
				      : me->mw->handlers[x->id % WEFT_HANDLERS].header;
}

static __attribute__((noinline)) void recv_by_id(struct weft_msg_ep *me, unsigned int lane,
						 uint8_t id, const void *data, size_t length)
{
	const struct weft_handler *h = &me->mw->handlers[id % WEFT_HANDLERS];
	struct weft_ep_lane_info *info = &me->ep->lane_info[lane];

	if (id >= WEFT_HANDLERS || !h->recv || h->check(id, data, length)) {
		me->mw->count.malformed++;
		weft_msg_fail(me, -EPROTO, "malformed message, id %u, %zu bytes", id, length);
		return;
	}
	length -= h->header;
	info->rx_msgs++;
	info->rx_bytes += length - inner_header(me, id, data);
	weft_msg_ep_hold(me);
	h->recv(me, data, length);
	weft_msg_ep_release(me);
}

/*
 * EXT in front of EAGER, well-formed: short messages with a channel or immediate data.
 * weft_wire_check() validates the other forms of EXT.
 */
static inline bool is_ext_eager(const void *data, size_t length)
{
	const struct weft_wire_ext *x = data;

	return length >= sizeof(*x) + sizeof(struct weft_wire_eager) && x->id == WEFT_WIRE_EAGER &&
	       !weft_get16(x->reserved) &&
	       (x->flags == WEFT_EXT_F_IMM || (x->flags == 0 && !weft_get64(x->imm)));
}

/* A short message with a channel: the same result as that of recv_by_id(). */
static void recv_ext_eager(struct weft_msg_ep *me, unsigned int lane, const void *data,
			   size_t length)
{
	struct weft_ep_lane_info *info = &me->ep->lane_info[lane];

	length -= sizeof(struct weft_wire_ext) + sizeof(struct weft_wire_eager);
	info->rx_msgs++;
	info->rx_bytes += length;
	weft_msg_ep_hold(me);
	weft_tag_recv_eager_ext(me, data, length);
	weft_msg_ep_release(me);
}

static inline void msg_recv(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
			    size_t length)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_ep_lane_info *info;

	if (me->failed)
		return;
	if (id != WEFT_WIRE_EAGER || length < sizeof(struct weft_wire_eager)) {
		if (id == WEFT_WIRE_EXT && is_ext_eager(data, length))
			recv_ext_eager(me, lane, data, length);
		else
			recv_by_id(me, lane, id, data, length);
		return;
	}
	length -= sizeof(struct weft_wire_eager);
	info = &ep->lane_info[lane];
	info->rx_msgs++;
	info->rx_bytes += length;
	weft_msg_ep_hold(me);
	weft_tag_recv_eager(me, data, length);
	weft_msg_ep_release(me);
}

void weft_msg_recv(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
		   size_t length)
{
	msg_recv(ep, lane, id, data, length);
}

/* The hot receive path: one load of the ep, one of its bits. */
int weft_worker_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t id, const void *data,
		     size_t length, void *desc)
{
	struct weft_ep *ep = lane_ep->user;

	if (weft_lanes_are_shown())
		weft_shown_recv(lane_ep, id, data, length);
	if (__builtin_expect(!ep || id == WEFT_WIRE_WIREUP ||
				     !(ep->lanes_up >> (lane_ep->index & 31) & 1),
			     0))
		return weft_wireup_recv(arg, lane_ep, id, data, length, desc);
	msg_recv(ep, lane_ep->index, id, data, length);
	return 0;
}

/* Captures get each message, and wire-up may still be under way: both have the callback above. */
unsigned int weft_worker_recv_batch(struct weft_lane_ep *lane_ep, const struct weft_lane_msg *msgs,
				    unsigned int num)
{
	struct weft_ep *ep = lane_ep->user;

	if (weft_lanes_are_shown() || !ep || !(ep->lanes_up >> (lane_ep->index & 31) & 1))
		return 0;
	return weft_tag_recv_batch(ep->msg, lane_ep->index, msgs, num);
}

void weft_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_abort *abort = data;

	if (abort->rreq.generation.v)
		weft_rndv_recv_abort(me, data, payload);
	else if (weft_get32(abort->flags) & WEFT_ABORT_F_AM)
		weft_am_recv_abort(me, data, payload);
	else
		weft_tag_recv_abort(me, data, payload);
}

static bool is_am(uint8_t id, const void *data)
{
	const struct weft_wire_abort *abort = data;

	if (id == WEFT_WIRE_ABORT)
		return weft_get32(abort->flags) & WEFT_ABORT_F_AM;
	return id == WEFT_WIRE_AM || id == WEFT_WIRE_AM_FRAG || id == WEFT_WIRE_AM_RTS;
}

void weft_recv_ext(struct weft_msg_ep *me, const void *data, size_t length)
{
	const struct weft_wire_ext *w = data;
	const struct weft_ext x = weft_ext_from_wire(w);
	const struct weft_wire_abort *abort = (const void *)(w + 1);
	size_t payload = length - inner_header(me, WEFT_WIRE_EXT, data);

	if (w->id == WEFT_WIRE_PUT)
		weft_rma_recv_put_note(me, (const void *)(w + 1), payload, &x);
	/* The ABORT of an active message, or of requested data, needs no field of EXT. */
	else if (w->id == WEFT_WIRE_ABORT && (is_am(w->id, abort) || abort->rreq.generation.v))
		weft_recv_abort(me, abort, payload);
	else if (is_am(w->id, w + 1))
		weft_am_recv_ext(me, w->id, w + 1, payload, &x);
	else
		weft_tag_recv_ext(me, w->id, w + 1, payload, &x);
}
