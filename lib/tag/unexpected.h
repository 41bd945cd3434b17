/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/unexpected.h
 * Messages that are not received yet: what is stored of each, their memory, the table by sequence,
 * and the receives that they match.
 */
#ifndef WEFT_TAG_UNEXPECTED_H
#define WEFT_TAG_UNEXPECTED_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "msg/msg.h"
#include "rndv/rndv.h"
#include "tag/match.h"

struct weft_tag_worker;

/* Message flags. */
#define WEFT_MSG_AHEAD (1u << 0)  /**< waits until it is in sequence */
#define WEFT_MSG_QUEUED (1u << 1) /**< in the unexpected lists */
#define WEFT_MSG_PROBED (1u << 2) /**< taken out by a probe */
#define WEFT_MSG_HASHED (1u << 3) /**< in its endpoint's table by sequence: incomplete, or AHEAD */
#define WEFT_MSG_SYNC (1u << 4)   /**< the sender waits for SYNC_ACK */
#define WEFT_MSG_RTS (1u << 5)    /**< the data is still at the sender */
#define WEFT_MSG_ACKED (1u << 7)  /**< SYNC_ACK has been sent */
/** probed and complete: in the list `probed` of its endpoint, or of the worker */
#define WEFT_MSG_HELD (1u << 6)

#define WEFT_MSG_IMM (1u << 8)      /**< the message has immediate data */
#define WEFT_MSG_BOUND (1u << 9)    /**< `recv` is set; channels and immediate data are in it */
#define WEFT_MSG_SPILLED (1u << 10) /**< credit is free, memory counts in WEFT_UNEXP_MEMORY */

/**
 * A message between its first piece and its end. A message of one piece that finds a receive on
 * arrival has none. This is also the `struct weft_message` of a matched probe.
 */
struct weft_message {
	struct weft_match_msg match; /* tag, source */
	union {
		struct weft_table_node by_seq; /* HASHED */
		LIST_ENTRY(weft_message) link; /* HELD, or free */
	};
	struct weft_tag_worker *tw;
	struct weft_msg_ep *me; /* NULL = the endpoint is gone */
	union {
		struct weft_request *recv; /* BOUND: the receive */
		uint64_t imm;
	};
	uint64_t total;
	uint8_t *data; /* `total` bytes; NULL: no payload is stored (BOUND, RTS, or `error`) */
	union {
		struct weft_ivals got;
		struct {
			struct weft_rndv_offer *keys; /* the offer, if it has keys; else NULL */
			uint32_t flags;
			bool withdrawn; /* drop the message when it is in sequence */
		} rts;
	};
	union {
		struct weft_wire_ref sreq; /* SYNC, RTS: the sender's request */
		uint64_t source_id;        /* id of the sending worker, when the endpoint is gone */
	};
	/* negative status: sender or endpoint has failed, or this end was closed; no more pieces */
	int16_t error;
	uint16_t flags;
	uint8_t slot; /* size class of the message's slot, in which a small payload follows */
};

LIST_HEAD(weft_message_list, weft_message);

/** The id of the worker that has sent the message. */
static inline uint64_t weft_message_source_id(const struct weft_message *msg)
{
	return msg->me ? msg->me->ep->remote_id : msg->source_id;
}

/** The endpoint of a message is freed, or has failed: no reply can be sent any more. */
static inline void weft_message_orphan(struct weft_message *msg)
{
	msg->source_id = weft_message_source_id(msg);
	msg->me = NULL;
}

static inline bool weft_message_complete(const struct weft_message *msg)
{
	return msg->error || (!(msg->flags & WEFT_MSG_RTS) && msg->got.covered == msg->total);
}

/** Number of slot sizes, with which a message takes at most payload x 1.1 + 256 bytes. */
#define WEFT_MSG_SLOTS 8

/** Memory of messages: slots of a few sizes from large chunks; longer payloads are malloc()ed. */
struct weft_message_pool {
	struct weft_message *free[WEFT_MSG_SLOTS]; /* free slots, by link.le_next */
	void *chunks;
	uint64_t bytes; /* bytes of payload stored now */
	uint64_t bytes_peak;
	uint64_t num;        /* messages stored now, including those without payload */
	uint64_t slot_bytes; /* bytes of all chunks */
};

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

/** Free the credit of a stored message, unless its endpoint is gone or it is SPILLED. */
static inline void weft_credit_give_msg(struct weft_message *msg)
{
	if (msg->me && !(msg->flags & WEFT_MSG_SPILLED))
		weft_credit_give(msg->me, msg->flags & WEFT_MSG_RTS ? 0 : msg->total);
}

/**
 * Allocate a message for @p total bytes; with @p with_data there is room for them. Flags, error,
 * immediate data and ranges are clear; tag, source and links are not set. @return NULL = no memory
 */
struct weft_message *weft_message_alloc(struct weft_msg_ep *me, uint64_t total, bool with_data);
/** Free the payload only: it has been copied, or the message has failed. */
void weft_message_free_data(struct weft_message *msg);
void weft_message_free(struct weft_message *msg);
/** The message is an RTS: store its offer. */
void weft_message_set_offer(struct weft_message *msg, const struct weft_rndv_offer *offer);
void weft_message_pool_fini(struct weft_message_pool *pool);
struct weft_message *weft_rx_lookup(const struct weft_msg_ep *me, uint32_t seq);
int weft_rx_hash(struct weft_msg_ep *me, struct weft_message *msg, uint32_t seq);
void weft_rx_unhash(struct weft_message *msg);
/** Free a message that is not in the unexpected lists, and remove it from all others. */
void weft_rx_free(struct weft_message *msg);
/** Notify the sender of a synchronous message, once, of the match, or of the error. */
void weft_rx_ack(struct weft_message *msg, int status);
/**
 * No receive for the message is posted: insert the message into the unexpected lists. If the user
 * has closed the endpoint and the sender waits for a match, the message is refused instead.
 */
void weft_rx_queue(struct weft_message *msg);
/** From now on the pieces of the message are copied to @p req as they come. */
void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req);
/** All pieces are here, or no more will come: complete the receive that has the message, if any. */
void weft_rx_over(struct weft_message *msg);
/** An end that closes drops a message whose sender waits for a match, and notifies the sender. */
void weft_rx_refuse(struct weft_message *msg);
/**
 * A receive gets a message, which is removed from the unexpected lists already. Bytes received so
 * far are copied; later ones go directly to the buffer. The request completes when all have come.
 * For an RTS, weft_rndv_fetch() begins. @p now: see weft_recv_done().
 */
void weft_rx_bind(struct weft_message *msg, struct weft_request *req, bool now);
/**
 * The user will never receive the message: free it, and drop the pieces that are still to come.
 * Without memory for that the message stays until its endpoint ends.
 */
void weft_rx_drop(struct weft_message *msg);
/** Take the message out of matching for a probe. */
void weft_rx_take(struct weft_message *msg);

/* ------------------------------------------------------------------ sources of messages */

/**
 * A worker that sends messages. All endpoints to it share this. Messages that they have left
 * behind, and receives by #WEFT_OP_F_SOURCE_ID, preserve it when the endpoints are gone.
 */
struct weft_tag_source {
	struct weft_match_source match;
	struct weft_table_node by_id;
	uint32_t eps; /* number of endpoints to the worker */
};

/** @return the source of the worker @p id, or NULL: there is none */
struct weft_tag_source *weft_tag_source_search(struct weft_tag_worker *tw, uint64_t id);
/** The source of the worker @p id, created if there is none. @return NULL = no memory */
struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id);
/** The source has one endpoint less. It is freed if nothing else uses it. */
void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s);
/** Free all sources. All receives and messages are gone. */
void weft_tag_sources_fini(struct weft_tag_worker *tw);

/* ------------------------------------------------------------------ the end of an endpoint */

/** The user has closed the endpoint: notify senders that wait for a match: there will be none. */
void weft_tag_closing(struct weft_msg_ep *me);
/**
 * End with @p status: the receives that need this endpoint, its incomplete messages, and its
 * synchronous messages that no receive has matched.
 */
void weft_tag_ended(struct weft_msg_ep *me, int status);
/** The endpoint is freed: complete messages stay. */
void weft_tag_detach(struct weft_msg_ep *me);

#endif /* WEFT_TAG_UNEXPECTED_H */
