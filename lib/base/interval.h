/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/interval.h
 * Which bytes of a message have been placed: a sorted set of disjoint intervals. In the common case
 * (pieces in order, or nearly) it is one interval held in place; only a message that arrives torn
 * into many islands allocates.
 *
 * Intervals and not piece numbers, because lanes cut messages differently.
 *
 * The islands lie in blocks of at most WEFT_IVAL_BLOCK, the blocks in a sorted directory. To add a
 * piece moves the rest of one block, and once in a while the rest of the directory: whoever tears a
 * message into as many islands as there may be pays for each piece about as much as for the first.
 * Two neighbours that fit into half a block become one, so memory follows what is left.
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
	uint32_t num;     /**< islands */
	uint16_t blocks;  /**< 0 = the one interval is `one`; else they are in `dir` */
	uint16_t room;    /**< blocks that the directory has room for */
	union {
		struct weft_ival one; /**< blocks = 0 */
		struct weft_ival_block **dir;
	};
};

/** Islands in one block, at most. The first block of a set begins smaller. */
#define WEFT_IVAL_BLOCK 64

/** More islands than this in one message are not reassembly any more. */
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
 * @return 0; -EEXIST when a byte of it is there already (nothing changes); -ENOMEM; -E2BIG past
 *         #WEFT_IVAL_MAX
 */
int weft_ivals_add(struct weft_ivals *s, uint64_t lo, uint64_t hi);

/** Where weft_ivals_next() stands; begins as {0}. */
struct weft_ival_pos {
	uint32_t block, i;
};

/** The intervals one after the other, in order; NULL at the end. */
const struct weft_ival *weft_ivals_next(const struct weft_ivals *s, struct weft_ival_pos *pos);

#endif /* WEFT_IVAL_H */
