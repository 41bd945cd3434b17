/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD sizeof(struct weft_capture_record)

struct weft_capture_ring *weft_capture_ring_create(uint64_t size)
{
	struct weft_capture_ring *r = aligned_alloc(64, sizeof(*r));
	uint64_t n = 4096;

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	while (n < size)
		n *= 2;
	/* Pages that no record has reached use no memory. */
	r->data = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->data == MAP_FAILED) {
		free(r);
		return NULL;
	}
	r->size = n;
	return r;
}

void weft_capture_ring_destroy(struct weft_capture_ring *r)
{
	if (!r)
		return;
	munmap(r->data, r->size);
	free(r);
}

/* ---- the producer's side -------------------------------------------------------------------- */

static bool has_room(struct weft_capture_ring *r, uint64_t head)
{
	if (head - r->tail_seen <= r->size)
		return true;
	/* Acquire: the consumer has read the bytes that will be overwritten. */
	r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
	return head - r->tail_seen <= r->size;
}

struct weft_capture_record *weft_capture_ring_put(struct weft_capture_ring *r, uint32_t caplen)
{
	uint64_t need = (HEAD + caplen + 7) & ~7ull, at = r->now.head & (r->size - 1), skip = 0;
	struct weft_capture_record *rec;

	r->now.seen++;
	/* A record is contiguous. All records are multiples of 8, so there is room for the word. */
	if (r->size - at < need)
		skip = r->size - at;
	if (atomic_load_explicit(&r->dead, memory_order_relaxed) ||
	    !has_room(r, r->now.head + skip + need)) {
		r->now.dropped++;
		r->now.unreported++;
		return NULL;
	}
	if (skip) {
		((struct weft_capture_record *)(r->data + at))->size = 0;
		at = 0;
	}
	rec = (struct weft_capture_record *)(r->data + at);
	rec->size = (uint32_t)need;
	rec->dropped = r->now.unreported;
	r->now.unreported = 0;
	r->now.head += skip + need;
	return rec;
}

void weft_capture_ring_offered(struct weft_capture_ring *r)
{
	r->mark[r->offered++] = r->now;
}

void weft_capture_ring_commit(struct weft_capture_ring *r, unsigned int n)
{
	if (n > 0) {
		r->done = r->mark[n - 1];
		/* Release: records are complete before the consumer sees them. */
		atomic_store_explicit(&r->head, r->done.head, memory_order_release);
		/*
		 * Relaxed: a thread that reads the counters while frames pass gets no exact moment
		 * anyway.
		 */
		atomic_store_explicit(&r->seen, r->done.seen, memory_order_relaxed);
		atomic_store_explicit(&r->dropped, r->done.dropped, memory_order_relaxed);
	}
	r->now = r->done;
	r->offered = 0;
}

/* ---- the consumer's side -------------------------------------------------------------------- */

const struct weft_capture_record *weft_capture_ring_peek(struct weft_capture_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	const struct weft_capture_record *rec;

	/* Acquire: the committed records are complete. */
	if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
		return NULL;
	rec = (const struct weft_capture_record *)(r->data + (tail & (r->size - 1)));
	if (rec->size)
		return rec;
	tail += r->size - (tail & (r->size - 1));
	atomic_store_explicit(&r->tail, tail, memory_order_release);
	return (const struct weft_capture_record *)r->data;
}

void weft_capture_ring_next(struct weft_capture_ring *r, const struct weft_capture_record *rec)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	/* Release: the record has been read before it is overwritten. */
	atomic_store_explicit(&r->tail, tail + rec->size, memory_order_release);
}
