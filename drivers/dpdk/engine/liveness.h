/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/liveness.h
 * Keepalive and the peer timeout, events of the port, and all timers of connections.
 *
 * A connection that may be dead is suspect: the protocol layer is notified, and may stop the
 * connection inside the call, so check its state afterwards.
 */
#ifndef WEFT_ENGINE_LIVENESS_H
#define WEFT_ENGINE_LIVENESS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/frame.h"
#include "lane.h"

/* Reports a peer that has not answered, unless that was done within RAW_SUSPECT_AGAIN_NS. */
void raw_suspect_idle(struct raw_conn *c);

/* Most connections that a raw_timers() call checks, per clock: others wait for the next call. */
#define RAW_TIMER_BATCH 32u
/* Most ns of live_clock between checks of a port: with a link, and without. */
#define RAW_LOOK_UP 1000000000ull
#define RAW_LOOK_DOWN 100000000ull
void raw_port_look(struct raw_iface *iface);

void raw_timers(struct raw_iface *iface);

/* Sends ALIVE over all connections that are up, in another thread while the owner computes. */
void raw_beat(struct weft_lane_iface *base);

void raw_alive_input(struct raw_conn *c);

/* ---------------------------------------------------------------- clocks */

/*
 * The three clocks of an iface. All are in ns and derived from the `now` of progress():
 *   now         real time; timestamps and round-trip samples
 *   tx_clock    as now, but no step is longer than RAW_STEP_MAX. Retransmission timers run on it.
 *               The owner can receive nothing during a pause of its own, so such a pause must
 *               not count as silence of the peer. If frames were sent between two progress
 *               calls, their times are unknown, and only RAW_OUTSIDE_STEP_MAX of that step
 *               counts.
 *   live_clock  liveness: steps of up to RAW_LIVE_STEP_MAX count. Keepalive, peer timeout and
 *               connect timeout run on it.
 * An owner that sleeps until the port wakes it misses no frame. So all clocks go on for the time
 * that it meant to sleep (raw_arm()).
 */

#define RAW_STEP_MAX 2000000ull
#define RAW_LIVE_STEP_MAX 100000000ull
/* ns between two progress calls: after a longer gap, a call takes no round-trip samples */
#define RAW_GAP 200000ull
#define RAW_OUTSIDE_STEP_MAX 100000ull

/* A short step is the same in all three clocks, whatever has happened during it. */
static_assert(RAW_OUTSIDE_STEP_MAX <= RAW_STEP_MAX && RAW_OUTSIDE_STEP_MAX <= RAW_GAP &&
		      RAW_OUTSIDE_STEP_MAX <= RAW_LIVE_STEP_MAX,
	      "short step");

/* raw_clocks() for a step of more than RAW_OUTSIDE_STEP_MAX, or when the clock has gone back. */
void raw_clocks_far(struct raw_iface *iface, uint64_t now);

static inline void raw_clocks(struct raw_iface *iface, uint64_t now)
{
	uint32_t ts = (uint32_t)iface->now, slot = ts / 64 % RAW_STALE;
	uint64_t step = now - iface->now;

	if (likely(step <= RAW_OUTSIDE_STEP_MAX)) {
		iface->gap = false;
		iface->step = (uint32_t)step;
		iface->sent_outside = false;
		iface->now = now;
		iface->tx_clock += step;
		iface->live_clock += step;
	} else {
		raw_clocks_far(iface, now);
	}
	if (iface->sent) {
		/* Frames sent during the step have the old `now`: samples err by up to the step. */
		iface->stale[slot].ts = ts;
		iface->stale[slot].error = iface->step;
		iface->sent = false;
	}
}

int raw_wait_fd(struct weft_lane_iface *base);
int raw_arm(struct weft_lane_iface *base, uint64_t now, uint64_t *due);
void raw_disarm(struct weft_lane_iface *base);

#endif /* WEFT_ENGINE_LIVENESS_H */
