/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/tag.h
 * Tagged messages: their state per worker, per endpoint and per message received.
 *
 *	tag/tag.c          the calls of weft_msg.h; the hooks (msg/state.h)
 *	tag/match.c        matching of tags and receives: the masks of posted receives
 *	tag/match_index.c  indexes of unexpected messages, for searches with wildcards
 *	tag/recv.c         received messages: sequence, reassembly; short messages of a frame
 *	tag/unexpected.c   messages that are incomplete or wait: memory, table by sequence; receives
 *	                   and the messages that they get; sources of messages: workers, by their
 *	                   id; the end of an endpoint
 */
#ifndef WEFT_TAG_H
#define WEFT_TAG_H

#include "base/container.h"
#include "msg/msg.h"
#include "rndv/rndv.h"
#include "tag/match.h"
#include "tag/recv.h"
#include "tag/unexpected.h"

/* ------------------------------------------------------------------ worker, endpoint, receive */

#define WEFT_RX_DRAIN 64 /* most messages per call that waited and are now in sequence */

/** Of a worker: mw->tag. */
struct weft_tag_worker {
	struct weft_match match;
	void *match_mem;
	struct weft_msg_worker *mw;
	TAILQ_HEAD(, weft_tag) drain; /* endpoints with messages that are in sequence now */
	struct weft_message_pool messages;
	/* complete messages that a probe took; they have no endpoint any more */
	struct weft_message_list probed;
	struct weft_table sources;     /* by id of the sending worker */
	struct weft_tag_source *found; /* the source found last, or NULL */
	uint32_t sources_kept;         /* number of sources after the last sweep */
	uint64_t seed; /* random: makes collisions in the tables by sequence unpredictable */
};

/** Tag state of an endpoint: me->tag. */
struct weft_tag {
	struct weft_tag_source *source;
	/* number of messages in `open` that wait until they are in sequence */
	uint32_t ahead;
	bool draining;                   /* in the worker's list `drain` */
	struct weft_table open;          /* by sequence: incomplete or AHEAD messages */
	struct weft_requests active;     /* matched receives with incomplete messages */
	struct weft_message_list probed; /* complete messages that a probe took */
	TAILQ_ENTRY(weft_tag) drain_link;
	struct weft_msg_ep *me;
};

/** The state of a tag receive in its request: weft_tag_recv_of(). */
struct weft_tag_recv {
	struct weft_match_recv match;
	union {
		/* POSTED: the endpoint whose failure ends the receive, or NULL */
		struct weft_msg_ep *named;
		/* not POSTED, in pieces: the message, which later pieces find by sequence */
		struct weft_message *msg;
	};
};

static_assert(sizeof(struct weft_tag_recv) <= WEFT_REQ_RECV_OWN, "room in the request");

static inline struct weft_tag_recv *weft_tag_recv_of(struct weft_request *req)
{
	return (struct weft_tag_recv *)req->recv.own;
}

static inline struct weft_request *weft_tag_req_of(struct weft_match_recv *match)
{
	return container_of((void *)match, struct weft_request, recv.own);
}

/** weft_tag_source_search(); programs post several receives from one source in a row. */
static inline struct weft_tag_source *weft_tag_source_find(struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s = tw->found;

	return s && s->by_id.key == id ? s : weft_tag_source_search(tw, id);
}

extern const struct weft_module weft_tag_module;
extern const struct weft_request_ops weft_tag_recv_ops;

/** Make the tables for matching larger. */
void weft_tag_match_grow(struct weft_tag_worker *tw);

#endif /* WEFT_TAG_H */
