/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/container.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ pool */

struct chunk {
	struct chunk *next;
	size_t bytes;
};

/*
 * A chunk of fewer bytes doubles the objects of the next one. So a burst costs few allocations, and
 * a quiet pool little memory.
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
	/* Backwards, so that weft_mpool_get() returns the first one first. */
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

/* High bits of a product with an odd number, random unless the seed is 0 (tag/match.h). */
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

static void list_reverse(struct weft_table_list *list)
{
	struct weft_table_list rest = *list;
	struct weft_table_node *node;

	SLIST_INIT(list);
	while ((node = SLIST_FIRST(&rest))) {
		SLIST_REMOVE_HEAD(&rest, link);
		SLIST_INSERT_HEAD(list, node, link);
	}
}

/* The entries of a bucket go to buckets of their own. There, too, the newest one is the first. */
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
		list_reverse(&old[i]);
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
	/* The last entry moves to the free place, and from there up or down. */
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

/* ------------------------------------------------------------------ ranges */

#define BLOCK_FIRST 4
#define DIR_FIRST 2

struct weft_ival_block {
	uint32_t num, cap;
	struct weft_ival v[];
};

struct place {
	uint32_t b, i;
};

/* Two neighbour blocks have together more than WEFT_IVAL_BLOCK / 2 intervals. */
static_assert(WEFT_IVAL_MAX / (WEFT_IVAL_BLOCK / 4) < UINT16_MAX, "blocks are counted in 16 bits");

void weft_ivals_fini(struct weft_ivals *s)
{
	if (s->blocks) {
		for (uint32_t b = 0; b < s->blocks; b++)
			free(s->dir[b]);
		free(s->dir);
	}
	weft_ivals_init(s);
}

const struct weft_ival *weft_ivals_next(const struct weft_ivals *s, struct weft_ival_pos *pos)
{
	if (s->blocks == 0)
		return pos->i++ < s->num ? &s->one : NULL;
	if (pos->block < s->blocks && pos->i == s->dir[pos->block]->num)
		*pos = (struct weft_ival_pos){pos->block + 1, 0};
	return pos->block < s->blocks ? &s->dir[pos->block]->v[pos->i++] : NULL;
}

/* ------------------------------------------------------------------ search */

static uint64_t block_end(const struct weft_ivals *s, uint32_t b)
{
	return s->dir[b]->v[s->dir[b]->num - 1].hi;
}

/* The first interval that ends at or after @p lo is in it; the last block if there is none. */
static uint32_t find_block(const struct weft_ivals *s, uint64_t lo)
{
	uint32_t a = 0, b = s->blocks - 1u;

	/* Pieces mostly arrive in order. */
	if (b == 0 || block_end(s, b - 1) < lo)
		return b;
	while (a < b) {
		uint32_t mid = a + (b - a) / 2;

		if (block_end(s, mid) < lo)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

/* The first interval that ends at or after @p lo, or the place behind the last one. */
static struct place find(const struct weft_ivals *s, uint64_t lo)
{
	uint32_t k = find_block(s, lo), a = 0, b = s->dir[k]->num;

	while (a < b) {
		uint32_t mid = a + (b - a) / 2;

		if (s->dir[k]->v[mid].hi < lo)
			a = mid + 1;
		else
			b = mid;
	}
	return (struct place){k, a};
}

static struct weft_ival *at(const struct weft_ivals *s, struct place p)
{
	return p.i < s->dir[p.b]->num ? &s->dir[p.b]->v[p.i] : NULL;
}

static struct place next_place(const struct weft_ivals *s, struct place p)
{
	if (p.i + 1 == s->dir[p.b]->num && p.b + 1u < s->blocks)
		return (struct place){p.b + 1, 0};
	return (struct place){p.b, p.i + 1};
}

/* ------------------------------------------------------------------ blocks */

static void drop_block(struct weft_ivals *s, uint32_t b)
{
	free(s->dir[b]);
	memmove(&s->dir[b], &s->dir[b + 1], (s->blocks - b - 1u) * sizeof(*s->dir));
	s->blocks--;
}

/* Only if their intervals fit into half a block. */
static void join_blocks(struct weft_ivals *s, uint32_t b)
{
	struct weft_ival_block *to, *from;

	if (b + 1u >= s->blocks)
		return;
	to = s->dir[b];
	from = s->dir[b + 1];
	if (to->num + from->num > WEFT_IVAL_BLOCK / 2 || to->num + from->num > to->cap)
		return;
	memcpy(&to->v[to->num], from->v, from->num * sizeof(from->v[0]));
	to->num += from->num;
	drop_block(s, b + 1);
}

static void erase(struct weft_ivals *s, struct place p)
{
	struct weft_ival_block *k = s->dir[p.b];

	k->num--;
	s->num--;
	memmove(&k->v[p.i], &k->v[p.i + 1], (k->num - p.i) * sizeof(k->v[0]));
	if (k->num == 0) {
		drop_block(s, p.b);
		return;
	}
	join_blocks(s, p.b);
	if (p.b)
		join_blocks(s, p.b - 1);
}

static struct weft_ival_block *resize_block(struct weft_ival_block *old, uint32_t cap)
{
	struct weft_ival_block *k = realloc(old, sizeof(*k) + cap * sizeof(k->v[0]));

	if (k)
		k->cap = cap;
	return k;
}

/* The only interval moves out of `one`. @return 0 or -ENOMEM */
static int first_block(struct weft_ivals *s)
{
	struct weft_ival_block *k = resize_block(NULL, BLOCK_FIRST);
	struct weft_ival_block **dir = k ? malloc(DIR_FIRST * sizeof(*dir)) : NULL;

	if (!dir) {
		free(k);
		return -ENOMEM;
	}
	k->num = 1;
	k->v[0] = s->one;
	dir[0] = k;
	s->dir = dir;
	s->room = DIR_FIRST;
	s->blocks = 1;
	return 0;
}

static int split(struct weft_ivals *s, uint32_t b)
{
	const uint32_t half = WEFT_IVAL_BLOCK / 2;
	struct weft_ival_block *k, **dir;

	if (s->blocks == s->room) {
		dir = realloc(s->dir, s->room * 2u * sizeof(*dir));
		if (!dir)
			return -ENOMEM;
		s->dir = dir;
		s->room *= 2;
	}
	k = resize_block(NULL, WEFT_IVAL_BLOCK);
	if (!k)
		return -ENOMEM;
	memcpy(k->v, &s->dir[b]->v[half], half * sizeof(k->v[0]));
	k->num = s->dir[b]->num = half;
	memmove(&s->dir[b + 2], &s->dir[b + 1], (s->blocks - b - 1u) * sizeof(*s->dir));
	s->dir[b + 1] = k;
	s->blocks++;
	return 0;
}

/* If the block is full and split, @p p may change. */
static int make_room(struct weft_ivals *s, struct place *p)
{
	struct weft_ival_block *k = s->dir[p->b];
	int rc;

	if (k->num < k->cap)
		return 0;
	if (k->cap < WEFT_IVAL_BLOCK) {
		k = resize_block(k, k->cap * 2);
		if (!k)
			return -ENOMEM;
		s->dir[p->b] = k;
		return 0;
	}
	rc = split(s, p->b);
	if (rc == 0 && p->i > WEFT_IVAL_BLOCK / 2)
		*p = (struct place){p->b + 1, p->i - WEFT_IVAL_BLOCK / 2};
	return rc;
}

static int insert(struct weft_ivals *s, struct place p, uint64_t lo, uint64_t hi)
{
	struct weft_ival_block *k;
	int rc;

	if (s->num >= WEFT_IVAL_MAX)
		return -E2BIG;
	rc = make_room(s, &p);
	if (rc)
		return rc;
	k = s->dir[p.b];
	memmove(&k->v[p.i + 1], &k->v[p.i], (k->num - p.i) * sizeof(k->v[0]));
	k->v[p.i] = (struct weft_ival){lo, hi};
	k->num++;
	s->num++;
	return 0;
}

/* ------------------------------------------------------------------ add */

/* @return 0, -EEXIST, or 1: blocks are needed */
static int add_in_place(struct weft_ivals *s, uint64_t lo, uint64_t hi)
{
	if (s->num == 0)
		s->one = (struct weft_ival){lo, hi};
	else if (s->one.hi == lo)
		s->one.hi = hi;
	else if (s->one.lo == hi)
		s->one.lo = lo;
	else
		return lo < s->one.hi && s->one.lo < hi ? -EEXIST : 1;
	s->num = 1;
	return 0;
}

static int add_in_blocks(struct weft_ivals *s, uint64_t lo, uint64_t hi)
{
	struct place p = find(s, lo), q;
	struct weft_ival *v = at(s, p), *next;

	if (v && v->hi == lo) {
		/* The found interval ends at @p lo, so the next one may overlap. */
		q = next_place(s, p);
		next = at(s, q);
		if (next && next->lo < hi)
			return -EEXIST;
		v->hi = hi;
		if (next && next->lo == hi) {
			v->hi = next->hi;
			erase(s, q);
		}
		return 0;
	}
	if (v && v->lo < hi)
		return -EEXIST;
	if (v && v->lo == hi) {
		v->lo = lo;
		return 0;
	}
	return insert(s, p, lo, hi);
}

int weft_ivals_add(struct weft_ivals *s, uint64_t lo, uint64_t hi)
{
	int rc = 1;

	if (s->blocks == 0) {
		rc = add_in_place(s, lo, hi);
		if (rc == 1 && first_block(s))
			return -ENOMEM;
	}
	if (rc == 1)
		rc = add_in_blocks(s, lo, hi);
	if (rc == 0)
		s->covered += hi - lo;
	return rc;
}

/* ------------------------------------------------------------------ CRC-32C */

/* Half a byte per step; the table is of the reflected polynomial 0x82f63b78. */
uint32_t weft_crc32c_soft(uint32_t crc, const void *data, size_t len)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const uint8_t *p = data;

	while (len--) {
		crc ^= *p++;
		crc = nibble[crc & 15] ^ (crc >> 4);
		crc = nibble[crc & 15] ^ (crc >> 4);
	}
	return crc;
}

uint32_t weft_crc32c_of(const void *data, size_t length, size_t at)
{
	static const uint8_t zero[4];
	const uint8_t *p = data;
	uint32_t crc = weft_crc32c_soft(WEFT_CRC32C_INIT, p, at);

	crc = weft_crc32c_soft(crc, zero, sizeof(zero));
	return ~weft_crc32c_soft(crc, p + at + sizeof(zero), length - at - sizeof(zero));
}

/* ------------------------------------------------------------------ SipHash */

static inline uint64_t rotate_left(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static void sip_rounds(uint64_t v[4], unsigned int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

static void sip_word(struct weft_siphash *s, uint64_t m)
{
	s->v[3] ^= m;
	sip_rounds(s->v, 2);
	s->v[0] ^= m;
}

void weft_siphash_init(struct weft_siphash *s, const struct weft_siphash_key *key)
{
	*s = (struct weft_siphash){
		.v = {key->k0 ^ 0x736f6d6570736575ull, key->k1 ^ 0x646f72616e646f6dull,
		      key->k0 ^ 0x6c7967656e657261ull, key->k1 ^ 0x7465646279746573ull},
	};
}

void weft_siphash_add(struct weft_siphash *s, const void *data, size_t length)
{
	const uint8_t *p = data;

	for (; length > 0; length--) {
		s->tail |= (uint64_t)*p++ << 8 * (s->length % 8);
		if (++s->length % 8 == 0) {
			sip_word(s, s->tail);
			s->tail = 0;
		}
	}
}

uint64_t weft_siphash_end(struct weft_siphash *s)
{
	sip_word(s, s->tail | s->length << 56);
	s->v[2] ^= 0xff;
	sip_rounds(s->v, 4);
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

uint64_t weft_siphash(const struct weft_siphash_key *key, const void *data, size_t length)
{
	struct weft_siphash s;

	weft_siphash_init(&s, key);
	weft_siphash_add(&s, data, length);
	return weft_siphash_end(&s);
}
