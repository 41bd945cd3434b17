/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short messages of a frame, received in one call. A message is taken as long as it is in
 * sequence, expected by a receive of the most common kind (weft_match_take_first()), and fits the
 * buffer of that receive. Any other message ends the batch: it goes the general way (tag/recv.c),
 * which also detects what is malformed.
 */

#include "base/copy.h"
#include "tag/tag.h"

/* What all messages of a batch have in common. */
struct batch {
	struct weft_msg_ep *me;
	struct weft_ep *ep;
	struct weft_completion c;
	uint32_t bytes;
};

/* @return the receive of the message, unposted; NULL = the message goes the general way */
static inline struct weft_request *take(struct weft_msg_ep *me, const struct weft_lane_msg *msg)
{
	struct weft_tag_worker *tw = me->mw->tag;
	const struct weft_wire_eager *e = msg->data;
	struct weft_match_recv *r;
	struct weft_request *req;

	/* A message that the peer must not send yet is refused by the general way. */
	if (msg->length < sizeof(*e) || msg->length - sizeof(*e) > WEFT_EAGER_FREE ||
	    weft_get32(e->seq) != me->rx_seq.next || me->rx_seq.next == me->rx_seq.advertised ||
	    me->rx_small == me->rx_small_advertised || me->tag->ahead)
		return NULL;
	r = weft_match_take_first(&tw->match, &me->tag->source->match, weft_get64(e->tag));
	if (!r)
		return NULL;
	req = weft_tag_req_of(r);
	req->flags &= ~WEFT_REQ_POSTED;
	me->rx_seq.next++;
	me->rx_small++;
	me->rx_small_allowed++;
	return req;
}

/* The receive is of the kind that complete_plain() completes. */
static inline bool is_plain(const struct weft_request *req, size_t len)
{
	return req->dt.dt_class == WEFT_DT_CONTIG && len <= req->dt.length &&
	       req->status == WEFT_INPROGRESS;
}

/* weft_recv_matched(), weft_recv_place() and weft_recv_done(), for a plain receive. */
static inline void complete_plain(struct batch *b, struct weft_request *req, uint64_t tag,
				  const void *payload, size_t len)
{
	struct weft_ep *ep = b->ep;

	weft_copy(req->dt.buf, payload, len);
	b->bytes += (uint32_t)len;
	req->status = 0;
	req->flags |= WEFT_REQ_DONE;
	if (req->flags & WEFT_REQ_HELD) {
		req->tag = tag;
		req->length = len;
		req->source_id = ep->remote_id;
		req->ep_slot = ep->slot;
		req->ep_generation = ep->generation;
	}
	if (req->cb) {
		b->c.tag = tag;
		b->c.length = len;
		req->flags |= WEFT_REQ_CALLING;
		req->cb(req->flags & WEFT_REQ_HELD ? req : NULL, &b->c, req->cb_arg);
		req->flags &= ~WEFT_REQ_CALLING;
	}
	if (!(req->flags & WEFT_REQ_HELD))
		weft_request_give_back(req);
}

/* The counters of messages received by complete_plain(). */
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
	struct batch b = {.me = me, .ep = me->ep};
	unsigned int n = 0, plain = 0;

	if (me->failed || me->mw->fini)
		return 0;
	b.c = (struct weft_completion){
		.size = sizeof(b.c),
		.ep = weft_ep_of_user(b.ep),
		.source_id = b.ep->remote_id,
	};
	weft_msg_ep_hold(me);
	do {
		const struct weft_wire_eager *e = msgs[n].data;
		size_t len = msgs[n].length - sizeof(*e);
		struct weft_request *req = take(me, &msgs[n]);

		if (!req)
			break;
		if (__builtin_expect(is_plain(req, len), 1)) {
			complete_plain(&b, req, weft_get64(e->tag), e + 1, len);
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
