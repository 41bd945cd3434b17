/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "lane.h"
#include "mem/cache_table.h"

enum weft_regcache_kind weft_regcache_kind(unsigned int access)
{
	switch (access & WEFT_LANE_ACCESS_REMOTE) {
	case 0:
		return WEFT_REGCACHE_LOCAL;
	case WEFT_LANE_ACCESS_REMOTE_READ:
		return WEFT_REGCACHE_READ;
	case WEFT_LANE_ACCESS_REMOTE_WRITE:
		return WEFT_REGCACHE_WRITE;
	default:
		return WEFT_REGCACHE_KINDS;
	}
}

unsigned int weft_regcache_position(const struct weft_regcache_list *list, uintptr_t start)
{
	unsigned int lo = 0, hi = list->num, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (list->entry[mid]->end <= start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct weft_regcache_entry *find_in(const struct weft_regcache_list *list, uintptr_t start,
					   uintptr_t end, unsigned int access)
{
	unsigned int i = weft_regcache_position(list, start);
	struct weft_regcache_entry *e = i < list->num ? list->entry[i] : NULL;

	return e != NULL && e->start <= start && e->end >= end && (e->access & access) == access
		       ? e
		       : NULL;
}

struct weft_regcache_entry *weft_regcache_find(const struct weft_regcache_table *t, uintptr_t start,
					       uintptr_t end, unsigned int access)
{
	enum weft_regcache_kind kind = weft_regcache_kind(access), last = kind;
	struct weft_regcache_entry *e = NULL;

	/*
	 * For local use any entry will do; an entry whose key goes to a peer must allow exactly
	 * this.
	 */
	if (kind == WEFT_REGCACHE_LOCAL)
		last = WEFT_REGCACHE_KINDS - 1;
	for (; kind <= last && kind < WEFT_REGCACHE_KINDS && !e; kind++)
		e = find_in(&t->kind[kind], start, end, access);
	return e;
}

void weft_regcache_widen(const struct weft_regcache_table *t, enum weft_regcache_kind kind,
			 uintptr_t *start, uintptr_t *end)
{
	const struct weft_regcache_list *list = &t->kind[kind];
	const struct weft_regcache_entry *e;
	unsigned int i;

	/* Each overlaps the requested range, so together they have no gap. */
	for (i = weft_regcache_position(list, *start); i < list->num; i++) {
		e = list->entry[i];
		if (e->start >= *end)
			break;
		if (e->start < *start)
			*start = e->start;
		if (e->end > *end)
			*end = e->end;
	}
}

void weft_regcache_insert(struct weft_regcache_table *t, struct weft_regcache_entry *e)
{
	struct weft_regcache_list *list = &t->kind[e->kind];
	unsigned int i = weft_regcache_position(list, e->start);

	memmove(&list->entry[i + 1], &list->entry[i], (list->num - i) * sizeof(list->entry[0]));
	list->entry[i] = e;
	list->num++;
}

struct weft_regcache_entry *weft_regcache_remove(struct weft_regcache_list *list, unsigned int i)
{
	struct weft_regcache_entry *e = list->entry[i];

	memmove(&list->entry[i], &list->entry[i + 1], (list->num - i - 1) * sizeof(list->entry[0]));
	list->num--;
	return e;
}

void weft_regcache_pages(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end)
{
	*start &= ~(t->page_size - 1);
	*end = (*end + t->page_size - 1) & ~(t->page_size - 1);
}

/* Cut the entry's pages off the range. */
static void cut_off(const struct weft_regcache_table *t, const struct weft_regcache_entry *e,
		    uintptr_t *start, uintptr_t *end)
{
	uintptr_t from = e->start, to = e->end;

	weft_regcache_pages(t, &from, &to);
	if (from <= *start)
		*start = to > *start ? to : *start;
	else if (to >= *end)
		*end = from < *end ? from : *end;
	else
		*end = *start; /* in the middle: all of the range is needed */
	if (*start > *end)
		*start = *end;
}

void weft_regcache_unshared(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end)
{
	unsigned int kind, i;

	for (kind = 0; kind < WEFT_REGCACHE_KINDS; kind++) {
		const struct weft_regcache_list *list = &t->kind[kind];

		/* An entry whose last byte is in the first page ends behind the page's start. */
		for (i = weft_regcache_position(list, *start); i < list->num && *start < *end;
		     i++) {
			if (list->entry[i]->start >= *end)
				break;
			cut_off(t, list->entry[i], start, end);
		}
	}
}
