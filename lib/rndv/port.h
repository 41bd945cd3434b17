/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/port.h
 * How much may be requested over one port of the receiver, from all senders together. Pure: time is
 * passed in.
 *
 * As long as one sender is asked, its lane's window (msg/lane_load.h) is all. With several the port
 * has a window, too: its rate times (the least round trip + *slack*). Who finds it full waits in
 * line (rndv/turn.c), so that few senders at a time have a piece under way, however many there are:
 * with a frame of each of them the switch's queue would be full.
 *
 * The slack is found by trying. While somebody waits all the time, spans are judged: when less came
 * than the port carries, senders take longer to answer than was allowed for (their frames' own
 * time, hosts that are off their cores), and the slack grows; when nearly all came, it shrinks
 * again. The rate is what the port says it has, or the most that came in two spans in a row. When
 * not even the greatest slack brings that much for #WEFT_PULL_LOW, the rate is what came.
 */
#ifndef WEFT_RNDV_PORT_H
#define WEFT_RNDV_PORT_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_PULL_SLACK_FIRST 16000u     /**< ns, and half of the round trip */
#define WEFT_PULL_SLACK_MIN 2000u        /**< ns */
#define WEFT_PULL_SLACK_MAX 1000000u     /**< ns */
#define WEFT_PULL_SLACK_BYTES (1u << 20) /**< and at most so much */
#define WEFT_PULL_SPAN 1000000u          /**< ns; at least, and twice round trip and slack */
#define WEFT_PULL_LOW 8000000u           /**< ns */
#define WEFT_PULL_LATE 200000u           /**< ns, beyond 4 times round trip and slack */
#define WEFT_PULL_USERS 2u               /**< so many may have a piece, however full it is */

struct weft_pull_port {
	uint64_t out;    /**< bytes requested that have not come, of those who deliver */
	uint64_t window; /**< bytes */
	uint32_t users;  /**< lanes that have something outstanding, and deliver */
	uint32_t rtt;    /**< ns, the least; 0 = not known */
	uint32_t slack;  /**< ns */
	double rate;     /**< bytes/s */
	/* the span that is judged next, and the one before */
	uint64_t at, came;
	uint64_t before_ns, before_came;
	bool spare;      /**< in this span nobody waited for a while */
	uint64_t low_ns; /**< time in which the greatest slack was not enough */
	double low_rate; /**< the most that came then */
};

/** @param rate  bytes/s; not above 0 = 1e9 */
void weft_pull_port_init(struct weft_pull_port *p, double rate);

/** A round trip of one of its lanes. */
void weft_pull_port_rtt(struct weft_pull_port *p, uint32_t rtt_ns);

/** Is there room for a piece? @param idle  the lane that wants one has nothing outstanding */
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

/** @p n bytes are not expected any more. @param idle  the lane has nothing else outstanding */
static inline void weft_pull_port_done(struct weft_pull_port *p, uint64_t n, bool idle)
{
	p->out -= n;
	p->users -= idle;
}

/** @p n bytes came. @param waiting  somebody waits for the port */
void weft_pull_port_came(struct weft_pull_port *p, uint64_t n, bool waiting, uint64_t now);

/** ns; who has delivered nothing for so long holds nobody up any more. */
uint64_t weft_pull_port_late(const struct weft_pull_port *p);

#endif /* WEFT_RNDV_PORT_H */
