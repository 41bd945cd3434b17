/* SPDX-License-Identifier: BSD-3-Clause */
/* Silences of hosts: their capture has no frames for a time in which others sent them some. */

#include "dump/trace.h"

#define GAP_NS 200000u
#define GAP_FRAMES 4u

static void gap(struct trace_host *h, uint64_t now)
{
	if (now > h->last && now - h->last >= GAP_NS && h->since >= GAP_FRAMES &&
	    h->num_gaps < TRACE_GAPS)
		h->gap[h->num_gaps++] = (struct trace_gap){h->last, now, (uint32_t)h->since};
	h->since = 0;
}

void trace_host_record(struct trace *t, const struct dump_frame *frame, const struct trace_flow *f,
		       uint64_t time)
{
	struct trace_host *h = &t->host[frame->file];

	if (!h->seen)
		h->first = h->last = time;
	h->seen = true;
	gap(h, time);
	if (time > h->last)
		h->last = time;
	if (f && frame->way == DUMP_OUT && f->in.known && f->in.file != frame->file)
		t->host[f->in.file].since++;
}

void trace_host_end(struct trace *t)
{
	unsigned int i;

	for (i = 0; i < t->num_files; i++)
		if (t->host[i].seen)
			gap(&t->host[i], t->now);
}
