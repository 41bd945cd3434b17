/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/wireup.h
 * Connecting endpoints, as the rest of the library uses it: messages and events of lanes, timers,
 * set-up and end of a worker's connections. doc/wire.md describes the exchange.
 *
 * The files call down, except that those of one group may call each other, and that codec.c calls
 * weft_host_number() of peer.c:
 *	wireup.c                            finds the endpoint of a message or an event
 *
 *	failover.c, lane_return.c           lanes that die, and that come back
 *
 *	exchange.c, connect.c, lanes.c      the exchange; its first request; further lanes
 *	ep.c, close.c                       creation, failure and close of endpoints
 *
 *	rails.c, peer.c                     links and missing lanes; remote workers
 *
 *	select.c, codec.c, state.h          which pairs become lanes; messages as bytes; structs
 */
#ifndef WEFT_WIREUP_H
#define WEFT_WIREUP_H

#include <stddef.h>
#include <stdint.h>

#include "lane.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"
#include "wireup/rails.h"
#include "wireup/state.h"

struct weft_worker;

int weft_conns_init(struct weft_worker *worker);
void weft_conns_fini(struct weft_worker *worker);

/** Most timers of endpoints that one call of weft_conns_timers() runs. */
#define WEFT_EP_TIMER_BATCH 32u

/** Run the timers that are due at worker->now. @return the number of endpoints whose timer ran */
unsigned int weft_conns_timers(struct weft_worker *worker);
/** Free dead endpoints. No callback may be on the stack. */
void weft_conns_reap(struct weft_worker *worker);
/*
 * Callbacks of the worker's ifaces. Over attached lanes, lib/dispatch.c passes messages of all ids
 * except WIREUP directly to the message layer.
 */
int weft_wireup_recv(struct weft_worker *worker, struct weft_lane_ep *lane_ep, uint8_t am_id,
		     const void *data, size_t length);
void weft_wireup_event(struct weft_worker *worker, struct weft_lane_ep *lane_ep,
		       enum weft_lane_event ev, int status, const char *text);
/** weft_lane_open.iface_event; @p arg is the worker. */
void weft_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
		      const char *text);

#endif /* WEFT_WIREUP_H */
