/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress. An iface with few peers checks all rings each time. With many, it checks those with
 * recent messages, and some of the others in rotation.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "shm/shm.h"

#define EVENTS 16 /* of the sockets, per check */

/* ------------------------------------------------------------------ the table of rings */

int shm_table_reserve(struct shm_iface *s, uint32_t num)
{
	uint32_t room = s->table_room ? 2 * s->table_room : 64;
	struct shm_ep **table;

	if (num <= s->table_room)
		return 0;
	table = realloc(s->table, room * sizeof(struct shm_ep *));
	if (!table)
		return -ENOMEM;
	s->table = table;
	s->table_room = room;
	return 0;
}

void shm_table_add(struct shm_ep *lane_ep)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	lane_ep->slot = s->num_table;
	s->table[s->num_table++] = lane_ep;
}

static void table_put(struct shm_iface *s, uint32_t slot, struct shm_ep *lane_ep)
{
	s->table[slot] = lane_ep;
	lane_ep->slot = slot;
}

void shm_table_remove(struct shm_ep *lane_ep)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	table_put(s, lane_ep->slot, s->table[--s->num_table]);
}

static void make_hot(struct shm_iface *s, struct shm_ep *lane_ep)
{
	uint32_t hot = s->next_hot++ % SHM_HOT, slot = lane_ep->slot;

	table_put(s, slot, s->table[hot]);
	table_put(s, hot, lane_ep);
}

/* ------------------------------------------------------------------ messages */

static void deliver_short(struct shm_iface *s, struct shm_ep *lane_ep, const struct shm_record *r)
{
	/*
	 * Upper layers validate a private copy, which the peer cannot change. Mostly it is one
	 * line.
	 */
	if (r->length <= SHM_LINE - 8)
		memcpy(s->copy, r->data, SHM_LINE - 8);
	else
		memcpy(s->copy, r->data, r->length);
	shm_rx_taken(&lane_ep->rx, r);
	s->recv(s->arg, &lane_ep->base, r->am_id, s->copy, r->length, NULL);
}

static bool deliver_chunk(struct shm_iface *s, struct shm_ep *lane_ep, const struct shm_record *r)
{
	void *buf = weft_mpool_get(&s->bufs);

	if (!buf)
		return false;
	memcpy(buf, r->data, r->length);
	shm_rx_taken(&lane_ep->rx, r);
	s->count.rx_chunks++;
	if (s->recv(s->arg, &lane_ep->base, r->am_id, buf, r->length,
		    s->num_kept < SHM_KEEP_MAX ? buf : NULL) == WEFT_LANE_KEEP)
		s->num_kept++;
	else
		weft_mpool_put(&s->bufs, buf);
	return true;
}

void shm_release(struct weft_lane_iface *base, void *desc)
{
	struct shm_iface *s = shm_iface(base);

	s->num_kept--;
	weft_mpool_put(&s->bufs, desc);
}

static void publish_head(struct shm_ep *lane_ep)
{
	shm_rx_publish(&lane_ep->rx);
	shm_wake_peer(lane_ep, lane_ep->tx.dir, SHM_WAKE_HEAD);
}

static void end_broken(struct shm_iface *s, struct shm_ep *lane_ep)
{
	s->count.rx_bad++;
	shm_end(lane_ep, -EPROTO, "its process wrote invalid data into the shared memory");
}

/* The peer has ended, and its ring is empty. */
static void end_gone(struct shm_iface *s, struct shm_ep *lane_ep)
{
	/* Acquire: the peer's records precede this flag. */
	if (atomic_load_explicit(&lane_ep->rx.dir->ctl.closed, memory_order_acquire)) {
		shm_end(lane_ep, 0, "the peer has closed the connection");
		return;
	}
	s->count.died++;
	shm_end(lane_ep, -ECONNRESET, "its process has ended without closing the connection");
}

static __attribute__((noinline)) unsigned int take_records(struct shm_iface *s,
							   struct shm_ep *lane_ep)
{
	struct shm_record r;
	unsigned int n;
	int rc = 0;

	for (n = 0; n < SHM_BURST; n++) {
		rc = shm_rx_next(&lane_ep->rx, WEFT_LANE_AM_MAX, &r);
		if (rc <= 0)
			break;
		if (r.chunk == SHM_CHUNKS)
			deliver_short(s, lane_ep, &r);
		else if (!deliver_chunk(s, lane_ep, &r))
			break;
		if (lane_ep->state != SHM_UP) {
			s->count.rx_messages += n + 1;
			return n + 1;
		}
		if (lane_ep->rx.head - lane_ep->rx.published >= SHM_LINES / 4)
			publish_head(lane_ep);
	}
	s->count.rx_messages += n;
	if (lane_ep->rx.head != lane_ep->rx.published)
		publish_head(lane_ep);
	if (__builtin_expect(rc < 0 || lane_ep->tx.broken, 0)) {
		end_broken(s, lane_ep);
		return n + 1;
	}
	if (__builtin_expect(lane_ep->ended, 0) && n == 0 && rc == 0) {
		end_gone(s, lane_ep);
		return 1;
	}
	return n;
}

static inline unsigned int poll_ring(struct shm_iface *s, struct shm_ep *lane_ep)
{
	/* The common case takes one load of the peer's memory, and one of ours. */
	if (__builtin_expect(shm_rx_empty(&lane_ep->rx) & !(lane_ep->ended | lane_ep->tx.broken),
			     1))
		return 0;
	return take_records(s, lane_ep);
}

static unsigned int poll_cold(struct shm_iface *s)
{
	struct shm_ep *lane_ep;
	unsigned int i, n, sum = 0;

	for (i = 0; i < SHM_COLD && s->num_table > SHM_HOT; i++) {
		if (s->next_cold >= s->num_table || s->next_cold < SHM_HOT)
			s->next_cold = SHM_HOT;
		lane_ep = s->table[s->next_cold++];
		n = poll_ring(s, lane_ep);
		sum += n;
		if (n > 0 && lane_ep->state == SHM_UP && lane_ep->slot >= SHM_HOT)
			make_hot(s, lane_ep);
	}
	return sum;
}

/* ------------------------------------------------------------------ the rest */

/* Check the sockets: new connections, replies, peers that have ended. */
static unsigned int poll_sockets(struct shm_iface *s, uint64_t now_ns)
{
	struct epoll_event events[EVENTS];
	unsigned int n = 0;
	int i, num;

	if (__builtin_expect(!s->registered, 0))
		shm_wait_look(s);
	num = epoll_wait(s->epoll, events, EVENTS, 0);
	for (i = 0; i < num; i++) {
		if (events[i].data.ptr == &s->listen)
			n += shm_accept(s, now_ns);
		else if (events[i].data.ptr == &s->received)
			n += shm_received(s);
		else
			n += shm_readable(events[i].data.ptr);
	}
	if (s->num_making > 0)
		n += shm_making(s, now_ns);
	s->look_at = now_ns + (s->num_making > 0 ? SHM_LOOK_MAKING_NS : SHM_LOOK_NS);
	if (num == EVENTS)
		s->look_at = now_ns;
	return n;
}

/* A callback may end other lane_eps: they stay in memory until shm_reap(). */
static unsigned int run_completions(struct shm_iface *s)
{
	struct shm_ep *lane_ep, *next;
	unsigned int n = 0;

	for (lane_ep = LIST_FIRST(&s->waiting); lane_ep; lane_ep = next) {
		next = LIST_NEXT(lane_ep, waiting);
		n += shm_complete(lane_ep);
	}
	return n;
}

unsigned int shm_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct shm_iface *s = shm_iface(base);
	unsigned int i, n = 0;

	for (i = 0; i < SHM_HOT && i < s->num_table; i++)
		n += poll_ring(s, s->table[i]);
	if (__builtin_expect(s->num_table > SHM_HOT, 0))
		n += poll_cold(s);
	if (!LIST_EMPTY(&s->waiting))
		n += run_completions(s);
	if (!LIST_EMPTY(&s->busy))
		n += shm_native_work(s);
	if (__builtin_expect(now_ns >= s->look_at, 0))
		n += poll_sockets(s, now_ns);
	if (__builtin_expect(!TAILQ_EMPTY(&s->dead), 0))
		shm_reap(s);
	return n;
}
