/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/timer.h
 * Which connections are checked, and when.
 *
 * A connection is in by_tx_clock while frames of it are outstanding, and in by_live_clock with its
 * next keepalive or handshake step: an idle connection costs its share of keepalives and nothing
 * else.
 *
 * DPDK's rte_timer does not fit. It reads the CPU's cycle counter. The engine has clocks of its
 * own, which stop while the worker does not poll (engine/clock.h), and virtual time in the
 * simulator. Its lists belong to lcores, and a worker may be any thread. Entering a timer takes a
 * lock and a walk; here a timer is entered once per connection and expiry, not per frame. A timer
 * wheel would round the deadlines that a sleeping worker needs.
 */
#ifndef WEFT_ENGINE_TIMER_H
#define WEFT_ENGINE_TIMER_H

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/iface.h"

/* Connections that one raw_timers() call checks, per clock: the others wait for the next call. */
#define RAW_TIMER_BATCH 32u

void raw_deadline_et_sooner(struct raw_conn *c, uint64_t t);

/*
 * raw_timers() checks the connection at @p t, or before, and then finds out itself what is due: a
 * timer that is postponed, as by every acknowledgement, has no cost here.
 */
static inline void raw_deadline_tx(struct raw_conn *c, uint64_t t)
{
	if (unlikely(t < c->tx_clock_at))
		raw_deadline_et_sooner(c, t);
}

void raw_deadline_live(struct raw_conn *c, uint64_t t);
void raw_deadlines_forget(struct raw_conn *c);
/* ---- engine/keepalive.c */
/* Process the connections that are due. */
void raw_timers(struct raw_iface *iface);
/* Notify all peers that the owner computes and does not poll. */
void raw_beat(struct weft_lane_iface *base);
/* The peer's owner computes and does not poll. */
void raw_alive_input(struct raw_conn *c);

#endif /* WEFT_ENGINE_TIMER_H */
