/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/rndv.h
 * Rendezvous transfers the data of an announced message of any message class (tags, active
 * messages). Matching is done by the class.
 *
 *	a message class (tags, active messages)          rendezvous (this file)
 *	its own RTS, which contains an *offer*           weft_rndv_offer(), weft_rndv_offered()
 *	the receiver knows the data's destination        weft_rndv_fetch()
 *	or does not need the data                        weft_rndv_refuse()
 *	the receive request ends                         weft_recv_done()
 *
 * Files:
 *
 *	rndv/proto.c   protocols: how the sender announces, and their costs
 *	rndv/send.c    the sender's half: serves pulls and RTR, until ATS
 *	rndv/recv.c    the receiver's half: from the match to the last byte
 *	rndv/data.c    how the data is transferred: the receiver's choice
 *	rndv/pull.c    which bytes are requested next
 *	rndv/schedule.c    from which endpoint: the queues of endpoints that wait for a port
 *	rndv/port.c    how many bytes may be requested over one port (rndv/port.h)
 *	rndv/native.c  native reads by a lane
 *	rndv/keys.c    keys by which the peer accesses the memory of one message
 *	rndv/module.c  the hooks (msg/module.h)
 *
 * A fetch uses one of three schemes, as the offer and WEFT_RNDV_SCHEME allow:
 * - get: the receiver requests bytes in pieces, a few per lane at a time. A lane with native reads
 *   reads them, if the offer has a key for it. Over any other lane the receiver sends a PULL, and
 *   the sender replies with DATA on that lane. The bytes outstanding are bounded per lane and per
 *   worker, so the receiver controls the load, however many peers send to it;
 * - put: RTR with keys. The sender writes and reports it (PUT_DONE); over lanes that cannot write
 *   it sends DATA;
 * - am: RTR, the sender sends DATA as its lanes accept it.
 *
 * With each of them ATS ends the request at the sender.
 */
#ifndef WEFT_RNDV_H
#define WEFT_RNDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/pacing.h"
#include "msg/msg.h"
#include "rndv/port.h"

struct weft_pull_range;

/** bytes that all peers may have outstanding at a time, if WEFT_RNDV_LIMIT is not less */
#define WEFT_RNDV_PULLS_MIN (4u << 20)
/**
 * Pulls of one peer that may wait for their lanes here. Our receivers have far fewer outstanding.
 */
#define WEFT_RNDV_PULLS_MAX 1024u
/** bytes; messages with no more than this left to request precede others */
#define WEFT_RNDV_SHORT (64u << 10)
/** But one of this number of pieces goes to the others. */
#define WEFT_RNDV_TURNS 4u

/* ------------------------------------------------------------------ offers */

/** The offer in an RTS: stored until a receive requests the data. */
struct weft_rndv_offer {
	struct weft_wire_ref sreq;
	uint32_t flags;  /**< WEFT_RTS_F_* */
	uint32_t lanes;  /**< lanes with a key */
	uint64_t offset; /**< of the data from the start of the registration */
	uint64_t key[WEFT_MAX_LANES];
};

/**
 * The sender's RTS, of any message class, is being written: describe what the receiver may do.
 * @param flags    for its flags field
 * @param records  WEFT_HEAD_RECORDS_MAX bytes, to follow the RTS
 * @return bytes of records
 */
size_t weft_rndv_offer(struct weft_request *req, weft_le32 *flags, void *records);

/**
 * A lane has taken the RTS. From now on until ATS the peer may refer to the request, which waits
 * (WEFT_REQ_WAIT_ACK).
 */
void weft_rndv_offered(struct weft_request *req);

/** Read an offer from a validated RTS. Without keys the key array is not set: see lanes. */
void weft_rndv_offer_read(struct weft_rndv_offer *offer, struct weft_wire_ref sreq, weft_le32 flags,
			  const void *records, size_t length);

/* ------------------------------------------------------------------ receiver */

/**
 * Transfer the @c req->length bytes of an offer to the buffer of @c req->dt, as far as they fit. A
 * request that has failed already (status), or an empty message, needs no data: the sender is
 * notified that it may finish.
 * @param now  see weft_recv_done(), which ends it
 */
void weft_rndv_fetch(struct weft_msg_ep *me, struct weft_request *req,
		     const struct weft_rndv_offer *offer, bool now);

/** The receiver does not need the data, or (@p status) cannot receive it. */
void weft_rndv_refuse(struct weft_msg_ep *me, struct weft_wire_ref sreq, int status);

/* ------------------------------------------------------------------ handlers (msg/module.h) */

void weft_rndv_recv_rtr(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_pull(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_data(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_put_done(struct weft_msg_ep *me, const void *data, size_t payload);
/** An ABORT that refers to a local request. */
void weft_rndv_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_ats(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_sync_ack(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_send_ats(struct weft_msg_ep *me, uint8_t id, struct weft_wire_ref sreq, int status);

extern const struct weft_module weft_rndv_module;

extern const struct weft_proto weft_proto_rndv_get;
extern const struct weft_proto weft_proto_rndv_pull;
extern const struct weft_proto weft_proto_rndv_put;
extern const struct weft_proto weft_proto_rndv_am;
extern const struct weft_proto weft_proto_data_get;
extern const struct weft_proto weft_proto_data_pull;
extern const struct weft_proto weft_proto_data_put;
extern const struct weft_proto weft_proto_data_am;

/* ------------------------------------------------------------------ state */

/** Rendezvous state of one lane of an endpoint. */
struct weft_rndv_lane {
	STAILQ_HEAD(, weft_pull) pulls; /**< sender: requested over this lane, in order */
	struct weft_rndv_port *port;    /**< receiver: its local port, or NULL */
	uint64_t out;                   /**< bytes outstanding on it, without those that are late */
	uint32_t late;                  /**< requests that are late: no data comes */
};

TAILQ_HEAD(weft_pull_ranges, weft_pull_range);
TAILQ_HEAD(weft_fetches, weft_fetch);
TAILQ_HEAD(weft_rndvs, weft_rndv);

enum { WEFT_RNDV_IS_SHORT, WEFT_RNDV_IS_LONG, WEFT_RNDV_SIZES };

/** A local port over which data comes. */
struct weft_rndv_port {
	struct weft_pull_port pull;
	struct weft_rndvs line[WEFT_RNDV_SIZES]; /**< queues of endpoints that wait for it */
	uint32_t waiting;                        /**< number of endpoints in them */
	uint32_t turns;                          /**< number of pieces given to the queues */
	/** requests outstanding over it, roughly in order; without late ones */
	struct weft_pull_ranges ranges;
};

/** Rendezvous state of an endpoint: me->rndv. */
struct weft_rndv {
	struct weft_msg_ep *me;
	/* sender */
	struct weft_requests data; /**< data requested by RTR, to be handed over in any order */
	uint32_t num_pulls;        /**< the peer's pulls that wait */
	struct weft_rndv_lane lanes[WEFT_MAX_LANES];
	/* receiver */
	struct weft_requests active; /**< receives that have a fetch */
	/** fetches with something left to request, in order */
	struct weft_fetches fetches[WEFT_RNDV_SIZES];
	uint64_t unrequested;         /**< bytes left to request */
	struct weft_share_user pulls; /**< bytes requested */
	uint32_t turns;               /**< pieces requested */
	/**
	 * the list that contains the endpoint: the worker's list of those that may request now, its
	 * list of those that wait for the worker's limit, or a port's queue
	 */
	enum { WEFT_FETCHING_NOT, WEFT_FETCHING, WEFT_FETCHING_LATER, WEFT_FETCHING_LINE } fetching;
	TAILQ_ENTRY(weft_rndv) fetching_link;
	struct weft_rndv_port *line; /**< the port in whose queue it is */
	uint8_t line_size;           /**< WEFT_RNDV_IS_SHORT, _LONG */
	struct weft_rndv_port *turn; /**< the port that lets it request one piece now */
};

/** Rendezvous state of a worker: mw->rndv. */
struct weft_rndv_worker {
	struct weft_rndvs fetching;       /**< endpoints that may request more */
	struct weft_rndvs fetching_later; /**< endpoints that wait for the worker's limit */
	uint32_t waiting;                 /**< endpoints in the queues of ports */
	/** number of times that an endpoint began to wait there */
	uint64_t waits;
	uint64_t lates; /**< requests that were found late */
	struct weft_rndv_port ports[WEFT_MAX_IFACES];
	struct weft_share pulls; /**< bytes requested that have not come */
	STAILQ_HEAD(, weft_pull) free_pulls;
	struct weft_pull_ranges free_ranges;
	struct weft_fetches free_fetches;
};

/** Registered memory of [buf, buf + len) and its keys (rndv/keys.c). */

/**
 * Write the keys of registered memory for the peer: one for each lane of @p lanes that has a key,
 * in a record.
 * @return bytes written to @p record, 0 = no lane has one
 */
size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record);
/** Find and read the KEYS record among validated records. */
void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length);
/** Lanes of @p me for rendezvous that have native reads (@p put: writes). */
uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put);

/** Sender: hand over data requested by RTR and PULL, as far as the lanes accept it. */
unsigned int weft_rndv_serve(struct weft_msg_ep *me);
/** Sender: the request ends: remove it from all queues. */
void weft_rndv_send_end(struct weft_request *req);

/*
 * Receiver: begin to transfer the data of a matched receive by its fetch; the progress() of the
 * protocols of WEFT_OP_RNDV_DATA.
 * @return 0
 */
int weft_rndv_begin_get(struct weft_request *req);
int weft_rndv_begin_pull(struct weft_request *req);
int weft_rndv_begin_put(struct weft_request *req);
int weft_rndv_begin_am(struct weft_request *req);
/* The reset() of these protocols. */
int weft_rndv_reset_get(struct weft_request *req);
int weft_rndv_reset_pull(struct weft_request *req);
/** The endpoint has failed: its fetches end. */
void weft_rndv_ended(struct weft_msg_ep *me, int status);
/** The endpoint's protocols have changed: call reset() for its fetches. */
void weft_rndv_reset(struct weft_msg_ep *me);

/** Receiver: this fetch has bytes to request. */
void weft_rndv_pull_add(struct weft_fetch *f);
/** Receiver: request more if there is room. @return pieces requested */
unsigned int weft_rndv_pump(struct weft_msg_worker *mw);
/** Are bytes [off, off + len) outstanding? */
bool weft_rndv_pull_requested(struct weft_fetch *f, uint64_t off, uint64_t len);
/** They have come, for the first time. @return true when their request is complete */
bool weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len);
/** Receiver: read a->left bytes at a->offset over its lane. @return 0, -EAGAIN, or a refusal */
int weft_rndv_native_read(struct weft_fetch *f, struct weft_pull_range *a);
/**
 * Receiver: a native read has ended: its bytes are there, or (if still needed) are requested again.
 */
void weft_rndv_pull_read(struct weft_pull_range *a, bool good);
/** Receiver: a piece of a fetch is in the buffer. End the fetch if it was the last. */
void weft_rndv_fetch_progress(struct weft_fetch *f);
/** Receiver: the last native read of a fetch that is over has ended. */
void weft_rndv_fetch_reads_over(struct weft_fetch *f);
/** The fetch is over: cancel everything outstanding, except native reads (f->reads). */
void weft_rndv_pull_end(struct weft_fetch *f);

/* rndv/schedule.c */
/** Has it bytes left to request? */
bool weft_rndv_wants(const struct weft_rndv *r);
/** The message from which the next piece is, or NULL. */
struct weft_fetch *weft_rndv_next_fetch(const struct weft_rndv *r);
/** Insert it into the worker's list of endpoints that may request. */
void weft_rndv_want(struct weft_rndv *r);
/** Let it wait for the worker's limit; a stalled endpoint waits in no list until it delivers. */
void weft_rndv_want_later(struct weft_rndv *r);
/** Let it wait in the port's queue. */
void weft_rndv_want_port(struct weft_rndv *r, struct weft_rndv_port *p);
/** Remove it from these lists. */
void weft_rndv_unwant(struct weft_rndv *r);
/**
 * The next endpoint that may request, or NULL; @p stuck waits for room, and comes after the others.
 */
struct weft_rndv *weft_rndv_next(struct weft_msg_worker *mw, const struct weft_rndv *stuck);
/** Does the port keep @p lane of @p r from requesting? */
bool weft_rndv_port_full(const struct weft_rndv *r, unsigned int lane);
/**
 * Do other lanes, of any endpoint, have requests outstanding at the port of @p lane of @p r, or do
 * endpoints wait for the port?
 */
bool weft_rndv_port_shared(const struct weft_rndv *r, unsigned int lane);
/** @p a is outstanding, and counts at its port. */
void weft_rndv_port_requested(struct weft_rndv *r, struct weft_pull_range *a);
/** @p bytes of @p a have arrived, or (not @p good) will not arrive. */
void weft_rndv_port_came(struct weft_rndv *r, struct weft_pull_range *a, uint64_t bytes, bool good);
/** The lanes have changed: find the port of each. */
void weft_rndv_port_lanes(struct weft_msg_ep *me);

/** Length of a native write at @p off: at most @p max and a share of the lane's window, aligned. */
size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max);

/** The endpoint's lanes are up, or have changed. */
void weft_rndv_ep_lanes(struct weft_msg_ep *me);
/** The endpoint has failed: it requests nothing more. */
void weft_rndv_ep_fail(struct weft_msg_ep *me);
/** The sender's half of weft_rndv_ep_lanes(). */
void weft_rndv_send_ep_lanes(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ internal */

/** Sender: a range that the peer has requested. */
struct weft_pull {
	STAILQ_ENTRY(weft_pull) link;
	struct weft_request *req;
	uint64_t offset, end; /**< next byte, and the end */
};

/** Receiver: a range requested over one lane. */
struct weft_pull_range {
	TAILQ_ENTRY(weft_pull_range) link; /**< in a list of its fetch */
	TAILQ_ENTRY(weft_pull_range) port_link;
	struct weft_rndv_port *port; /**< or NULL */
	struct weft_lane_comp comp;  /**< native read */
	struct weft_fetch *fetch;
	uint64_t offset, end;
	uint64_t left;  /**< bytes of it that have not come */
	uint64_t given; /**< time of the request, ns */
	uint8_t lane;
	bool native;
	bool late; /**< does not count at its port until all of it has come */
};

/** Receiver: a message whose data is being transferred. */
struct weft_fetch {
	TAILQ_ENTRY(weft_fetch)
	link; /**< in me->rndv->fetches, while bytes are left to request */
	struct weft_request *req;
	struct weft_msg_ep *me;
	struct weft_ivals got;
	uint64_t length; /**< bytes to be transferred: those of the message that fit */
	uint64_t next;   /**< first byte that was never requested */
	struct weft_pull_ranges ranges; /**< outstanding */
	struct weft_pull_ranges again;  /**< to be requested again: their native read failed */
	uint32_t reads;                 /**< native reads in flight */
	const struct weft_proto *proto;
	bool pulled;  /**< bytes are requested piece by piece; else all by RTR */
	bool written; /**< the RTR contained keys */
	bool queued;  /**< in me->rndv->fetches */
	uint8_t size; /**< which of these lists */
	bool over;    /**< waits for native reads only */
	int status;
	struct weft_mem *mem; /**< of the receive buffer, for native reads and puts, or NULL */
	uint32_t native;      /**< lanes with native reads */
	struct weft_rndv_offer offer;
};

#endif /* WEFT_RNDV_H */
