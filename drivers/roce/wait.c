/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Owners that sleep (lane.h, waiting): the device tells of completions through a completion
 * channel. A completion that came before the request to be told is not told of, so after the
 * request the completion queue is checked once more: arm() says -EBUSY when it has just asked,
 * and 0 when a progress() since has found the queue empty.
 *
 * Two things come without a completion. Counts that peers write (messages that are not acknowledged
 * by others on the way) are checked while some are awaited, after 50 us, 100 us, ... 1 ms; and
 * what the device reports by itself, and addresses that the threads resolve, within the times
 * below.
 */

#include <errno.h>
#include <fcntl.h>

#include "ud.h"

#define LOOK_MIN_NS 50000u
#define LOOK_MAX_NS 1000000u
/*
 * Between two checks of what the device reports; connections that begin or end are checked every
 * LOOK_MAX_NS.
 */
#define SLOW_ASLEEP_NS 100000000u
#define SLOW_BUSY_NS 20000000u /* while requests are under way */

/* ------------------------------------------------------------------ the channel */

void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx)
{
	int flags;

	/* Without one the interface works, and cannot wake its owner. */
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
	if (!n->asked) {
		if (ibv_req_notify_cq(cq, 0) != 0)
			return 0; /* the device is gone; what it reports says so */
		n->asked = true;
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
	/* It was told once, and must be asked again. */
	while (ibv_get_cq_event(n->channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		n->asked = false;
	}
}

static void within(uint64_t now, uint64_t *due, uint64_t ns)
{
	if (now + ns < *due)
		*due = now + ns;
}

/* ------------------------------------------------------------------ lanes */

int roce_wait_fd(struct weft_lane_iface *base)
{
	return notify_fd(&roce_iface_of(base)->notify);
}

/* The owner may be away for long, so peers are told now. */
static void tell_peers(struct roce_iface *r)
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
		tell_peers(r);
	within(now_ns, due_ns, SLOW_ASLEEP_NS);
	/* What has no answer is noticed soon. */
	if (r->tx_room != r->tx_total)
		within(now_ns, due_ns, SLOW_BUSY_NS);
	if (!TAILQ_EMPTY(&r->connecting) || !LIST_EMPTY(&r->dying) || !TAILQ_EMPTY(&r->acks))
		within(now_ns, due_ns, LOOK_MAX_NS);
	if (r->look_ns < LOOK_MIN_NS)
		r->look_ns = LOOK_MIN_NS;
	if (!TAILQ_EMPTY(&r->waits))
		within(now_ns, due_ns, r->look_ns);
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

	within(now_ns, due_ns, SLOW_ASLEEP_NS);
	if (u->resolving > 0 || u->sick || !LIST_EMPTY(&u->dead))
		within(now_ns, due_ns, LOOK_MAX_NS);
	return notify_arm(&u->notify, u->cq, u->empties);
}

void roce_ud_disarm(struct weft_lane_iface *base)
{
	notify_taken(&ud_iface_of(base)->notify);
}
