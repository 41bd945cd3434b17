/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/rma.h
 * Remote memory: puts, gets and atomics of an endpoint, by the lanes themselves where they can,
 * else by messages that the peer's progress carries out.
 *
 *	rma/rma.c        the calls of weft_rma.h
 *	rma/rkey.c       remote keys
 *	rma/key_ask.c    and those that are made of the number alone
 *	rma/proto.c      protocols: puts, gets and atomics by lanes or by messages, and their costs
 *	rma/initiator.c  the initiator's part of what goes over the wire
 *	rma/answer.c     and what the peer answers
 *	rma/notify.c     puts that notify their target: both parts
 *	rma/native.c     the initiator's part over lanes that access remote memory
 *	rma/local.c      the initiator's own buffer for those
 *	rma/vector.c     atomics on typed arrays, at the initiator
 *	rma/vector_target.c
 *	                 and at the target
 *	rma/gets.c       how much a worker requests at a time
 *	rma/target.c     requests from peers
 *	rma/fence.c      order: what is confirmed, fences, and flush's request for it
 *	rma/module.c     the hooks (msg/module.h)
 *
 * Who knows what. PUT and AMO messages have no answer (a fetching AMO has); they are counted at
 * both ends. RMA_FLUSH requests an answer when all of them so far are done; the answer also says
 * how many RMA_NAK were sent for them, so that it takes effect only after those, whatever order
 * lanes deliver in. GETs are answered by data or a NAK, byte for byte.
 *
 * Messages overtake each other, so a bare number of what is done, or refused, says nothing of
 * which: there are two counts, even and odd, and each RMA_FLUSH is about the one that nothing is
 * added to until its answer has come.
 *
 *	sent       PUT and counted AMO messages handed to lanes
 *	wanted     so many must be confirmed, for somebody who waits
 *	confirmed  the first so many are done at the peer, errors reported
 *
 * An endpoint is *quiet* when nothing is running and sent == confirmed: a fence lets go then.
 */
#ifndef WEFT_RMA_H
#define WEFT_RMA_H

#include "base/counters.h"
#include "base/seq_table.h"
#include "base/share.h"
#include "msg/msg.h"

enum weft_rma_kind {
	WEFT_RMA_PUT,
	WEFT_RMA_GET,
	WEFT_RMA_AMO,
	WEFT_RMA_ANSWER, /**< ours to a peer's GET */
	WEFT_RMA_SMALL,  /**< ours without payload, that found no room */
};

/** Answers that an endpoint has requested: GETs of WEFT_RMA_CHUNK bytes, fetching atomics. */
#define WEFT_RMA_OPEN 64
#define WEFT_RMA_CHUNK (64u << 10)

static_assert(WEFT_RMA_OPEN * 2 <= WEFT_WIRE_ANSWERS, "room for what crosses");
static_assert(WEFT_RMA_CHUNK <= WEFT_WIRE_GET_MAX, "wire");

/**
 * Remote memory: what rma/initiator.c and rma/target.c keep of an operation, or of an answer to
 * one: weft_rma_req().
 */
struct weft_req_rma {
	struct weft_rkey *rkey;     /* NULL: an answer */
	uint64_t remote;            /* offset in the peer's memory; of an answer: at the asker */
	uint64_t count;             /* DELIVERED: complete when so many messages are confirmed */
	uint32_t epoch;             /* worker fences before it */
	uint16_t lanes;             /* native: those that can */
	uint16_t pieces;            /* answers that it waits for, of those that the window counts */
	uint8_t kind;               /* enum weft_rma_kind */
	bool fence;                 /* waits for what was posted before it */
	bool delivered;             /* WEFT_OP_DELIVERED */
	bool native;                /* by the lanes themselves */
	bool again;                 /* a lane died with a part of it: all again */
	uint8_t op, width;          /* atomic */
	uint8_t type;               /* of an array; 0 = `amo` */
	struct weft_rma_regs *regs; /* native, of an iov: registrations of its entries */
	union {
		struct weft_ivals got; /* get by messages: what has come */
		uint32_t number;       /* put that notifies (request's ext.any) */
		struct {
			uint64_t operand, compare, old;
			void *result;
		} amo;
		struct {
			const uint8_t *operands, *compares;
			uint64_t reserved;
			uint8_t *results; /* where amo.result is */
		} vec;
		struct {
			uint8_t id, length;
			uint8_t data[38];
		} small; /* answer without payload */
	};
};

static_assert(sizeof(struct weft_req_rma) <= WEFT_REQ_SEND_OWN, "room in the request");

static inline struct weft_req_rma *weft_rma_req(const struct weft_request *req)
{
	return (struct weft_req_rma *)(uintptr_t)req->send.own;
}

/** What peers did to our memory, what we did, and what was refused. */
#define WEFT_RMA_COUNTERS(X)                                                                      \
	X(puts, "rma.puts", "Puts of peers into memory here.")                                    \
	X(put_bytes, "rma.put_bytes", "Bytes that peers have put here.")                          \
	X(gets_served, "rma.gets", "Gets of peers that were answered.")                           \
	X(get_bytes, "rma.get_bytes", "Bytes that peers have got from here.")                     \
	X(amos, "rma.atomics", "Atomic operations of peers that were done here.")                 \
	X(native_bytes, "rma.native_bytes",                                                       \
	  "Bytes moved by native reads and writes of operations.")                                \
	X(gets_limited, "rma.gets_limited", "Tries of gets that had to wait for others.")         \
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
	  "Notifications of puts that nobody listened to.")                                       \
	X(too_many, "rma.drop.too_many", "Requests of peers refused: beyond their window.")

/** Of a worker: mw->rma. */
struct weft_rma_worker {
	uint32_t fence_sn, fence_done; /* fences of the worker: called for, passed */
	LIST_HEAD(, weft_rkey) asked;  /* KEY_REQ is under way */
	weft_put_cb put_cb;            /* the application's, or NULL */
	void *put_arg;
	uint32_t fence_holders;     /* endpoints that the next one waits for */
	LIST_HEAD(, weft_rma) used; /* by operations, since a fence has looked last */
	WEFT_RMA_COUNTERS(WEFT_COUNTER_FIELD)
	struct weft_share gets; /* pieces that gets have requested */
	TAILQ_HEAD(, weft_rma) gets_waiting;
};

/** A peer's memory. */
struct weft_rkey {
	struct weft_worker *worker; /* ours */
	uint64_t remote_id;         /* worker it is used with */
	uint64_t key, size;
	uint32_t rights;
	uint32_t refs; /* the user, and operations */
	uint8_t low;   /* of the memory's address */
	bool unknown;  /* made of the number alone: the owner checks, until it has said more */
	bool asked;    /* in the worker's list of those */
	const struct weft_peer *asked_of; /* compared only */
	LIST_ENTRY(weft_rkey) asked_link;
	uint8_t num_native;
	struct {
		uint64_t key;
		uint8_t domain;
	} native[WEFT_RKEY_DOMAINS];
};

/**
 * Errors kept apart until a flush takes them; beyond that a flush may tell one of its neighbours'.
 */
#define WEFT_RMA_ERRORS 8

/** Refused: one at least from the first to the last, by numbers of operations. */
struct weft_rma_error {
	uint64_t first, last;
	int status;
};

/** Remote memory of one endpoint, made with its first use at either end. */
struct weft_rma {
	/* what we ask */
	struct weft_requests pending; /* not handed over, in order */
	struct weft_requests waiting; /* DELIVERED, by the count they wait for */
	uint64_t sent, wanted, confirmed;
	uint64_t half[2];   /* of sent: even, odd */
	uint64_t ask_sent;  /* when the RMA_FLUSH under way went out */
	uint64_t naks[2];   /* that have come: of the even, of the odd half */
	uint64_t told_naks; /* of the last RMA_FLUSHED */
	uint64_t errors;    /* that an RMA_FLUSHED has told, as seen */
	struct weft_rma_error error[WEFT_RMA_ERRORS]; /* that no request could tell; for flush */
	uint32_t num_errors;
	uint32_t running; /* started, not over */
	uint32_t open;    /* of WEFT_RMA_OPEN */
	uint32_t gets;    /* of them, those that count for WEFT_RMA_MAX_GETS */
	uint32_t epoch;   /* worker fence before what is running */
	bool odd;         /* the half that is added to */
	bool asking;      /* an RMA_FLUSH is under way: about the other half */
	bool told;        /* and answered, but RMA_NAKs are missing */
	bool ask_due;     /* one found no room */
	bool fence;       /* the next operation waits for those before it */
	bool warned;
	bool listed; /* in the worker's list of those */
	bool holds;  /* is one of fence_holders */
	LIST_ENTRY(weft_rma) used_link;
	bool gets_wait;               /* for room to request more */
	bool gets_listed;             /* in the worker's list of those */
	struct weft_share_user share; /* of the worker's gets */
	TAILQ_ENTRY(weft_rma) gets_link;
	/* Puts that notify: begun since `sent` was note_mark; a number for the next one. */
	uint64_t note_mark;
	uint32_t notes, note_number;
	struct weft_msg_ep *me;
	/* what the peer asks */
	struct weft_seq_table noted; /* its puts that notify, of which a part is here */
	struct weft_requests answers;
	uint32_t answers_open;
	bool asked, asked_odd; /* an RMA_FLUSH waits for */
	uint64_t asked_count;
	uint64_t done[2];      /* PUT and counted AMO messages, refused ones included: even, odd */
	uint32_t done_part[2]; /* and 2^-32 of one */
	uint64_t naks_sent[2], refused;
	int refused_status;
	uint32_t refused_first, refused_last; /* since the last RMA_FLUSHED; told: none since */
	bool refused_told;
	struct weft_wire_ref last_nak; /* one is enough for the pieces of one PUT */
};

/** The endpoint's, made if need be. @return NULL = no memory */
struct weft_rma *weft_rma_of(struct weft_msg_ep *me);

static inline bool weft_rma_quiet(const struct weft_rma *rma)
{
	return rma->running == 0 && rma->sent == rma->confirmed;
}

/** Is what the peer's RMA_FLUSH requested done? */
static inline bool weft_rma_asked_done(const struct weft_rma *rma)
{
	return rma->asked && rma->done[rma->asked_odd] >= rma->asked_count;
}

/** A PUT or counted AMO of half @p odd is with a lane. */
static inline void weft_rma_count(struct weft_rma *rma, bool odd)
{
	rma->sent++;
	rma->half[odd]++;
}

/* ------------------------------------------------------------------ asker (rma/initiator.c) */

/**
 * Put a new operation in line; it goes out at once where it may. @return 0 it is over and was
 * dropped; WEFT_INPROGRESS; an error (dropped)
 */
int weft_rma_start(struct weft_request *req);
/** Pieces of the window that it holds, given what has been requested and has not come. */
void weft_rma_set_pieces(struct weft_request *req, uint64_t left);
/** Something of the operation is over: look whether all is. */
void weft_rma_check(struct weft_request *req);
void weft_rma_recv_data(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_amo_rep(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_nak(struct weft_msg_ep *me, const void *data, size_t payload);

/*
 * Hand over what lanes take, by messages: what the protocols do. @return as weft_proto.progress()
 */
int weft_rma_put_step(struct weft_request *req);
int weft_rma_get_step(struct weft_request *req);
int weft_rma_amo_step(struct weft_request *req);
/** A native one, of which nothing is under way any more, begins again: perhaps another way. */
void weft_rma_restart(struct weft_request *req);
/** Their reset(): what has not left may take another way. */
int weft_rma_reset(struct weft_request *req);

/** Can lanes carry the operation out themselves? Registers the buffer if that is worth it. */
bool weft_rma_native_begin(struct weft_request *req);
/** Hand over to @p lanes. @return 0, -EAGAIN, or the lane's error */
int weft_rma_native_step(struct weft_request *req);

/** Lanes of the endpoint could do with their own keys: request them, once. */
void weft_rkey_ask(struct weft_msg_ep *me, struct weft_rkey *rkey);
void weft_rma_recv_key_req(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_key(struct weft_msg_ep *me, const void *data, size_t payload);
/** Nobody uses it any more. */
void weft_rkey_free(struct weft_rkey *rkey);

/** Hand over an atomic on an array: as weft_proto.progress(). */
int weft_rma_vec_step(struct weft_request *req);
void weft_rma_recv_amov(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_amov_rep(struct weft_msg_ep *me, const void *data, size_t payload);
/** Enter the memory for [offset, offset + length). @return 0: to be left again; or why not */
int weft_rma_enter(struct weft_msg_ep *me, uint64_t key, uint64_t offset, uint64_t length,
		   unsigned int right, struct weft_mem_slot **out);
/** Answer without payload, now or as soon as there is room. */
void weft_rma_refuse(struct weft_msg_ep *me, struct weft_wire_ref ref, uint64_t length, int status,
		     unsigned int flags);
/** A PUT or counted atomic is over, with an error if @p status is one. */
void weft_rma_counted(struct weft_msg_ep *me, struct weft_wire_ref ref, uint32_t flags,
		      uint32_t number, int status);

/** What all pieces of a put begin with. */
struct weft_wire_put weft_rma_put_head(const struct weft_request *req, size_t off);
/**
 * weft_stripe()'s piece of a put: bytes from @p off on, behind the header @p hdr of message @p id.
 *
 * @return bytes that left, 0 when the put has ended, or -EAGAIN
 */
ssize_t weft_rma_put_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
			   size_t hdr_len, size_t off, size_t rest);

/* ------------------------------------------------------------------ rma/notify.c */

/** May one more put that notifies begin? If not, the peer has been asked how far it is. */
static inline bool weft_rma_note_room(const struct weft_rma *rma)
{
	return rma->notes < WEFT_WIRE_NOTES / 4 || rma->confirmed >= rma->note_mark;
}

/** It begins. */
void weft_rma_note_begin(struct weft_request *req);
/** As weft_rma_put_step(). */
int weft_rma_note_step(struct weft_request *req);
void weft_rma_recv_put_note(struct weft_msg_ep *me, const struct weft_wire_put_note *n,
			    size_t payload, const struct weft_ext *x);
/** What is here in part will not become whole. */
void weft_rma_note_drop(struct weft_rma *rma);
/** Check and write a PUT's bytes. @return 0, or why not */
int weft_rma_write(struct weft_msg_ep *me, const struct weft_wire_put *put, const void *bytes,
		   size_t length);

/* ------------------------------------------------------------------ own buffers (rma/local.c) */

/** Is the buffer registered for one of @p lanes, by the user or now? */
bool weft_rma_local_get(struct weft_request *req, uint32_t lanes);
/** Can the lanes of @p iface reach all of it? */
bool weft_rma_local_on(const struct weft_request *req, const struct weft_lane_iface *iface);
/**
 * The buffer from @p off on as @p max pieces at most, which all lie in one registration.
 * @param[in,out] len  bytes; those described
 */
unsigned int weft_rma_local_iov(struct weft_request *req, const struct weft_lane_iface *iface,
				size_t off, size_t *len, struct iovec *iov, unsigned int max,
				struct weft_mem_lane **mem);
/** Registrations that weft_rma_local_get() made are given back; the user's stays. */
void weft_rma_local_put(struct weft_request *req);

/* ------------------------------------------------------------------ gets under way (rma/gets.c) */

/** May this endpoint request one more piece? If not, it is kicked when it may. Counted. */
bool weft_rma_gets_room(struct weft_msg_ep *me);
/** So many more pieces are under way. */
void weft_rma_gets_take(struct weft_msg_ep *me, uint32_t pieces);
/** So many have come, or (@p good false) will not. */
void weft_rma_gets_done(struct weft_msg_ep *me, uint32_t pieces, bool good);
/** There may be room for those that wait. */
void weft_rma_gets_look(struct weft_msg_worker *mw);
/** The endpoint waits no more. */
void weft_rma_gets_leave(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ target (rma/target.c) */

void weft_rma_recv_put(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_get(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_amo(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_flush(struct weft_msg_ep *me, const void *data, size_t payload);
/** Answers that found no room. @return events */
unsigned int weft_rma_serve_answers(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ order (rma/fence.c) */

/** Must it wait for what was posted before a fence? */
bool weft_rma_blocked(const struct weft_request *req);
/**
 * May the operation, the next one of its endpoint, start? If not, what it waits for is requested.
 */
bool weft_rma_may_start(struct weft_request *req);
/** It has an operation: fences check it. */
static inline void weft_rma_use(struct weft_rma *rma)
{
	if (rma->listed)
		return;
	rma->listed = true;
	LIST_INSERT_HEAD(&rma->me->mw->rma->used, rma, used_link);
}

/** So many shall be confirmed. */
void weft_rma_want(struct weft_msg_ep *me, uint64_t count);
/** Send what RMA_FLUSH is due. */
void weft_rma_ask(struct weft_msg_ep *me);
void weft_rma_recv_flushed(struct weft_msg_ep *me, const void *data, size_t payload);
/** A NAK has come: perhaps an RMA_FLUSHED waits for it. */
void weft_rma_nak_counted(struct weft_msg_ep *me);
/** An operation has ended, or is confirmed: others may go on. */
void weft_rma_moved(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ hooks and handlers */

extern const struct weft_module weft_rma_module;
extern const struct weft_request_ops weft_rma_ops;

extern const struct weft_proto weft_proto_put_native;
extern const struct weft_proto weft_proto_put_am;
extern const struct weft_proto weft_proto_get_native;
extern const struct weft_proto weft_proto_get_am;
extern const struct weft_proto weft_proto_amo_native;
extern const struct weft_proto weft_proto_amo_am;

/** The endpoint's, made if need be; without memory the endpoint fails. */
bool weft_rma_ready(struct weft_msg_ep *me);
/** Serve what waits. @return events */
unsigned int weft_rma_serve(struct weft_msg_ep *me);
/** Would weft_rma_serve() find something to try? */
bool weft_rma_has_work(const struct weft_msg_ep *me);
/** Flush: is everything confirmed? @p count is 0 at first, and kept between calls. */
bool weft_rma_flushed(struct weft_msg_ep *me, uint64_t *count);
/** Of these operations one at least has ended with an error, and no request is there to tell. */
void weft_rma_error(struct weft_rma *rma, uint64_t first, uint64_t last, int status);
/** Of which operation is this the number, as the peer says it again? */
static inline uint64_t weft_rma_op_sn(const struct weft_msg_ep *me, uint64_t number)
{
	return me->op_sn - ((me->op_sn - number) & WEFT_WIRE_RMA_NUMBER);
}
/** The error that flush shall tell, once: of operations before @p op_sn. */
int weft_rma_take_status(struct weft_msg_ep *me, uint64_t op_sn);
#endif /* WEFT_RMA_H */
