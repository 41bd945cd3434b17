/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Tables of endpoints: by slot, which peers return in their messages; by the endpoint's number
 * among those between two workers; and by the time of its timer.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wireup/wireup.h"

/* Peers choose numbers, so the hash has a key. */
static struct weft_ep_list *bucket_of(const struct weft_worker *w, struct weft_ep_list *table,
				      uint32_t size, const struct weft_peer *peer, uint32_t sn)
{
	/* Not by the peer's identity, which may become known while there are endpoints. */
	const uint64_t key[] = {peer->id, peer->digest, sn};

	return &table[weft_siphash(&w->hash_key, key, sizeof(key)) & (size - 1)];
}

/* Twice as many slots; all were taken. */
static int table_grow(struct weft_worker *w)
{
	uint32_t old = w->ep_table_size, size = old ? 2 * old : 16;
	struct weft_conns *conns = w->conns;
	struct weft_ep_list *by_sn;
	struct weft_ep *ep, **table;
	uint32_t *free_slots;

	/* Reserve the memory for timers, so that setting one cannot fail. */
	if (weft_deadlines_reserve(&conns->timers, size) < 0)
		return -ENOMEM;
	free_slots = realloc(conns->free_slots, size * sizeof(*free_slots));
	if (!free_slots)
		return -ENOMEM;
	conns->free_slots = free_slots;
	by_sn = calloc(size, sizeof(*by_sn));
	if (!by_sn)
		return -ENOMEM;
	table = realloc(w->ep_table, size * sizeof(*table));
	if (!table) {
		free(by_sn);
		return -ENOMEM;
	}
	memset(table + old, 0, (size - old) * sizeof(*table));
	w->ep_table = table;
	w->ep_table_size = size;
	LIST_FOREACH(ep, &w->eps, entry)
		if (ep->peer)
			LIST_INSERT_HEAD(bucket_of(w, by_sn, size, ep->peer, ep->conn_sn), ep,
					 sn_entry);
	free(conns->by_sn);
	conns->by_sn = by_sn;
	while (size > old)
		free_slots[conns->num_free_slots++] = --size;
	return 0;
}

int weft_ep_slot_take(struct weft_ep *ep)
{
	struct weft_worker *w = ep->worker;
	struct weft_conns *conns = w->conns;

	if (conns->num_free_slots == 0 && table_grow(w) < 0)
		return -ENOMEM;
	ep->slot = conns->free_slots[--conns->num_free_slots];
	w->ep_table[ep->slot] = ep;
	if (++w->next_generation == 0) /* 0 means "not known" on the wire */
		w->next_generation = 1;
	ep->generation = w->next_generation;
	return 0;
}

void weft_ep_slot_give(struct weft_ep *ep)
{
	struct weft_conns *conns = ep->worker->conns;

	weft_deadlines_remove(&conns->timers, ep->slot);
	ep->timer = 0; /* weft_ep_timer_at() has no effect from now on */
	ep->worker->ep_table[ep->slot] = NULL;
	conns->free_slots[conns->num_free_slots++] = ep->slot;
	ep->generation = 0;
}

struct weft_ep *weft_ep_of_ref(const struct weft_worker *w, struct weft_wire_ref ref)
{
	uint32_t slot = weft_get32(ref.index);
	struct weft_ep *ep = slot < w->ep_table_size ? w->ep_table[slot] : NULL;

	return ep != NULL && ep->generation == weft_get32(ref.generation) ? ep : NULL;
}

/* ------------------------------------------------------------------ by number */

void weft_ep_sn_add(struct weft_ep *ep)
{
	struct weft_worker *w = ep->worker;

	LIST_INSERT_HEAD(bucket_of(w, w->conns->by_sn, w->ep_table_size, ep->peer, ep->conn_sn), ep,
			 sn_entry);
}

struct weft_ep *weft_peer_ep(const struct weft_worker *w, const struct weft_peer *peer, uint32_t sn)
{
	struct weft_ep *ep;

	if (w->ep_table_size == 0)
		return NULL;
	LIST_FOREACH(ep, bucket_of(w, w->conns->by_sn, w->ep_table_size, peer, sn), sn_entry) {
		w->conns->looks++;
		if (ep->peer == peer && ep->conn_sn == sn)
			return ep;
	}
	return NULL;
}

/* ------------------------------------------------------------------ by time */

/*
 * "At once" comes after all timers that are due already, so an endpoint that repeats the request
 * delays no other.
 */
void weft_ep_timer_at(struct weft_ep *ep, uint64_t when)
{
	struct weft_worker *w = ep->worker;

	if (when >= ep->timer)
		return;
	if (when < w->now)
		when = w->now;
	if (when < ep->timer) {
		ep->timer = when;
		weft_deadlines_by(&w->conns->timers, ep->slot, when);
	}
	if (ep->timer < w->next_timer)
		w->next_timer = ep->timer;
}
