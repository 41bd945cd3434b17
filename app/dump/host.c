/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silences of hosts. A host is silent from the time at which a frame could have been there: its
 * sending plus the least delay of its flow, and not before the host's last record. Without a frame
 * to answer a host owes nothing.
 *
 * A silence is the host's, and not the path's, if the frames of that time then come at once. A path
 * that got slower delivers frames at the distances at which they were sent.
 *
 * A capture by the kernel has records of frames while the process does not run. There the silence
 * is that of a lane: DATA has come, and nothing leaves. The protocol answers within 25 us.
 */

#include "dump/trace.h"

#define GAP_NS 200000u
#define FRAMES 2u /* that come at once */
#define AT_ONCE_NS 100000u

/* Silences of several lanes are one if they overlap. */
static void add(struct trace_host *h, uint64_t from, uint64_t to, uint32_t frames)
{
	struct trace_gap *last = h->num_gaps ? &h->gap[h->num_gaps - 1] : NULL;

	if (last && from < last->to) {
		from = last->to;
		if (to <= from)
			return;
		h->silent += to - from;
		last->to = to;
		last->frames += frames;
	} else {
		h->silences++;
		h->silent += to - from;
		if (h->num_gaps == TRACE_GAPS)
			return;
		h->gap[h->num_gaps++] = (struct trace_gap){from, to, frames};
		last = &h->gap[h->num_gaps - 1];
	}
	if (last->to - last->from > h->longest.to - h->longest.from)
		h->longest = *last;
}

/* The host has a record again: the silence is kept until frames show whose it was. */
static void wake(struct trace_host *h, uint64_t now)
{
	uint64_t from = h->due > h->last ? h->due : h->last;

	if (h->since && now > from && now - from >= GAP_NS) {
		h->wake =
			(struct trace_wake){.gap = {from, now, h->since}, .sent_first = UINT64_MAX};
		h->wake.until = now + (now - from) / 8;
		if (h->wake.until < now + AT_ONCE_NS)
			h->wake.until = now + AT_ONCE_NS;
	}
	h->since = 0;
}

/* A frame came to the host. @param sent  when it was sent; 0 = not known */
static void after_silence(struct trace_host *h, uint16_t iface, uint64_t sent, uint64_t now)
{
	struct trace_wake *w = &h->wake;
	uint64_t half = (w->gap.to - w->gap.from) / 2;

	if (!w->gap.to || !sent || now > w->until || sent > w->gap.to)
		return;
	w->frames++;
	if (sent < w->sent_first)
		w->sent_first = sent;
	if (sent > w->sent_last)
		w->sent_last = sent;
	if (sent < w->gap.to - half)
		w->ifaces |= 1ull << iface % 64;
	if (w->frames >= FRAMES &&
	    (w->sent_last - w->sent_first >= half || (w->ifaces & (w->ifaces - 1)))) {
		add(h, w->gap.from, w->gap.to, w->gap.frames);
		w->gap.to = 0;
	}
}

/* DATA has come on a lane, and the lane has sent nothing since. */
static void answers(struct trace *t, struct trace_host *h, const struct dump_frame *frame,
		    struct trace_flow *f, bool data, uint64_t time)
{
	struct trace_flow *g = trace_other(t, f);

	if (frame->way == DUMP_IN && data && !f->owed_frames++)
		f->owed = time;
	if (frame->way != DUMP_OUT || !g || !g->owed_frames)
		return;
	if (time - g->owed >= GAP_NS && g->in.file == frame->file &&
	    trace_covers(t, &g->in, g->owed, time))
		add(h, g->owed, time, g->owed_frames);
	g->owed_frames = 0;
}

void trace_host_record(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		       struct trace_flow *f, uint64_t time)
{
	struct trace_host *h = &t->host[frame->file], *peer;
	uint64_t delay = 0;

	if (!h->seen)
		h->first = h->last = time;
	h->seen = true;
	if (frame->way == DUMP_WAY_UNKNOWN)
		return;
	wake(h, time);
	if (frame->way == DUMP_IN)
		after_silence(h, frame->iface, f ? t->sent_at : 0, time);
	if (time > h->last)
		h->last = time;
	if (!f || f->record)
		return;
	answers(t, h, frame, f, v->hdr->type == WEFT_FRAME_DATA, time);
	if (frame->way != DUMP_OUT || !f->in.known || f->in.file == frame->file)
		return;
	peer = &t->host[f->in.file];
	if (f->min_delay > 0 && f->min_delay < TRACE_WAIT_NS)
		delay = (uint64_t)f->min_delay;
	if (!peer->since++)
		peer->due = time + delay;
}

bool trace_host_silent(const struct trace_host *h, uint64_t from, uint64_t to)
{
	unsigned int low = 0, high = h->num_gaps, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (h->gap[mid].to <= from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < h->num_gaps && h->gap[low].from < to;
}

uint64_t trace_host_time(const struct trace_host *h)
{
	return h->last > h->first ? h->last - h->first : 0;
}
