/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/seq_table.h
 * A hash table by sequence number. It grows with the number of entries, which are links inside
 * their owners' structures. A peer that chooses the numbers does not know the seed, so it cannot
 * make them collide.
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

/** All zero except the seed = empty. */
struct weft_seq_table {
	struct weft_seq_list *buckets; /**< 2^bits; NULL = none yet */
	uint32_t bits;
	uint32_t num;
	uint64_t seed; /**< random */
};

/** @return 0, or -ENOMEM: there is no table yet (a table that cannot grow still works) */
int weft_seq_table_add(struct weft_seq_table *t, struct weft_seq_node *node, uint32_t seq);
void weft_seq_table_remove(struct weft_seq_table *t, struct weft_seq_node *node);
/** Called with t->num > 0 by weft_seq_table_find(). */
struct weft_seq_node *weft_seq_table_look(const struct weft_seq_table *t, uint32_t seq);
/**
 * The first entry at or behind bucket @p *from, which the call advances: to visit or remove all
 * entries.
 */
struct weft_seq_node *weft_seq_table_any(const struct weft_seq_table *t, uint32_t *from);
/** Free the memory of the table, not the entries. */
void weft_seq_table_fini(struct weft_seq_table *t);

static inline struct weft_seq_node *weft_seq_table_find(const struct weft_seq_table *t,
							uint32_t seq)
{
	return t->num ? weft_seq_table_look(t, seq) : NULL;
}

#endif /* WEFT_SEQ_TABLE_H */
