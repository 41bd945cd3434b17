/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ pool */

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

/* ------------------------------------------------------------------ hash table */

#define TABLE_FIRST_BITS 4

/*
 * The high bits of a product with a random odd number (see tag/match.h for why, and for the
 * scrambling before it).
 */
static inline struct weft_table_list *bucket_of(const struct weft_table *t, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	key ^= key >> 32;
	return &t->buckets[(key * (t->seed | 1)) >> (64 - t->bits)];
}

struct weft_table_node *weft_table_bucket(const struct weft_table *t, uint64_t key)
{
	return t->num ? SLIST_FIRST(bucket_of(t, key)) : NULL;
}

struct weft_table_node *weft_table_look(const struct weft_table *t, uint64_t key)
{
	struct weft_table_node *node;

	SLIST_FOREACH(node, bucket_of(t, key), link) {
		if (node->key == key)
			return node;
	}
	return NULL;
}

static int table_grow(struct weft_table *t)
{
	size_t old_n = t->buckets ? (size_t)1 << t->bits : 0;
	uint32_t bits = old_n ? t->bits + 2 : TABLE_FIRST_BITS;
	struct weft_table_list *old = t->buckets, *buckets;
	struct weft_table_node *node;

	buckets = calloc((size_t)1 << bits, sizeof(*buckets));
	if (!buckets)
		return old ? 0 : -ENOMEM;
	t->buckets = buckets;
	t->bits = bits;
	for (size_t i = 0; i < old_n; i++) {
		while ((node = SLIST_FIRST(&old[i]))) {
			SLIST_REMOVE_HEAD(&old[i], link);
			SLIST_INSERT_HEAD(bucket_of(t, node->key), node, link);
		}
	}
	free(old);
	return 0;
}

int weft_table_reserve(struct weft_table *t)
{
	return t->buckets ? 0 : table_grow(t);
}

int weft_table_add(struct weft_table *t, struct weft_table_node *node, uint64_t key)
{
	if ((!t->buckets || t->num >> t->bits >= 2) && table_grow(t))
		return -ENOMEM;
	node->key = key;
	SLIST_INSERT_HEAD(bucket_of(t, key), node, link);
	t->num++;
	return 0;
}

void weft_table_remove(struct weft_table *t, struct weft_table_node *node)
{
	SLIST_REMOVE(bucket_of(t, node->key), node, weft_table_node, link);
	t->num--;
}

struct weft_table_node *weft_table_any(const struct weft_table *t, uint32_t *from)
{
	struct weft_table_node *node;

	for (; t->buckets && *from >> t->bits == 0; (*from)++) {
		node = SLIST_FIRST(&t->buckets[*from]);
		if (node)
			return node;
	}
	return NULL;
}

void weft_table_fini(struct weft_table *t)
{
	free(t->buckets);
	t->buckets = NULL;
	t->num = 0;
}

/* ------------------------------------------------------------------ deadlines */

#define HEAP_CHILDREN 4u

int weft_deadlines_reserve(struct weft_deadlines *d, uint32_t room)
{
	void *mem;

	if (room <= d->room)
		return 0;
	mem = realloc(d->heap, room * sizeof(*d->heap));
	if (!mem)
		return -ENOMEM;
	d->heap = mem;
	mem = realloc(d->place, room * sizeof(*d->place));
	if (!mem)
		return -ENOMEM;
	d->place = mem;
	memset(d->place + d->room, 0, (room - d->room) * sizeof(*d->place));
	d->room = room;
	return 0;
}

void weft_deadlines_fini(struct weft_deadlines *d)
{
	free(d->heap);
	free(d->place);
	*d = (struct weft_deadlines){0};
}

static inline void heap_put(struct weft_deadlines *d, uint32_t i, struct weft_deadline e)
{
	d->heap[i] = e;
	d->place[e.item] = i + 1;
}

/* Insert @p e at @p i, or nearer to the root. */
static void heap_up(struct weft_deadlines *d, uint32_t i, struct weft_deadline e)
{
	uint32_t parent;

	for (; i > 0; i = parent) {
		parent = (i - 1) / HEAP_CHILDREN;
		if (d->heap[parent].at <= e.at)
			break;
		heap_put(d, i, d->heap[parent]);
	}
	heap_put(d, i, e);
}

/* Insert @p e at @p i, or farther from the root. */
static void heap_down(struct weft_deadlines *d, uint32_t i, struct weft_deadline e)
{
	uint32_t child, end, least;

	while ((child = HEAP_CHILDREN * i + 1) < d->num) {
		end = child + HEAP_CHILDREN < d->num ? child + HEAP_CHILDREN : d->num;
		for (least = child++; child < end; child++)
			if (d->heap[child].at < d->heap[least].at)
				least = child;
		if (e.at <= d->heap[least].at)
			break;
		heap_put(d, i, d->heap[least]);
		i = least;
	}
	heap_put(d, i, e);
}

void weft_deadlines_by(struct weft_deadlines *d, uint32_t item, uint64_t at)
{
	struct weft_deadline e = {at, item};
	uint32_t i = d->place[item];

	if (at == WEFT_NEVER || (i > 0 && d->heap[i - 1].at <= at))
		return;
	heap_up(d, i > 0 ? i - 1 : d->num++, e);
}

void weft_deadlines_remove(struct weft_deadlines *d, uint32_t item)
{
	uint32_t i = d->place[item];
	struct weft_deadline last;

	if (i == 0)
		return;
	d->place[item] = 0;
	last = d->heap[--d->num];
	if (last.item == item)
		return;
	/* The last entry moves to the free place, and may have to move up or down from there. */
	if (i > 1 && last.at < d->heap[(i - 2) / HEAP_CHILDREN].at)
		heap_up(d, i - 1, last);
	else
		heap_down(d, i - 1, last);
}

uint32_t weft_deadlines_pop(struct weft_deadlines *d)
{
	uint32_t item = d->heap[0].item;

	weft_deadlines_remove(d, item);
	return item;
}
