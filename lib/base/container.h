/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/container.h
 * Containers, a checksum, and a keyed hash for tables that unknown senders fill.
 */
#ifndef WEFT_CONTAINER_H
#define WEFT_CONTAINER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** The struct of which @p p is a member. DPDK has the same macro. */
#ifndef container_of
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#endif

/* ------------------------------------------------------------------ pool */

/*
 * A get allocates only from an empty pool. Memory comes in chunks of growing size and returns to
 * libc only with the pool. The last object put is the first one got, because it is warm in the
 * cache. A pool belongs to a worker, so it has no lock. AddressSanitizer detects a use after put.
 */

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
	size_t size; /* bytes, rounded up to WEFT_MPOOL_ALIGN */
	size_t in_use;
	size_t total;
	size_t max; /* upper bound of `total`; 0 = no bound */
	size_t next_chunk;
	void *chunks;
};

/** No two objects share a cache line. */
#define WEFT_MPOOL_ALIGN 64

/** @param first  objects in the first chunk. @param max  bound on objects, 0 = none */
void weft_mpool_init(struct weft_mpool *pool, size_t size, size_t first, size_t max);

/** Objects in use are freed, too. A zeroed pool is allowed. */
void weft_mpool_fini(struct weft_mpool *pool);

/** @return 0, -ENOMEM, or -ENOBUFS at the bound */
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

/* ------------------------------------------------------------------ hash table */

/*
 * Entries are links inside their owners' structures. A key of 64 bits is a number, or a hash of
 * something longer, which the owner compares. Several entries may have equal keys.
 *
 * A peer that chooses keys does not know the seed, so it cannot make them share a bucket. Keyed
 * hashes, and local numbers that peers cannot choose, need no seed.
 */

struct weft_table_node {
	SLIST_ENTRY(weft_table_node) link;
	uint64_t key;
};

SLIST_HEAD(weft_table_list, weft_table_node);

/** All zero except the seed = empty. */
struct weft_table {
	struct weft_table_list *buckets; /**< 2^bits of them; NULL = not allocated yet */
	uint32_t bits;
	uint32_t num;
	uint64_t seed; /**< random, or 0 */
};

/** weft_table_add() does not fail afterwards. @return 0 or -ENOMEM */
int weft_table_reserve(struct weft_table *t);
/** @return 0; -ENOMEM when the first buckets cannot be allocated */
int weft_table_add(struct weft_table *t, struct weft_table_node *node, uint64_t key);
void weft_table_remove(struct weft_table *t, struct weft_table_node *node);
/** @return an entry with this key, the newest of several, or NULL; the table must not be empty */
struct weft_table_node *weft_table_look(const struct weft_table *t, uint64_t key);
/**
 * The first entry of the bucket of @p key; the others follow by SLIST_NEXT(), newer ones first. The
 * bucket has all entries with this key, and may have entries with other keys. NULL = no entry
 */
struct weft_table_node *weft_table_bucket(const struct weft_table *t, uint64_t key);
/**
 * For a loop that removes each entry.
 * @return the first entry at or behind bucket @p *from, which becomes the entry's bucket; or NULL
 */
struct weft_table_node *weft_table_any(const struct weft_table *t, uint32_t *from);
/** Does not free the entries. */
void weft_table_fini(struct weft_table *t);

static inline struct weft_table_node *weft_table_find(const struct weft_table *t, uint64_t key)
{
	return t->num ? weft_table_look(t, key) : NULL;
}

/* ------------------------------------------------------------------ deadlines */

/*
 * A heap of the deadlines of items, which are indices of an array. Adding the latest deadline, as a
 * retransmission timer mostly is, costs one comparison. Times may have any unit.
 */

#define WEFT_NEVER UINT64_MAX

/** All zero: empty, without room for items. */
struct weft_deadlines {
	struct weft_deadline {
		uint64_t at;
		uint32_t item;
	} * heap;
	uint32_t *place; /**< by item: 1 + its index in the heap; 0 = not in the heap */
	uint32_t num, room;
};

/** Make room for items below @p room; never shrinks. @return 0 or -ENOMEM */
int weft_deadlines_reserve(struct weft_deadlines *d, uint32_t room);
void weft_deadlines_fini(struct weft_deadlines *d);

static inline uint64_t weft_deadlines_first(const struct weft_deadlines *d)
{
	return d->num == 0 ? WEFT_NEVER : d->heap[0].at;
}

/** No change if @p item has an earlier deadline, or @p at is WEFT_NEVER. */
void weft_deadlines_by(struct weft_deadlines *d, uint32_t item, uint64_t at);
void weft_deadlines_remove(struct weft_deadlines *d, uint32_t item);
/** Remove the earliest deadline, which must exist. @return its item */
uint32_t weft_deadlines_pop(struct weft_deadlines *d);

/* ------------------------------------------------------------------ ranges */

/*
 * A sorted set of disjoint intervals: the bytes of a message that have been placed. Piece numbers
 * would not do, because lanes cut messages at different offsets. One interval, the common case,
 * needs no allocation.
 *
 * More are in blocks of at most WEFT_IVAL_BLOCK, and the blocks in a sorted directory. Adding a
 * piece moves the rest of one block, and sometimes of the directory, so its cost hardly grows with
 * the number of intervals. A removal merges neighbour blocks that fit into half a block, so memory
 * is at most proportional to the remaining intervals.
 */

struct weft_ival {
	uint64_t lo, hi; /**< [lo, hi) */
};

struct weft_ival_block;

struct weft_ivals {
	uint64_t covered;
	uint32_t num;
	uint16_t blocks; /**< 0 = the one interval is `one`; else they are in `dir` */
	uint16_t room;   /**< blocks that fit into `dir` */
	union {
		struct weft_ival one;
		struct weft_ival_block **dir;
	};
};

/** Maximum of intervals in one block. The first block of a set starts with fewer. */
#define WEFT_IVAL_BLOCK 64

#define WEFT_IVAL_MAX (1u << 16)

static inline void weft_ivals_init(struct weft_ivals *s)
{
	s->covered = 0;
	s->num = 0;
	s->blocks = 0;
}

void weft_ivals_fini(struct weft_ivals *s);

/**
 * Requires lo < hi.
 * @return 0; -EEXIST, without a change, when a byte is in the set already; -ENOMEM; -E2BIG: the set
 *   would have more than #WEFT_IVAL_MAX intervals
 */
int weft_ivals_add(struct weft_ivals *s, uint64_t lo, uint64_t hi);

/** {0} = before the first interval. */
struct weft_ival_pos {
	uint32_t block, i;
};

/** @return the next one in ascending order; NULL after the last one */
const struct weft_ival *weft_ivals_next(const struct weft_ivals *s, struct weft_ival_pos *pos);

/* ------------------------------------------------------------------ CRC-32C */

/* Without special instructions. Raw lanes use it only on CPUs that lack the CRC instruction. */

#define WEFT_CRC32C_INIT 0xffffffffu

/** @param crc  begins as WEFT_CRC32C_INIT. The wire has the complement of the last result */
uint32_t weft_crc32c_soft(uint32_t crc, const void *data, size_t len);

/** The CRC on the wire. Its own 4 bytes at offset @p at count as 0. */
uint32_t weft_crc32c_of(const void *data, size_t length, size_t at);

/* ------------------------------------------------------------------ SipHash */

/*
 * SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, 2012). Without the key a sender can neither guess
 * the hash nor choose inputs that collide.
 */

struct weft_siphash_key {
	uint64_t k0, k1;
};

struct weft_siphash {
	uint64_t v[4];
	uint64_t tail; /**< up to 7 bytes that do not fill a word yet */
	uint64_t length;
};

void weft_siphash_init(struct weft_siphash *s, const struct weft_siphash_key *key);
void weft_siphash_add(struct weft_siphash *s, const void *data, size_t length);
uint64_t weft_siphash_end(struct weft_siphash *s);

uint64_t weft_siphash(const struct weft_siphash_key *key, const void *data, size_t length);

#endif /* WEFT_CONTAINER_H */
