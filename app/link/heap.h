/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link/heap.h
 * A queue by due time: a binary heap in an array of the caller. Elements have any type that begins
 * with struct sim_due. Callers pass a constant size, so copies are inline.
 */
#ifndef LINK_HEAP_H
#define LINK_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sim_due {
	uint64_t when, number; /**< the number makes the order of equal times definite */
};

static inline bool sim_due_before(const void *a, const void *b)
{
	const struct sim_due *x = a, *y = b;

	return x->when != y->when ? x->when < y->when : x->number < y->number;
}

/** @p heap has room for @p len + 1 elements. */
static inline void sim_heap_add(void *heap, size_t *len, const void *item, size_t size)
{
	char *h = heap;
	size_t i, parent;

	for (i = (*len)++; i; i = parent) {
		parent = (i - 1) / 2;
		if (!sim_due_before(item, h + parent * size))
			break;
		memcpy(h + i * size, h + parent * size, size);
	}
	memcpy(h + i * size, item, size);
}

/** Take the first one out. @p len > 0 */
static inline void sim_heap_take(void *heap, size_t *len, void *item, size_t size)
{
	char *h = heap, *last;
	size_t i = 0, child;

	memcpy(item, h, size);
	last = h + --*len * size;
	while ((child = 2 * i + 1) < *len) {
		if (child + 1 < *len && sim_due_before(h + (child + 1) * size, h + child * size))
			child++;
		if (!sim_due_before(h + child * size, last))
			break;
		memcpy(h + i * size, h + child * size, size);
		i = child;
	}
	if (h + i * size != last)
		memcpy(h + i * size, last, size);
}

#endif /* LINK_HEAP_H */
