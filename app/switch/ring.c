/* SPDX-License-Identifier: BSD-3-Clause */

#include "switch/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

static_assert(sizeof(struct sw_ring_desc) == 16 && offsetof(struct sw_ring_shm, head) == 6 &&
		      offsetof(struct sw_ring_shm, tail) == 64 &&
		      offsetof(struct sw_ring_shm, desc) == 128,
	      "memif's layout");

/* Read once, and not again after the check: the client may write in the meantime. */
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

int sw_ring_attach(struct sw_ring *r, void *region, size_t len, uint64_t offset,
		   unsigned int log2_size, int event)
{
	struct sw_ring_shm *shm;
	size_t need;

	if (log2_size > SW_RING_LOG2_MAX || offset % 8)
		return -EINVAL;
	need = sizeof(struct sw_ring_shm) + ((size_t)1 << log2_size) * sizeof(struct sw_ring_desc);
	if (offset > len || need > len - offset)
		return -EINVAL;
	shm = (struct sw_ring_shm *)((uint8_t *)region + offset);
	if (READ_ONCE(shm->cookie) != SW_RING_COOKIE)
		return -EINVAL;
	*r = (struct sw_ring){
		.shm = shm,
		.base = region,
		.len = len,
		.size = (uint16_t)(1u << log2_size),
		.event = event,
	};
	/* For both directions the server owns tail, and is its only writer from now on. */
	r->last = READ_ONCE(r->shm->tail);
	return 0;
}

int sw_ring_ready(const struct sw_ring *r)
{
	/* acquire: pairs with the client's release of head, after which its entries are valid */
	uint16_t head = __atomic_load_n(&r->shm->head, __ATOMIC_ACQUIRE);
	uint16_t n = (uint16_t)(head - r->last);

	return n > r->size ? -EPROTO : n;
}

static struct sw_ring_desc *desc(const struct sw_ring *r, unsigned int i)
{
	return &r->shm->desc[(r->last + i) & (r->size - 1u)];
}

struct sw_buf sw_ring_at(const struct sw_ring *r, unsigned int i)
{
	const struct sw_ring_desc *d = desc(r, i);
	uint32_t length = READ_ONCE(d->length), offset = READ_ONCE(d->offset);

	if (READ_ONCE(d->region) || READ_ONCE(d->flags) & SW_DESC_NEXT || offset > r->len ||
	    length > r->len - offset)
		return (struct sw_buf){0};
	return (struct sw_buf){r->base + offset, length};
}

void sw_ring_fill(const struct sw_ring *r, unsigned int i, uint32_t len)
{
	struct sw_ring_desc *d = desc(r, i);

	__atomic_store_n(&d->flags, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&d->length, len, __ATOMIC_RELAXED);
}

void sw_ring_done(struct sw_ring *r, unsigned int n)
{
	r->last = (uint16_t)(r->last + n);
	/* release: the client must see the entries before the index that hands them over */
	__atomic_store_n(&r->shm->tail, r->last, __ATOMIC_RELEASE);
}

bool sw_ring_sleeps(const struct sw_ring *r)
{
	/*
	 * Write our index before reading its flag: the client sets the flag, then rereads the
	 * index.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	return r->event >= 0 && !(READ_ONCE(r->shm->flags) & SW_RING_MASK_INT);
}
