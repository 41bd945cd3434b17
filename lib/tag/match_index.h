/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/match_index.h
 * Indexes of unexpected messages by their tag under a mask, for match.c.
 */
#ifndef WEFT_MATCH_INDEX_H
#define WEFT_MATCH_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "tag/match.h"

/** Make an index, if an entry is free or can be replaced. */
void weft_match_index_make(struct weft_match *m, uint64_t mask, bool sourced);
/** @return the index for searches with this mask, with or without a source; or NULL */
struct weft_match_index *weft_match_index_of(struct weft_match *m, uint64_t mask, bool sourced);
/** weft_match_search() by an index. */
struct weft_match_msg *weft_match_index_find(struct weft_match *m, struct weft_match_index *x,
					     const struct weft_match_source *source, uint64_t tag,
					     struct weft_match_chan chan);
/** Add the message to all indexes. */
void weft_match_index_add(struct weft_match *m, struct weft_match_msg *msg);
/** Remove the message from all indexes; @p sourced: only from those by source. Drop empty ones. */
void weft_match_index_forget(struct weft_match *m, struct weft_match_msg *msg, bool sourced);
/** Free all indexes. */
void weft_match_index_fini(struct weft_match *m);

#endif /* WEFT_MATCH_INDEX_H */
