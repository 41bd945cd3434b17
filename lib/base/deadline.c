/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"

#define CHILDREN 4u

int weft_deadlines_reserve(struct weft_deadlines *d, uint32_t room)
{
	void *mem;

	if (room <= d->room)
		return 0;
	mem = realloc(d->heap, room * sizeof(*d->heap));
	if (!mem)
		return -ENOMEM;
	d->heap = mem;
	mem = realloc(d->place, room * sizeof(*d->place));
	if (!mem)
		return -ENOMEM;
	d->place = mem;
	memset(d->place + d->room, 0, (room - d->room) * sizeof(*d->place));
	d->room = room;
	return 0;
}

void weft_deadlines_fini(struct weft_deadlines *d)
{
	free(d->heap);
	free(d->place);
	*d = (struct weft_deadlines){0};
}

static inline void put(struct weft_deadlines *d, uint32_t i, struct weft_deadline e)
{
	d->heap[i] = e;
	d->place[e.item] = i + 1;
}

/* Insert @p e at @p i, or nearer to the root. */
static void up(struct weft_deadlines *d, uint32_t i, struct weft_deadline e)
{
	uint32_t parent;

	for (; i > 0; i = parent) {
		parent = (i - 1) / CHILDREN;
		if (d->heap[parent].at <= e.at)
			break;
		put(d, i, d->heap[parent]);
	}
	put(d, i, e);
}

/* Insert @p e at @p i, or farther from the root. */
static void down(struct weft_deadlines *d, uint32_t i, struct weft_deadline e)
{
	uint32_t child, end, least;

	while ((child = CHILDREN * i + 1) < d->num) {
		end = child + CHILDREN < d->num ? child + CHILDREN : d->num;
		for (least = child++; child < end; child++)
			if (d->heap[child].at < d->heap[least].at)
				least = child;
		if (e.at <= d->heap[least].at)
			break;
		put(d, i, d->heap[least]);
		i = least;
	}
	put(d, i, e);
}

void weft_deadlines_by(struct weft_deadlines *d, uint32_t item, uint64_t at)
{
	struct weft_deadline e = {at, item};
	uint32_t i = d->place[item];

	if (at == WEFT_NEVER || (i > 0 && d->heap[i - 1].at <= at))
		return;
	up(d, i > 0 ? i - 1 : d->num++, e);
}

void weft_deadlines_remove(struct weft_deadlines *d, uint32_t item)
{
	uint32_t i = d->place[item];
	struct weft_deadline last;

	if (i == 0)
		return;
	d->place[item] = 0;
	last = d->heap[--d->num];
	if (last.item == item)
		return;
	/* The last entry moves to the free place, and may have to move up or down from there. */
	if (i > 1 && last.at < d->heap[(i - 2) / CHILDREN].at)
		up(d, i - 1, last);
	else
		down(d, i - 1, last);
}

uint32_t weft_deadlines_pop(struct weft_deadlines *d)
{
	uint32_t item = d->heap[0].item;

	weft_deadlines_remove(d, item);
	return item;
}
