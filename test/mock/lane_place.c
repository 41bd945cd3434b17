/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "mock/lane_thread.h"

static bool is_pinned(struct lane_places *p, uint64_t id)
{
	for (unsigned int i = 0; i < LANE_PLACE_THREADS; i++)
		/*
		 * Sequentially consistent, as all four accesses of this order: a lane thread
		 * stores its pin and then loads the id, this thread stores the id and then loads
		 * the pin. One of the two loads sees the other thread's store.
		 */
		if (atomic_load_explicit(&p->pin[i].id, memory_order_seq_cst) == id)
			return true;
	return false;
}

bool lane_place_open(struct lane_places *p, uint64_t id, void *base, size_t length)
{
	struct lane_place *at = &p->place[id % LANE_PLACES];

	/* Relaxed: only this thread writes ids. */
	if (atomic_load_explicit(&at->id, memory_order_relaxed) != 0 ||
	    (at->last != 0 && is_pinned(p, at->last)))
		return false;
	at->last = id;
	at->base = base;
	at->length = length;
	/* Release: base and length are there. */
	atomic_store_explicit(&at->id, id, memory_order_release);
	return true;
}

bool lane_place_close(struct lane_places *p, uint64_t id)
{
	struct lane_place *at = &p->place[id % LANE_PLACES];

	/* Relaxed: only this thread writes ids. */
	if (atomic_load_explicit(&at->id, memory_order_relaxed) == id)
		atomic_store_explicit(&at->id, 0, memory_order_seq_cst);
	return !is_pinned(p, id);
}

bool lane_place_copy(struct lane_places *p, unsigned int thread, uint64_t id, uint64_t offset,
		     const void *data, size_t length)
{
	struct lane_place *at = &p->place[id % LANE_PLACES];
	_Atomic uint64_t *pin = &p->pin[thread].id;
	bool good;

	atomic_store_explicit(pin, id, memory_order_seq_cst);
	good = atomic_load_explicit(&at->id, memory_order_seq_cst) == id && length <= at->length &&
	       offset <= at->length - length;
	if (good)
		memcpy(at->base + offset, data, length);
	/* Release: the copy is over. */
	atomic_store_explicit(pin, 0, memory_order_release);
	return good;
}
