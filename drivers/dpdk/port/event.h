/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/event.h
 * Events of a port while it is open, and timers of its PMD.
 */
#ifndef WEFT_PORT_EVENT_H
#define WEFT_PORT_EVENT_H

#include <stdatomic.h>

#include <rte_branch_prediction.h>

#include "frame/frame_port.h"
#include "lane.h"
#include "port/port.h"

/** Begin to record a port's events, which any thread may raise. */
void weft_port_events_on(struct weft_port_dev *d);
void weft_port_events_off(struct weft_port_dev *d);
/** Request interrupts for link changes and removal, if the port is a NIC that has them. */
void weft_port_events_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf);
/**
 * Reset the port if it has requested that. @return 0; -ENODEV: the port was removed; or the error
 * of the reset; with @p why
 */
int weft_port_revive(const struct weft_port_dev *d, char *why, size_t why_len);
/** The owner of @p p begins to poll: only changes from the present state are events for it. */
void weft_port_events_begin(struct weft_port *p);
/** A number that changes with each event. */
uint32_t weft_port_life(const struct weft_port_dev *d);
/** The application took the device from DPDK: its port number is no longer valid for any call. */
bool weft_port_is_taken(const struct weft_port_dev *d);
enum weft_lane_link weft_port_link_kind(const struct weft_port_dev *d);
/**
 * Bandwidth of the port by the link's present speed. The call sets WEFT_FRAME_PORT_GUESS in
 * @p flags if the speed is unknown or without meaning, and clears it otherwise.
 * @return bytes/s, 1.25e9 for an unknown speed; 0 = the port has no link that could have a speed
 */
double weft_port_bandwidth(const struct weft_port_dev *d, uint32_t *flags);
enum weft_frame_port_what weft_port_look(struct weft_frame_port *fp,
					 struct weft_frame_port_event *event);

/** Must the port not be used: not started, or ended? Also sets the flag of an event for look(). */
static inline bool weft_port_halted(struct weft_port *p)
{
	if (unlikely(atomic_load_explicit(p->dev->life, memory_order_relaxed) != p->life_seen)) {
		p->fp.event = true;
		if (weft_port_has_ended(p->dev))
			return true;
	}
	return unlikely(!weft_port_is_started(p->dev));
}

/**
 * The callback of an event does not return while a thread holds the port's events, so a port whose
 * end is not reported yet can be used. One thread at a time holds them.
 */
void weft_port_events_hold(uint16_t id);
void weft_port_events_release(uint16_t id);

bool weft_port_needs_timers(const struct weft_port_dev *d);
/**
 * Start the port in the thread that runs its timers; without that thread, or an lcore for it, with
 * a warning and no timers. @return the result of rte_eth_dev_start()
 */
int weft_port_timers_start(struct weft_port_dev *d);
/** The port was stopped. */
void weft_port_timers_stop(struct weft_port_dev *d);

#endif /* WEFT_PORT_EVENT_H */
