/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/stall.h
 * What sends wait for, as time: weft-info --why prints it. A stall is the state of an endpoint
 * whose queue cannot go on, or of an announced message whose receiver has not requested its data.
 * The clock is that of progress calls: no message costs a clock read, and a worker without a stall
 * pays one comparison a progress call.
 */
#ifndef WEFT_MSG_STALL_H
#define WEFT_MSG_STALL_H

#include <stdint.h>

#include "lane_attr.h"

struct weft_msg_ep;
struct weft_msg_worker;
struct weft_request;

/** What the head of an endpoint's queue waits for. */
enum weft_stall {
	WEFT_STALL_NONE,
	WEFT_STALL_CONNECT,
	WEFT_STALL_CREDIT,  /**< the peer allows no further unrequested message */
	WEFT_STALL_LANE,    /**< no lane has room: the lanes count why */
	WEFT_STALL_RECEIVE, /**< of messages, not of endpoints */
	WEFT_STALLS
};

/** Times of sends are counted by their length, and by powers of four of us. */
#define WEFT_LATENCY_SIZES 5u
#define WEFT_LATENCY_STEPS 11u

/** Times of a worker. All are ns of its progress calls. */
struct weft_stalls {
	uint64_t at; /**< up to here time is accounted */
	/** Number of endpoints, or messages, in each state now; and of all. */
	uint32_t num[WEFT_STALLS], all;
	uint64_t ns[WEFT_STALLS];
	/** Sends that were not complete inside their call. */
	uint64_t latency[WEFT_LATENCY_SIZES][WEFT_LATENCY_STEPS];
};

/** The state of @p me's queue has changed, or may have. */
void weft_stall_set(struct weft_msg_ep *me, enum weft_stall stall);
/** The message is announced. A second call has no effect. */
void weft_stall_offered(struct weft_request *req);
/** The receiver has requested its data, or the send is over. May be called at any time. */
void weft_stall_requested(struct weft_request *req);

void weft_stall_account(struct weft_stalls *s, uint64_t ns);

/** Once a progress call. */
static inline void weft_stall_progress(struct weft_stalls *s, uint64_t now)
{
	if (__builtin_expect(s->all, 0))
		weft_stall_account(s, now - s->at);
	s->at = now;
}

/**
 * A send that was not complete inside its call begins or ends. The end of a request without a begin
 * counts nothing.
 */
void weft_latency_begin(struct weft_request *req);
void weft_latency_end(const struct weft_request *req);

extern const struct weft_lane_counter weft_stall_counter_help[];
void weft_stall_counters(const struct weft_stalls *s, weft_lane_counter_cb cb, void *arg);

#endif /* WEFT_MSG_STALL_H */
