/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/rndv.h
 * Rendezvous: the data of an announced message, whatever message class it belongs to (tags, active
 * messages). How send and receive are matched is the class's business.
 *
 *	a message class (tags, active messages)          rendezvous (this file)
 *	RTS of its own, which carries an *offer*         weft_rndv_offer(), weft_rndv_offered()
 *	the receiver knows where the data shall go       weft_rndv_fetch()
 *	or does not want it                              weft_rndv_refuse()
 *	the receive request ends                         weft_recv_done()
 *
 * Files:
 *
 *	rndv/proto.c   protocols: how the sender announces, and their costs
 *	rndv/send.c    the sender's half: answers pulls, RTR; until ATS
 *	rndv/recv.c    the receiver's half: from the match to the last byte
 *	rndv/data.c    how the data comes: the receiver's choice
 *	rndv/pull.c    which bytes are requested next
 *	rndv/turn.c    whose bytes: the line of endpoints that wait for a port
 *	rndv/port.c    how much may be requested over one port (rndv/port.h)
 *	rndv/native.c  reads by the lane itself
 *	rndv/keys.c    keys by which the peer reaches the memory of one message
 *	rndv/module.c  the hooks (msg/module.h)
 *
 * A fetch has one of three schemes, by what the offer allows and WEFT_RNDV_SCHEME wants:
 *  - get: bytes are requested in pieces, a few per lane at a time. A lane that reads remote memory
 *    itself does (the offer had a key for it), on any other the sender gets a PULL and answers
 *    with DATA on that lane. What is outstanding is bounded per lane and per worker, so the
 *    receiver is in control however many send to it;
 *  - put: RTR with keys, the sender writes and says so (PUT_DONE), over lanes that can't it sends
 *    DATA;
 *  - am: RTR, the sender sends DATA as its lanes take it.
 * ATS ends each of them, at the sender.
 */
#ifndef WEFT_RNDV_H
#define WEFT_RNDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/share.h"
#include "msg/msg.h"
#include "rndv/port.h"

struct weft_ask;

/** bytes; what all peers may be asked for at a time, if WEFT_RNDV_LIMIT is not less */
#define WEFT_RNDV_PULLS_MIN (4u << 20)
/** Pulls of one peer that may wait for their lanes here. Ours request far less. */
#define WEFT_RNDV_PULLS_MAX 1024u
/** bytes; messages of which no more is left to request go before others */
#define WEFT_RNDV_SHORT (64u << 10)
/** But of so many pieces one goes to the others. */
#define WEFT_RNDV_TURNS 4u

/* ------------------------------------------------------------------ offers */

/** What an RTS says about the data; kept while nobody has requested the message. */
struct weft_rndv_offer {
	struct weft_wire_ref sreq;
	uint32_t flags;  /**< WEFT_RTS_F_* */
	uint32_t lanes;  /**< lanes that there are keys for */
	uint64_t offset; /**< of the data from the start of the registration */
	uint64_t key[WEFT_MAX_LANES];
};

/**
 * The sender's RTS, of whatever space, is being written: what may the receiver do?
 * @param flags    for its flags field
 * @param records  WEFT_HEAD_RECORDS_MAX bytes, to follow the RTS
 * @return bytes of records
 */
size_t weft_rndv_offer(struct weft_request *req, weft_le32 *flags, void *records);

/**
 * A lane has taken the RTS: from now on the peer may name the request, until ATS. The request
 * waits (WEFT_REQ_WAIT_ACK).
 */
void weft_rndv_offered(struct weft_request *req);

/** Read an offer out of an RTS that has been validated. Without keys it is small: see flags. */
void weft_rndv_offer_read(struct weft_rndv_offer *offer, struct weft_wire_ref sreq, weft_le32 flags,
			  const void *records, size_t length);

/* ------------------------------------------------------------------ receiver */

/**
 * Get the @c req->length bytes of an offer to where @c req->dt says, or those that have room there.
 * Requests that have failed already (status), and empty messages, take nothing: the sender is told
 * that it may finish.
 * @param now  see weft_recv_done(), which ends it
 */
void weft_rndv_fetch(struct weft_msg_ep *me, struct weft_request *req,
		     const struct weft_rndv_offer *offer, bool now);

/** The data is not wanted, or (@p status) cannot be. */
void weft_rndv_refuse(struct weft_msg_ep *me, struct weft_wire_ref sreq, int status);

/* ------------------------------------------------------------------ handlers (msg/module.h) */

void weft_rndv_recv_rtr(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_pull(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_data(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_put_done(struct weft_msg_ep *me, const void *data, size_t payload);
/** ABORT that names a request of ours. */
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

/* ------------------------------------------------------------------ at work */

/** Rendezvous state of one lane of an endpoint. */
struct weft_rndv_lane {
	STAILQ_HEAD(, weft_pull) pulls; /**< sender: requested over this lane, in order */
	struct weft_rndv_port *port;    /**< receiver: that the lane is over, or NULL */
	uint64_t out;                   /**< bytes requested over it, of those that count there */
	uint32_t late;                  /**< requests that do not: nothing comes */
};

TAILQ_HEAD(weft_asks, weft_ask);
TAILQ_HEAD(weft_fetches, weft_fetch);
TAILQ_HEAD(weft_rndvs, weft_rndv);

enum { WEFT_RNDV_IS_SHORT, WEFT_RNDV_IS_LONG, WEFT_RNDV_SIZES };

/** A port of ours that data comes through. */
struct weft_rndv_port {
	struct weft_pull_port pull;
	struct weft_rndvs line[WEFT_RNDV_SIZES]; /**< endpoints that wait for it */
	uint32_t waiting;                        /**< how many */
	uint32_t turns;                          /**< pieces given to the line */
	/** what is requested over it, about in the order of requests; not what is late */
	struct weft_asks asks;
};

/** Of an endpoint: me->rndv. */
struct weft_rndv {
	struct weft_msg_ep *me;
	/* sender */
	struct weft_requests data; /**< to hand over what RTR requested, any order */
	uint32_t num_pulls;        /**< the peer's, waiting */
	struct weft_rndv_lane lanes[WEFT_MAX_LANES];
	/* receiver */
	struct weft_requests active; /**< receives that have a fetch */
	/** those with something left to request, in order */
	struct weft_fetches fetches[WEFT_RNDV_SIZES];
	uint64_t unasked;             /**< how much */
	struct weft_share_user pulls; /**< bytes requested */
	uint32_t turns;               /**< pieces requested */
	/**
	 * in which list: of the worker's, of those that may ask, or that wait for room to; or of a
	 * port's
	 */
	enum { WEFT_FETCHING_NOT, WEFT_FETCHING, WEFT_FETCHING_LATER, WEFT_FETCHING_LINE } fetching;
	TAILQ_ENTRY(weft_rndv) fetching_link;
	struct weft_rndv_port *line; /**< of this port */
	uint8_t line_size;           /**< WEFT_RNDV_IS_SHORT, _LONG */
	struct weft_rndv_port *turn; /**< it is its turn at this port */
};

/** Of a worker: mw->rndv. */
struct weft_rndv_worker {
	struct weft_rndvs fetching;       /**< may request more */
	struct weft_rndvs fetching_later; /**< when others have less */
	uint32_t waiting;                 /**< in the lines of ports */
	uint64_t waits;                   /**< how often one began to wait there */
	uint64_t lates;                   /**< requests that were found late */
	struct weft_rndv_port ports[WEFT_MAX_IFACES];
	struct weft_share pulls; /**< bytes requested that have not come */
	STAILQ_HEAD(, weft_pull) free_pulls;
	struct weft_asks free_asks;
	struct weft_fetches free_fetches;
};

/** Registered memory of [buf, buf + len) and its keys (rndv/keys.c). */

/**
 * Describe memory to the peer: for each lane of @p lanes that has a key for it, in a record.
 * @return bytes written to @p record, 0 = no lane has
 */
size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record);
/** Find and read the KEYS record among records that have been validated. */
void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length);
/** Lanes of @p me that rendezvous may use and that read (@p put: write) remote memory. */
uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put);

/** Sender: hand over what RTR requested, and what was pulled, as far as the lanes take it. */
unsigned int weft_rndv_serve(struct weft_msg_ep *me);
/** Sender: the request ends: nothing of it waits any more. */
void weft_rndv_send_end(struct weft_request *req);

/*
 * Receiver: begin to get the data of a matched receive, by its fetch: what the protocols of
 * WEFT_OP_RNDV_DATA do.
 * @return 0
 */
int weft_rndv_begin_get(struct weft_request *req);
int weft_rndv_begin_pull(struct weft_request *req);
int weft_rndv_begin_put(struct weft_request *req);
int weft_rndv_begin_am(struct weft_request *req);
/* And their reset(). */
int weft_rndv_reset_get(struct weft_request *req);
int weft_rndv_reset_pull(struct weft_request *req);
/** The endpoint has failed: its fetches end. */
void weft_rndv_ended(struct weft_msg_ep *me, int status);
/** The endpoint's protocols are others now: fetches are given to reset(). */
void weft_rndv_reset(struct weft_msg_ep *me);

/** Receiver: this fetch has something to request. */
void weft_rndv_pull_add(struct weft_fetch *f);
/** Receiver: there may be room to request more. @return pieces requested */
unsigned int weft_rndv_pump(struct weft_msg_worker *mw);
/** Have bytes [off, off + len) been requested? */
bool weft_rndv_pull_asked(struct weft_fetch *f, uint64_t off, uint64_t len);
/** They have come, for the first time. @return with them all that one PULL requested has */
bool weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len);
/** Receiver: read a->left bytes at a->offset over its lane. @return 0, -EAGAIN, or a refusal */
int weft_rndv_native_read(struct weft_fetch *f, struct weft_ask *a);
/** Receiver: a native read has ended: the bytes are there, or (if still wanted) requested again. */
void weft_rndv_pull_read(struct weft_ask *a, bool good);
/** Receiver: a piece of a fetch is in its place. It may have been the last. */
void weft_rndv_fetch_progress(struct weft_fetch *f);
/** Receiver: the last native read of a fetch that is over has ended. */
void weft_rndv_fetch_reads_over(struct weft_fetch *f);
/** The fetch is over: nothing is outstanding any more, except native reads (f->reads). */
void weft_rndv_pull_end(struct weft_fetch *f);

/* rndv/turn.c */
/** Has it something left to request? */
bool weft_rndv_wants(const struct weft_rndv *r);
/** The message that the next piece is of, or NULL. */
struct weft_fetch *weft_rndv_next_fetch(const struct weft_rndv *r);
/** Into the worker's list of endpoints that may ask. */
void weft_rndv_want(struct weft_rndv *r);
/** Until others have less; one that is stalled, until it delivers. */
void weft_rndv_want_later(struct weft_rndv *r);
/** Until it is its turn at the port. */
void weft_rndv_want_port(struct weft_rndv *r, struct weft_rndv_port *p);
/** Out of these lists. */
void weft_rndv_unwant(struct weft_rndv *r);
/** The next one that may ask, or NULL; @p stuck waits for room, and comes behind the others. */
struct weft_rndv *weft_rndv_next(struct weft_msg_worker *mw, const struct weft_rndv *stuck);
/** Does the port keep @p lane of @p r from asking? */
bool weft_rndv_port_full(const struct weft_rndv *r, unsigned int lane);
/** Are others than @p lane of @p r at its port? */
bool weft_rndv_port_shared(const struct weft_rndv *r, unsigned int lane);
/** All of @p a has been requested, and counts at the port. */
void weft_rndv_port_asked(struct weft_rndv *r, struct weft_ask *a);
/** @p bytes of it have come, or (not @p good) will not. */
void weft_rndv_port_came(struct weft_rndv *r, struct weft_ask *a, uint64_t bytes, bool good);
/** Which lane is over which port? */
void weft_rndv_port_lanes(struct weft_msg_ep *me);

/** Bytes of a native write at @p off: at most @p max and a share of the lane's window, well cut. */
size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max);

/** Its lanes are up, or others than before. */
void weft_rndv_ep_lanes(struct weft_msg_ep *me);
/** It requests nothing more. */
void weft_rndv_ep_fail(struct weft_msg_ep *me);
/** The same of the sender's half. */
void weft_rndv_send_ep_lanes(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ inside */

/** Sender: a stretch that was requested. */
struct weft_pull {
	STAILQ_ENTRY(weft_pull) link;
	struct weft_request *req;
	uint64_t offset, end; /**< next byte, and where to stop */
};

/** Receiver: a stretch that was requested, over one lane. */
struct weft_ask {
	TAILQ_ENTRY(weft_ask) link; /**< of its fetch: asks, or again */
	TAILQ_ENTRY(weft_ask) port_link;
	struct weft_rndv_port *port; /**< or NULL */
	struct weft_lane_comp comp;  /**< native read */
	struct weft_fetch *fetch;
	uint64_t offset, end;
	uint64_t left;  /**< bytes of it that have not come */
	uint64_t given; /**< when it was requested, ns */
	uint8_t lane;
	bool native;
	bool late; /**< does not count at its port until something of it comes */
};

/** Receiver: a message on its way. */
struct weft_fetch {
	TAILQ_ENTRY(weft_fetch)
	link; /**< of me->rndv->fetches, while something is left to request */
	struct weft_request *req;
	struct weft_msg_ep *me;
	struct weft_ivals got;
	uint64_t length;       /**< bytes that are wanted: the message's, as far as there is room */
	uint64_t next;         /**< first byte that was never requested */
	struct weft_asks asks; /**< under way */
	struct weft_asks again; /**< to be requested once more: a native read was refused */
	uint32_t reads;         /**< native reads under way */
	const struct weft_proto *proto;
	bool pulled;  /**< bytes are requested piece by piece; else all by RTR */
	bool written; /**< the RTR had keys */
	bool queued;  /**< in me->rndv->fetches */
	uint8_t size; /**< of these: in which */
	bool over;    /**< waits for native reads only */
	int status;
	struct weft_mem *mem; /**< of the receive buffer, for native reads and puts, or NULL */
	uint32_t native;      /**< lanes that read by themselves */
	struct weft_rndv_offer offer;
};

#endif /* WEFT_RNDV_H */
