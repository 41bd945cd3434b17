/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/interval.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_FIRST 4
#define DIR_FIRST 2

struct weft_ival_block {
	uint32_t num, cap;
	struct weft_ival v[];
};

/* An interval's place. */
struct place {
	uint32_t b, i;
};

/*
 * Two neighbour blocks together have more than half a block of intervals, which bounds the number
 * of blocks.
 */
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

/* The block with the first interval that ends at or after @lo; the last one when there is none. */
static uint32_t find_block(const struct weft_ivals *s, uint64_t lo)
{
	uint32_t a = 0, b = s->blocks - 1u;

	/* Pieces mostly arrive in order: check the last block first. */
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

/* The first interval that ends at or after @lo, or the place behind the last one. */
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

/* Merge two neighbour blocks if the result has room left. */
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

/* From the interval held in place to blocks. */
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

/* The upper half of a full block goes to a new one behind it. */
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

/* Make room in the block of *@p; the place may change. */
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

/* Add while there is one interval at most. @return 0, -EEXIST, or 1: blocks are needed */
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
		/*
		 * The found interval only ends where the new one begins: check the next one, too.
		 */
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
