/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/events.h
 * What a worker calls: messages and events of lanes, timers, set-up and end of its connections.
 */
#ifndef WEFT_WIREUP_EVENTS_H
#define WEFT_WIREUP_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "lane.h"

struct weft_worker;

int weft_conns_init(struct weft_worker *worker);
void weft_conns_fini(struct weft_worker *worker);

/** Timers of endpoints that one call runs. */
#define WEFT_EP_TIMER_BATCH 32u

/** Run the timers that are due at worker->now. @return events */
unsigned int weft_conns_timers(struct weft_worker *worker);
/** Free dead endpoints. No callback may be on the stack. */
void weft_conns_reap(struct weft_worker *worker);
/*
 * Callbacks of the worker's ifaces. (lib/dispatch.c passes other ids than WIREUP of attached lanes
 * directly to the message layer.)
 */
int weft_wireup_recv(struct weft_worker *worker, struct weft_lane_ep *lane_ep, uint8_t am_id,
		     const void *data, size_t length, void *desc);
void weft_wireup_event(struct weft_worker *worker, struct weft_lane_ep *lane_ep,
		       enum weft_lane_event ev, int status, const char *text);

#endif /* WEFT_WIREUP_EVENTS_H */
