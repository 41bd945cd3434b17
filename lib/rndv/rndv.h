/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/rndv.h
 * Rendezvous transfers the data of an announced message of any message class (tags, active
 * messages). Matching is done by the class.
 *
 *	a message class (tags, active messages)          rendezvous (this file)
 *	its own RTS, which contains an *offer*           rndv/sender.c
 *	the receiver knows the data's destination        weft_rndv_fetch()
 *	or does not need the data                        weft_rndv_refuse()
 *	the receive request ends                         weft_recv_done()
 *
 * Files:
 *
 *	rndv/sender.c    the sender's half: announces, serves pulls and RTR, until ATS
 *	rndv/fetch.c     the receiver's half, from the match to the last byte: how the data is
 *	                 transferred, native reads
 *	rndv/pull.c      which bytes are requested next
 *	rndv/schedule.c  from which endpoint: the queues of endpoints that wait for a port; how many
 *	                 bytes may be requested over one port
 *	rndv/rndv.c      keys by which the peer accesses the memory of one message; the hooks
 *	                 (msg/module.h)
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
#include "rndv/fetch.h"
#include "rndv/schedule.h"
#include "rndv/sender.h"

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

/* ------------------------------------------------------------------ keys */

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

/* ------------------------------------------------------------------ hooks */

extern const struct weft_module weft_rndv_module;

#endif /* WEFT_RNDV_H */
