/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/lane_load.h
 * What one lane has to do in one direction, and how long that takes: what every choice of a lane
 * checks.
 *
 * Bytes are outstanding from when they are given (posted, or requested) until they are done
 * (completed, or come). Neither a stated rate nor the time since then says when that is. The lane's
 * own completions do: a lane that is slower than it says keeps bytes outstanding, and is given
 * fewer.
 *
 * The rate is measured while bytes are outstanding (base/rate.h). A lane may be idle though bytes
 * are outstanding, namely while all of them are on their way: when they were given less than a
 * round trip before the ones before them were done. What is measured then says only that the lane
 * is at least so fast.
 */
#ifndef WEFT_LANE_LOAD_H
#define WEFT_LANE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rate.h"

/**
 * s; what a lane has to do beyond a round trip: a peer, or a kernel between, looks after its queues
 * every so often.
 */
#define WEFT_LOAD_SLACK 1e-3

/** Directions of a lane; they do not disturb each other. */
enum weft_dir { WEFT_DIR_TX, WEFT_DIR_RX };

struct weft_lane_load {
	/** bytes given that are not done; messages under way are in lane_ep->queued */
	uint64_t out;
	uint64_t window;     /**< and how many may be */
	uint64_t since;      /**< when out was 0 last, ns */
	uint64_t moved;      /**< when bytes were done last, or since, ns */
	float per_byte;      /**< s, by the measured rate */
	float latency;       /**< s, one way, as stated or measured at connect */
	uint32_t min_rtt_ns; /**< 0 = not known */
	bool full;           /**< messages wait for room: their acknowledgements are counted, too */
	struct weft_rate rate;
};

/** @p per_byte, @p latency: as stated. What is outstanding stays. */
void weft_load_init(struct weft_lane_load *l, float per_byte, float latency);

/**
 * The rate or the round trip has changed: set the window, between 64 KiB and @p max. @param rtt_ns
 * 0 = not known
 */
void weft_load_set_window(struct weft_lane_load *l, uint32_t rtt_ns, uint64_t max, uint64_t now);

/**
 * @p bytes are done, or (@p good false) will never be. @param given  when they were given, ns
 * @return true when the rate has changed
 */
bool weft_load_done(struct weft_lane_load *l, uint64_t bytes, bool good, uint64_t given,
		    uint64_t now);

/** Check the rate again: it drifts back to the stated one when nothing confirms it. */
void weft_load_refresh(struct weft_lane_load *l, uint64_t now);

/** The lane has taken @p bytes. */
static inline void weft_load_give(struct weft_lane_load *l, uint64_t bytes, uint64_t now)
{
	if (l->out == 0)
		l->since = l->moved = now;
	l->out += bytes;
	weft_rate_start(&l->rate);
}

/** How many of @p bytes may be given now: all when the lane is idle; 0 when fewer than @p min. */
static inline uint64_t weft_load_room(const struct weft_lane_load *l, uint64_t bytes, uint64_t min)
{
	uint64_t room = l->window > l->out ? l->window - l->out : 0;

	if (l->out == 0 || bytes <= room)
		return bytes;
	return room >= min ? room : 0;
}

/** s; since when everything should have been done */
static inline float weft_load_stall(const struct weft_lane_load *l, uint64_t now)
{
	float late;

	if (l->out == 0)
		return 0;
	late = (float)(int64_t)(now - l->moved) * 1e-9f - (float)l->out * l->per_byte -
	       2 * l->latency - (float)WEFT_LOAD_SLACK;
	return late > 0 ? late : 0;
}

/** s; until the lane is done with what it has, @p queued bytes of messages, and @p bytes more */
static inline float weft_load_time(const struct weft_lane_load *l, uint64_t queued, uint64_t bytes,
				   uint64_t now)
{
	return (float)(l->out + queued + bytes) * l->per_byte + l->latency +
	       weft_load_stall(l, now);
}

#endif /* WEFT_LANE_LOAD_H */
