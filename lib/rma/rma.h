/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/rma.h
 * Remote memory: puts, gets and atomics of an endpoint. An operation is native if lanes can access
 * both buffers and the table of protocols permits it. Else it goes by messages, which the peer's
 * progress executes.
 *
 *	rma/rma.c        the calls of weft_rma.h; protocols and their costs; hooks (msg/state.h)
 *	rma/rkey.c       remote keys
 *	rma/initiator.c  the begin and the end of every operation; operations by messages
 *	rma/native.c     operations over native lanes
 *	rma/target.c     requests from peers
 *	rma/fence.c      order; the limit of a worker's gets; puts that notify their target
 *
 * Confirmation: PUT and AMO messages have no reply unless refused, except fetching AMOs. Both ends
 * count them. RMA_FLUSH requests a reply when all of them so far are done. The reply contains the
 * number of RMA_NAKs sent for them, and takes effect after those, in whatever order lanes deliver.
 * Replies to a GET are data or NAKs, which together cover each of its bytes once.
 *
 * Messages overtake each other, so a number of messages done, or refused, does not identify them.
 * There are therefore two counts (halves), even and odd. Each RMA_FLUSH is about the half to which
 * nothing is added until its reply has come.
 *
 *	sent       PUT and counted AMO messages handed to lanes
 *	wanted     number of messages for whose confirmation a request, a fence or a flush waits
 *	confirmed  number of messages that are done at the peer, errors reported
 *
 * An endpoint is *quiet* when no operation is running and sent == confirmed: a fence passes then.
 */
#ifndef WEFT_RMA_H
#define WEFT_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/container.h"
#include "base/log.h"
#include "base/pacing.h"
#include "lane_attr.h"
#include "msg/msg.h"
#include "rma/fence.h"
#include "rma/initiator.h"
#include "rma/target.h"

enum weft_rma_kind {
	WEFT_RMA_PUT,
	WEFT_RMA_GET,
	WEFT_RMA_AMO,
	WEFT_RMA_ANSWER, /**< a reply to a peer's GET */
	WEFT_RMA_SMALL,  /**< a reply without payload, for which no lane had room */
};

/** Most pieces, each WEFT_RMA_CHUNK or less, of an endpoint's gets and fetching AMOs by message. */
#define WEFT_RMA_OPEN 64
#define WEFT_RMA_CHUNK (64u << 10)

static_assert(WEFT_RMA_OPEN * 2 <= WEFT_WIRE_ANSWERS, "room for what crosses");
static_assert(WEFT_RMA_CHUNK <= WEFT_WIRE_GET_MAX, "wire");

/** The state of an operation, or of a reply to one, in its request: weft_rma_req(). */
struct weft_req_rma {
	struct weft_rkey *rkey; /* NULL: a reply */
	/* offset in the peer's memory; of a reply: in the initiator's buffer */
	uint64_t remote;
	/*
	 * DELIVERED: value of `confirmed` that completes the operation. Get, fetching atomic on an
	 * array: bytes that have come, or were refused.
	 */
	uint64_t count;
	uint32_t epoch;  /* number of worker fences before the operation */
	uint16_t lanes;  /* native: mask of the lanes that can execute pieces */
	uint16_t pieces; /* outstanding pieces, counted in weft_rma.open */
	uint8_t kind;    /* enum weft_rma_kind */
	bool fence;      /* the first after weft_ep_fence(): waits until quiet */
	bool delivered;
	bool native;
	bool again;                 /* a lane died with a piece: execute the operation again */
	uint8_t op, width;          /* atomic: operation; bytes of an element */
	uint8_t type;               /* element type of an atomic on an array; 0 = no array */
	struct weft_rma_regs *regs; /* native, of an iov: registrations of its entries */
	union {
		struct weft_ivals got; /* get by messages: ranges that have come */
		uint32_t number;       /* of a put that notifies (request's ext.any) */
		struct {
			uint64_t operand, compare, old;
			void *result;
		} amo;
		struct {
			const uint8_t *operands, *compares;
			uint64_t reserved;
			uint8_t *results; /* at the place of amo.result */
		} vec;
		struct {
			uint8_t id, length;
			uint8_t data[38];
		} small; /* reply without payload */
	};
};

static_assert(sizeof(struct weft_req_rma) <= WEFT_REQ_SEND_OWN, "room in the request");

static inline struct weft_req_rma *weft_rma_req(const struct weft_request *req)
{
	return (struct weft_req_rma *)(uintptr_t)req->send.own;
}

#define WEFT_RMA_COUNTERS(X)                                                                      \
	X(puts, "rma.puts", "Puts of peers into memory here.")                                    \
	X(put_bytes, "rma.put_bytes", "Bytes that peers have put here.")                          \
	X(gets_served, "rma.gets", "Gets of peers that were answered.")                           \
	X(get_bytes, "rma.get_bytes", "Bytes that peers have got from here.")                     \
	X(amos, "rma.atomics", "Atomic operations of peers that were done here.")                 \
	X(native_bytes, "rma.native_bytes",                                                       \
	  "Bytes moved by native reads and writes of operations.")                                \
	X(gets_limited, "rma.gets_limited", "Attempts of gets that had to wait for others.")      \
	X(naks, "rma.refused_by_peers", "Operations of this worker that a peer refused.")         \
	X(bad_key, "rma.drop.bad_key",                                                            \
	  "Operations of peers refused: a key revoked, forged or foreign.")                       \
	X(bad_rights, "rma.drop.bad_rights",                                                      \
	  "Operations of peers refused: the key does not allow them.")                            \
	X(bad_range, "rma.drop.bad_range", "Operations of peers refused: outside of the memory.") \
	X(misaligned, "rma.drop.misaligned",                                                      \
	  "Atomic operations of peers refused: misaligned address.")                              \
	X(bad_ref, "rma.drop.bad_reference", "Answers dropped: their operation is over.")         \
	X(notes, "rma.notifications", "Notifications of puts given to the program.")              \
	X(notes_dropped, "rma.drop.notifications",                                                \
	  "Notifications of puts dropped: no handler, or endpoint closed.")                       \
	X(too_many, "rma.drop.too_many", "Requests of peers refused: beyond their window.")

struct weft_rma_worker {
	uint32_t fence_sn, fence_done;      /* number of fences: requested, passed */
	LIST_HEAD(, weft_rkey) key_queries; /* keys with an outstanding KEY_REQ */
	weft_put_cb put_cb;                 /* the application's, or NULL */
	void *put_arg;
	uint32_t fence_holders;     /* number of endpoints with weft_rma.holds */
	LIST_HEAD(, weft_rma) used; /* endpoints that may have operations: weft_rma_use() */
	WEFT_RMA_COUNTERS(WEFT_COUNTER_FIELD)
	struct weft_log_limit limit_refused; /* lines about operations that lanes refuse */
	struct weft_share gets;              /* outstanding pieces of gets and native atomics */
	TAILQ_HEAD(, weft_rma) gets_waiting;
};

struct weft_rkey {
	struct weft_worker *worker;
	uint64_t remote_id;
	uint64_t key, size;
	uint32_t rights;
	uint32_t refs; /* references of the user and of operations */
	uint8_t low;   /* the lowest three bits of the memory's address */
	/* made from a number: bounds, rights and native keys are unknown until KEY has come */
	bool unknown;
	bool query_sent; /* KEY_REQ was sent; while `unknown`, it is in key_queries */
	uint32_t query_slot, query_generation; /* the endpoint over which KEY_REQ went */
	LIST_ENTRY(weft_rkey) query_link;
	uint8_t num_native;
	struct {
		uint64_t key;
		uint8_t domain;
	} native[WEFT_RKEY_DOMAINS];
};

/** Errors stored separately until a flush. With more, a flush may report a later operation's. */
#define WEFT_RMA_ERRORS 8

/** At least one of the operations with op_sn from `first` to `last` was refused. */
struct weft_rma_error {
	uint64_t first, last;
	int status;
};

/** Remote memory state of one endpoint, created with its first use at either end. */
struct weft_rma {
	/* initiator */
	struct weft_requests pending; /* operations not handed over completely, in order */
	struct weft_requests waiting; /* operations with DELIVERED, by weft_req_rma.count */
	uint64_t sent, wanted, confirmed;
	uint64_t half[2];      /* number of messages in `sent`: of the even, of the odd half */
	uint64_t flush_sent;   /* value of sent when the outstanding RMA_FLUSH was sent */
	uint64_t naks[2];      /* NAKs received: of the even, of the odd half */
	uint64_t flushed_naks; /* number of NAKs in the last RMA_FLUSHED */
	uint64_t errors;       /* largest number of errors in an RMA_FLUSHED so far */
	/* errors that a flush reports */
	struct weft_rma_error error[WEFT_RMA_ERRORS];
	uint32_t num_errors;
	uint32_t running;       /* operations that have started and are not over */
	uint32_t open;          /* outstanding pieces, at most WEFT_RMA_OPEN */
	uint32_t gets;          /* outstanding pieces of gets by messages, part of `open` */
	uint32_t epoch;         /* number of worker fences before the running operations */
	bool odd;               /* the half to which sent messages are added */
	bool flush_outstanding; /* an RMA_FLUSH for the other half is outstanding */
	bool flush_answered;    /* the reply to the RMA_FLUSH has come, perhaps not all NAKs */
	bool flush_due;         /* no lane had room for an RMA_FLUSH */
	bool fence;             /* the next operation waits for all before it */
	bool warned;
	bool listed; /* in the worker's list `used` */
	bool holds;  /* has operations of the oldest epoch: counted in fence_holders */
	LIST_ENTRY(weft_rma) used_link;
	bool gets_wait;               /* waits for room to request more pieces */
	bool gets_listed;             /* in the worker's list gets_waiting */
	struct weft_share_user share; /* the endpoint's part of weft_rma_worker.gets */
	TAILQ_ENTRY(weft_rma) gets_link;
	/*
	 * Puts that notify. note_mark: value of `sent` when `notes` last became 0; notes: number
	 * begun since then; note_number: the number of the next one.
	 */
	uint64_t note_mark;
	uint32_t notes, note_number;
	struct weft_msg_ep *me;
	/* target */
	struct weft_table noted; /* the peer's puts that notify, of which a part has come */
	struct weft_requests answers;
	uint32_t answers_open;
	bool peer_flush, peer_flush_odd; /* an RMA_FLUSH of the peer is outstanding, and its half */
	uint64_t peer_flush_count;
	/* PUT and counted AMO messages processed, refused ones included: even, odd */
	uint64_t done[2];
	uint32_t done_part[2]; /* fractions of split PUTs, in units of 2^-32 */
	uint64_t naks_sent[2], refused;
	int refused_status;
	/*
	 * Numbers of the first and the last operation refused without a NAK since the last
	 * RMA_FLUSHED; refused_reported: there is none.
	 */
	uint32_t refused_first, refused_last;
	bool refused_reported;
	/* reference in the last NAK: one NAK is enough for the pieces of one PUT */
	struct weft_wire_ref last_nak;
};

/** @return NULL = no memory */
struct weft_rma *weft_rma_of(struct weft_msg_ep *me);

static inline bool weft_rma_quiet(const struct weft_rma *rma)
{
	return rma->running == 0 && rma->sent == rma->confirmed;
}

static inline bool weft_rma_peer_flush_done(const struct weft_rma *rma)
{
	return rma->peer_flush && rma->done[rma->peer_flush_odd] >= rma->peer_flush_count;
}

/** A lane has taken a PUT or counted AMO of half @p odd. */
static inline void weft_rma_count(struct weft_rma *rma, bool odd)
{
	rma->sent++;
	rma->half[odd]++;
}

/** If there is no room for a put that notifies, earlier ones must be confirmed first. */
static inline bool weft_rma_note_room(const struct weft_rma *rma)
{
	return rma->notes < WEFT_WIRE_NOTES / 4 || rma->confirmed >= rma->note_mark;
}

/** The endpoint has an operation: fences must check it. */
static inline void weft_rma_use(struct weft_rma *rma)
{
	if (rma->listed)
		return;
	rma->listed = true;
	LIST_INSERT_HEAD(&rma->me->mw->rma->used, rma, used_link);
}

/* ------------------------------------------------------------------ hooks, protocols */

extern const struct weft_module weft_rma_module;

extern const struct weft_proto weft_proto_put_native;
extern const struct weft_proto weft_proto_put_am;
extern const struct weft_proto weft_proto_get_native;
extern const struct weft_proto weft_proto_get_am;
extern const struct weft_proto weft_proto_amo_native;
extern const struct weft_proto weft_proto_amo_am;

/** @return false: no memory, the endpoint fails */
bool weft_rma_ready(struct weft_msg_ep *me);
/** The latest op_sn with the low bits @p number, which the peer sent back. */
static inline uint64_t weft_rma_op_sn(const struct weft_msg_ep *me, uint64_t number)
{
	return me->op_sn - ((me->op_sn - number) & WEFT_WIRE_RMA_NUMBER);
}

/* ------------------------------------------------------------------ rma/native.c */

/** Can native lanes execute the operation? May register the buffer. */
bool weft_rma_native_begin(struct weft_request *req);
int weft_rma_native_step(struct weft_request *req);
/** Release the registrations that a native operation made; the user's stays. */
void weft_rma_local_put(struct weft_request *req);

/* ------------------------------------------------------------------ rma/rkey.c */

/** If lanes of the endpoint could use native keys: request them and the bounds, once per key. */
void weft_rkey_query(struct weft_msg_ep *me, struct weft_rkey *rkey);
void weft_rma_recv_key_req(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_key(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rkey_free(struct weft_rkey *rkey);

#endif /* WEFT_RMA_H */
