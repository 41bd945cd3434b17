/* SPDX-License-Identifier: BSD-3-Clause */
/* The tagged-message calls of weft_msg.h, and the state of a worker and of an endpoint. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/lane_show.h"
#include "tag/match.h"
#include "tag/recv.h"
#include "tag/tag.h"
#include "tag/unexpected.h"

#define likely(x) __builtin_expect(!!(x), 1)

/* ------------------------------------------------------------------ send */

static int describe_send(const struct weft_request *req, char *buf, size_t size)
{
	return weft_send_describe(req,
				  req->flags & WEFT_REQ_SYNC ? "tag synchronous send" : "tag send",
				  "tag", buf, size);
}

static const struct weft_request_ops send_ops = {
	.release = weft_send_release,
	.cancel = weft_send_cancel,
	.describe = describe_send,
	.check = weft_send_check,
};

static int send_new(struct weft_ep *ep, const void *buffer, size_t count, uint64_t tag,
		    const struct weft_op_params *params, uint32_t flags, struct weft_request **out)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_request *req;
	int rc;

	if (weft_op_params_allow(params, WEFT_OPS_SEND))
		return -EINVAL;
	rc = weft_msg_ep_check(ep);
	if (rc)
		return rc;
	req = weft_request_alloc(me->mw, &send_ops, params, out != NULL);
	if (!req)
		return -ENOMEM;
	rc = weft_send_data(req, params, buffer, count, false);
	if (rc) {
		weft_request_drop(req);
		return rc;
	}
	req->flags |= flags;
	req->op = flags & WEFT_REQ_SYNC ? WEFT_OP_TAG_SEND_SYNC : WEFT_OP_TAG_SEND;
	req->me = me;
	req->tag = tag;
	weft_ext_of_send(&req->ext, params);
	req->length = req->dt.length;
	req->send.proto = NULL;
	req->send.peer = (struct weft_wire_ref){{0}, {0}};
	req->send.zcopies = 0;
	req->send.offset = 0;
	rc = weft_tx_start(req);
	if (out)
		*out = rc == WEFT_INPROGRESS ? req : NULL;
	return rc;
}

/* The short send with EXT in front. @return false: use the general send */
static __attribute__((noinline)) bool send_short_ext(struct weft_msg_ep *me, const void *buffer,
						     size_t count, uint64_t tag, size_t end,
						     const struct weft_op_params *params)
{
	struct weft_lane_ep *lane_ep = me->short_lane_ep;
	struct weft_ext x = {0};
	struct {
		struct weft_wire_ext x;
		struct weft_wire_eager e;
	} __attribute__((packed)) hdr;

	weft_ext_of_send(&x, params);
	if (count + sizeof(hdr.x) >= end)
		return false;
	hdr.x = weft_ext_to_wire(&x, WEFT_WIRE_EAGER);
	hdr.e = (struct weft_wire_eager){weft_put32(me->tx_seq), weft_put64(tag)};
	return weft_lane_short(lane_ep, WEFT_WIRE_EXT, &hdr, sizeof(hdr), buffer, count) == 0;
}

/* Flags that the short send obeys or implies. */
#define SHORT_FLAGS (WEFT_OP_F_IMM | WEFT_OP_F_MORE | WEFT_OP_F_INJECT | WEFT_OP_F_POLLED)

/* Do the parameters allow a short send? */
static inline bool is_short(const struct weft_op_params *params)
{
	return !params || !((params->flags & ~SHORT_FLAGS) || params->datatype ||
			    params->size < WEFT_OP_PARAMS_LEAST);
}

/* Does the message need an EXT header? */
static inline bool has_ext(const struct weft_op_params *params)
{
	return params && params->size >= sizeof(*params) &&
	       ((params->flags & WEFT_OP_F_IMM) | params->channel | params->source_channel);
}

static __attribute__((noinline)) void leave_posted(struct weft_msg_ep *me,
						   const struct weft_op_params *params)
{
	weft_worker_posted(me->mw->worker, params);
}

/*
 * All of the short send: it uses one cache line of the endpoint, plus the lane's and its counters.
 * @p end: shorter messages can be sent. It is 0 while anything of the endpoint waits, so that the
 * message overtakes nothing.
 */
static inline __attribute__((always_inline)) bool send_short(struct weft_msg_ep *me,
							     const void *buffer, size_t count,
							     uint64_t tag, size_t end,
							     const struct weft_op_params *params)
{
	struct weft_wire_eager hdr;
	bool sent;

	/* First, because with WEFT_THREAD_MULTI only the owner of the lock may read the rest. */
	if (__builtin_expect(count >= end, 0))
		return false;
	hdr = (struct weft_wire_eager){weft_put32(me->tx_seq), weft_put64(tag)};
	if (__builtin_expect(weft_dt_calls || me->tx_seq == me->tx_seq_end ||
				     me->tx_small == me->tx_small_end || (!buffer && count) ||
				     !is_short(params),
			     0))
		return false;
	if (likely(!has_ext(params)))
		sent = weft_lane_short(me->short_lane_ep, WEFT_WIRE_EAGER, &hdr, sizeof(hdr),
				       buffer, count) == 0;
	else
		sent = send_short_ext(me, buffer, count, tag, end, params);
	if (!likely(sent))
		return false;
	WEFT_PROBE5(post, NULL, WEFT_OP_TAG_SEND, me, tag, count);
	me->tx_seq++;
	me->tx_small++;
	me->short_count->tx_msgs++;
	me->short_count->tx_bytes += count;
	return true;
}

struct whole {
	struct weft_wire_eager hdr;
	const void *buffer;
	size_t count;
};

static ssize_t pack_whole(void *dst, size_t max, void *arg)
{
	const struct whole *m = arg;

	if (max < sizeof(m->hdr) + m->count)
		return -EMSGSIZE;
	memcpy(dst, &m->hdr, sizeof(m->hdr));
	memcpy((uint8_t *)dst + sizeof(m->hdr), m->buffer, m->count);
	return (ssize_t)(sizeof(m->hdr) + m->count);
}

/* Send a message of more than WEFT_EAGER_FREE whole, copied by its lane. It needs no request. */
static bool send_copied(struct weft_msg_ep *me, const void *buffer, size_t count, uint64_t tag,
			const struct weft_op_params *params)
{
	struct weft_msg_lane *l = &me->lanes[me->am_lane];
	struct whole m = {{weft_put32(me->tx_seq), weft_put64(tag)}, buffer, count};
	bool sent;

	if (count <= WEFT_EAGER_FREE || count >= me->copied_end ||
	    count > me->tx_credit - me->tx_used || me->tx_seq == me->tx_seq_end || !buffer ||
	    !is_short(params) || has_ext(params))
		return false;
	if (sizeof(m.hdr) + count <= l->max_short)
		sent = weft_lane_short(l->lane_ep, WEFT_WIRE_EAGER, &m.hdr, sizeof(m.hdr), buffer,
				       count) == 0;
	else
		sent = weft_lane_bcopy(l->lane_ep, WEFT_WIRE_EAGER, pack_whole, &m) >= 0;
	if (!sent)
		return false;
	WEFT_PROBE5(post, NULL, WEFT_OP_TAG_SEND, me, tag, count);
	me->tx_seq++;
	me->tx_used += count;
	l->sent += sizeof(m.hdr) + count;
	me->short_count->tx_msgs++;
	me->short_count->tx_bytes += count;
	me->mw->count.copied_bytes += count;
	return true;
}

static int send_locked(struct weft_ep *ep, const void *buffer, size_t count, uint64_t tag,
		       const struct weft_op_params *params, uint32_t flags,
		       struct weft_request **out)
{
	struct weft_worker *w = ep->worker;
	int rc;

	if (weft_dt_calls)
		return weft_dt_refuse("weft_tag_send");
	weft_worker_lock(w);
	if (flags == 0 && (send_short(ep->msg, buffer, count, tag, ep->msg->short_locked, params) ||
			   send_copied(ep->msg, buffer, count, tag, params))) {
		if (__builtin_expect(ep->msg->send_now, 0))
			weft_worker_posted(w, params);
		weft_worker_unlock(w);
		if (out)
			*out = NULL;
		return 0;
	}
	rc = send_new(ep, buffer, count, tag, params, flags, out);
	weft_worker_posted(w, params);
	weft_worker_unlock(w);
	return rc;
}

int weft_tag_send(struct weft_ep *ep, const void *buffer, size_t count, uint64_t tag,
		  const struct weft_op_params *params, struct weft_request **req)
{
	struct weft_msg_ep *me = ep->msg;

	if (likely(send_short(me, buffer, count, tag, me->short_end, params))) {
		if (__builtin_expect(me->send_now, 0))
			leave_posted(me, params);
		if (req)
			*req = NULL;
		return 0;
	}
	return send_locked(ep, buffer, count, tag, params, 0, req);
}

int weft_tag_send_sync(struct weft_ep *ep, const void *buffer, size_t count, uint64_t tag,
		       const struct weft_op_params *params, struct weft_request **req)
{
	return send_locked(ep, buffer, count, tag, params, WEFT_REQ_SYNC, req);
}

/* ------------------------------------------------------------------ receive */

static int cancel_recv(struct weft_request *req)
{
	if (!(req->flags & WEFT_REQ_POSTED))
		return -EBUSY;
	req->flags &= ~WEFT_REQ_POSTED;
	weft_match_cancel(&req->mw->tag->match, &weft_tag_recv_of(req)->match);
	req->length = 0;
	weft_request_complete(req, -ECANCELED);
	return 0;
}

static int describe_recv(const struct weft_request *req, char *buf, size_t size)
{
	const struct weft_match_recv *m = &((const struct weft_tag_recv *)req->recv.own)->match;

	if (!(req->flags & WEFT_REQ_POSTED))
		return weft_recv_describe(req, "tag", "tag", buf, size);
	return snprintf(buf, size,
			"tag receive, tag 0x%" PRIx64 " mask 0x%" PRIx64
			", room for %zu bytes, posted",
			m->tag, m->mask, req->dt.length);
}

const struct weft_request_ops weft_tag_recv_ops = {
	.cancel = cancel_recv,
	.describe = describe_recv,
};

/* Flags that limit where a receive, or a probe, searches. */
#define LOOK_FLAGS (WEFT_OP_F_SOURCE_CHANNEL | WEFT_OP_F_SOURCE_ID)

/* Flags of a receive. */
#define RECV_FLAGS (WEFT_OP_F_FORCE_REQUEST | WEFT_OP_F_LENT | LOOK_FLAGS)

/* Does the caller own the request of a receive? */
static inline bool is_held(const struct weft_op_params *params, struct weft_request **out)
{
	return out && !(params && params->flags & WEFT_OP_F_LENT);
}

static struct weft_request *recv_new(struct weft_msg_worker *mw, void *buffer, size_t count,
				     const struct weft_op_params *params, bool held, int *rc)
{
	struct weft_request *req;

	req = weft_request_alloc(mw, &weft_tag_recv_ops, params, held);
	if (!req) {
		*rc = -ENOMEM;
		return NULL;
	}
	*rc = weft_dt_init(&req->dt, params ? params->datatype : NULL, buffer, count, true);
	if (*rc == 0)
		return req;
	weft_request_drop(req);
	return NULL;
}

/* Where a receive, or a probe, searches. */
struct look {
	struct weft_tag_source *source;
	struct weft_match_chan chan;
	bool none; /* there is no source with the given id */
};

/* @return 0; -EINVAL: the parameters contradict each other */
static int look_of(struct weft_worker *worker, const struct weft_op_params *params,
		   const struct weft_ep *source, struct look *look)
{
	uint32_t flags = params ? params->flags : 0;

	*look = (struct look){.source = source ? source->msg->tag->source : NULL};
	if (!weft_op_params_short(params))
		look->chan.channel = params->channel;
	if (!(flags & LOOK_FLAGS))
		return 0;
	if (weft_op_params_short(params) || !source == !(flags & WEFT_OP_F_SOURCE_ID))
		return -EINVAL;
	if (flags & WEFT_OP_F_SOURCE_CHANNEL)
		look->chan.from = 1u + params->source_channel;
	if (!(flags & WEFT_OP_F_SOURCE_ID))
		return 0;
	look->source = weft_tag_source_find(worker->msg->tag, params->source_id);
	look->none = !look->source;
	return 0;
}

static struct weft_match_msg *look_for(struct weft_worker *worker, const struct look *look,
				       uint64_t tag, uint64_t mask)
{
	if (look->none)
		return NULL;
	return weft_match_find(&worker->msg->tag->match, look->source ? &look->source->match : NULL,
			       tag, mask, look->chan);
}

/* Receive a message that has come already. */
static int recv_message(struct weft_message *msg, struct weft_request *req,
			const struct weft_op_params *params, struct weft_request **out)
{
	weft_rx_bind(msg, req, true);
	return weft_recv_return(req, params, out);
}

static int post_recv(struct weft_msg_worker *mw, struct weft_request *req, const struct look *look,
		     uint64_t tag, uint64_t mask)
{
	struct weft_match_recv *match = &weft_tag_recv_of(req)->match;
	int rc;

	WEFT_PROBE5(post_recv, req, mw, tag, mask, req->dt.length);
	match->tag = tag;
	match->mask = mask;
	match->source = look->source ? &look->source->match : NULL;
	match->channel = look->chan.channel;
	match->from = look->chan.from;
	req->ext.channel = look->chan.channel;
	rc = weft_match_post(&mw->tag->match, match);
	if (rc)
		return rc;
	req->flags |= WEFT_REQ_POSTED;
	if (__builtin_expect(weft_match_overloaded(&mw->tag->match), 0))
		weft_tag_match_grow(mw->tag);
	return WEFT_INPROGRESS;
}

static __attribute__((noinline)) int recv_any(struct weft_worker *worker, struct weft_ep *source,
					      void *buffer, size_t count, uint64_t tag,
					      uint64_t mask, const struct weft_op_params *params,
					      struct weft_request **out)
{
	struct weft_msg_worker *mw = worker->msg;
	struct weft_match_msg *m;
	struct weft_request *req;
	struct look look;
	int rc;

	if (weft_op_params_allow(params, RECV_FLAGS) || look_of(worker, params, source, &look))
		return -EINVAL;
	m = look_for(worker, &look, tag, mask);

	/* What a failed endpoint had delivered can still be received; no more will come. */
	if (source && !m && source->msg->failed)
		return weft_msg_ep_why(source);
	req = recv_new(mw, buffer, count, params, is_held(params, out), &rc);
	if (!req)
		return rc;
	if (m) {
		struct weft_message *msg = container_of(m, struct weft_message, match);

		weft_match_msg_remove(&mw->tag->match, m);
		msg->flags &= (uint16_t)~WEFT_MSG_QUEUED;
		return recv_message(msg, req, params, out);
	}
	weft_tag_recv_of(req)->named = source ? source->msg : NULL;
	if (look.none)
		look.source = weft_tag_source_get(mw->tag, params->source_id);
	rc = look.none && !look.source ? -ENOMEM : post_recv(mw, req, &look, tag, mask);
	if (rc < 0)
		weft_request_drop(req);
	else if (out)
		*out = req;
	return rc;
}

/* Do the parameters contain nothing but a callback? */
static inline bool is_plain(const struct weft_op_params *params)
{
	return !params || (params->size >= sizeof(*params) && !(params->flags & ~WEFT_OP_F_LENT) &&
			   !params->datatype && !params->channel);
}

/*
 * The source, if the parameters name one and its channel, as in programs of MPI, and none of its
 * messages waits; else NULL.
 */
static inline struct weft_match_source *plain_source(const struct weft_tag_worker *tw,
						     const struct weft_op_params *params)
{
	struct weft_tag_source *s = tw->found;

	if (!params || params->size < sizeof(*params) ||
	    (params->flags & ~WEFT_OP_F_LENT) != LOOK_FLAGS || params->datatype || !s ||
	    s->by_id.key != params->source_id || !TAILQ_EMPTY(&s->match.msgs))
		return NULL;
	return &s->match;
}

/*
 * recv_any() of contiguous bytes in the most common cases: any source, exact, and no message waits;
 * or plain_source(). @param from  constant NULL = any source
 */
static inline __attribute__((always_inline)) int recv_plain(
	struct weft_msg_worker *mw, struct weft_match_source *from, void *buffer, size_t count,
	uint64_t tag, uint64_t mask, const struct weft_op_params *params, struct weft_request **out)
{
	struct weft_match *match = &mw->tag->match;
	struct weft_request *req =
		weft_request_alloc(mw, &weft_tag_recv_ops, NULL, is_held(params, out));
	struct weft_tag_recv *recv;

	if (!likely(req))
		return -ENOMEM;
	if (params) {
		req->cb = params->cb;
		req->cb_arg = params->cb_arg;
	}
	WEFT_PROBE5(post_recv, req, mw, tag, mask, count);
	req->dt.buf = buffer;
	req->dt.length = count;
	req->flags |= WEFT_REQ_POSTED;
	recv = weft_tag_recv_of(req);
	recv->named = NULL;
	recv->match.tag = tag;
	recv->match.mask = mask;
	recv->match.source = from;
	recv->match.channel = 0;
	recv->match.from = 0;
	if (from) {
		recv->match.channel = req->ext.channel = params->channel;
		recv->match.from = 1u + params->source_channel;
		if (!likely(weft_match_post_from(match, &recv->match) == 0)) {
			weft_request_drop(req);
			return -ENOMEM;
		}
	} else {
		weft_match_post_exact(match, &recv->match, tag);
	}
	if (!likely(!weft_match_overloaded(match)))
		weft_tag_match_grow(mw->tag);
	if (out)
		*out = req;
	return WEFT_INPROGRESS;
}

int weft_tag_recv(struct weft_worker *worker, struct weft_ep *source, void *buffer, size_t count,
		  uint64_t tag, uint64_t mask, const struct weft_op_params *params,
		  struct weft_request **req)
{
	struct weft_match_source *from;
	int rc;

	if (weft_dt_calls)
		return weft_dt_refuse("weft_tag_recv");
	weft_worker_lock(worker);
	if (!likely(!source && (buffer || !count)))
		rc = recv_any(worker, source, buffer, count, tag, mask, params, req);
	else if (mask == UINT64_MAX && is_plain(params) && worker->msg->tag->match.num_msgs == 0)
		rc = recv_plain(worker->msg, NULL, buffer, count, tag, UINT64_MAX, params, req);
	else if ((from = plain_source(worker->msg->tag, params)))
		rc = recv_plain(worker->msg, from, buffer, count, tag, mask, params, req);
	else
		rc = recv_any(worker, source, buffer, count, tag, mask, params, req);
	weft_worker_unlock(worker);
	return rc;
}

/* ------------------------------------------------------------------ probe */

static void fill_probe(const struct weft_message *msg, struct weft_completion *c)
{
	const struct weft_ext x = weft_message_ext(msg);
	struct weft_completion full = {
		.tag = msg->match.tag,
		.length = msg->total,
		.ep = msg->me ? weft_ep_of_user(msg->me->ep) : NULL,
		.source_id = weft_message_source_id(msg),
		.imm = x.imm,
		.flags = x.has_imm ? WEFT_COMPLETION_F_IMM : 0,
		.channel = x.channel,
		.source_channel = x.source_channel,
	};

	weft_completion_copy(c, &full);
}

int weft_tag_probe(struct weft_worker *worker, struct weft_ep *source, uint64_t tag, uint64_t mask,
		   const struct weft_op_params *params, struct weft_message **message,
		   struct weft_completion *c)
{
	struct weft_match_msg *m;
	struct look look;
	int rc;

	if (weft_dt_calls)
		return weft_dt_refuse("weft_tag_probe");
	if (weft_op_params_allow(params, LOOK_FLAGS))
		return -EINVAL;
	weft_worker_lock(worker);
	rc = look_of(worker, params, source, &look);
	m = rc ? NULL : look_for(worker, &look, tag, mask);
	if (m) {
		struct weft_message *msg = container_of(m, struct weft_message, match);

		if (c)
			fill_probe(msg, c);
		if (message) {
			weft_rx_take(msg);
			*message = msg;
		}
	}
	weft_worker_unlock(worker);
	return rc ? rc : m ? 0 : -ENOMSG;
}

int weft_tag_msg_recv(struct weft_worker *worker, struct weft_message *message, void *buffer,
		      size_t count, const struct weft_op_params *params, struct weft_request **out)
{
	struct weft_request *req;
	int rc;

	if (weft_dt_calls)
		return weft_dt_refuse("weft_tag_msg_recv");
	if (weft_op_params_allow(params, RECV_FLAGS))
		return -EINVAL;
	weft_worker_lock(worker);
	req = recv_new(worker->msg, buffer, count, params, is_held(params, out), &rc);
	if (req)
		rc = recv_message(message, req, params, out);
	weft_worker_unlock(worker);
	return rc;
}

void weft_tag_msg_drop(struct weft_worker *worker, struct weft_message *message)
{
	if (weft_dt_calls) {
		weft_dt_refuse("weft_tag_msg_drop");
		return;
	}
	weft_worker_lock(worker);
	weft_rx_drop(message);
	weft_worker_unlock(worker);
}

#define MATCH_BITS 8 /* 256 buckets, 12 KiB, for up to 512 receives and 512 messages */

/* ------------------------------------------------------------------ worker state */

static int worker_init(struct weft_msg_worker *mw)
{
	const struct weft_platform *platform = mw->worker->ctx->platform;
	struct weft_tag_worker *tw = calloc(1, sizeof(*tw));
	int rc;

	if (!tw)
		return -ENOMEM;
	rc = platform->random(platform->arg, &tw->seed, sizeof(tw->seed));
	tw->match_mem = malloc(weft_match_table_size(MATCH_BITS));
	if (rc || !tw->match_mem) {
		free(tw->match_mem);
		free(tw);
		return rc ? rc : -ENOMEM;
	}
	tw->mw = mw;
	weft_match_init(&tw->match, tw->match_mem, MATCH_BITS, tw->seed);
	TAILQ_INIT(&tw->drain);
	LIST_INIT(&tw->probed);
	tw->sources.seed = tw->seed;
	mw->tag = tw;
	return 0;
}

void weft_tag_match_grow(struct weft_tag_worker *tw)
{
	unsigned int bits = tw->match.bits + 2;
	void *mem = malloc(weft_match_table_size(bits));

	if (!mem) {
		tw->match.load_limit *= 2; /* matching is slower; try again with twice the load */
		return;
	}
	free(weft_match_grow(&tw->match, mem, bits));
	tw->match_mem = mem;
}

static void worker_stop(struct weft_msg_worker *mw)
{
	struct weft_tag_worker *tw = mw->tag;
	struct weft_match_recv *recv;
	struct weft_match_msg *m;
	struct weft_message *msg;

	while ((recv = weft_match_any_recv(&tw->match))) {
		struct weft_request *req = weft_tag_req_of(recv);

		weft_match_cancel(&tw->match, recv);
		req->flags &= ~WEFT_REQ_POSTED;
		req->length = 0;
		weft_request_complete(req, -ECANCELED);
	}
	while (!TAILQ_EMPTY(&mw->later))
		weft_request_run_later(mw);
	while ((m = TAILQ_FIRST(&tw->match.msgs))) {
		weft_match_msg_remove(&tw->match, m);
		weft_message_free(container_of(m, struct weft_message, match));
		mw->count.unclaimed++;
	}
	while ((msg = LIST_FIRST(&tw->probed))) {
		LIST_REMOVE(msg, link);
		weft_message_free(msg);
		mw->count.unclaimed++;
	}
}

static void worker_fini(struct weft_msg_worker *mw)
{
	struct weft_tag_worker *tw = mw->tag;

	if (!tw)
		return;
	weft_tag_sources_fini(tw);
	weft_match_fini(&tw->match); /* first, because indexes refer to messages */
	weft_message_pool_fini(&tw->messages);
	free(tw->match_mem);
	free(tw);
}

static unsigned int drain(struct weft_msg_worker *mw)
{
	struct weft_tag *t = TAILQ_FIRST(&mw->tag->drain);

	if (!t)
		return 0;
	TAILQ_REMOVE(&mw->tag->drain, t, drain_link);
	mw->work--;
	t->draining = false;
	return weft_rx_drain(t->me, WEFT_RX_DRAIN);
}

static bool busy(const struct weft_msg_worker *mw, bool *soon)
{
	return !TAILQ_EMPTY(&mw->tag->drain);
}

#define LEVELS(X)                                                                          \
	X(tw->messages.num, "tag.unexpected_now", "Messages that wait for a receive now.") \
	X(tw->messages.bytes, "tag.unexpected_bytes",                                      \
	  "Bytes of messages that wait for a receive now.")                                \
	X(tw->messages.bytes_peak, "tag.unexpected_bytes_peak",                            \
	  "Bytes of messages that waited for a receive, at most so far.")                  \
	X(tw->match.num_recvs, "tag.posted_now", "Receives that wait for a message now.")
#define SEARCHES(X)                              \
	X(tw->match.looks, "tag.wildcard_looks", \
	  "Receives checked, one after the other, because some have wildcards.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	LEVELS(WEFT_LEVEL_HELP)
	SEARCHES(WEFT_COUNTER_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void counters(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_tag_worker *tw = mw->tag;

#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
	SEARCHES(REPORT)
#undef REPORT
}

/* ------------------------------------------------------------------ endpoint state */

static int ep_init(struct weft_msg_ep *me)
{
	struct weft_tag *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->me = me;
	t->open.seed = me->mw->tag->seed;
	TAILQ_INIT(&t->active);
	LIST_INIT(&t->probed);
	t->source = weft_tag_source_get(me->mw->tag, me->ep->remote_id);
	if (!t->source) {
		free(t);
		return -ENOMEM;
	}
	t->source->eps++;
	me->tag = t;
	return 0;
}

static void ep_fini(struct weft_msg_ep *me)
{
	/* weft_tag_detach() was not called: the endpoint was not initialized completely */
	if (me->tag && me->tag->source)
		weft_tag_source_leave(me->mw->tag, me->tag->source);
	free(me->tag);
}

const struct weft_module weft_tag_module = {
	.name = "tag",
	.worker_init = worker_init,
	.worker_stop = worker_stop,
	.worker_fini = worker_fini,
	.before_queues = drain,
	.busy = busy,
	.counters = counters,
	.counter_help = counter_help,
	.ep_init = ep_init,
	.ep_fini = ep_fini,
	.ended = weft_tag_ended,
	.detach = weft_tag_detach,
	.closing = weft_tag_closing,
};
