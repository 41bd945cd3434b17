/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/seq_table.h
 * Things by sequence number: a hash table that grows with what is in it, of links inside their
 * owners' structures. Who chooses the numbers does not know the seed, so cannot have them all meet.
 */
#ifndef WEFT_SEQ_TABLE_H
#define WEFT_SEQ_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct weft_seq_node {
	SLIST_ENTRY(weft_seq_node) link;
	uint32_t seq;
};

SLIST_HEAD(weft_seq_list, weft_seq_node);

/** All zero but the seed is an empty one. */
struct weft_seq_table {
	struct weft_seq_list *buckets; /**< 2^bits; NULL = none yet */
	uint32_t bits;
	uint32_t num;
	uint64_t seed; /**< random */
};

/** @return 0, or -ENOMEM: there is no table yet (a crowded one works, too) */
int weft_seq_table_add(struct weft_seq_table *t, struct weft_seq_node *node, uint32_t seq);
void weft_seq_table_remove(struct weft_seq_table *t, struct weft_seq_node *node);
/** Called with t->num > 0 by weft_seq_table_find(). */
struct weft_seq_node *weft_seq_table_look(const struct weft_seq_table *t, uint32_t seq);
/** Any one at or behind bucket @p *from, which it moves on: to check all, or take all out. */
struct weft_seq_node *weft_seq_table_any(const struct weft_seq_table *t, uint32_t *from);
/** The memory; what is in is forgotten. */
void weft_seq_table_fini(struct weft_seq_table *t);

static inline struct weft_seq_node *weft_seq_table_find(const struct weft_seq_table *t,
							uint32_t seq)
{
	return t->num ? weft_seq_table_look(t, seq) : NULL;
}

#endif /* WEFT_SEQ_TABLE_H */
