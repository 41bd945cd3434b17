/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/mpool.h
 * A pool of objects of one size. Get and put take a few instructions and no malloc(). Memory comes
 * in chunks of doubling size and returns to libc only with the pool. The last object put is the
 * first one got, because it is warm in the cache.
 *
 * No lock: a pool belongs to a worker. Under AddressSanitizer objects in the pool are poisoned, so
 * that a use after put is detected.
 */
#ifndef WEFT_MPOOL_H
#define WEFT_MPOOL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define WEFT_MPOOL_POISON(p, n) __asan_poison_memory_region(p, n)
#define WEFT_MPOOL_UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define WEFT_MPOOL_POISON(p, n) ((void)(p), (void)(n))
#define WEFT_MPOOL_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

struct weft_mpool {
	void *free;  /* first free object; each holds the next in its first word */
	size_t size; /* of one object, rounded up to WEFT_MPOOL_ALIGN */
	size_t in_use;
	size_t total;      /* objects in all chunks */
	size_t max;        /* never more objects than this; 0 = no bound */
	size_t next_chunk; /* objects in the chunk to come */
	void *chunks;
};

/** Objects are aligned to this: no two share a cache line. */
#define WEFT_MPOOL_ALIGN 64

/**
 * Prepare a pool; allocates nothing yet.
 * @param size   bytes of one object
 * @param first  objects in the first chunk
 * @param max    bound on objects, 0 = none
 */
void weft_mpool_init(struct weft_mpool *pool, size_t size, size_t first, size_t max);

/** Free all chunks, objects in use included. A zeroed pool is allowed. */
void weft_mpool_fini(struct weft_mpool *pool);

/** Add a chunk. @return 0, -ENOMEM, or -ENOBUFS at the bound */
int weft_mpool_grow(struct weft_mpool *pool);

/** @return an object with undefined content, or NULL (no memory, or the bound is reached) */
static inline void *weft_mpool_get(struct weft_mpool *pool)
{
	void *obj;

	if (__builtin_expect(!pool->free, 0) && weft_mpool_grow(pool) < 0)
		return NULL;
	obj = pool->free;
	WEFT_MPOOL_UNPOISON(obj, pool->size);
	pool->free = *(void **)obj;
	pool->in_use++;
	return obj;
}

static inline void weft_mpool_put(struct weft_mpool *pool, void *obj)
{
	*(void **)obj = pool->free;
	pool->free = obj;
	pool->in_use--;
	WEFT_MPOOL_POISON(obj, pool->size);
}

#endif /* WEFT_MPOOL_H */
