/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An owner that sleeps (lane.h, waiting). Where the port wakes it, a sleep is no pause: whatever
 * comes ends it. So the clocks of engine/clock.h go on for the time that it meant to sleep, where
 * those of an owner that was merely away stand still, and the times of frames that are answered
 * in the meantime are good.
 *
 * What nobody is woken for has a time here: timers, acknowledgements and frames that the port did
 * not take, the port's own wishes, a check of what has happened to it.
 */

#include <errno.h>

#include <rte_common.h>

#include "engine/clock.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/life.h"
#include "engine/rx.h"
#include "engine/txq.h"
#include "frame/frame_port.h"
#include "lane.h"

/* Between two tries of what the port, or another connection, has no room for. */
#define RETRY_NS 50000u
/* Looks for sent buffers after the last frame. */
#define KICKS 4u

int raw_wait_fd(struct weft_lane_iface *base)
{
	const struct raw_iface *iface = raw_iface_of(base);
	struct weft_frame_port *port = iface->port;

	/* Frames that come to other workers' queues are handed over in memory. */
	if (port->steering.handed || !port->ops->wait_fd)
		return -ENOTSUP;
	return port->ops->wait_fd(port);
}

/* The owner may be away for long, so nobody shall wait for these. */
static void send_acks(struct raw_iface *iface)
{
	struct raw_conn *c;

	if (TAILQ_EMPTY(&iface->ack_list))
		return;
	TAILQ_FOREACH(c, &iface->ack_list, ack_link)
		if (c->ack_state == RAW_ACK_DELAYED)
			c->ack_state = RAW_ACK_NOW;
	raw_acks(iface);
	raw_txq_flush(iface);
}

/* From now to a time on one of the clocks, no step of which counts for more than @p most. */
static uint64_t until(uint64_t at, uint64_t clock, uint64_t most)
{
	if (at == RAW_NEVER)
		return RAW_NEVER;
	return at > clock ? RTE_MIN(at - clock, most) : 0;
}

/*
 * Where nothing wakes the owner, sleeping longer than the step that counts would put timers off by
 * what does not.
 */
static uint64_t next_timer(const struct raw_iface *iface, bool wakes)
{
	return RTE_MIN(until(iface->next_et, iface->et, wakes ? RAW_NEVER : RAW_STEP_MAX),
		       until(iface->next_lt, iface->lt, wakes ? RAW_NEVER : RAW_LIVE_STEP_MAX));
}

/* Sent buffers come back when they are requested: a few times after the last frame. */
static void kick(struct raw_iface *iface, uint64_t *within)
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
		within = RTE_MIN(within, until(iface->zc.ask_at, iface->now, RAW_NEVER));
	kick(iface, &within);
	if (port->ops->arm) {
		rc = port->ops->arm(port, &within);
		if (rc < 0)
			return rc;
	}
	*due = within < *due - now ? now + within : *due;
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
