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

#define SWEEP_LEAST 16u /* sources, before unused ones are looked for */

static void source_drop(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	weft_match_source_fini(&tw->match, &s->match);
	weft_table_remove(&tw->sources, &s->by_id);
	free(s);
}

static bool source_unused(const struct weft_tag_source *s)
{
	return s->eps == 0 && TAILQ_EMPTY(&s->match.recvs) && TAILQ_EMPTY(&s->match.msgs);
}

static void sources_sweep(struct weft_tag_worker *tw)
{
	struct weft_table_node *n, *next;
	struct weft_tag_source *s;

	for (uint32_t i = 0; (n = weft_table_any(&tw->sources, &i)); i++) {
		for (; n; n = next) {
			next = SLIST_NEXT(n, link);
			s = container_of(n, struct weft_tag_source, by_id);
			if (source_unused(s))
				source_drop(tw, s);
		}
	}
	tw->sources_kept = tw->sources.num;
}

struct weft_tag_source *weft_tag_source_find(const struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_table_node *n = weft_table_find(&tw->sources, id);

	return n ? container_of(n, struct weft_tag_source, by_id) : NULL;
}

struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s = weft_tag_source_find(tw, id);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (tw->sources.num >= SWEEP_LEAST && tw->sources.num >= 2 * tw->sources_kept)
		sources_sweep(tw);
	if (weft_table_add(&tw->sources, &s->by_id, id) < 0) {
		free(s);
		return NULL;
	}
	weft_match_source_init(&tw->match, &s->match);
	return s;
}

void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	s->eps--;
	if (source_unused(s))
		source_drop(tw, s);
}

void weft_tag_sources_fini(struct weft_tag_worker *tw)
{
	struct weft_table_node *n;

	for (uint32_t i = 0; (n = weft_table_any(&tw->sources, &i));)
		source_drop(tw, container_of(n, struct weft_tag_source, by_id));
	weft_table_fini(&tw->sources);
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
