/* SPDX-License-Identifier: BSD-3-Clause */

/* The clocks of an iface (engine/clock.h), and how its owner sleeps. */

#include <errno.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/clock.h"
#include "engine/conn_rx.h"
#include "engine/iface.h"
#include "frame/frame_port.h"
#include "lane.h"

void raw_clocks_far(struct raw_iface *iface, uint64_t now)
{
	uint64_t step = now > iface->now ? now - iface->now : 0, slept = 0;

	if (iface->slept)
		slept = RTE_MIN(step, iface->sleep_max);
	iface->gap = step > slept + RAW_GAP;
	if (unlikely(iface->gap))
		raw_count(iface, RAW_GAPS);
	iface->step = (uint32_t)RTE_MIN(step, (uint64_t)UINT32_MAX);
	if (iface->sent_outside) {
		iface->sent_outside = false;
		iface->tx_clock += RTE_MIN(step, RAW_OUTSIDE_STEP_MAX);
	} else {
		iface->tx_clock += RTE_MIN(step, slept + RAW_STEP_MAX);
	}
	iface->now += step;
	iface->live_clock += RTE_MIN(step, slept + RAW_LIVE_STEP_MAX);
}

/* ---------------------------------------------------------------- sleeping */

/*
 * An owner that sleeps (lane.h, waiting). If the port wakes it, a sleep is no pause, as any frame
 * ends it. So the clocks of engine/clock.h go on for the time that the owner meant to sleep; those
 * of an owner that merely did not poll stop. The round trips of frames that are answered in the
 * meantime are valid.
 *
 * Work that does not wake the owner gets a time here: timers, acknowledgements and frames that the
 * port did not take, requests of the port itself, and a check of the port's events.
 */

/* ns between two tries of work for which the port, or another connection, has no room. */
#define RETRY_NS 50000u
/* Checks for sent buffers after the last frame. */
#define KICKS 4u

int raw_wait_fd(struct weft_lane_iface *base)
{
	const struct raw_iface *iface = raw_iface_of(base);
	struct weft_frame_port *port = iface->port;

	/*
	 * Frames that arrive at other workers' queues are handed over in memory, which wakes no
	 * thread.
	 */
	if (port->steering.handed || !port->ops->wait_fd)
		return -ENOTSUP;
	return port->ops->wait_fd(port);
}

/*
 * The owner may sleep for long: send delayed acknowledgements now, so that no sender waits for
 * them.
 */
static void send_acks(struct raw_iface *iface)
{
	if (TAILQ_EMPTY(&iface->ack_list))
		return;
	raw_rx_hurry(iface);
	raw_acks(iface);
	raw_txq_flush(iface);
}

/* @return ns from now to a time on one of the clocks, whose steps count for @p most at most */
static uint64_t ns_until(uint64_t at, uint64_t clock, uint64_t most)
{
	if (at == RAW_NEVER)
		return RAW_NEVER;
	return at > clock ? RTE_MIN(at - clock, most) : 0;
}

/*
 * If nothing wakes the owner, it must not sleep longer than the step that counts: the remainder
 * would delay timers.
 */
static uint64_t next_timer(const struct raw_iface *iface, bool wakes)
{
	return RTE_MIN(ns_until(iface->next_tx_clock, iface->tx_clock,
				wakes ? RAW_NEVER : RAW_STEP_MAX),
		       ns_until(iface->next_live_clock, iface->live_clock,
				wakes ? RAW_NEVER : RAW_LIVE_STEP_MAX));
}

/* The PMD frees sent buffers only when it is polled. It is polled KICKS times after a frame. */
static void kick_port(struct raw_iface *iface, uint64_t *within)
{
	if (!iface->tx_used || !iface->port->ops->tx_kick)
		return;
	iface->port->ops->tx_kick(iface->port);
	if (++iface->kicks < KICKS) {
		*within = RTE_MIN(*within, (uint64_t)RETRY_NS);
		return;
	}
	iface->kicks = 0;
	iface->tx_used = false;
}

int raw_arm(struct weft_lane_iface *base, uint64_t now, uint64_t *due)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct weft_frame_port *port = iface->port;
	bool wakes = raw_wait_fd(base) >= 0;
	uint64_t within;
	int rc;

	raw_clocks(iface, now);
	if (!TAILQ_EMPTY(&iface->tx_list) || !STAILQ_EMPTY(&iface->zc.released) || port->event)
		return -EBUSY;
	send_acks(iface);
	within = next_timer(iface, wakes);
	if (iface->txq.count > 0 || iface->share.pressed || !TAILQ_EMPTY(&iface->ack_list))
		within = RTE_MIN(within, (uint64_t)RETRY_NS);
	if (!LIST_EMPTY(&iface->zc.waiting))
		within = RTE_MIN(within, ns_until(iface->zc.poll_at, iface->now, RAW_NEVER));
	kick_port(iface, &within);
	if (port->ops->arm) {
		rc = port->ops->arm(port, &within);
		if (rc < 0)
			return rc;
	}
	*due = within < *due - now ? now + within : *due;
	iface->rest_until = 0; /* frames may have caused the wake-up */
	iface->slept = wakes;
	iface->sleep_max = *due - now;
	return 0;
}

void raw_disarm(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);

	if (iface->port->ops->arm)
		iface->port->ops->disarm(iface->port);
}
