/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/lane_load.h
 * The bytes that a lane has outstanding in one direction, and how long they take. Every choice of a
 * lane uses this.
 *
 * Bytes are outstanding from when the lane gets them (posted, or requested) until they are done
 * (completed, or received). Neither a nominal rate nor the time passed indicates when that is; the
 * lane's own completions do. A lane that is slower than its nominal rate keeps bytes outstanding
 * longer, and gets fewer.
 *
 * The rate is measured while bytes are outstanding (base/pacing.h). A lane may be idle with bytes
 * outstanding, namely while all of them are in flight: when the lane got them less than a round
 * trip before the previous ones were done. The measurement is then only a lower bound of the lane's
 * rate.
 */
#ifndef WEFT_LANE_LOAD_H
#define WEFT_LANE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pacing.h"

/**
 * Seconds of work that a lane has outstanding beyond a round trip. The peer, or a kernel in
 * between, polls its queues at intervals.
 */
#define WEFT_LOAD_SLACK 1e-3

/** Directions of a lane, which are independent of each other. */
enum weft_dir { WEFT_DIR_TX, WEFT_DIR_RX };

struct weft_lane_load {
	/** bytes given that are not done; messages in flight are in lane_ep->queued */
	uint64_t out;
	uint64_t window;     /**< the most that may be outstanding */
	uint64_t since;      /**< time when out was 0 last, ns */
	uint64_t moved;      /**< time when bytes were done last, or since, ns */
	float per_byte;      /**< s, by the measured rate */
	float latency;       /**< s, one way, as configured or measured at connect */
	uint32_t min_rtt_ns; /**< 0 = unknown */
	bool full;           /**< messages wait for room: their acknowledgements are counted, too */
	struct weft_rate rate;
};

/** @p per_byte, @p latency: nominal values. Outstanding bytes stay. */
void weft_load_init(struct weft_lane_load *l, float per_byte, float latency);

/**
 * The rate or the round trip has changed: set the window, between 64 KiB and @p max.
 * @param rtt_ns  0 = unknown
 */
void weft_load_set_window(struct weft_lane_load *l, uint32_t rtt_ns, uint64_t max, uint64_t now);

/**
 * @p bytes are done, or (@p good false) have failed. @param given  time when the lane got them, ns
 * @return true when the rate has changed
 */
bool weft_load_done(struct weft_lane_load *l, uint64_t bytes, bool good, uint64_t given,
		    uint64_t now);

/** Update the rate. It returns slowly to the nominal rate when no completion confirms it. */
void weft_load_refresh(struct weft_lane_load *l, uint64_t now);

/** The lane has taken @p bytes. */
static inline void weft_load_give(struct weft_lane_load *l, uint64_t bytes, uint64_t now)
{
	if (l->out == 0)
		l->since = l->moved = now;
	l->out += bytes;
	weft_rate_start(&l->rate);
}

/**
 * The number of @p bytes that may be given now: all if the lane is idle or they fit into its
 * window, else a part of at least @p min bytes, else 0
 */
static inline uint64_t weft_load_room(const struct weft_lane_load *l, uint64_t bytes, uint64_t min)
{
	uint64_t room = l->window > l->out ? l->window - l->out : 0;

	if (l->out == 0 || bytes <= room)
		return bytes;
	return room >= min ? room : 0;
}

/** s; how much later the outstanding bytes are than expected */
static inline float weft_load_stall(const struct weft_lane_load *l, uint64_t now)
{
	float late;

	if (l->out == 0)
		return 0;
	late = (float)(int64_t)(now - l->moved) * 1e-9f - (float)l->out * l->per_byte -
	       2 * l->latency - (float)WEFT_LOAD_SLACK;
	return late > 0 ? late : 0;
}

/**
 * s; until the lane has done its outstanding bytes, @p queued bytes of messages, and @p bytes more
 */
static inline float weft_load_time(const struct weft_lane_load *l, uint64_t queued, uint64_t bytes,
				   uint64_t now)
{
	return (float)(l->out + queued + bytes) * l->per_byte + l->latency +
	       weft_load_stall(l, now);
}

#endif /* WEFT_LANE_LOAD_H */
