/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/tag.h
 * Tagged messages: what tags keep per worker, per endpoint and per message that has come.
 *
 *	tag/tag.c          the calls of weft_msg.h
 *	tag/match.c        tags and receives
 *	tag/match_index.c  indexes for searches with wildcards
 *	tag/match_mask.c   the masks of posted receives
 *	tag/recv.c         what arrives: sequence, reassembly
 *	tag/deliver.c      receives and the messages they get
 *	tag/unexpected.c   messages that are still coming or wait: memory, table by sequence
 *	tag/source.c       where messages come from: workers, by their id
 *	tag/ends.c         an endpoint closes, fails, goes
 *	tag/module.c       the hooks (msg/module.h)
 */
#ifndef WEFT_TAG_H
#define WEFT_TAG_H

#include "base/seq_table.h"
#include "msg/msg.h"
#include "rndv/rndv.h"
#include "tag/match.h"

struct weft_tag_worker;

/* ------------------------------------------------------------------ messages that have come */

/* Message flags. */
#define WEFT_MSG_AHEAD (1u << 0)  /**< waits for its turn in the sequence */
#define WEFT_MSG_QUEUED (1u << 1) /**< in the unexpected lists */
#define WEFT_MSG_PROBED (1u << 2) /**< taken out by a probe */
#define WEFT_MSG_HASHED \
	(1u << 3) /**< in its endpoint's table of messages that are not over (by sequence) */
#define WEFT_MSG_SYNC (1u << 4)  /**< the sender wants to know of the match */
#define WEFT_MSG_RTS (1u << 5)   /**< the data is still at the sender */
#define WEFT_MSG_ACKED (1u << 7) /**< it has been told */
#define WEFT_MSG_HELD \
	(1u << 6) /**< in the list of the endpoint, or of the worker, of probed and complete ones */

#define WEFT_MSG_IMM (1u << 8)      /**< it has immediate data */
#define WEFT_MSG_BOUND (1u << 9)    /**< a receive has it, and what it has beside its tag */
#define WEFT_MSG_SPILLED (1u << 10) /**< kept beyond its peer's credit, and booked in bytes */

/**
 * A message between its first piece and its end, unless a receive was there and one piece was all:
 * such a message never gets one. This is also the `struct weft_message` of a matched probe.
 */
struct weft_message {
	struct weft_match_msg match; /* tag, source */
	union {
		struct weft_seq_node by_seq;   /* HASHED */
		LIST_ENTRY(weft_message) link; /* HELD, or free */
	};
	struct weft_tag_worker *tw;
	struct weft_msg_ep *me; /* NULL = the endpoint is gone */
	union {
		struct weft_request *recv; /* BOUND: the receive */
		uint64_t imm;
	};
	uint64_t total;
	uint8_t *data; /* total bytes, or NULL: bound, RTS or empty */
	union {
		struct weft_ivals got;
		struct {
			struct weft_rndv_offer *keys; /* the offer, if it has keys; else NULL */
			uint32_t flags;
			bool withdrawn; /* waits for its turn, and is forgotten then */
		} rts;
	};
	union {
		struct weft_wire_ref sreq; /* SYNC, RTS: the sender's request */
		uint64_t source_id;        /* the worker it came from, when its endpoint is gone */
	};
	int16_t error; /* its sender, or its endpoint, failed: no more pieces */
	uint16_t flags;
	uint8_t slot; /* size class, for giving it back; a small payload follows */
};

LIST_HEAD(weft_message_list, weft_message);

/** The worker that it comes from. */
static inline uint64_t weft_message_source_id(const struct weft_message *msg)
{
	return msg->me ? msg->me->ep->remote_id : msg->source_id;
}

/** Its endpoint goes: nobody can be answered any more. */
static inline void weft_message_orphan(struct weft_message *msg)
{
	msg->source_id = weft_message_source_id(msg);
	msg->me = NULL;
}

static inline bool weft_message_complete(const struct weft_message *msg)
{
	return msg->error || (!(msg->flags & WEFT_MSG_RTS) && msg->got.covered == msg->total);
}

/** Payload sizes of the slots: steps small enough for payload x 1.1 + 256 bytes per message. */
#define WEFT_MSG_SLOTS 8

/** Memory of messages: slots of a few sizes out of large chunks; longer payloads are malloc()ed. */
struct weft_message_pool {
	struct weft_message *free[WEFT_MSG_SLOTS]; /* by link.le_next */
	void *chunks;
	uint64_t bytes; /* payload kept now */
	uint64_t bytes_peak;
	uint64_t num;        /* messages kept now, envelopes alone included */
	uint64_t slot_bytes; /* memory in chunks */
};

/**
 * A message for @p total bytes; with @p with_data there is room for them. Flags, references and
 * links are clear. @return NULL = no memory
 */
struct weft_message *weft_message_alloc(struct weft_msg_ep *me, uint64_t total, bool with_data);
/** Free the payload only: it has been copied, the rest goes elsewhere. */
void weft_message_free_data(struct weft_message *msg);
void weft_message_free(struct weft_message *msg);
/** It is an RTS: keep what it offers. */
void weft_message_set_offer(struct weft_message *msg, const struct weft_rndv_offer *offer);
void weft_message_get_offer(const struct weft_message *msg, struct weft_rndv_offer *offer);
void weft_message_pool_fini(struct weft_message_pool *pool);

/* ------------------------------------------------------------------ worker, endpoint, receive */

/**
 * A worker that messages come from. All endpoints to it share this. What they leave behind, and
 * receives by #WEFT_OP_SOURCE_ID, keep it when they have gone.
 */
struct weft_tag_source {
	struct weft_match_source match;
	uint64_t id;
	uint32_t eps; /* endpoints to it */
	SLIST_ENTRY(weft_tag_source) link;
};

SLIST_HEAD(weft_tag_sources, weft_tag_source);

#define WEFT_RX_DRAIN 64 /* messages taken out of the waiting ones per call */

/** Of a worker: mw->tag. */
struct weft_tag_worker {
	struct weft_match match;
	void *match_mem;
	struct weft_msg_worker *mw;
	TAILQ_HEAD(, weft_tag) drain; /* endpoints with messages that are in sequence now */
	struct weft_message_pool messages;
	struct weft_message_list probed;  /* complete, taken out by a probe, endpoint gone */
	struct weft_tag_sources *sources; /* by id */
	unsigned int source_bits;         /* 2^bits lists */
	size_t num_sources;
	uint64_t seed; /* which sequences meet in a table */
};

/** Of an endpoint: me->tag. */
struct weft_tag {
	struct weft_tag_source *source;
	uint32_t ahead;                  /* messages in `open` that wait for their turn */
	bool draining;                   /* in the worker's list */
	struct weft_seq_table open;      /* messages that have begun and are not over */
	struct weft_requests active;     /* matched receives whose pieces are coming */
	struct weft_message_list probed; /* complete and taken out by a probe */
	TAILQ_ENTRY(weft_tag) drain_link;
	struct weft_msg_ep *me;
};

/** What a receive keeps: weft_tag_recv_of(). */
struct weft_tag_recv {
	struct weft_match_recv match;
	union {
		struct weft_msg_ep *named; /* POSTED: the endpoint that it ends with, or NULL */
		struct weft_message *msg;  /* in pieces: what the later ones find by sequence */
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

extern const struct weft_module weft_tag_module;
extern const struct weft_request_ops weft_tag_recv_ops;

/* ------------------------------------------------------------------ tag/source.c */

/** @return the worker's source, or NULL: it has none */
struct weft_tag_source *weft_tag_source_find(const struct weft_tag_worker *tw, uint64_t id);
/** The worker's source, made if there is none. @return NULL = no memory */
struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id);
/** One endpoint to it less. It goes, if nothing else keeps it. */
void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s);
/** @return 0 or -ENOMEM */
int weft_tag_sources_init(struct weft_tag_worker *tw);
/** All receives and messages have gone. */
void weft_tag_sources_fini(struct weft_tag_worker *tw);

/* Messages that have begun and are not over, by sequence. */

struct weft_message *weft_rx_lookup(const struct weft_msg_ep *me, uint32_t seq);
int weft_rx_hash(struct weft_msg_ep *me, struct weft_message *msg, uint32_t seq);
void weft_rx_unhash(struct weft_message *msg);
/**
 * Complete, and known to the user: in the list of its endpoint, or of the worker when that is gone.
 */
void weft_rx_hold_probed(struct weft_message *msg);
/** Out of all lists of the endpoint, and freed. */
void weft_rx_free(struct weft_message *msg);

/* ------------------------------------------------------------------ tag/recv.c, tag/deliver.c */

/**
 * The handlers (msg/module.h). That of the commonest message, which needs no more validation than
 * its length, is called without the table.
 */
void weft_tag_recv_eager(struct weft_msg_ep *me, const void *data, size_t payload);
/** EAGER behind EXT, validated; @p payload is what follows both. */
void weft_tag_recv_eager_ext(struct weft_msg_ep *me, const struct weft_wire_ext *w, size_t payload);
void weft_tag_recv_eager_sync(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_frag_sync(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_withdraw(struct weft_msg_ep *me, const void *data, size_t payload);

/** Tell the sender of a synchronous message, once, that it is matched (or why it never will be). */
void weft_rx_ack(struct weft_message *msg, int status);
/** Those with EXT in front. @param payload  bytes behind the message's own header */
void weft_tag_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		       const struct weft_ext *x);
/** Channels and immediate data, for who checks the message or gets it. */
static inline struct weft_ext weft_message_ext(const struct weft_message *msg)
{
	if (msg->flags & WEFT_MSG_BOUND)
		return msg->recv->ext;
	return (struct weft_ext){
		.imm = msg->imm,
		.channel = msg->match.channel,
		.source_channel = (uint16_t)(msg->match.from - 1),
		.has_imm = msg->flags & WEFT_MSG_IMM,
	};
}
/**
 * The posted receive that gets a message with @p tag from here, taken out; or NULL. @param x  NULL
 * = it has none
 */
struct weft_request *weft_rx_match(struct weft_msg_ep *me, uint64_t tag, const struct weft_ext *x);
/** Nobody has posted a receive for it. */
void weft_rx_queue(struct weft_message *msg);
/** Its pieces will go to @p req as they come. */
void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req);
/** All pieces are here, or no more will come. */
void weft_rx_over(struct weft_message *msg);
/**
 * Its sender waits for a match that will not come, since this end is closing: say so, and forget
 * the message.
 */
void weft_rx_refuse(struct weft_message *msg);

/**
 * A receive takes a message (out of the unexpected lists by now): what has come is copied, what
 * comes goes direct. The request completes when all is there. @p now: see weft_recv_done().
 */
void weft_rx_bind(struct weft_message *msg, struct weft_request *req, bool now);
/** Nobody will ever receive it. */
void weft_rx_drop(struct weft_message *msg);
/** Take the message out of matching for a probe. */
void weft_rx_take(struct weft_message *msg);
/** Match messages whose turn has come. @return how many */
unsigned int weft_rx_drain(struct weft_msg_ep *me, unsigned int budget);
/** Larger tables for matching. */
void weft_tag_match_grow(struct weft_tag_worker *tw);

/* ------------------------------------------------------------------ tag/ends.c: hooks */

/** Its owner has closed it: senders that wait for a match are told that none will come. */
void weft_tag_closing(struct weft_msg_ep *me);
/** Everything that is still coming from the endpoint ends. */
void weft_tag_ended(struct weft_msg_ep *me, int status);
/** The endpoint goes: what is complete stays. */
void weft_tag_detach(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ credit of what has waited */

/** Of a message that has waited. */
static inline void weft_credit_give_msg(struct weft_message *msg)
{
	if (msg->me && !(msg->flags & WEFT_MSG_SPILLED))
		weft_credit_give(msg->me, msg->flags & WEFT_MSG_RTS ? 0 : msg->total);
}

/** A message that nobody receives yet may stay beyond its peer's credit. */
void weft_tag_spill(struct weft_message *msg);

/** A message stays (@p stays), or has stayed, when its endpoint is gone: it counts in the pools. */
void weft_tag_credit_left(const struct weft_message *msg, bool stays);

#endif /* WEFT_TAG_H */
