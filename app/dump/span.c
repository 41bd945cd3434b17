/* SPDX-License-Identifier: BSD-3-Clause */
/* When captures ran: a frame that a capture lacks was lost only if the capture could have it. */

#include <errno.h>
#include <stdlib.h>

#include "dump/survey.h"
#include "dump/trace.h"

uint64_t trace_time(const struct trace_clock *c, uint64_t time)
{
	if (!c->known)
		return time;
	return time - (uint64_t)c->offset -
	       (uint64_t)(int64_t)(c->drift * (double)(int64_t)(time - c->at));
}

int trace_spans(struct trace *t, const struct survey *s, const struct trace_clock *clock)
{
	const struct survey_file *f;
	struct trace_span *span;
	unsigned int i, n;

	t->survey = s;
	if (!s->done || s->partial)
		return 0;
	t->span = calloc(t->num_files, sizeof(*t->span));
	if (!t->span)
		return -ENOMEM;
	for (i = 0; i < t->num_files; i++) {
		f = &s->file[i];
		span = &t->span[i];
		/* Behind its last record a lane may be closed: what comes then is not recorded. */
		span->end = trace_time(&clock[i], f->last);
		span->ran_until = trace_time(&clock[i], f->end);
		span->unplaced = f->lost > f->placed;
		for (n = 0; n < DUMP_IFACES; n++)
			span->begin[n] = f->port[n].first ? trace_time(&clock[i], f->port[n].first)
							  : UINT64_MAX;
		span->missing = calloc(f->num_holes + 1, sizeof(*span->missing));
		if (!span->missing)
			return -ENOMEM;
		for (n = 0; n < f->num_holes; n++)
			span->missing[n] =
				(struct trace_missing){trace_time(&clock[i], f->hole[n].from),
						       trace_time(&clock[i], f->hole[n].to),
						       f->hole[n].iface};
		span->num_missing = f->num_holes;
	}
	return 0;
}

void trace_spans_free(struct trace *t)
{
	unsigned int i;

	for (i = 0; t->span && i < t->num_files; i++)
		free(t->span[i].missing);
	free(t->span);
	t->span = NULL;
}

/* Stretches are in the order of time, except for clocks that were set back. */
static bool lost_some(const struct trace_span *s, uint16_t iface, uint64_t from, uint64_t to)
{
	unsigned int i;

	for (i = 0; i < s->num_missing; i++)
		if ((s->missing[i].iface == iface || s->missing[i].iface == UINT16_MAX) &&
		    s->missing[i].from <= to && s->missing[i].to >= from)
			return true;
	return false;
}

bool trace_runs(const struct trace *t, uint8_t file, uint64_t time)
{
	return time <= (t->span ? t->span[file].end : t->now);
}

bool trace_covers(const struct trace *t, const struct trace_port *port, uint64_t from, uint64_t to)
{
	const struct trace_span *s;

	if (!t->span)
		return true;
	s = &t->span[port->file];
	return !s->unplaced && from >= s->begin[port->iface] && to <= s->end &&
	       !lost_some(s, port->iface, from, to);
}
