/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "base/seq_table.h"

#define FIRST_BITS 4

/*
 * The high bits of a product with a random odd number (see tag/match.h for why, and for the
 * scrambling before it).
 */
static struct weft_seq_list *bucket_of(const struct weft_seq_table *t, uint32_t seq)
{
	uint64_t key = seq * 0x9e3779b97f4a7c15u;

	key ^= key >> 32;
	return &t->buckets[(key * (t->seed | 1)) >> (64 - t->bits)];
}

struct weft_seq_node *weft_seq_table_look(const struct weft_seq_table *t, uint32_t seq)
{
	struct weft_seq_node *node;

	SLIST_FOREACH(node, bucket_of(t, seq), link) {
		if (node->seq == seq)
			return node;
	}
	return NULL;
}

static int grow(struct weft_seq_table *t)
{
	size_t old_n = t->buckets ? (size_t)1 << t->bits : 0;
	uint32_t bits = old_n ? t->bits + 2 : FIRST_BITS;
	struct weft_seq_list *old = t->buckets, *table;
	struct weft_seq_node *node;

	table = calloc((size_t)1 << bits, sizeof(*table));
	if (!table)
		return old ? 0 : -ENOMEM;
	t->buckets = table;
	t->bits = bits;
	for (size_t i = 0; i < old_n; i++) {
		while ((node = SLIST_FIRST(&old[i]))) {
			SLIST_REMOVE_HEAD(&old[i], link);
			SLIST_INSERT_HEAD(bucket_of(t, node->seq), node, link);
		}
	}
	free(old);
	return 0;
}

int weft_seq_table_add(struct weft_seq_table *t, struct weft_seq_node *node, uint32_t seq)
{
	if ((!t->buckets || t->num >> t->bits >= 2) && grow(t))
		return -ENOMEM;
	node->seq = seq;
	SLIST_INSERT_HEAD(bucket_of(t, seq), node, link);
	t->num++;
	return 0;
}

void weft_seq_table_remove(struct weft_seq_table *t, struct weft_seq_node *node)
{
	SLIST_REMOVE(bucket_of(t, node->seq), node, weft_seq_node, link);
	t->num--;
}

struct weft_seq_node *weft_seq_table_any(const struct weft_seq_table *t, uint32_t *from)
{
	struct weft_seq_node *node;

	for (; t->buckets && *from >> t->bits == 0; (*from)++) {
		node = SLIST_FIRST(&t->buckets[*from]);
		if (node)
			return node;
	}
	return NULL;
}

void weft_seq_table_fini(struct weft_seq_table *t)
{
	free(t->buckets);
	t->buckets = NULL;
	t->num = 0;
}
