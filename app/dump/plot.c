/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "dump/plot.h"

struct plot *plot_make(void)
{
	struct plot *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pending = calloc(PLOT_PENDING, sizeof(*p->pending));
	if (p->pending)
		return p;
	free(p);
	return NULL;
}

void plot_free(struct plot *p)
{
	unsigned int i, kind;

	if (!p)
		return;
	for (i = 0; i < PLOT_FLOWS; i++)
		for (kind = 0; kind < PLOT_KINDS; kind++)
			free(p->list[i][kind].point);
	free(p->pending);
	free(p);
}

static bool make_room(struct plot_list *l, unsigned int room)
{
	struct plot_point *more = realloc(l->point, room * sizeof(*more));

	if (!more)
		return false;
	l->point = more;
	l->room = room;
	return true;
}

/* Keep every point. */
static void mark(struct plot *p, struct plot_list *l, const struct plot_point *point)
{
	l->each = 1;
	l->seen++;
	if (p->marks == PLOT_MARKS ||
	    (l->num == l->room && !make_room(l, l->room ? 2 * l->room : 64))) {
		p->left++;
		return;
	}
	p->marks++;
	l->point[l->num++] = *point;
}

/* Keep one of `each` points, so that at most PLOT_POINTS are kept. */
static void thin_out(struct plot *p, struct plot_list *l, const struct plot_point *point)
{
	unsigned int i;

	if (!l->room && !make_room(l, PLOT_POINTS)) {
		p->left++;
		return;
	}
	if (!l->each)
		l->each = 1;
	if (l->seen++ % l->each)
		return;
	if (l->num == PLOT_POINTS) {
		for (i = 0; i < PLOT_POINTS / 2; i++)
			l->point[i] = l->point[2 * i];
		l->num = PLOT_POINTS / 2;
		l->each *= 2;
	}
	l->point[l->num++] = *point;
}

void plot_frame(struct plot *p, uint32_t flow, const struct dump_view *v,
		const struct plot_point *point, uint64_t fate, bool counted)
{
	if (flow >= PLOT_FLOWS || v->record)
		return;
	if (fate != UINT64_MAX)
		p->pending[fate % PLOT_PENDING] = *point;
	if (!counted)
		return;
	if (v->flags & WEFT_FRAME_F_RETX)
		mark(p, &p->list[flow][PLOT_AGAIN], point);
	else if (v->hdr->type == WEFT_FRAME_DATA || v->hdr->type == WEFT_FRAME_PART)
		thin_out(p, &p->list[flow][PLOT_SENT], point);
}

void plot_lost(struct plot *p, uint32_t flow, uint64_t fate)
{
	if (p && flow < PLOT_FLOWS)
		mark(p, &p->list[flow][PLOT_LOST], &p->pending[fate % PLOT_PENDING]);
}

void plot_acked(struct plot *p, uint32_t flow, uint32_t ack, uint64_t time)
{
	struct plot_point point = {.time = time, .seq = ack};
	struct plot_list *l;

	if (!p || flow >= PLOT_FLOWS)
		return;
	l = &p->list[flow][PLOT_ACKED];
	if (l->seen && (int32_t)(ack - p->acked[flow]) <= 0)
		return;
	p->acked[flow] = ack;
	thin_out(p, l, &point);
}
