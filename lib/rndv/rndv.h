/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/rndv.h
 * Rendezvous transfers the data of an announced message of any message class (tags, active
 * messages). The class matches the RTS, and calls weft_rndv_fetch() with its *offer*, or
 * weft_rndv_refuse(). The receive request ends in weft_recv_done().
 *
 *	rndv/sender.c              the sender's half, until ATS
 *	rndv/fetch.c, rndv/pull.c  the receiver's half; which bytes are requested next
 *	rndv/rndv.c                which endpoint requests next; ports; keys; hooks (msg/state.h)
 *
 * A fetch uses one of three schemes, as the offer and WEFT_RNDV_SCHEME allow:
 * - get: the receiver requests bytes in pieces, a few per lane at a time. A lane with native reads
 *   and a key in the offer can read them. For any other lane the receiver sends a PULL, and the
 *   sender replies with DATA on that lane. The bytes outstanding are bounded per lane, per port and
 *   per worker, so the receiver controls the load, however many peers send to it;
 * - put: RTR with keys. The sender writes and reports it (PUT_DONE); over lanes that cannot write
 *   it sends DATA;
 * - am: RTR without keys. The sender sends DATA as its lanes accept it.
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
#include "rndv/sender.h"

/* ------------------------------------------------------------------ the schedule of requests */

/*
 * Which endpoint requests next, and how many bytes may be requested over one port of the receiver,
 * from all senders together. The functions weft_pull_port_*() read no clock: time is an argument.
 *
 * While only one lane has requests outstanding at a port, the port does not limit it: the lane's
 * window (msg/state.h) does. With several lanes the port has a window, too: its rate times (the
 * least round trip + *slack*). Slack up to WEFT_PULL_SLACK_MAX adds at most WEFT_PULL_SLACK_BYTES.
 * Endpoints that find this window full wait in the port's queue. So only a few senders at a time
 * send a piece, however many there are. Without this limit one frame of each sender could fill the
 * queue of the switch.
 *
 * The slack is adapted after each span of time in which endpoints waited without interruption. If
 * less than 7/8 of the port's rate came, senders reply later than the slack allows (their frames'
 * own transmission time, hosts that are descheduled), and the slack grows. If nearly all came, the
 * slack shrinks. The rate is the port's nominal rate, or the most that came in two consecutive
 * spans. When even the greatest slack does not achieve this rate for #WEFT_PULL_LOW, the highest
 * rate measured in that time replaces it.
 *
 * A path is long if its mean round trip is above #WEFT_PULL_SLACK_MAX. There the greatest slack
 * makes the window that of 5/4 of the *present* mean round trip, which includes jitter and the
 * queues of other flows. With a smaller window less would come because of the window, and each
 * measurement would lower the rate. The windows of the senders need many round trips to grow. So
 * twice the measured rate counts, up to the nominal rate.
 */

struct weft_fetch;
struct weft_pull_range;
struct weft_rndv;
struct weft_rndv_port;

#define WEFT_PULL_SLACK_FIRST 16000u /**< ns; slack at first, + half of the round trip */
#define WEFT_PULL_SLACK_MIN 2000u    /**< ns; least slack */
#define WEFT_PULL_SLACK_MAX 1000000u /**< ns; greatest slack; on long paths slack_most() */
#define WEFT_PULL_SLACK_BYTES (1u << 20)
#define WEFT_PULL_SPAN 1000000u /**< ns; least span; 2 x pull_port_trip() if longer */
/**
 * ns; with the greatest slack the rate falls when less than 7/8 of it has come for this time, and
 * for 4 round trips
 */
#define WEFT_PULL_LOW 8000000u
/**
 * ns; a request of this age + 4 x (round trip + slack) is late if its lane has delivered nothing
 * for that time. A longer present round trip counts instead of the sum. When #WEFT_SHARE_STALL more
 * has passed, it is late in any case.
 */
#define WEFT_PULL_LATE 200000u
/** while weft_pull_port.users is less, an idle lane gets a piece even if the window is full */
#define WEFT_PULL_USERS 2u

struct weft_pull_port {
	uint64_t out;    /**< bytes requested that have not come, without late requests */
	uint64_t window; /**< pieces are requested while `out` is less, bytes */
	uint32_t users;  /**< number of lanes with bytes in `out` */
	uint32_t rtt;    /**< least round trip of its lanes, rises slowly, ns; 0 = unknown */
	uint32_t trip;   /**< moving mean of its lanes' present round trips, ns; 0 = unknown */
	uint32_t slack;  /**< time that the window allows for beyond `rtt`, ns */
	double rate;     /**< of the port, bytes/s */
	double nominal;  /**< the rate that weft_pull_port_init() got, bytes/s */
	/* the current span: the time of its begin, ns; the bytes that have come in it */
	uint64_t at, came;
	/* the previous span: its length, ns, 0 = there was none; the bytes that came in it */
	uint64_t before_ns, before_came;
	bool spare; /**< in the current span the port's queue was empty at least once */
	/** time for which less than 7/8 of the rate came with the greatest slack, ns */
	uint64_t low_ns;
	double low_rate; /**< the highest rate measured in that time, bytes/s */
};

/** @param rate  bytes/s; 0 or less counts as 1e9 */
void weft_pull_port_init(struct weft_pull_port *p, double rate);

/** @p rtt_ns: the lane's least round trip; @p now_ns: its present one; 0 = unknown. */
void weft_pull_port_rtt(struct weft_pull_port *p, uint32_t rtt_ns, uint32_t now_ns);

/** @param idle  the piece's lane has no bytes in p->out */
static inline bool weft_pull_port_room(const struct weft_pull_port *p, bool idle)
{
	return p->out < p->window || (idle && p->users < WEFT_PULL_USERS);
}

/** @param idle  the piece's lane had no bytes in p->out before */
static inline void weft_pull_port_take(struct weft_pull_port *p, uint64_t n, bool idle)
{
	p->out += n;
	p->users += idle;
}

/**
 * @p n bytes do not count in p->out any more: they have come, will not come, or are late.
 * @param idle  their lane has no other bytes in p->out
 */
static inline void weft_pull_port_done(struct weft_pull_port *p, uint64_t n, bool idle)
{
	p->out -= n;
	p->users -= idle;
}

/** @p n bytes came, perhaps 0. @param waiting  the port's queue is not empty */
void weft_pull_port_came(struct weft_pull_port *p, uint64_t n, bool waiting, uint64_t now);

/* ------------------------------------------------------------------ endpoints */

bool weft_rndv_wants(const struct weft_rndv *r);
struct weft_fetch *weft_rndv_next_fetch(const struct weft_rndv *r);
/**
 * Insert the endpoint into the worker's list of those that may request. No effect if the endpoint
 * has failed, has no bytes to request or is in a port's queue. An endpoint that waits for the
 * worker's limit moves only if it has nothing outstanding.
 */
void weft_rndv_want(struct weft_rndv *r);
/**
 * Queue an endpoint, which is in no list, until the worker's limit has room. An endpoint whose peer
 * is stalled (base/pacing.h) stays in no list: the next bytes that come insert it again.
 */
void weft_rndv_want_later(struct weft_rndv *r);
void weft_rndv_want_port(struct weft_rndv *r, struct weft_rndv_port *p);
/** Remove the endpoint from the list or queue in which it is. */
void weft_rndv_unwant(struct weft_rndv *r);
/**
 * The next endpoint that may request. First come those that wait for nothing, then those that wait
 * for a port that has room, then those that wait for the worker's limit, if that has room.
 * @param stuck  NULL, or the first endpoint whose request failed with -EAGAIN: if it leads the list
 *   of those that wait for nothing again, this list is skipped
 * @return NULL: none may request now
 */
struct weft_rndv *weft_rndv_next(struct weft_msg_worker *mw, const struct weft_rndv *stuck);
bool weft_rndv_port_full(const struct weft_rndv *r, unsigned int lane);
/**
 * Do other lanes, of any endpoint, have requests outstanding at the port of @p lane of @p r, or do
 * endpoints wait for the port? Also true for an endpoint that the port's queue has just released. A
 * lane without a port: false.
 */
bool weft_rndv_port_shared(const struct weft_rndv *r, unsigned int lane);
/** @p a was requested: count it at the port of its lane, if there is one. */
void weft_rndv_port_requested(struct weft_rndv *r, struct weft_pull_range *a);
/** @p bytes of @p a have arrived, or (not @p good) will not arrive. */
void weft_rndv_port_came(struct weft_rndv *r, struct weft_pull_range *a, uint64_t bytes, bool good);
/** The lanes have changed: find their ports. A lane with requests outstanding keeps its port. */
void weft_rndv_port_lanes(struct weft_msg_ep *me);

struct weft_pull_range;

/** bytes; a worker's first limit of outstanding requests. Lanes raise it, up to WEFT_RNDV_LIMIT. */
#define WEFT_RNDV_PULLS_MIN (4u << 20)
/** Pulls at one endpoint that may wait for their lanes; with more the endpoint fails. */
#define WEFT_RNDV_PULLS_MAX 1024u
/** bytes; messages with no more than this left to request precede others */
#define WEFT_RNDV_SHORT (64u << 10)
/** Of this number of pieces, one goes to the longer messages, so that these go on, too. */
#define WEFT_RNDV_TURNS 4u

/* ------------------------------------------------------------------ offers */

/** The offer in an RTS. At the sender also the keys in an RTR (send.put). */
struct weft_rndv_offer {
	struct weft_wire_ref sreq;
	uint32_t flags;  /**< WEFT_RTS_F_* */
	uint32_t lanes;  /**< mask of the lanes with a key; 0: offset and key are not set */
	uint64_t offset; /**< of the data from the start of the registration */
	uint64_t key[WEFT_MAX_LANES]; /**< only those of `lanes` are set */
};

/* ------------------------------------------------------------------ state */

struct weft_rndv_lane {
	STAILQ_HEAD(, weft_pull) pulls; /**< sender: the peer's pulls to serve on this lane */
	struct weft_rndv_port *port;    /**< receiver: its local port, or NULL */
	/** receiver: bytes outstanding, without late requests; 0 without a port */
	uint64_t out;
	/** receiver: number of late requests; unless 0, the lane gets no further request */
	uint32_t late;
};

TAILQ_HEAD(weft_pull_ranges, weft_pull_range);
TAILQ_HEAD(weft_fetches, weft_fetch);
TAILQ_HEAD(weft_rndvs, weft_rndv);

enum { WEFT_RNDV_IS_SHORT, WEFT_RNDV_IS_LONG, WEFT_RNDV_SIZES };

struct weft_rndv_port {
	struct weft_pull_port pull;
	struct weft_rndvs line[WEFT_RNDV_SIZES]; /**< queues of endpoints that wait for the port */
	uint32_t waiting;
	uint32_t turns;
	/** requests outstanding over the port, roughly by age, without late ones */
	struct weft_pull_ranges ranges;
};

/** Most endpoints of a large job never have it. */
struct weft_rndv {
	struct weft_msg_ep *me;
	/* sender */
	struct weft_requests data; /**< sends whose data an RTR has requested, in this order */
	uint32_t num_pulls;
	struct weft_rndv_lane lanes[WEFT_MAX_LANES];
	/* receiver */
	struct weft_requests active; /**< receives whose fetch is not over */
	/** fetches with bytes left to request: short ones, and long ones (WEFT_RNDV_SHORT) */
	struct weft_fetches fetches[WEFT_RNDV_SIZES];
	uint64_t unrequested;           /**< bytes left to request, of all fetches */
	struct weft_share_user pulls;   /**< bytes requested that have not come */
	struct weft_promptness pulling; /**< pulls over lanes of me->slow_reads, next to reads */
	uint32_t turns;                 /**< pieces requested so far */
	/**
	 * the list that contains the endpoint: the worker's list of those that may request now, its
	 * list of those that wait for the worker's limit, or a port's queue
	 */
	enum { WEFT_FETCHING_NOT, WEFT_FETCHING, WEFT_FETCHING_LATER, WEFT_FETCHING_LINE } fetching;
	TAILQ_ENTRY(weft_rndv) fetching_link;
	struct weft_rndv_port *line; /**< with WEFT_FETCHING_LINE: the port in whose queue it is */
	uint8_t line_size;           /**< which queue of `line`: WEFT_RNDV_IS_SHORT, _LONG */
	struct weft_rndv_port *turn; /**< the port that lets the endpoint request one piece now */
};

/** @return me->rndv, which is made if it does not exist; NULL = no memory */
struct weft_rndv *weft_rndv_of(struct weft_msg_ep *me);

struct weft_rndv_worker {
	struct weft_rndvs fetching;       /**< endpoints that may request more */
	struct weft_rndvs fetching_later; /**< endpoints that wait for the worker's limit */
	uint32_t waiting;
	uint64_t waits;
	uint64_t lates;
	struct weft_rndv_port ports[WEFT_MAX_IFACES]; /**< by index of worker->ifaces */
	struct weft_share pulls;                      /**< bytes requested that have not come */
	STAILQ_HEAD(, weft_pull) free_pulls;
	struct weft_pull_ranges free_ranges;
	struct weft_fetches free_fetches;
};

/** Sender: a range to send as DATA: of a PULL, or of a native write that failed. */
struct weft_pull {
	STAILQ_ENTRY(weft_pull) link;
	struct weft_request *req;
	uint64_t offset, end; /**< the next byte to send, and the end */
};

/** Receiver: a range requested over one lane. */
struct weft_pull_range {
	TAILQ_ENTRY(weft_pull_range) link;
	TAILQ_ENTRY(weft_pull_range) port_link;
	struct weft_rndv_port *port; /**< the port at which it counts, or NULL */
	struct weft_lane_comp comp;  /**< of a native read */
	struct weft_fetch *fetch;
	uint64_t offset, end;
	uint64_t left;  /**< bytes of the range that have not come */
	uint64_t given; /**< time of the request, ns */
	uint64_t ahead; /**< bytes outstanding of all peers at that time, with those of the range */
	uint8_t lane;
	bool native; /**< a native read; else a PULL */
	bool late;   /**< found late: not counted in `out` of its port and its lane */
};

/** Receiver: a message whose data is being transferred. */
struct weft_fetch {
	/** in me->rndv->fetches[], while bytes are left to request */
	TAILQ_ENTRY(weft_fetch) link;
	struct weft_request *req;
	struct weft_msg_ep *me;
	struct weft_ivals got;
	uint64_t length; /**< bytes to be transferred: those of the message that fit */
	uint64_t next;   /**< first byte that was never requested */
	struct weft_pull_ranges ranges; /**< requested, and not complete */
	struct weft_pull_ranges again;  /**< to be requested again: their native read failed */
	uint32_t reads;                 /**< native reads in flight */
	const struct weft_proto *proto; /**< NULL = not chosen yet */
	bool pulled;                    /**< bytes are requested piece by piece; else all by RTR */
	bool written; /**< the buffer is registered for writes of the sender (RTR with keys) */
	bool queued;
	uint8_t size;         /**< list of me->rndv->fetches[]: WEFT_RNDV_IS_SHORT, _LONG */
	bool over;            /**< needs no more data; exists until its native reads have ended */
	struct weft_mem *mem; /**< registration of the receive buffer, or NULL */
	uint32_t native;      /**< mask of the lanes that read natively */
	struct weft_rndv_offer offer;
};

/* ------------------------------------------------------------------ keys */

/** One key for each lane of @p lanes that has one. @return bytes written to @p record, or 0 */
size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record);
/** Read the KEYS record among validated records. Without one offer->lanes becomes 0. */
void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length);
/** Lanes of @p me for rendezvous that have native reads (@p put: writes). */
uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put);

extern const struct weft_module weft_rndv_module;

#endif /* WEFT_RNDV_H */
