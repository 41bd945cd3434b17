/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/unclaimed.h
 * Endpoints that peers have made and the program has not claimed, and connections without an
 * endpoint: what a host gets before the program wants anything of it.
 */
#ifndef WEFT_UNCLAIMED_H
#define WEFT_UNCLAIMED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"

struct weft_ep;
struct weft_lane_ep;
struct weft_worker;

/** A host that has made endpoints which the program has not claimed. */
struct weft_host {
	struct weft_table_node by_number; /* the lane's: ep_host() */
	TAILQ_ENTRY(weft_host) rank;
	unsigned int num_eps;
	TAILQ_HEAD(, weft_ep) eps, busy; /* oldest first; those over which a message has arrived */
};

/** The host at the far end of a lane connection, as its lane identifies hosts. */
uint64_t weft_host_number(const struct weft_lane_ep *lane_ep);
/**
 * Is there a place for one more endpoint, whose REQ came over @p lane_ep?
 * @param[out] goes  the endpoint that must fail to make room for it; NULL = none
 * @return false: not now
 */
bool weft_unclaimed_room(struct weft_worker *worker, const struct weft_lane_ep *lane_ep,
			 struct weft_ep **goes);
/** Enter @p ep, whose REQ came over @p lane_ep, as unclaimed. @return 0 or -ENOMEM */
int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lane_ep);
/** Remove @p ep, because it is claimed or ends. */
void weft_unclaimed_remove(struct weft_ep *ep);

/* ------------------------------------------------------------------ no endpoint yet */

/** A connection that a peer made, and over which no message for an endpoint has arrived yet. */
struct weft_pending {
	struct weft_lane_ep *lane_ep;
	uint64_t deadline;
	struct weft_table_node entry; /* by lane_ep */
	TAILQ_ENTRY(weft_pending) order;
};

#define WEFT_MAX_PENDING 4096

/** Destroy a connection and its partial messages. */
void weft_lane_ep_destroy(struct weft_worker *worker, struct weft_lane_ep *lane_ep);
/** The connection belongs to an endpoint now: it no longer ends with WEFT_CONNECT_TIMEOUT. */
void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep);
/** WEFT_CONNECT_TIMEOUT, ns. */
uint64_t weft_connect_timeout(const struct weft_worker *w);
/** Destroy pending connections that were not bound in time. */
void weft_pending_timers(struct weft_worker *w);
/** Put a connection on the list of pending ones, which are not bound to an endpoint. */
void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lane_ep);

#endif /* WEFT_UNCLAIMED_H */
