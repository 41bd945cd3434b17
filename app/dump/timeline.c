/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/timeline.h"

#include <inttypes.h>
#include <string.h>

#include "dump/json.h"

#define COLUMN 28
#define BAR 60

static uint32_t lane_of(const struct trace *t, uint32_t flow)
{
	uint32_t other = t->flow[flow].other;

	return other < flow ? other : flow;
}

void timeline_lanes(const struct trace *t, const struct msg_watch *w, struct timeline_lanes *lanes)
{
	unsigned int i, n;
	uint32_t lane;

	*lanes = (struct timeline_lanes){.begin = w->msg.first, .end = w->msg.first};
	for (i = 0; i < w->num_events; i++) {
		if (w->event[i].time > lanes->end)
			lanes->end = w->event[i].time;
		lane = lane_of(t, w->event[i].flow);
		for (n = 0; n < lanes->num && lanes->flow[n] < lane; n++)
			;
		if ((n < lanes->num && lanes->flow[n] == lane) || lanes->num == MSG_LANES)
			continue;
		memmove(&lanes->flow[n + 1], &lanes->flow[n],
			(lanes->num++ - n) * sizeof(lanes->flow[0]));
		lanes->flow[n] = lane;
	}
}

unsigned int timeline_lane(const struct trace *t, const struct timeline_lanes *lanes, uint32_t flow)
{
	unsigned int n;

	for (n = 0; n < lanes->num; n++)
		if (lanes->flow[n] == lane_of(t, flow))
			return n;
	return MSG_LANES;
}

bool timeline_forth(const struct trace *t, const struct msg_watch *w, const struct msg_event *e)
{
	return stream_of(t, e->flow) == stream_of(t, w->msg.flow);
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *lane_name(const struct list *l, const struct msg_watch *w, uint32_t lane)
{
	const struct trace *t = l->r->trace;
	const struct trace_flow *f = &t->flow[lane], *g = trace_other(t, f);

	return report_lane_name(l->r,
				stream_of(t, lane) == stream_of(t, w->msg.flow) || !g ? f : g);
}

static const char *const kind_names[] = {[LINK_BYTES] = "bytes",
					 [LINK_ANNOUNCE] = "announced",
					 [LINK_ANSWER] = "pull",
					 [LINK_END] = "end"};

static void event_text(char *buf, size_t size, const struct msg_event *e, bool forth)
{
	const char *before = "", *behind = "";
	char range[40] = "";

	if (e->kind == LINK_BYTES || e->kind == LINK_ANSWER)
		snprintf(range, sizeof(range), " %" PRIu64 "+%u", e->offset, e->bytes);
	if (e->acked)
		behind = " acked";
	else if (e->way == DUMP_IN)
		*(forth ? &before : &behind) = forth ? "> " : " <";
	else
		*(forth ? &behind : &before) = forth ? " >" : "< ";
	snprintf(buf, size, "%s%s%s%s%s", before, kind_names[e->kind], range,
		 e->again && !e->acked && e->way != DUMP_IN ? " again" : "", behind);
}

/* When each lane delivered bytes: a bar of marks over the time of the message. */
static void bars(FILE *out, const struct list *l, const struct msg_watch *w,
		 const struct timeline_lanes *lanes)
{
	double span = (double)(lanes->end - lanes->begin) + 1;
	const struct msg_event *e;
	char bar[BAR + 1];
	unsigned int n, i, column;
	char *at;

	for (n = 0; n < lanes->num; n++) {
		memset(bar, '.', BAR);
		bar[BAR] = '\0';
		for (i = 0; i < w->num_events; i++) {
			e = &w->event[i];
			if (e->time < lanes->begin || e->kind != LINK_BYTES ||
			    timeline_lane(l->r->trace, lanes, e->flow) != n)
				continue;
			/* From 2^55 ns on, rounding of a double can make the column BAR. */
			column = (unsigned int)((double)(e->time - lanes->begin) * BAR / span);
			at = &bar[column < BAR ? column : BAR - 1];
			if (e->again && e->way != DUMP_IN && !e->acked)
				*at = 'R';
			else if (*at == '.' && (e->way != DUMP_OUT))
				*at = '=';
		}
		fprintf(out, "%12s |%s|\n", lane_name(l, w, lanes->flow[n]), bar);
	}
}

void timeline_text(FILE *out, const struct list *l, const struct msg_watch *w)
{
	const struct trace *t = l->r->trace;
	struct timeline_lanes lanes;
	const struct msg_event *e;
	char text[80];
	unsigned int i, lane;

	timeline_lanes(t, w, &lanes);
	list_line(out, l, &w->msg);
	bars(out, l, w, &lanes);
	fprintf(out, "%12s", "us");
	for (i = 0; i < lanes.num; i++)
		fprintf(out, "  %-*s", COLUMN, lane_name(l, w, lanes.flow[i]));
	fputc('\n', out);
	for (i = 0; i < w->num_events; i++) {
		e = &w->event[i];
		lane = timeline_lane(t, &lanes, e->flow);
		if (lane == MSG_LANES)
			continue;
		event_text(text, sizeof(text), e, timeline_forth(t, w, e));
		fprintf(out, "%12.3f%*s  %s\n", (double)(int64_t)(e->time - lanes.begin) / 1e3,
			(int)lane * (COLUMN + 2), "", text);
	}
	if (w->missed)
		fprintf(out, "%" PRIu64 " further frames are not shown\n", w->missed);
}

void timeline_json(FILE *out, const struct list *l, const struct msg_watch *w)
{
	static const char *const ways[] = {"?", "in", "out"};
	struct json j = {.out = out};
	const struct msg_event *e;
	unsigned int i;

	json_begin(&j, NULL, '{');
	list_json(&j, l, "message", &w->msg);
	json_begin(&j, "events", '[');
	for (i = 0; i < w->num_events; i++) {
		e = &w->event[i];
		json_begin(&j, NULL, '{');
		json_number(&j, "time", e->time);
		json_text(&j, "lane", report_lane_name(l->r, &l->r->trace->flow[e->flow]));
		json_text(&j, "event", e->acked ? "acknowledged" : kind_names[e->kind]);
		json_text(&j, "direction", ways[e->way]);
		json_number(&j, "offset", e->offset);
		json_number(&j, "bytes", e->bytes);
		json_raw(&j, "again", e->again ? "true" : "false");
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_number(&j, "events_missed", w->missed);
	json_end(&j, '}');
	fputc('\n', out);
}
