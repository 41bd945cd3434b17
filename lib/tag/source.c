/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The source of messages is a worker, identified by its id, whatever endpoints lead to it. So the
 * user can receive messages of a peer by its address after its connection has closed, and can post
 * such a receive without a connection.
 *
 * A source without endpoints stays while it has messages or receives. Whether it has any is checked
 * when the table is full, so that messages need no counter.
 */

#include <errno.h>
#include <stdlib.h>

#include "rndv/rndv.h"
#include "tag/source.h"
#include "tag/tag.h"
#include "tag/unexpected.h"

#define FIRST_BITS 4

static struct weft_tag_sources *list_of(const struct weft_tag_worker *tw, uint64_t id)
{
	/* Peers choose their ids, so the hash is seeded. */
	return &tw->sources[weft_match_bucket(&tw->match, id, tw->source_bits)];
}

int weft_tag_sources_init(struct weft_tag_worker *tw)
{
	tw->source_bits = FIRST_BITS;
	tw->sources = calloc((size_t)1 << FIRST_BITS, sizeof(*tw->sources));
	return tw->sources ? 0 : -ENOMEM;
}

static void source_drop(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	weft_match_source_fini(&tw->match, &s->match);
	tw->num_sources--;
	free(s);
}

static bool source_unused(const struct weft_tag_source *s)
{
	return s->eps == 0 && TAILQ_EMPTY(&s->match.recvs) && TAILQ_EMPTY(&s->match.msgs);
}

static void sources_sweep(struct weft_tag_worker *tw)
{
	struct weft_tag_sources kept;
	struct weft_tag_source *s;

	for (size_t i = 0; i < (size_t)1 << tw->source_bits; i++) {
		SLIST_INIT(&kept);
		while ((s = SLIST_FIRST(&tw->sources[i]))) {
			SLIST_REMOVE_HEAD(&tw->sources[i], link);
			if (source_unused(s))
				source_drop(tw, s);
			else
				SLIST_INSERT_HEAD(&kept, s, link);
		}
		tw->sources[i] = kept;
	}
}

/* Twice the number of lists; without memory the present ones grow longer. */
static void sources_grow(struct weft_tag_worker *tw)
{
	struct weft_tag_sources *old = tw->sources;
	size_t n = (size_t)1 << tw->source_bits;
	struct weft_tag_source *s;

	tw->sources = calloc(2 * n, sizeof(*old));
	if (!tw->sources) {
		tw->sources = old;
		return;
	}
	tw->source_bits++;
	for (size_t i = 0; i < n; i++) {
		while ((s = SLIST_FIRST(&old[i]))) {
			SLIST_REMOVE_HEAD(&old[i], link);
			SLIST_INSERT_HEAD(list_of(tw, s->id), s, link);
		}
	}
	free(old);
}

struct weft_tag_source *weft_tag_source_find(const struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s;

	SLIST_FOREACH(s, list_of(tw, id), link) {
		if (s->id == id)
			return s;
	}
	return NULL;
}

struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s = weft_tag_source_find(tw, id);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (tw->num_sources >> tw->source_bits) {
		sources_sweep(tw);
		if (tw->num_sources >> (tw->source_bits - 1))
			sources_grow(tw);
	}
	s->id = id;
	weft_match_source_init(&tw->match, &s->match);
	SLIST_INSERT_HEAD(list_of(tw, id), s, link);
	tw->num_sources++;
	return s;
}

void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	s->eps--;
	if (!source_unused(s))
		return;
	SLIST_REMOVE(list_of(tw, s->id), s, weft_tag_source, link);
	source_drop(tw, s);
}

void weft_tag_sources_fini(struct weft_tag_worker *tw)
{
	struct weft_tag_source *s;

	for (size_t i = 0; tw->sources && i < (size_t)1 << tw->source_bits; i++) {
		while ((s = SLIST_FIRST(&tw->sources[i]))) {
			SLIST_REMOVE_HEAD(&tw->sources[i], link);
			source_drop(tw, s);
		}
	}
	free(tw->sources);
	tw->sources = NULL;
}

/* ------------------------------------------------------------------ the end of an endpoint */

/*
 * The end of an endpoint: the user closes it, its connection fails, it is freed. Messages that can
 * still be received stay. Senders that wait for a match are notified that there will be none.
 */

/* ------------------------------------------------------------------ closed by the user */

/* The same for a message taken out by a probe: its handle returns the error to the user. */
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
	struct weft_table_node *node;
	struct weft_message *msg;

	for (uint32_t i = 0; (node = weft_table_any(&me->tag->open, &i)); i++) {
		for (; node; node = SLIST_NEXT(node, link)) {
			msg = container_of(node, struct weft_message, by_seq);
			if (msg->flags & WEFT_MSG_PROBED)
				refuse_probed(msg);
		}
	}
	LIST_FOREACH(msg, &me->tag->probed, link)
		refuse_probed(msg);
}

void weft_tag_closing(struct weft_msg_ep *me)
{
	struct weft_match_msg *m, *next;

	refuse_all_probed(me);
	for (m = TAILQ_FIRST(&me->tag->source->match.msgs); m; m = next) {
		struct weft_message *msg = container_of(m, struct weft_message, match);

		next = TAILQ_NEXT(m, source_link);
		if (msg->me == me && (msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC)))
			weft_rx_refuse(msg);
	}
}

/* ------------------------------------------------------------------ failed, gone */

static void fail_active(struct weft_msg_ep *me, int status)
{
	struct weft_request *req;

	while ((req = TAILQ_FIRST(&me->tag->active))) {
		TAILQ_REMOVE(&me->tag->active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		weft_rx_free(weft_tag_recv_of(req)->msg);
		weft_request_complete(req, status);
	}
}

/*
 * A message that will not be complete. If the user may have its handle from a probe, it stays, as
 * an error.
 */
static void fail_message(struct weft_message *msg, int status)
{
	if (msg->flags & WEFT_MSG_QUEUED)
		weft_match_msg_remove(&msg->tw->match, &msg->match);
	msg->error = (int16_t)status;
	if (!(msg->flags & WEFT_MSG_PROBED)) {
		weft_rx_free(msg);
		return;
	}
	weft_rx_unhash(msg);
	if (!(msg->flags & WEFT_MSG_RTS))
		weft_rx_forget(msg->me, &msg->got);
	weft_message_free_data(msg);
	weft_tag_credit_left(msg, true);
	weft_message_orphan(msg);
	weft_rx_hold_probed(msg);
}

/*
 * Complete synchronous messages: their senders have been notified, or know from the failed
 * endpoint, that they were not matched.
 */
static void fail_synchronous(struct weft_msg_ep *me, int status)
{
	struct weft_match_msg *m, *next;
	struct weft_message *msg;

	for (m = TAILQ_FIRST(&me->tag->source->match.msgs); m; m = next) {
		next = TAILQ_NEXT(m, source_link);
		msg = container_of(m, struct weft_message, match);
		if (msg->me == me && (msg->flags & WEFT_MSG_SYNC))
			fail_message(msg, status);
	}
	LIST_FOREACH(msg, &me->tag->probed, link) {
		if (!(msg->flags & WEFT_MSG_SYNC) || msg->error)
			continue;
		msg->error = (int16_t)status;
		weft_message_free_data(msg);
	}
}

/* Posted receives that name the endpoint. Receives from other endpoints of its worker remain. */
static void end_receives(struct weft_msg_ep *me, int status)
{
	struct weft_requests ended = TAILQ_HEAD_INITIALIZER(ended);
	struct weft_match_recv *recv, *next;
	struct weft_request *req;

	for (recv = TAILQ_FIRST(&me->tag->source->match.recvs); recv; recv = next) {
		next = TAILQ_NEXT(recv, source_link);
		req = weft_tag_req_of(recv);
		if (weft_tag_recv_of(req)->named != me)
			continue;
		weft_match_cancel(&me->mw->tag->match, recv);
		req->flags &= ~WEFT_REQ_POSTED;
		req->length = 0;
		TAILQ_INSERT_TAIL(&ended, req, link);
	}
	/* A callback may post, cancel and free other receives. */
	while ((req = TAILQ_FIRST(&ended))) {
		TAILQ_REMOVE(&ended, req, link);
		weft_request_complete(req, status);
	}
}

void weft_tag_ended(struct weft_msg_ep *me, int status)
{
	struct weft_tag *t = me->tag;
	struct weft_table_node *node;

	t->ahead = 0;
	fail_active(me, status);
	for (uint32_t i = 0; (node = weft_table_any(&t->open, &i));)
		fail_message(container_of(node, struct weft_message, by_seq), status);
	fail_synchronous(me, status);
	end_receives(me, status);
}

void weft_tag_detach(struct weft_msg_ep *me)
{
	struct weft_match_msg *m;
	struct weft_message *msg;

	TAILQ_FOREACH(m, &me->tag->source->match.msgs, source_link) {
		msg = container_of(m, struct weft_message, match);
		if (msg->me != me)
			continue;
		weft_tag_credit_left(msg, true);
		weft_message_orphan(msg);
	}
	weft_tag_source_leave(me->mw->tag, me->tag->source);
	me->tag->source = NULL;
	while ((msg = LIST_FIRST(&me->tag->probed))) {
		LIST_REMOVE(msg, link);
		weft_tag_credit_left(msg, true);
		weft_message_orphan(msg);
		weft_rx_hold_probed(msg);
	}
	if (me->tag->draining) {
		TAILQ_REMOVE(&me->mw->tag->drain, me->tag, drain_link);
		me->mw->work--;
	}
	me->tag->draining = false;
	weft_table_fini(&me->tag->open);
}
