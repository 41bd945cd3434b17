/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/schedule.h
 * Which endpoint requests next, and how many bytes may be requested over one port of the receiver,
 * from all senders together. The window of a port is pure: time is an argument.
 *
 * While bytes are requested from one sender only, the window of its lane (msg/state.h) is the
 * only limit. With several senders the port has a window, too: its rate times (the least round trip
 * + *slack*). Endpoints that find it full wait in a queue (rndv/schedule.c). So only a few senders
 * at a time send a piece, however many there are: one frame of each of them could fill the switch's
 * queue.
 *
 * The slack is adapted. While endpoints wait all the time, each span of time is evaluated. When
 * less came than the port carries, senders reply later than the slack allows (their frames' own
 * transmission time, hosts that are descheduled), and the slack grows. When nearly all came, it
 * shrinks again. The rate is the port's nominal rate, or the most that came in two consecutive
 * spans. When even the greatest slack does not achieve this rate for #WEFT_PULL_LOW, the measured
 * rate replaces it.
 */
#ifndef WEFT_RNDV_SCHEDULE_H
#define WEFT_RNDV_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct weft_fetch;
struct weft_msg_ep;
struct weft_msg_worker;
struct weft_pull_range;
struct weft_rndv;
struct weft_rndv_port;

#define WEFT_PULL_SLACK_FIRST 16000u     /**< ns, and half of the round trip */
#define WEFT_PULL_SLACK_MIN 2000u        /**< ns */
#define WEFT_PULL_SLACK_MAX 1000000u     /**< ns */
#define WEFT_PULL_SLACK_BYTES (1u << 20) /**< and at most this number of bytes */
#define WEFT_PULL_SPAN 1000000u          /**< ns; at least, and twice round trip and slack */
#define WEFT_PULL_LOW 8000000u           /**< ns */
#define WEFT_PULL_LATE 200000u           /**< ns, beyond 4 times round trip and slack */
#define WEFT_PULL_USERS 2u               /**< lanes that may have a piece even if it is full */

struct weft_pull_port {
	uint64_t out;    /**< bytes requested that have not come, without those that are late */
	uint64_t window; /**< bytes */
	uint32_t users;  /**< lanes that have bytes outstanding, and are not late */
	uint32_t rtt;    /**< ns, the least; 0 = unknown */
	uint32_t slack;  /**< ns */
	double rate;     /**< bytes/s */
	/* the current span, and the previous one */
	uint64_t at, came;
	uint64_t before_ns, before_came;
	bool spare;      /**< in this span the queue was empty for a while */
	uint64_t low_ns; /**< time for which the greatest slack was not enough */
	double low_rate; /**< the highest rate in that time */
};

/** @param rate  bytes/s; not above 0 = 1e9 */
void weft_pull_port_init(struct weft_pull_port *p, double rate);

/** One of its lanes has measured a round trip. */
void weft_pull_port_rtt(struct weft_pull_port *p, uint32_t rtt_ns);

/** Is there room for a piece? @param idle  the lane for it has nothing outstanding */
static inline bool weft_pull_port_room(const struct weft_pull_port *p, bool idle)
{
	return p->out < p->window || (idle && p->users < WEFT_PULL_USERS);
}

/** @p n bytes were requested. @param idle  as above */
static inline void weft_pull_port_take(struct weft_pull_port *p, uint64_t n, bool idle)
{
	p->out += n;
	p->users += idle;
}

/** @p n bytes have come, or will not. @param idle  the lane has nothing else outstanding */
static inline void weft_pull_port_done(struct weft_pull_port *p, uint64_t n, bool idle)
{
	p->out -= n;
	p->users -= idle;
}

/** @p n bytes came. @param waiting  the port's queue is not empty */
void weft_pull_port_came(struct weft_pull_port *p, uint64_t n, bool waiting, uint64_t now);

/* ------------------------------------------------------------------ endpoints */

/** Has the endpoint bytes left to request? */
bool weft_rndv_wants(const struct weft_rndv *r);
/** The message of which the endpoint requests the next piece, or NULL. */
struct weft_fetch *weft_rndv_next_fetch(const struct weft_rndv *r);
/** Insert the endpoint into the worker's list of those that may request. */
void weft_rndv_want(struct weft_rndv *r);
/**
 * Queue the endpoint until the worker's limit has room; a stalled endpoint is in no queue until it
 * delivers.
 */
void weft_rndv_want_later(struct weft_rndv *r);
/** Queue the endpoint until the port's window has room. */
void weft_rndv_want_port(struct weft_rndv *r, struct weft_rndv_port *p);
/** Remove the endpoint from the list or queue in which it is. */
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

#endif /* WEFT_RNDV_SCHEDULE_H */
