/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/timer.h
 * Which connections are checked, and when.
 *
 * A connection is in by_et while frames of it are outstanding, and in by_lt with its next sign
 * of life or step of its handshake: what is idle costs its share of keepalives and nothing else.
 *
 * DPDK's rte_timer does not fit: it reads the CPU's cycle counter, where the engine has clocks of
 * its own that stand still while nobody polls (engine/clock.h), and virtual time in the simulator;
 * its lists belong to lcores, and a worker may be any thread; and entering a timer takes a lock and
 * a walk, where here it is once per connection and firing, not per frame. A wheel would round the
 * deadlines that a worker that sleeps requests.
 */
#ifndef WEFT_ENGINE_TIMER_H
#define WEFT_ENGINE_TIMER_H

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/iface.h"

/* Connections that one raw_timers() checks, per clock: what else is due waits for the next. */
#define RAW_TIMER_BATCH 32u

void raw_deadline_et_sooner(struct raw_conn *c, uint64_t t);

/*
 * raw_timers() checks the connection at @p t, or before, and then finds out itself what is due: a
 * timer that is put off, as by every acknowledgement, costs nothing here.
 */
static inline void raw_deadline_et(struct raw_conn *c, uint64_t t)
{
	if (unlikely(t < c->et_at))
		raw_deadline_et_sooner(c, t);
}

void raw_deadline_lt(struct raw_conn *c, uint64_t t);
void raw_deadlines_forget(struct raw_conn *c);
/* ---- engine/keepalive.c */
/* Does what is due. */
void raw_timers(struct raw_iface *iface);
/* Says to all peers that the owner computes. */
void raw_beat(struct weft_lane_iface *base);
/* The peer says so. */
void raw_alive_input(struct raw_conn *c);

#endif /* WEFT_ENGINE_TIMER_H */
