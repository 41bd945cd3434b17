/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread hands rings to the forwarder and takes them back. The queue has one entry: the
 * control thread waits until the forwarder has taken a change, which it does once in each round. So
 * rings, memory and eventfd of a connection belong to exactly one thread at any time.
 */

#include "switch/switch.h"

#include <time.h>

/* A round takes some us, and the forwarder sleeps for 50 us. */
#define LOOK_NS 50000

/* ---- control thread ------------------------------------------------------------------------- */

static void change(struct sw *s)
{
	struct sw_handover *h = &s->handover;

	/* release: the change is written; acquire: the forwarder is done with it */
	atomic_store_explicit(&h->wanted, true, memory_order_release);
	while (atomic_load_explicit(&h->wanted, memory_order_acquire) &&
	       !atomic_load_explicit(&h->ended, memory_order_acquire))
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

void sw_lane_attach(struct sw *s, unsigned int port, const struct sw_conn *c)
{
	struct sw_handover *h = &s->handover;

	/* a bit of the previous connection; relaxed: no other data goes with it */
	atomic_fetch_and_explicit(&h->broken, ~(1ull << port), memory_order_relaxed);
	h->attach = true;
	h->port = port;
	h->user = c->user;
	h->rx = c->rx;
	h->tx = c->tx;
	change(s);
}

void sw_lane_detach(struct sw *s, unsigned int port)
{
	s->handover.attach = false;
	s->handover.port = port;
	change(s);
}

/* ---- forwarder ------------------------------------------------------------------------------ */

static struct sw_share *share_of(struct sw *s, uid_t user)
{
	unsigned int i;

	for (i = 0; i < s->num_shares; i++)
		if (s->share[i].user == user)
			return &s->share[i];
	s->share[s->num_shares] = (struct sw_share){.user = user};
	return &s->share[s->num_shares++];
}

static void drop_lane(struct sw *s, unsigned int port)
{
	struct sw_lane *l = &s->lane[port];
	struct sw_share *share;

	if (!(s->plan.up >> port & 1))
		return;
	s->plan.up &= ~(1ull << port);
	l->filled = l->room = 0;
	share = share_of(s, l->user);
	share->ports &= ~(1ull << port);
	if (share->ports == 0)
		*share = s->share[--s->num_shares];
}

static void take_lane(struct sw *s, const struct sw_handover *h)
{
	struct sw_lane *l = &s->lane[h->port];

	drop_lane(s, h->port);
	l->rx = h->rx;
	l->tx = h->tx;
	l->user = h->user;
	share_of(s, h->user)->ports |= 1ull << h->port;
	s->plan.up |= 1ull << h->port;
}

void sw_lane_change(struct sw *s)
{
	struct sw_handover *h = &s->handover;

	/* acquire and release: see change() */
	if (!atomic_load_explicit(&h->wanted, memory_order_acquire))
		return;
	if (h->attach)
		take_lane(s, h);
	else
		drop_lane(s, h->port);
	atomic_store_explicit(&h->wanted, false, memory_order_release);
}

void sw_lane_broken(struct sw *s, uint64_t ports)
{
	uint64_t p;

	if (ports == 0)
		return;
	for (p = ports; p; p &= p - 1)
		drop_lane(s, (unsigned int)__builtin_ctzll(p));
	/* relaxed: no other data goes with the bits */
	atomic_fetch_or_explicit(&s->handover.broken, ports, memory_order_relaxed);
	sw_control_notify(s);
}
