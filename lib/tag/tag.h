/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/tag.h
 * Tagged messages: their state per worker, per endpoint and per message received.
 *
 *	tag/tag.c          the calls of weft_msg.h
 *	tag/match.c        matching of tags and receives
 *	tag/match_index.c  indexes for searches with wildcards
 *	tag/match_mask.c   the masks of posted receives
 *	tag/recv.c         received messages: sequence, reassembly
 *	tag/recv_batch.c   short messages of a frame, received in one call
 *	tag/deliver.c      receives and the messages that they get
 *	tag/unexpected.c   messages that are incomplete or wait: memory, table by sequence
 *	tag/source.c       sources of messages: workers, by their id
 *	tag/ends.c         an endpoint closes, fails, is freed
 *	tag/module.c       the hooks (msg/module.h)
 */
#ifndef WEFT_TAG_H
#define WEFT_TAG_H

#include "base/container.h"
#include "msg/msg.h"
#include "rndv/rndv.h"
#include "tag/match.h"

struct weft_tag_worker;

/* ------------------------------------------------------------------ messages received */

/* Message flags. */
#define WEFT_MSG_AHEAD (1u << 0)  /**< waits until it is in sequence */
#define WEFT_MSG_QUEUED (1u << 1) /**< in the unexpected lists */
#define WEFT_MSG_PROBED (1u << 2) /**< taken out by a probe */
#define WEFT_MSG_HASHED (1u << 3) /**< in its endpoint's table by sequence: incomplete, or AHEAD */
#define WEFT_MSG_SYNC (1u << 4)   /**< the sender waits for SYNC_ACK */
#define WEFT_MSG_RTS (1u << 5)    /**< the data is still at the sender */
#define WEFT_MSG_ACKED (1u << 7)  /**< SYNC_ACK has been sent */
#define WEFT_MSG_HELD \
	(1u << 6) /**< probed and complete: in a list of its endpoint, or of the worker */

#define WEFT_MSG_IMM (1u << 8)      /**< it has immediate data */
#define WEFT_MSG_BOUND (1u << 9)    /**< a receive has it, with its channels and immediate data */
#define WEFT_MSG_SPILLED (1u << 10) /**< stored beyond its peer's credit, and counted in bytes */

/**
 * A message between its first piece and its end. A message of one piece for which a receive was
 * posted never gets one. This is also the `struct weft_message` of a matched probe.
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
			bool withdrawn; /* to be dropped when it is in sequence */
		} rts;
	};
	union {
		struct weft_wire_ref sreq; /* SYNC, RTS: the sender's request */
		uint64_t source_id;        /* its worker, when its endpoint is gone */
	};
	int16_t error; /* status, when its sender or its endpoint has failed: no more pieces */
	uint16_t flags;
	uint8_t slot; /* size class of its memory; a small payload follows */
};

LIST_HEAD(weft_message_list, weft_message);

/** The id of the worker that has sent it. */
static inline uint64_t weft_message_source_id(const struct weft_message *msg)
{
	return msg->me ? msg->me->ep->remote_id : msg->source_id;
}

/** Its endpoint is freed: no reply can be sent any more. */
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

/** Memory of messages: slots of a few sizes from large chunks; longer payloads are malloc()ed. */
struct weft_message_pool {
	struct weft_message *free[WEFT_MSG_SLOTS]; /* by link.le_next */
	void *chunks;
	uint64_t bytes; /* payload stored now */
	uint64_t bytes_peak;
	uint64_t num;        /* messages stored now, including those without payload */
	uint64_t slot_bytes; /* memory in chunks */
};

/**
 * Allocate a message for @p total bytes; with @p with_data there is room for them. Flags,
 * references and links are clear. @return NULL = no memory
 */
struct weft_message *weft_message_alloc(struct weft_msg_ep *me, uint64_t total, bool with_data);
/** Free the payload only: it has been copied, and further pieces go elsewhere. */
void weft_message_free_data(struct weft_message *msg);
void weft_message_free(struct weft_message *msg);
/** The message is an RTS: store its offer. */
void weft_message_set_offer(struct weft_message *msg, const struct weft_rndv_offer *offer);
void weft_message_get_offer(const struct weft_message *msg, struct weft_rndv_offer *offer);
void weft_message_pool_fini(struct weft_message_pool *pool);

/* ------------------------------------------------------------------ worker, endpoint, receive */

/**
 * A worker that sends messages. All endpoints to it share this. Messages that they have left
 * behind, and receives by #WEFT_OP_SOURCE_ID, preserve it when the endpoints are gone.
 */
struct weft_tag_source {
	struct weft_match_source match;
	uint64_t id;
	uint32_t eps; /* endpoints to it */
	SLIST_ENTRY(weft_tag_source) link;
};

SLIST_HEAD(weft_tag_sources, weft_tag_source);

#define WEFT_RX_DRAIN 64 /* most messages per call that waited and are now in sequence */

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
	uint64_t seed; /* random: makes collisions in the tables by sequence unpredictable */
};

/** Tag state of an endpoint: me->tag. */
struct weft_tag {
	struct weft_tag_source *source;
	/* messages in `open` that wait until they are in sequence */
	uint32_t ahead;
	bool draining;                   /* in the worker's list */
	struct weft_seq_table open;      /* incomplete or AHEAD messages */
	struct weft_requests active;     /* matched receives with incomplete messages */
	struct weft_message_list probed; /* complete and taken out by a probe */
	TAILQ_ENTRY(weft_tag) drain_link;
	struct weft_msg_ep *me;
};

/** The state of a tag receive in its request: weft_tag_recv_of(). */
struct weft_tag_recv {
	struct weft_match_recv match;
	union {
		struct weft_msg_ep *named; /* POSTED: the endpoint whose failure ends it, or NULL */
		/* in pieces: the message, which later pieces find by sequence */
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

extern const struct weft_module weft_tag_module;
extern const struct weft_request_ops weft_tag_recv_ops;

/* ------------------------------------------------------------------ tag/source.c */

/** @return the worker's source, or NULL: it has none */
struct weft_tag_source *weft_tag_source_find(const struct weft_tag_worker *tw, uint64_t id);
/** The worker's source, created if there is none. @return NULL = no memory */
struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id);
/** The source has one endpoint less. It is freed if nothing else uses it. */
void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s);
/** @return 0 or -ENOMEM */
int weft_tag_sources_init(struct weft_tag_worker *tw);
/** All receives and messages are gone. */
void weft_tag_sources_fini(struct weft_tag_worker *tw);

/* Incomplete messages, by sequence. */

struct weft_message *weft_rx_lookup(const struct weft_msg_ep *me, uint32_t seq);
int weft_rx_hash(struct weft_msg_ep *me, struct weft_message *msg, uint32_t seq);
void weft_rx_unhash(struct weft_message *msg);
/**
 * Insert a complete message that the user has from a probe into the list of its endpoint, or of the
 * worker when that is gone.
 */
void weft_rx_hold_probed(struct weft_message *msg);
/** Remove it from all lists of the endpoint, and free it. */
void weft_rx_free(struct weft_message *msg);

/* ------------------------------------------------------------------ tag/recv.c, tag/deliver.c */

/**
 * The handlers (msg/module.h). The handler of EAGER, the most common message, is called without the
 * table: only its length needs validation.
 */
void weft_tag_recv_eager(struct weft_msg_ep *me, const void *data, size_t payload);
/** EAGER behind EXT, validated; @p payload is the number of bytes behind both headers. */
void weft_tag_recv_eager_ext(struct weft_msg_ep *me, const struct weft_wire_ext *w, size_t payload);
/**
 * Messages of one frame, as weft_tag_recv_eager() receives each (tag/recv_batch.c).
 * @return how many were received, from the first one on; the endpoint may have ended
 */
unsigned int weft_tag_recv_batch(struct weft_msg_ep *me, unsigned int lane,
				 const struct weft_lane_msg *msgs, unsigned int num);
void weft_tag_recv_eager_sync(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_frag_sync(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_withdraw(struct weft_msg_ep *me, const void *data, size_t payload);

/** Notify the sender of a synchronous message, once, of the match, or of the error. */
void weft_rx_ack(struct weft_message *msg, int status);
/** Messages behind EXT. @param payload  bytes behind the message's own header */
void weft_tag_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		       const struct weft_ext *x);
/** Channels and immediate data of a message, for the user. */
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
 * The posted receive that matches a message with @p tag from this endpoint, removed; or NULL.
 * @param x  NULL = it has no EXT
 */
struct weft_request *weft_rx_match(struct weft_msg_ep *me, uint64_t tag, const struct weft_ext *x);
/** No receive for it is posted. */
void weft_rx_queue(struct weft_message *msg);
/** Its pieces will be copied to @p req as they come. */
void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req);
/** All pieces are here, or no more will come. */
void weft_rx_over(struct weft_message *msg);
/**
 * Its sender waits for a match, but this end is closing: notify the sender, and drop the message.
 */
void weft_rx_refuse(struct weft_message *msg);

/**
 * A receive gets a message, which is removed from the unexpected lists already. Bytes received so
 * far are copied; later ones go directly to the buffer. The request completes when all have come.
 * @p now: see weft_recv_done().
 */
void weft_rx_bind(struct weft_message *msg, struct weft_request *req, bool now);
/** The user will never receive it. */
void weft_rx_drop(struct weft_message *msg);
/** Take the message out of matching for a probe. */
void weft_rx_take(struct weft_message *msg);
/** Match messages that are in sequence now. @return how many */
unsigned int weft_rx_drain(struct weft_msg_ep *me, unsigned int budget);
/** Make the tables for matching larger. */
void weft_tag_match_grow(struct weft_tag_worker *tw);

/* ------------------------------------------------------------------ tag/ends.c: hooks */

/**
 * The user has closed the endpoint: notify senders that wait for a match that there will be none.
 */
void weft_tag_closing(struct weft_msg_ep *me);
/** Incomplete messages from the endpoint end. */
void weft_tag_ended(struct weft_msg_ep *me, int status);
/** The endpoint is freed: complete messages stay. */
void weft_tag_detach(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ credit of stored messages */

/** Free the credit of a message that was stored. */
static inline void weft_credit_give_msg(struct weft_message *msg)
{
	if (msg->me && !(msg->flags & WEFT_MSG_SPILLED))
		weft_credit_give(msg->me, msg->flags & WEFT_MSG_RTS ? 0 : msg->total);
}

/** A message that no receive matches yet may be stored beyond its peer's credit. */
void weft_tag_spill(struct weft_message *msg);

/**
 * Its endpoint is gone: the pools count a message that stays (@p stays), or that has stayed until
 * now.
 */
void weft_tag_credit_left(const struct weft_message *msg, bool stays);

#endif /* WEFT_TAG_H */
