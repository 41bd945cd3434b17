/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sleeping owners (lane.h, waiting): the device notifies of completions through a completion
 * channel. Completions from before the request for a notification cause none, so after the request
 * the completion queue is polled once more. arm() returns -EBUSY when it has just requested one,
 * and 0 when a progress() since then has found the queue empty.
 *
 * Two kinds of events cause no completion. Counts that peers write (when no message carries them)
 * are polled while messages are outstanding, after 50 us, 100 us, ... 1 ms. Events of the device,
 * and results of the threads that resolve addresses, are polled within the times below.
 */

#include <errno.h>
#include <fcntl.h>

#include "ud.h"

#define LOOK_MIN_NS 50000u
#define LOOK_MAX_NS 1000000u
/*
 * Time between two checks of the device's events. Connections that begin or end are checked every
 * LOOK_MAX_NS.
 */
#define SLOW_ASLEEP_NS 100000000u
#define SLOW_BUSY_NS 20000000u /* while requests are outstanding */

/* ------------------------------------------------------------------ the channel */

void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx)
{
	int flags;

	/* Without a channel the interface works, but cannot wake its owner. */
	n->channel = ibv_create_comp_channel(ctx);
	if (!n->channel)
		return;
	flags = fcntl(n->channel->fd, F_GETFL);
	if (flags >= 0 && fcntl(n->channel->fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return;
	ibv_destroy_comp_channel(n->channel);
	n->channel = NULL;
}

void roce_notify_close(struct roce_notify *n)
{
	if (n->channel)
		ibv_destroy_comp_channel(n->channel);
	n->channel = NULL;
}

static int notify_fd(const struct roce_notify *n)
{
	return n->channel ? n->channel->fd : -ENOTSUP;
}

/* @p empties: polls that have left the queue empty so far. */
static int notify_arm(struct roce_notify *n, struct ibv_cq *cq, uint64_t empties)
{
	if (!n->channel)
		return 0;
	if (!n->requested) {
		if (ibv_req_notify_cq(cq, 0) != 0)
			return 0; /* the device is gone, which its events report */
		n->requested = true;
		n->empties = empties;
	}
	return empties != n->empties ? 0 : -EBUSY;
}

static void notify_taken(struct roce_notify *n)
{
	struct ibv_cq *cq;
	void *context;

	if (!n->channel)
		return;
	/* A request gives one notification, so the next arm() must request again. */
	while (ibv_get_cq_event(n->channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		n->requested = false;
	}
}

static void due_within(uint64_t now, uint64_t *due, uint64_t ns)
{
	if (now + ns < *due)
		*due = now + ns;
}

/* ------------------------------------------------------------------ lanes */

int roce_wait_fd(struct weft_lane_iface *base)
{
	return notify_fd(&roce_iface_of(base)->notify);
}

/* The owner may sleep for long, so send pending counts to peers now. */
static void send_counts(struct roce_iface *r)
{
	struct roce_chan *chan;

	TAILQ_FOREACH(chan, &r->acks, ack_link)
		chan->ack_now = true;
	roce_acks_send(r);
	roce_tx_flush(&r->base);
}

int roce_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct roce_iface *r = roce_iface_of(base);

	if (base->tx_open || r->failing)
		return -EBUSY;
	if (!TAILQ_EMPTY(&r->acks))
		send_counts(r);
	due_within(now_ns, due_ns, SLOW_ASLEEP_NS);
	/* With outstanding requests, check for a silent device earlier. */
	if (r->tx_room != r->tx_total)
		due_within(now_ns, due_ns, SLOW_BUSY_NS);
	if (!TAILQ_EMPTY(&r->connecting) || !LIST_EMPTY(&r->dying) || !TAILQ_EMPTY(&r->acks))
		due_within(now_ns, due_ns, LOOK_MAX_NS);
	if (r->look_ns < LOOK_MIN_NS)
		r->look_ns = LOOK_MIN_NS;
	if (!TAILQ_EMPTY(&r->waits))
		due_within(now_ns, due_ns, r->look_ns);
	return notify_arm(&r->notify, r->cq, r->empties);
}

void roce_disarm(struct weft_lane_iface *base)
{
	struct roce_iface *r = roce_iface_of(base);

	notify_taken(&r->notify);
	r->look_ns = r->look_ns * 2 < LOOK_MAX_NS ? r->look_ns * 2 : LOOK_MAX_NS;
}

void roce_look_soon(struct roce_iface *r)
{
	r->look_ns = LOOK_MIN_NS;
}

/* ------------------------------------------------------------------ the control channel */

int roce_ud_wait_fd(struct weft_lane_iface *base)
{
	return notify_fd(&ud_iface_of(base)->notify);
}

int roce_ud_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct ud_iface *u = ud_iface_of(base);

	due_within(now_ns, due_ns, SLOW_ASLEEP_NS);
	if (u->resolving > 0 || u->sick || !LIST_EMPTY(&u->dead))
		due_within(now_ns, due_ns, LOOK_MAX_NS);
	return notify_arm(&u->notify, u->cq, u->empties);
}

void roce_ud_disarm(struct weft_lane_iface *base)
{
	notify_taken(&ud_iface_of(base)->notify);
}
