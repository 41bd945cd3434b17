/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/request.h
 * One operation from call to completion, and the table that gives every request a number for the
 * wire.
 *
 * Lifetime: weft_request_alloc(); then parts of the library have it in their lists; then
 * weft_request_complete(), once, which calls the callback. A request returns to the pool when it is
 * complete **and** not held: a caller that has the pointer (#WEFT_REQ_HELD) must have called
 * weft_request_free(). A request freed before its end loses its callback and continues.
 *
 * References on the wire are {index, generation}. The index is the request's place in the pool and
 * never changes. The generation changes each time the place is freed, so that an old reference
 * matches no request.
 */
#ifndef WEFT_REQUEST_H
#define WEFT_REQUEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/container.h"
#include "core/wire.h"
#include "core/worker.h"
#include "lane_attr.h"
#include "weft.h"

/* ------------------------------------------------------------------ the buffer of an operation */

/*
 * The buffer of one operation, of any datatype, as a sequence of packed bytes with random access.
 *
 * An iov has a cursor. Each access moves it from its last entry, forward or back. The iovec array
 * remains the caller's and must exist as long as the operation.
 */

struct weft_dt {
	uint8_t *buf;  /* contig: first byte */
	size_t length; /* packed bytes; capacity when unpacking */
	uint32_t dt_class;
	uint32_t pos; /* iov: entry the cursor is in */
	size_t base;  /* iov: packed offset of that entry */
	union {
		struct {
			const struct iovec *iov;
			size_t iovcnt;
		};
		struct {
			const struct weft_generic_ops *ops;
			void *state; /* generic: NULL = finished */
		};
	};
};

/**
 * The number of callbacks of generic datatypes on this thread's stack. Inside a callback the
 * operation, its queue and perhaps a lane are in an intermediate state, so calls that would change
 * them are refused.
 */
extern _Thread_local unsigned int weft_dt_calls __attribute__((tls_model("initial-exec")));

/**
 * True while this thread unpacks bytes that another process can change. The unpack callback of a
 * generic type then gets copies of them.
 */
extern _Thread_local bool weft_dt_in_place __attribute__((tls_model("initial-exec")));

/** Log that @p call was made inside a callback of a generic datatype. @return -EBUSY */
int weft_dt_refuse(const char *call) __attribute__((cold));

int weft_dt_init_slow(struct weft_dt *dt, const struct weft_datatype *type, const void *buffer,
		      size_t count, bool unpack);

/**
 * @return 0; -EINVAL: the buffer is missing, lengths overflow, or the type is invalid (class, size
 * or callbacks); -ENOMEM: the start callback of a generic type returned NULL
 */
static inline int weft_dt_init(struct weft_dt *dt, const struct weft_datatype *type,
			       const void *buffer, size_t count, bool unpack)
{
	if (type || (count && !buffer))
		return weft_dt_init_slow(dt, type, buffer, count, unpack);
	/* Contiguous memory, the common case, needs these three fields only. */
	dt->dt_class = WEFT_DT_CONTIG;
	dt->buf = (uint8_t *)(uintptr_t)buffer;
	dt->length = count;
	return 0;
}

/** End the state of a generic type. A second call has no effect. */
static inline void weft_dt_finish(struct weft_dt *dt)
{
	void *state;

	if (dt->dt_class != WEFT_DT_GENERIC)
		return;
	state = dt->state;
	dt->state = NULL;
	if (!state)
		return;
	weft_dt_calls++;
	dt->ops->finish(state);
	weft_dt_calls--;
}

/**
 * Write bytes [off, off + len) to @p dst. @return 0; the pack callback's error; -EINVAL: the
 * callback wrote nothing, or more than it had room for
 */
int weft_dt_pack_slow(struct weft_dt *dt, size_t off, void *dst, size_t len);
/**
 * Take bytes [off, off + len) from @p src. @return the unpack callback's result for a generic type,
 * which is an error if negative; else 0
 */
int weft_dt_unpack_slow(struct weft_dt *dt, size_t off, const void *src, size_t len);

static inline int weft_dt_pack(struct weft_dt *dt, size_t off, void *dst, size_t len)
{
	if (dt->dt_class != WEFT_DT_CONTIG)
		return weft_dt_pack_slow(dt, off, dst, len);
	weft_copy(dst, dt->buf + off, len);
	return 0;
}

static inline int weft_dt_unpack(struct weft_dt *dt, size_t off, const void *src, size_t len)
{
	if (dt->dt_class != WEFT_DT_CONTIG)
		return weft_dt_unpack_slow(dt, off, src, len);
	weft_copy(dt->buf + off, src, len);
	return 0;
}

/**
 * Describe bytes [off, off + len) as at most @p max pieces. @return the number of pieces; 0 = more
 * than @p max are needed, the type is generic, or 0 bytes of an iov
 */
unsigned int weft_dt_iov(struct weft_dt *dt, size_t off, size_t len, struct iovec *out,
			 unsigned int max);

/**
 * Describe the bytes from @p off on, in at most @p max pieces. Not for generic types; *len > 0.
 * @param[in,out] len  bytes wanted; bytes described
 * @return number of pieces
 */
unsigned int weft_dt_iov_some(struct weft_dt *dt, size_t off, size_t *len, struct iovec *out,
			      unsigned int max);

/* ------------------------------------------------------------------ a request */

struct weft_msg_ep;
struct weft_msg_worker;
struct weft_proto;
struct weft_fetch;

struct weft_request;

/** The functions of a request's module: one table for each kind of operation. */
struct weft_request_ops {
	/**
	 * Release what the request uses apart from its datatype; req->status is its result
	 * (WEFT_INPROGRESS: the user never got the request). NULL = nothing
	 */
	void (*release)(struct weft_request *req);
	/** @return 0 it has ended, or will; -EBUSY too late. NULL = it cannot be cancelled */
	int (*cancel)(struct weft_request *req);
	/** A one-line description for logs. @return as snprintf() */
	int (*describe)(const struct weft_request *req, char *buf, size_t size);
	/** A lane has finished a piece: complete the request if it is over. NULL = no pieces */
	void (*check)(struct weft_request *req);
};

/* Request flags. */
#define WEFT_REQ_HELD (1u << 0)    /**< the user has the pointer to the request */
#define WEFT_REQ_DONE (1u << 1)    /**< its callback has begun, or it is free */
#define WEFT_REQ_CALLING (1u << 2) /**< its callback runs; the pool gets the request afterwards */
#define WEFT_REQ_POSTED (1u << 3)  /**< receive: is in the matching lists */
#define WEFT_REQ_ACTIVE (1u << 4)  /**< receive: matched, data is coming */
#define WEFT_REQ_PENDING (1u << 5) /**< send: in its endpoint's pending queue */
#define WEFT_REQ_DATA (1u << 6)    /**< send: in its endpoint's rendezvous data queue */
/** send: a lane has its RTS or its first piece; remote memory: the operation has begun */
#define WEFT_REQ_STARTED (1u << 7)
/** send: a lane has all that may be sent before the peer replies; or the send ends early */
#define WEFT_REQ_HANDED (1u << 8)
#define WEFT_REQ_SYNC (1u << 9) /**< send: complete when a receive has matched it */
/** send: waits for SYNC_ACK or ATS; remote memory: for replies or a confirmation */
#define WEFT_REQ_WAIT_ACK (1u << 10)
#define WEFT_REQ_FORCE (1u << 11)     /**< the request never completes inside its call */
#define WEFT_REQ_RTR (1u << 12)       /**< send: the receiver has requested the data */
#define WEFT_REQ_UNPACKERR (1u << 13) /**< receive: unpack failed: later bytes are dropped */
#define WEFT_REQ_LATER (1u << 14)     /**< complete, but the callback waits for the next progress */
#define WEFT_REQ_RNDV (1u << 16)      /**< send: announced by an RTS */
#define WEFT_REQ_AM (1u << 18)        /**< an active message */
#define WEFT_REQ_PARKED (1u << 20)    /**< send: in me->parked */
/** send: WITHDRAW is sent; the reply reports whether a receive had matched before */
#define WEFT_REQ_CANCEL (1u << 17)
#define WEFT_REQ_OWN_MEM (1u << 24) /**< send: the library has registered send.mem */
#define WEFT_REQ_KEYS \
	(1u << 19) /**< send: the peer has keys (send.offered), and has not sent ATS */
#define WEFT_REQ_INJECT (1u << 21)  /**< send: WEFT_OP_F_INJECT, and nothing is copied yet */
#define WEFT_REQ_DELIVER (1u << 22) /**< send: complete when it is at the peer */
/** send: in me->flush_waits, since a lane had no room for a flush; counts in send.zcopies */
#define WEFT_REQ_FLUSH_WAIT (1u << 23)
/** send: announced, and the receiver has not requested its data: weft_stall_offered() */
#define WEFT_REQ_OFFERED (1u << 25)
#define WEFT_REQ_TIMED (1u << 26) /**< send: send.begin is valid */
#define WEFT_REQ_NOW (1u << 15)   /**< receive: complete inside the call that posted it */

/** Number of bytes in a request that are for its module alone. */
#define WEFT_REQ_RECV_OWN 88
#define WEFT_REQ_SEND_OWN 88

/** Further fields of a message: channels, immediate data. All zero without any. */
struct weft_ext {
	uint64_t imm;
	uint16_t channel, source_channel;
	bool has_imm;
	bool any; /* sends: some field is not 0, so EXT precedes each header of the message */
};

/** The fields of the header of an active message that is sent (msg/eager.c). */
struct weft_req_am {
	const void *header;
	void *copy; /* of the header, if it is not sent at once */
	uint16_t id, header_length;
};

struct weft_request {
	/* cache line 0: completion */
	struct weft_msg_worker *mw;
	uint32_t flags;
	int32_t status; /* WEFT_INPROGRESS until an error or the end */
	weft_complete_cb cb;
	void *cb_arg;
	uint64_t tag;           /* send: its tag; receive: the sender's, once matched */
	size_t length;          /* send: bytes; receive: bytes sent, once matched */
	struct weft_msg_ep *me; /* send: endpoint; receive: source, once matched */
	uint32_t index, generation;
	/* cache line 1: data */
	const struct weft_request_ops *ops;
	struct weft_dt dt;
	uint16_t op; /* send: enum weft_op */
	/* The endpoint that the completion reports, which may have been closed since. */
	uint32_t ep_slot, ep_generation;
	uint64_t source_id;
	struct weft_ext ext;
	TAILQ_ENTRY(weft_request)
	link; /* in the queue that its flags name, or among free requests */
	union {
		struct {
			TAILQ_ENTRY(weft_request) ops_link; /* in me->ops or me->parked */
			uint64_t op_sn;
			uint64_t begin; /* worker->now at the call; WEFT_REQ_TIMED */
			const struct weft_proto *proto;
			struct weft_mem *mem;
			/* memory for a copy of the buffer, or the copy; NULL = none */
			void *inject;
			struct weft_lane_comp comp; /* of every zcopy piece and flush */
			uint32_t zcopies; /* completions to come: zcopy pieces, natives, flushes */
			/* number of ranges of PULLs or failed puts that no lane has in full */
			uint32_t pulls;
			struct weft_rndv_offer *put; /* keys of an RTR, or NULL */
			uint32_t seq;
			uint32_t unflushed; /* mask of the lanes that had no room for a flush */
			size_t offset, end; /* next byte to hand over; end of RTR's range */
			struct weft_wire_ref peer; /* the peer's request, for data or a reply */
			union {
				uint64_t own[WEFT_REQ_SEND_OWN / 8]; /* module's */
				struct {
					struct weft_req_am am;    /* WEFT_REQ_AM */
					struct weft_mem *offered; /* WEFT_REQ_KEYS */
				};
			};
		} send; /* also of operations on remote memory */
		struct {
			/* rendezvous, while ACTIVE; NULL = the data comes in pieces */
			struct weft_fetch *fetch;
			uint64_t own[WEFT_REQ_RECV_OWN / 8]; /* module's */
		} recv;
		const char *what; /* of weft_msg_request_new(): text for logs */
	};
};

TAILQ_HEAD(weft_requests, weft_request);

/** Requests of one worker; their addresses never change. */
struct weft_request_table {
	struct weft_request **chunks;
	uint32_t num_chunks;
	uint32_t in_use;
	struct weft_request *free; /* a list by link.tqe_next */
};

#define WEFT_REQ_CHUNK 256 /* requests per chunk */

void weft_request_table_fini(struct weft_msg_worker *mw);

/** No request is free: allocate a chunk of them. @return one of them; NULL = no memory */
struct weft_request *weft_request_more(struct weft_msg_worker *mw);

const char *weft_send_state(const struct weft_request *req);
/**
 * weft_request_ops.describe() of messages.
 * @param what  the kind of message
 * @param key   the name of the number req->tag: "tag", "id"
 */
int weft_send_describe(const struct weft_request *req, const char *what, const char *key, char *buf,
		       size_t size);
int weft_recv_describe(const struct weft_request *req, const char *what, const char *key, char *buf,
		       size_t size);

/** Free a request that the user never got, without a call of its callback. */
void weft_request_drop(struct weft_request *req);

/**
 * The end of an operation: finishes the datatype, calls the callback, and frees the request unless
 * it is held. While the worker is being destroyed, the callback runs later
 * (weft_request_complete_later()). Afterwards the request, and everything that the callback may
 * have closed, must not be used.
 */
void weft_request_complete(struct weft_request *req, int status);

/** The request ends inside the call that starts it: its callback runs in the next progress call. */
void weft_request_complete_later(struct weft_request *req, int status);

/** Complete the requests of weft_request_complete_later(). @return how many */
unsigned int weft_request_run_later(struct weft_msg_worker *mw);

/** Copy the fields of @p from that the caller's version of @p to has (to->size). */
static inline void weft_completion_copy(struct weft_completion *to,
					const struct weft_completion *from)
{
	size_t size = to->size;

	memcpy(to, from, size < sizeof(*from) ? size : sizeof(*from));
	to->size = size;
}

/** Replace req->me by the endpoint's slot and generation: the endpoint may be freed from now on. */
void weft_request_settle(struct weft_request *req);

/** Fill @p c from a request that is complete or about to be. */
void weft_request_result(const struct weft_request *req, struct weft_completion *c);

/** @return the request that a wire reference names; NULL = none, or its callback has begun */
struct weft_request *weft_request_lookup(const struct weft_msg_worker *mw,
					 struct weft_wire_ref ref);

static inline struct weft_wire_ref weft_request_ref(const struct weft_request *req)
{
	return (struct weft_wire_ref){weft_put32(req->index), weft_put32(req->generation)};
}

/** Bytes of struct weft_op_params that every version of the API has. */
#define WEFT_OP_PARAMS_LEAST offsetof(struct weft_op_params, imm)

/** The flags that sends accept. */
#define WEFT_OPS_SEND                                                                       \
	(WEFT_OP_F_FORCE_REQUEST | WEFT_OP_F_IMM | WEFT_OP_F_INJECT | WEFT_OP_F_DELIVERED | \
	 WEFT_OP_F_MORE | WEFT_OP_F_POLLED)

/** Is @p params NULL, or of a valid size and without flags but @p flags? @return 0 or -EINVAL */
static inline int weft_op_params_allow(const struct weft_op_params *params, uint32_t flags)
{
	if (!params)
		return 0;
	return params->size < WEFT_OP_PARAMS_LEAST || (params->flags & ~flags) ? -EINVAL : 0;
}

/** weft_op_params_allow() for operations whose only flag is WEFT_OP_F_FORCE_REQUEST. */
static inline int weft_op_params_check(const struct weft_op_params *params)
{
	return weft_op_params_allow(params, WEFT_OP_F_FORCE_REQUEST);
}

/** Is @p params NULL, or of an older version of the API with fewer fields? */
static inline bool weft_op_params_short(const struct weft_op_params *params)
{
	return !params || params->size < sizeof(*params);
}

/** Set the further fields of a message to be sent. No effect if @p params do not have them. */
static inline void weft_ext_of_send(struct weft_ext *x, const struct weft_op_params *params)
{
	if (weft_op_params_short(params))
		return;
	x->has_imm = params->flags & WEFT_OP_F_IMM;
	x->imm = x->has_imm ? params->imm : 0;
	x->channel = params->channel;
	x->source_channel = params->source_channel;
	x->any = x->has_imm || x->channel || x->source_channel;
}

/** The EXT header of a message with @p id. */
static inline struct weft_wire_ext weft_ext_to_wire(const struct weft_ext *x, uint8_t id)
{
	return (struct weft_wire_ext){
		.id = id,
		.flags = x->has_imm ? WEFT_EXT_F_IMM : 0,
		.channel = weft_put16(x->channel),
		.source_channel = weft_put16(x->source_channel),
		.imm = weft_put64(x->imm),
	};
}

static inline struct weft_ext weft_ext_from_wire(const struct weft_wire_ext *w)
{
	return (struct weft_ext){
		.imm = weft_get64(w->imm),
		.channel = weft_get16(w->channel),
		.source_channel = weft_get16(w->source_channel),
		.has_imm = w->flags & WEFT_EXT_F_IMM,
	};
}

/**
 * A request for an operation of the connection layer (close, flush). It is created here, ended by
 * weft_msg_request_done(), and tested, queried and freed like any other; it cannot be cancelled.
 * @param what    static text for weft_request_query(): "endpoint close"
 * @param params  callback, its argument, WEFT_OP_F_FORCE_REQUEST; NULL = none of them
 * @param wanted  the caller gets the request; else the library frees it after the callback
 * @return NULL = no memory
 */
struct weft_request *weft_msg_request_new(struct weft_worker *worker, const char *what,
					  const struct weft_op_params *params, bool wanted);
/** End a request of weft_msg_request_new(): its callback runs, unless the user has freed it. */
void weft_msg_request_done(struct weft_request *req, int status);
/**
 * The operation ended inside its call. @return the result of that call: @p status, and the request
 * is freed; or WEFT_INPROGRESS with WEFT_OP_F_FORCE_REQUEST, and the request ends with @p status at
 * the next progress
 */
int weft_msg_request_at_once(struct weft_request *req, int status);

/* ------------------------------------------------------------------ stalls */

/*
 * What sends wait for, as time: weft-info --why prints it. A stall is the state of an endpoint
 * whose queue cannot go on, or of an announced message whose receiver has not requested its data.
 * The clock is that of progress calls: no message costs a clock read, and a worker without a stall
 * pays one comparison a progress call.
 */

struct weft_msg_ep;
struct weft_msg_worker;
struct weft_request;

/** What the head of an endpoint's queue waits for, or (RECEIVE) an announced message. */
enum weft_stall {
	WEFT_STALL_NONE,
	WEFT_STALL_CONNECT,
	WEFT_STALL_CREDIT,  /**< the peer has given no credit for the next message */
	WEFT_STALL_LANE,    /**< no lane has room: the lanes count why */
	WEFT_STALL_RECEIVE, /**< an announced message: the receiver has not requested its data */
	WEFT_STALLS
};

/**
 * Sends are counted by class of length, and by step of time. Step k counts times below 4^k us
 * that no lower step counts. The last step has no end.
 */
#define WEFT_LATENCY_SIZES 5u
#define WEFT_LATENCY_STEPS 11u

/** Times of a worker. All are ns of its progress calls. */
struct weft_stalls {
	uint64_t at; /**< time of the last weft_stall_progress(): time is accounted up to it */
	/** Number of endpoints (RECEIVE: messages) in each state now; and the sum of all. */
	uint32_t num[WEFT_STALLS], all;
	uint64_t ns[WEFT_STALLS]; /**< time in which num[] of a state was not 0 */
	/** Number of sends that ended after their call. */
	uint64_t latency[WEFT_LATENCY_SIZES][WEFT_LATENCY_STEPS];
	uint64_t bytes[WEFT_LATENCY_SIZES]; /**< sum of the lengths of these sends */
};

/** Set what the head of @p me's queue waits for. */
void weft_stall_set(struct weft_msg_ep *me, enum weft_stall stall);
/** The message is announced. A second call has no effect. */
void weft_stall_offered(struct weft_request *req);
/** The receiver has requested its data, or the send is over. May be called at any time. */
void weft_stall_requested(struct weft_request *req);

/** Add @p ns to each state that an endpoint or a message is in. */
void weft_stall_account(struct weft_stalls *s, uint64_t ns);

/** Add the time since the last call to the present states. Called once per progress call. */
static inline void weft_stall_progress(struct weft_stalls *s, uint64_t now)
{
	if (__builtin_expect(s->all, 0))
		weft_stall_account(s, now - s->at);
	s->at = now;
}

/** A send not complete inside its call begins or ends. An end without a begin counts nothing. */
void weft_latency_begin(struct weft_request *req);
void weft_latency_end(const struct weft_request *req);
/** The mean length of the sends of class @p size; 0 = there was none, or all were empty. */
size_t weft_latency_mean_size(const struct weft_stalls *s, unsigned int size);

extern const struct weft_lane_counter weft_stall_counter_help[];
void weft_stall_counters(const struct weft_stalls *s, weft_lane_counter_cb cb, void *arg);

#endif /* WEFT_REQUEST_H */
