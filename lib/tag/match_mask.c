/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The masks of posted receives, without a limit to their number. The masks with receives are in one
 * array without gaps, because an arriving message is compared with each of them. A table by mask
 * finds the mask of a receive to be posted. A mask that has lost its last receive is removed from
 * the array and stays in the table: programs that post one receive at a time use the same mask
 * again.
 */

#include <stdlib.h>

#include "tag/match.h"

#define FIRST_BITS 4

static struct weft_match_same *same_of(const struct weft_match *m, uint64_t mask)
{
	return &m->mask_table[weft_match_bucket(m, mask, m->mask_bits)];
}

/* Memory for twice the number of masks. */
static int masks_grow(struct weft_match *m)
{
	unsigned int bits = m->mask_table ? m->mask_bits + 1 : FIRST_BITS;
	size_t n = (size_t)1 << bits, before = m->mask_table ? n / 2 : 0;
	struct weft_match_same *table = calloc(n, sizeof(*table)), *old = m->mask_table;
	struct weft_match_used *used = realloc(m->used, n * sizeof(*used));
	struct weft_match_mask *k;

	if (used)
		m->used = used;
	if (!table || !used) {
		free(table);
		return -1;
	}
	m->mask_table = table;
	m->mask_bits = bits;
	for (size_t i = 0; i < before; i++) {
		while ((k = SLIST_FIRST(&old[i]))) {
			SLIST_REMOVE_HEAD(&old[i], same);
			SLIST_INSERT_HEAD(same_of(m, k->mask), k, same);
		}
	}
	free(old);
	return 0;
}

/* Memory for a mask that is not in the table: that of an idle mask, or new. */
static struct weft_match_mask *new_mask(struct weft_match *m)
{
	struct weft_match_mask *k = TAILQ_FIRST(&m->idle);

	if (k && m->num_idle >= WEFT_MATCH_MASKS_IDLE) {
		SLIST_REMOVE(same_of(m, k->mask), k, weft_match_mask, same);
		return k;
	}
	if ((!m->mask_table || m->num_masks >> m->mask_bits) && masks_grow(m))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	m->num_masks++;
	m->num_idle++;
	TAILQ_INSERT_TAIL(&m->idle, k, idle_link);
	return k;
}

static struct weft_match_mask *find_mask(const struct weft_match *m, uint64_t mask)
{
	struct weft_match_mask *k;

	if (!m->mask_table)
		return NULL;
	SLIST_FOREACH(k, same_of(m, mask), same) {
		if (k->mask == mask)
			return k;
	}
	return NULL;
}

struct weft_match_mask *weft_match_mask_get(struct weft_match *m, uint64_t tag, uint64_t mask)
{
	struct weft_match_mask *k = m->last_mask;

	if (!k || k->mask != mask)
		k = find_mask(m, mask);
	if (!k) {
		k = new_mask(m);
		if (!k)
			return NULL;
		k->mask = mask;
		/* One-to-one, and 0 for the full mask only, whose key is the tag alone. */
		k->key = ~mask * 0xa0761d6478bd642full;
		SLIST_INSERT_HEAD(same_of(m, mask), k, same);
	}
	m->last_mask = k;
	if (k->num == 0) {
		TAILQ_REMOVE(&m->idle, k, idle_link);
		m->num_idle--;
		k->at = m->num_used++;
		m->used[k->at] = (struct weft_match_used){.agreed = mask, .value = tag, .mask = k};
	}
	return k;
}

void weft_match_mask_idle(struct weft_match *m, struct weft_match_mask *k)
{
	struct weft_match_used *last = &m->used[--m->num_used];

	m->used[k->at] = *last;
	last->mask->at = k->at;
	TAILQ_INSERT_TAIL(&m->idle, k, idle_link);
	m->num_idle++;
}

void weft_match_masks_fini(struct weft_match *m)
{
	struct weft_match_mask *k;

	for (size_t i = 0; m->mask_table && i < (size_t)1 << m->mask_bits; i++) {
		while ((k = SLIST_FIRST(&m->mask_table[i]))) {
			SLIST_REMOVE_HEAD(&m->mask_table[i], same);
			free(k);
		}
	}
	free(m->mask_table);
	free(m->used);
	m->mask_table = NULL;
	m->used = NULL;
	m->last_mask = NULL;
}
