/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ival.h
 * Which bytes of a message have been placed: a sorted set of disjoint intervals. In the common case
 * (pieces in order, or nearly) it is one interval held in place; only a message that arrives torn
 * into many islands allocates.
 *
 * Intervals and not piece numbers, because lanes cut messages differently.
 */
#ifndef WEFT_IVAL_H
#define WEFT_IVAL_H

#include <stdint.h>

struct weft_ival {
	uint64_t lo, hi; /**< [lo, hi) */
};

struct weft_ivals {
	uint64_t covered;  /**< distinct bytes in the set */
	uint32_t num, cap; /**< cap 0 = the one interval is `one` */
	struct weft_ival one;
	struct weft_ival *v;
};

/** More islands than this in one message are not reassembly any more. */
#define WEFT_IVAL_MAX (1u << 20)

static inline void weft_ivals_init(struct weft_ivals *s)
{
	s->covered = 0;
	s->num = 0;
	s->cap = 0;
}

void weft_ivals_fini(struct weft_ivals *s);

/**
 * Add [lo, hi), lo < hi.
 * @return 0; -EEXIST when a byte of it is there already (nothing changes); -ENOMEM; -E2BIG past
 *         #WEFT_IVAL_MAX
 */
int weft_ivals_add(struct weft_ivals *s, uint64_t lo, uint64_t hi);

static inline const struct weft_ival *weft_ivals_get(const struct weft_ivals *s)
{
	return s->cap ? s->v : &s->one;
}

#endif /* WEFT_IVAL_H */
