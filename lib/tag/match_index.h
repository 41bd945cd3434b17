/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/match_index.h
 * Indexes of unexpected messages for searches with wildcards, and the masks of posted receives: the
 * parts of matching that allocate memory.
 */
#ifndef WEFT_MATCH_INDEX_H
#define WEFT_MATCH_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "tag/match.h"

void weft_match_index_make(struct weft_match *m, uint64_t mask, bool sourced);
/** The index for such searches, or NULL. Marks it as used. */
struct weft_match_index *weft_match_index_of(struct weft_match *m, uint64_t mask, bool sourced);
struct weft_match_msg *weft_match_index_find(struct weft_match *m, struct weft_match_index *x,
					     const struct weft_match_source *source, uint64_t tag,
					     struct weft_match_chan chan);
void weft_match_index_add(struct weft_match *m, struct weft_match_msg *msg);
/** @param sourced  remove it from indexes with a source only */
void weft_match_index_remove(struct weft_match *m, struct weft_match_msg *msg, bool sourced);
void weft_match_indexes_fini(struct weft_match *m);

/* ------------------------------------------------------------------ masks */

/**
 * The mask for a receive that is about to be posted; an idle mask becomes used.
 * @return NULL = no memory
 */
struct weft_match_mask *weft_match_mask_get(struct weft_match *m, uint64_t tag, uint64_t mask);
/** The last receive of the mask is gone. */
void weft_match_mask_idle(struct weft_match *m, struct weft_match_mask *k);
void weft_match_masks_fini(struct weft_match *m);

#endif /* WEFT_MATCH_INDEX_H */
