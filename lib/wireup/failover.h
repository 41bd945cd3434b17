/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/failover.h
 * Lanes that die: wireup/failover.c decides which lane of an endpoint is stopped, and when.
 * wireup/lane_return.c connects it again. Messages that the peer has not received over a lane that
 * died are sent over the other lanes (msg/replay.c). doc/raw-lanes.md describes all of it.
 */
#ifndef WEFT_FAILOVER_H
#define WEFT_FAILOVER_H

#include "wireup/state.h"

struct weft_wireup_msg;

/**
 * Numbers of a lane's connections grow, and wrap; 0 is the first connection. A number that is
 * equal, or lower by less than WEFT_LANE_OLD, is old. Every other number is new, because attempts
 * may go on for days.
 */
#define WEFT_LANE_OLD 1024u

static inline bool weft_lane_newer(uint16_t number, uint16_t than)
{
	return (uint16_t)(than - number) >= WEFT_LANE_OLD;
}

static inline uint16_t weft_lane_next(uint16_t number)
{
	return (uint16_t)(number + 1) ? (uint16_t)(number + 1) : 1;
}

void weft_failover_suspect(struct weft_ep *ep, unsigned int n, int status, const char *text);
/** Handle LANE_DOWN, LANE_DOWN_ACK, LANE_SUSPECT or LANE_LINK, which came over lane @p from. */
void weft_failover_recv(struct weft_ep *ep, unsigned int from, const struct weft_wireup_msg *m);
/** Stop lane @p n, and send LANE_DOWN over another. @return false: lane @p n was not stopped */
bool weft_failover_stop(struct weft_ep *ep, unsigned int n, const char *text);
void weft_failover_timer(struct weft_ep *ep);

/** The longest round trip of the lanes in use, in ns; 0 = unknown. */
uint64_t weft_failover_trip(const struct weft_ep *ep);

/** The worker with the lower id decides which lane stops, and connects the lane again. */
static inline bool weft_failover_leads(const struct weft_ep *ep)
{
	return ep->worker->id < ep->remote_id;
}

#endif /* WEFT_FAILOVER_H */
