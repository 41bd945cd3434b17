/* SPDX-License-Identifier: BSD-3-Clause */

#include "dispatch.h"

#include <errno.h>

#include "am/am.h"
#include "core/lane_show.h"
#include "rma/rma.h"
#include "rndv/rndv.h"
#include "tag/tag.h"
#include "wireup/wireup.h"

/* ------------------------------------------------------------------ from a lane to a module */

/*
 * Messages received from lanes. An eager tagged message (EAGER, also behind EXT) goes to its module
 * at once. Any other message is validated and goes to its handler (the tables below). Wire-up
 * messages, and messages before the lane is up, go to wireup/.
 */

/* @return the header length of the message behind EXT; 0: @p id is not EXT */
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
		weft_msg_fail(me, -EPROTO,
			      "the peer sent a malformed message of id %u and %zu bytes", id,
			      length);
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

/*
 * A message for which is_ext_eager() is true: faster than recv_by_id(), with the same result.
 * @return 0
 */
static inline int recv_ext_eager(struct weft_ep *ep, unsigned int lane, const void *data,
				 size_t length)
{
	struct weft_ep_lane_info *info = &ep->lane_info[lane];

	length -= sizeof(struct weft_wire_ext) + sizeof(struct weft_wire_eager);
	info->rx_msgs++;
	info->rx_bytes += length;
	return weft_tag_recv_eager_ext(ep->msg, data, length);
}

static __attribute__((noinline)) void msg_recv(struct weft_ep *ep, unsigned int lane, uint8_t id,
					       const void *data, size_t length)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_ep_lane_info *info;

	if (me->failed)
		return;
	if (id != WEFT_WIRE_EAGER || length < sizeof(struct weft_wire_eager)) {
		if (id == WEFT_WIRE_EXT && is_ext_eager(data, length))
			recv_ext_eager(ep, lane, data, length);
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

static __attribute__((noinline)) int recv_other(void *arg, struct weft_lane_ep *lane_ep, uint8_t id,
						const void *data, size_t length)
{
	struct weft_ep *ep = lane_ep->user;

	if (weft_lanes_are_shown())
		weft_shown_recv(lane_ep, id, data, length);
	if (__builtin_expect(!ep || id == WEFT_WIRE_WIREUP ||
				     !(ep->lanes_up >> (lane_ep->index & 31) & 1),
			     0))
		return weft_wireup_recv(arg, lane_ep, id, data, length);
	msg_recv(ep, lane_ep->index, id, data, length);
	return 0;
}

int weft_worker_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t id, const void *data,
		     size_t length, void *desc)
{
	struct weft_ep *ep = lane_ep->user;

	/* Calls at the end only: the common case needs no stack frame. */
	if (id == WEFT_WIRE_EXT && ep && ep->lanes_up >> (lane_ep->index & 31) & 1 &&
	    !ep->msg->failed && !weft_lanes_are_shown() && is_ext_eager(data, length))
		return recv_ext_eager(ep, lane_ep->index, data, length);
	return recv_other(arg, lane_ep, id, data, length);
}

/*
 * Take no message while a capture records messages, or before the lane is up: the driver then
 * passes each message to weft_worker_recv().
 */
unsigned int weft_worker_recv_batch(struct weft_lane_ep *lane_ep, const struct weft_lane_msg *msgs,
				    unsigned int num)
{
	struct weft_ep *ep = lane_ep->user;

	if (weft_lanes_are_shown() || !ep || !(ep->lanes_up >> (lane_ep->index & 31) & 1))
		return 0;
	return weft_tag_recv_batch(ep->msg, lane_ep->index, msgs, num);
}

/*
 * As recv_by_id(), for a payload that may change. It leaves a malformed message for recv_by_id(),
 * which reports it.
 */
bool weft_worker_recv_in_place(struct weft_lane_ep *lane_ep, uint8_t id, const void *head,
			       size_t head_len, const void *shared, size_t length)
{
	struct weft_ep *ep = lane_ep->user;
	unsigned int lane = lane_ep->index;
	const struct weft_handler *h;
	bool before = weft_dt_in_place;
	struct weft_msg_ep *me;

	if (weft_lanes_are_shown() || !ep || !(ep->lanes_up >> (lane & 31) & 1) || ep->msg->failed)
		return false;
	me = ep->msg;
	h = &me->mw->handlers[id % WEFT_HANDLERS];
	if (id >= WEFT_HANDLERS || !h->recv_in_place || head_len < h->header ||
	    h->check(id, head, length))
		return false;
	length -= h->header;
	ep->lane_info[lane].rx_msgs++;
	ep->lane_info[lane].rx_bytes += length;
	weft_msg_ep_hold(me);
	weft_dt_in_place = true;
	h->recv_in_place(me, head, (const uint8_t *)shared + h->header, length);
	weft_dt_in_place = before;
	weft_msg_ep_release(me);
	return true;
}

/* The handler of ABORT, which passes the message to the module that it concerns. */
static void recv_abort(struct weft_msg_ep *me, const void *data, size_t payload)
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

/* The handler of EXT: passes the message behind it to its module, with the fields of EXT. */
static void recv_ext(struct weft_msg_ep *me, const void *data, size_t length)
{
	const struct weft_wire_ext *w = data;
	const struct weft_ext x = weft_ext_from_wire(w);
	const struct weft_wire_abort *abort = (const void *)(w + 1);
	size_t payload = length - inner_header(me, WEFT_WIRE_EXT, data);

	if (w->id == WEFT_WIRE_PUT)
		weft_rma_recv_put_note(me, (const void *)(w + 1), payload, &x);
	/* ABORT of an active message, or of data that the receiver requested, needs no EXT. */
	else if (w->id == WEFT_WIRE_ABORT && (is_am(w->id, abort) || abort->rreq.generation.v))
		recv_abort(me, abort, payload);
	else if (is_am(w->id, w + 1))
		weft_am_recv_ext(me, w->id, w + 1, payload, &x);
	else
		weft_tag_recv_ext(me, w->id, w + 1, payload, &x);
}

/* ------------------------------------------------------------------ tables */

/*
 * The only list of protocols, modules and messages. (context.c has the drivers, because the build
 * decides which of them exist.)
 */

/* Of protocols with equal times the first is chosen. */
/* clang-format off */
static const struct weft_proto *const protos[] = {
	&weft_proto_eager_short,
	&weft_proto_eager_bcopy,
	&weft_proto_eager_zcopy,
	&weft_proto_multi_eager,
	&weft_proto_rndv_get,
	&weft_proto_rndv_pull,
	&weft_proto_rndv_put,
	&weft_proto_rndv_am,
	&weft_proto_data_get,
	&weft_proto_data_pull,
	&weft_proto_data_put,
	&weft_proto_data_am,
	&weft_proto_put_native,
	&weft_proto_put_am,
	&weft_proto_get_native,
	&weft_proto_get_am,
	&weft_proto_amo_native,
	&weft_proto_amo_am,
	NULL,
};
/* clang-format on */

/* Hooks are called in this order: a module follows the modules that it uses. */
static const struct weft_module *const modules[] = {
	&weft_rndv_module, &weft_tag_module, &weft_am_module, &weft_rma_module, NULL,
};

#define MESSAGE(type, function)                                                           \
	{                                                                                 \
		.header = sizeof(struct type), .check = weft_wire_check, .recv = function \
	}

/* A message whose payload is only copied. */
#define BULK(type, function)                                                               \
	{                                                                                  \
		.header = sizeof(struct type), .check = weft_wire_check, .recv = function, \
		.recv_in_place = function##_in_place                                       \
	}

static const struct weft_handler handlers[WEFT_HANDLERS] = {
	[WEFT_WIRE_EAGER] = BULK(weft_wire_eager, weft_tag_recv_eager),
	[WEFT_WIRE_EAGER_SYNC] = MESSAGE(weft_wire_eager_sync, weft_tag_recv_eager_sync),
	[WEFT_WIRE_FRAG] = BULK(weft_wire_frag, weft_tag_recv_frag),
	[WEFT_WIRE_FRAG_SYNC] = MESSAGE(weft_wire_frag_sync, weft_tag_recv_frag_sync),
	[WEFT_WIRE_RTS] = MESSAGE(weft_wire_rts, weft_tag_recv_rts),
	[WEFT_WIRE_RTR] = MESSAGE(weft_wire_rtr, weft_rndv_recv_rtr),
	[WEFT_WIRE_DATA] = BULK(weft_wire_data, weft_rndv_recv_data),
	[WEFT_WIRE_ATS] = MESSAGE(weft_wire_ats, weft_rndv_recv_ats),
	[WEFT_WIRE_SYNC_ACK] = MESSAGE(weft_wire_ats, weft_rndv_recv_sync_ack),
	[WEFT_WIRE_CREDIT] = MESSAGE(weft_wire_credit, weft_credit_recv),
	[WEFT_WIRE_ABORT] = MESSAGE(weft_wire_abort, recv_abort),
	[WEFT_WIRE_PULL] = MESSAGE(weft_wire_pull, weft_rndv_recv_pull),
	[WEFT_WIRE_WITHDRAW] = MESSAGE(weft_wire_withdraw, weft_tag_recv_withdraw),
	[WEFT_WIRE_PUT_DONE] = MESSAGE(weft_wire_put_done, weft_rndv_recv_put_done),
	[WEFT_WIRE_AM] = MESSAGE(weft_wire_am, weft_am_recv_whole),
	[WEFT_WIRE_AM_RTS] = MESSAGE(weft_wire_am_rts, weft_am_recv_rts),
	[WEFT_WIRE_AM_FRAG] = MESSAGE(weft_wire_am_frag, weft_am_recv_frag),
	[WEFT_WIRE_EXT] = MESSAGE(weft_wire_ext, recv_ext),
	[WEFT_WIRE_PUT] = BULK(weft_wire_put, weft_rma_recv_put),
	[WEFT_WIRE_GET] = MESSAGE(weft_wire_get, weft_rma_recv_get),
	[WEFT_WIRE_GET_DATA] = BULK(weft_wire_data, weft_rma_recv_data),
	[WEFT_WIRE_AMO] = MESSAGE(weft_wire_amo, weft_rma_recv_amo),
	[WEFT_WIRE_AMO_REP] = MESSAGE(weft_wire_amo_rep, weft_rma_recv_amo_rep),
	[WEFT_WIRE_RMA_NAK] = MESSAGE(weft_wire_rma_nak, weft_rma_recv_nak),
	[WEFT_WIRE_RMA_FLUSH] = MESSAGE(weft_wire_rma_flush, weft_rma_recv_flush),
	[WEFT_WIRE_AMOV] = MESSAGE(weft_wire_amov, weft_rma_recv_amov),
	[WEFT_WIRE_AMOV_REP] = MESSAGE(weft_wire_data, weft_rma_recv_amov_rep),
	[WEFT_WIRE_KEY_REQ] = MESSAGE(weft_wire_key_req, weft_rma_recv_key_req),
	[WEFT_WIRE_KEY] = MESSAGE(weft_wire_key, weft_rma_recv_key),
	[WEFT_WIRE_RMA_FLUSHED] = MESSAGE(weft_wire_rma_flushed, weft_rma_recv_flushed),
};

const struct weft_tables weft_tables = {
	.protos = protos,
	.modules = modules,
	.handlers = handlers,
};
