/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "base/mpool.h"

/* A chunk's head; objects follow, at WEFT_MPOOL_ALIGN. */
struct chunk {
	struct chunk *next;
	size_t bytes;
};

/*
 * Chunks double up to this many bytes: a burst costs few allocations, a quiet pool little memory.
 */
#define CHUNK_MAX_BYTES ((size_t)1 << 20)

void weft_mpool_init(struct weft_mpool *pool, size_t size, size_t first, size_t max)
{
	*pool = (struct weft_mpool){
		.size = (size + WEFT_MPOOL_ALIGN - 1) & ~(size_t)(WEFT_MPOOL_ALIGN - 1),
		.next_chunk = first ? first : 1,
		.max = max,
	};
	if (pool->size == 0)
		pool->size = WEFT_MPOOL_ALIGN;
}

void weft_mpool_fini(struct weft_mpool *pool)
{
	struct chunk *c, *next;

	for (c = pool->chunks; c; c = next) {
		next = c->next;
		WEFT_MPOOL_UNPOISON((char *)c + WEFT_MPOOL_ALIGN, c->bytes);
		free(c);
	}
	*pool = (struct weft_mpool){0};
}

int weft_mpool_grow(struct weft_mpool *pool)
{
	size_t n = pool->next_chunk, i;
	struct chunk *c;
	char *obj;

	if (pool->max != 0 && n > pool->max - pool->total)
		n = pool->max - pool->total;
	if (n == 0)
		return -ENOBUFS;
	c = aligned_alloc(WEFT_MPOOL_ALIGN, WEFT_MPOOL_ALIGN + n * pool->size);
	if (!c)
		return -ENOMEM;
	c->bytes = n * pool->size;
	c->next = pool->chunks;
	pool->chunks = c;
	/* Linked from the end, so that get returns objects in the order of their addresses. */
	for (i = n; i-- > 0;) {
		obj = (char *)c + WEFT_MPOOL_ALIGN + i * pool->size;
		*(void **)obj = pool->free;
		pool->free = obj;
		WEFT_MPOOL_POISON(obj, pool->size);
	}
	pool->total += n;
	if (n * pool->size < CHUNK_MAX_BYTES)
		pool->next_chunk = 2 * n;
	return 0;
}
