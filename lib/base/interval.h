/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/interval.h
 * The bytes of a message that have been placed: a sorted set of disjoint intervals. In the common
 * case (pieces in order, or nearly) it is one interval, stored inline. Only a message that arrives
 * in many separate intervals allocates memory.
 *
 * Intervals and not piece numbers, because lanes cut messages at different offsets.
 *
 * The intervals are in blocks of at most WEFT_IVAL_BLOCK, and the blocks are in a sorted directory.
 * Adding a piece moves the rest of one block, and sometimes the rest of the directory. So the cost
 * of a piece stays about the same, even if a message arrives in the largest number of intervals.
 * Two neighbour blocks that fit into half a block are merged, so memory is proportional to the
 * remaining intervals.
 */
#ifndef WEFT_IVAL_H
#define WEFT_IVAL_H

#include <stdint.h>

struct weft_ival {
	uint64_t lo, hi; /**< [lo, hi) */
};

struct weft_ival_block;

struct weft_ivals {
	uint64_t covered; /**< distinct bytes in the set */
	uint32_t num;     /**< intervals */
	uint16_t blocks;  /**< 0 = the one interval is `one`; else they are in `dir` */
	uint16_t room;    /**< blocks that fit into the directory */
	union {
		struct weft_ival one; /**< blocks = 0 */
		struct weft_ival_block **dir;
	};
};

/** The maximum number of intervals in one block. The first block of a set begins smaller. */
#define WEFT_IVAL_BLOCK 64

/** The maximum number of intervals of one message. A correct sender does not cause more. */
#define WEFT_IVAL_MAX (1u << 16)

static inline void weft_ivals_init(struct weft_ivals *s)
{
	s->covered = 0;
	s->num = 0;
	s->blocks = 0;
}

void weft_ivals_fini(struct weft_ivals *s);

/**
 * Add [lo, hi), lo < hi.
 * @return 0; -EEXIST when a byte of it is in the set already (nothing changes); -ENOMEM; -E2BIG
 *         past #WEFT_IVAL_MAX
 */
int weft_ivals_add(struct weft_ivals *s, uint64_t lo, uint64_t hi);

/** Position of weft_ivals_next(); begins as {0}. */
struct weft_ival_pos {
	uint32_t block, i;
};

/** The intervals one after the other, in order; NULL at the end. */
const struct weft_ival *weft_ivals_next(const struct weft_ivals *s, struct weft_ival_pos *pos);

#endif /* WEFT_IVAL_H */
