/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/frames.h"
#include "dump/host.h"
#include "dump/list.h"
#include "dump/options.h"
#include "dump/roce_flow.h"
#include "dump/state_draw.h"
#include "dump/trace.h"

#define LANES 10u /* lanes that are printed: the worst ones; all with --all */

static struct trace_anomaly found[TRACE_ANOMALIES];

static const char *const native_names[WEFT_RECORD_KINDS] = {
	[WEFT_RECORD_READ] = "reads",
	[WEFT_RECORD_WRITE] = "writes",
	[WEFT_RECORD_ADD] = "additions",
	[WEFT_RECORD_CSWAP] = "comparisons",
};

static const char *port_name(const struct report *r, const struct trace_port *p)
{
	return p->known ? r->file[p->file]->iface[p->iface].name : "?";
}

const char *report_lane_name(const struct report *r, const struct trace_flow *f)
{
	const struct trace_port *p = f->out.known ? &f->out : &f->in;

	return p->known ? r->file[p->file]->iface[p->iface].lane : "?";
}

static const char *host_name(const struct report *r, const struct trace_port *p)
{
	return p->known ? r->file[p->file]->name : "?";
}

const struct trace_flow *report_lane(const struct report *r, unsigned int i)
{
	const struct trace_flow *f = &r->trace->flow[i], *g = trace_other(r->trace, f);

	return g && g < f ? NULL : f;
}

static double seconds(const struct trace_flow *f)
{
	return f->last > f->first ? (double)(f->last - f->first) / 1e9 : 0;
}

double report_flight(const struct trace_flow *f)
{
	return f->flight_at > f->first ? f->flight_area / (double)(f->flight_at - f->first) : 0;
}

double report_rate(const struct trace_flow *f)
{
	return seconds(f) > 0 ? (double)f->bytes / seconds(f) / 1e6 : 0;
}

/* ---- RoCE v2 -------------------------------------------------------------------------------- */

static const struct roce *sorted;

static int by_faults(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t of_x = roce_faults(sorted, x), of_y = roce_faults(sorted, y);

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return x < y ? -1 : x > y;
}

void report_roce(const struct report *r, void (*cb)(void *arg, const char *text), void *arg)
{
	const struct roce *roce = r->roce;
	uint32_t order[ROCE_FLOWS], i, n = 0;
	const struct roce_flow *f;
	char text[1200], place[300];

	for (i = 0; i < roce->num; i++)
		if (roce_faults(roce, i))
			order[n++] = i;
	sorted = roce;
	qsort(order, n, sizeof(order[0]), by_faults);
	for (i = 0; i < n; i++) {
		f = &roce->flow[order[i]];
		snprintf(place, sizeof(place), "%.200s %s", r->file[f->file]->name,
			 r->file[f->file]->iface[f->iface].name);
		roce_fault_text(roce, order[i], place, r->trace->begin, text, sizeof(text));
		cb(arg, text);
	}
}

static void roce_text(FILE *out, const struct roce *roce)
{
	char text[500];

	if (!roce->num && !roce->malformed)
		return;
	roce_sums_text(roce, text, sizeof(text));
	fprintf(out, "%s\n", text);
}

static void roce_json(struct json *j, const struct report *r)
{
	const struct roce *roce = r->roce;
	const struct roce_flow *f;

	if (!roce->num)
		return;
	json_begin(j, "roce_flows", '[');
	for (f = roce->flow; f < roce->flow + roce->num; f++) {
		json_begin(j, NULL, '{');
		json_text(j, "file", r->file[f->file]->name);
		json_text(j, "interface", r->file[f->file]->iface[f->iface].name);
		roce_flow_json(j, roce, f);
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* ---- text ----------------------------------------------------------------------------------- */

static double quantile_us(const struct hist *h, double q)
{
	return (double)hist_quantile(h, q) / 1e3;
}

static void paths_text(FILE *out, const struct trace_flow *f)
{
	const struct trace_path *p;
	unsigned int i;

	for (i = 0; i < WEFT_FRAME_PATHS_MAX; i++) {
		p = &f->path[i];
		if (!p->frames || p->frames == f->frames)
			continue;
		fprintf(out,
			"        path %u: %" PRIu64 " frames, %" PRIu64 " bytes, %" PRIu64
			" sent again, %" PRIu64 " lost, %" PRIu64 " late",
			i, p->frames, p->bytes, p->again, p->lost, p->late);
		if (p->min_delay != INT64_MAX)
			fprintf(out, ", least delay %.3f us", (double)p->min_delay / 1e3);
		fputc('\n', out);
	}
}

/* A lane without frames, by message records. */
static void record_text(FILE *out, const struct report *r, const struct trace_flow *f)
{
	char from[200], to[200];
	unsigned int i;

	fprintf(out, "    %s > %s: %" PRIu64 " messages in records, %" PRIu64 " bytes, %.2f MB/s\n",
		verdict_end(r, f, false, from, sizeof(from)),
		verdict_end(r, f, true, to, sizeof(to)), f->frames, f->bytes, report_rate(f));
	for (i = WEFT_RECORD_READ; i < WEFT_RECORD_KINDS; i++)
		if (f->natives[i])
			fprintf(out, "        native: %" PRIu64 " %s, %" PRIu64 " bytes\n",
				f->natives[i], native_names[i], f->native_bytes[i]);
}

static void flow_text(FILE *out, const struct report *r, const struct trace_flow *f)
{
	char from[200], to[200];

	if (f->record) {
		record_text(out, r, f);
		return;
	}
	fprintf(out,
		"    %s > %s: %" PRIu64 " frames, %" PRIu64 " bytes, %.2f MB/s, %" PRIu64
		" sent again",
		verdict_end(r, f, false, from, sizeof(from)),
		verdict_end(r, f, true, to, sizeof(to)), f->frames, f->bytes, report_rate(f),
		f->again);
	if (f->judged)
		fprintf(out,
			"; %" PRIu64 " lost, %" PRIu64 " twice, %" PRIu64 " late, %" PRIu64
			" changed, least delay %.3f us",
			f->lost, f->twice, f->late, f->changed,
			f->min_delay == INT64_MAX ? 0 : (double)f->min_delay / 1e3);
	fputc('\n', out);
	if (f->rtt.count)
		fprintf(out, "        round trip %.1f us median, %.1f p99, %.1f most",
			quantile_us(&f->rtt, 0.5), quantile_us(&f->rtt, 0.99),
			(double)f->rtt.max / 1e3);
	if (f->most_bytes)
		fprintf(out, "%s in flight %.0f bytes on average, %" PRIu64 " most, %u frames most",
			f->rtt.count ? ";" : "       ", report_flight(f), f->most_bytes,
			f->most_frames);
	if (f->most_bytes && f->rx_frames)
		fprintf(out, " (the receiver's ring holds %u)", f->rx_frames);
	if (f->rtt.count || f->most_bytes)
		fputc('\n', out);
	if (f->gaps)
		fprintf(out,
			"        %s did not poll for %.1f ms in all, %.1f ms at most, by its own "
			"reports\n",
			verdict_end(r, f, false, from, sizeof(from)), (double)f->gap_ns / 1e6,
			(double)(f->gap_longest * PROGRESS_UNIT) / 1e6);
	paths_text(out, f);
}

bool report_conversation(const struct report *r, unsigned int flow, struct report_conversation *c)
{
	const struct trace *t = r->trace;
	unsigned int i;

	*c = (struct report_conversation){0};
	if (stream_of(t, flow) != flow)
		return false;
	for (i = flow; i < t->num_flows; i++) {
		if (stream_of(t, i) != flow)
			continue;
		c->lanes++;
		c->messages += t->flow[i].messages;
		c->bytes += t->flow[i].message_bytes;
	}
	return true;
}

static void conversation_text(FILE *out, const struct report *r, unsigned int flow,
			      const struct report_conversation *c)
{
	const struct trace *t = r->trace;
	char from[80], to[80];

	fprintf(out, "%s > %s: %" PRIu64 " messages, %" PRIu64 " bytes, %u lane%s\n",
		stream_end_name(t, &t->flow[flow], false, from, sizeof(from)),
		stream_end_name(t, &t->flow[flow], true, to, sizeof(to)), c->messages, c->bytes,
		c->lanes, c->lanes == 1 ? "" : "s");
}

static void protocols_text(FILE *out, const struct trace_follow *fo)
{
	const struct msg_sum *s;
	unsigned int i;

	for (i = 0; i < MSG_PROTOCOLS; i++) {
		s = &fo->sum[i];
		if (s->count)
			fprintf(out,
				"%10" PRIu64 " messages %s, %" PRIu64
				" bytes, took %.1f us median, %.1f p99, %.1f most\n",
				s->count, msg_protocol_name(i), s->bytes,
				quantile_us(&s->took, 0.5), quantile_us(&s->took, 0.99),
				(double)s->took.max / 1e3);
	}
	if (fo->unfinished)
		fprintf(out, "%10" PRIu64 " messages are not finished\n", fo->unfinished);
	if (fo->strays)
		fprintf(out,
			"%10" PRIu64 " parts of rendezvous name a request that was not captured\n",
			fo->strays);
	if (fo->forced)
		fprintf(out,
			"%10" PRIu64
			" messages were not followed to the end: more than %u were open\n",
			fo->forced, MSG_OPEN);
}

static void slowest_text(FILE *out, const struct list *l)
{
	unsigned int i;

	if (l->slowest.num)
		fprintf(out, "slowest messages\n");
	for (i = 0; i < l->slowest.num; i++)
		list_line(out, l, &l->slowest.one[i].msg);
}

static void sentence_text(void *arg, const struct msg *m, const char *text)
{
	char when[40];

	if (m)
		fprintf(arg, "  %s %s\n", dump_time_text(m->first, when, sizeof(when)), text);
	else
		fprintf(arg, "  %s\n", text);
}

static uint64_t trouble(const struct trace_flow *f)
{
	return f ? f->lost + f->twice + f->late + f->changed + f->again : 0;
}

/* Is the lane of @p f printed before that of @p g? Frames with trouble() count, then bytes. */
static bool is_worse(const struct trace *t, const struct trace_flow *f, const struct trace_flow *g)
{
	uint64_t a = trouble(f) + trouble(trace_other(t, f)),
		 b = trouble(g) + trouble(trace_other(t, g));

	return a != b ? a > b : f->bytes > g->bytes;
}

static unsigned int worst_lanes(const struct report *r, unsigned int lane[LANES])
{
	const struct trace *t = r->trace;
	unsigned int i, at, n = 0;

	for (i = 0; i < t->num_flows; i++) {
		if (!report_lane(r, i))
			continue;
		for (at = n < LANES ? n++ : n; at > 0; at--) {
			if (!is_worse(t, &t->flow[i], &t->flow[lane[at - 1]]))
				break;
			if (at < LANES)
				lane[at] = lane[at - 1];
		}
		if (at < LANES)
			lane[at] = i;
	}
	return n;
}

static void lane_text(FILE *out, const struct report *r, unsigned int i)
{
	const struct trace_flow *f = report_lane(r, i);

	if (!f)
		return;
	fprintf(out, "lane %u\n", i);
	flow_text(out, r, f);
	if (trace_other(r->trace, f))
		flow_text(out, r, trace_other(r->trace, f));
}

static void lanes_text(FILE *out, const struct report *r, bool all)
{
	unsigned int lane[LANES], i, n, lanes = 0;

	for (i = 0; i < r->trace->num_flows; i++) {
		lanes += report_lane(r, i) != NULL;
		if (all)
			lane_text(out, r, i);
	}
	if (all)
		return;
	n = worst_lanes(r, lane);
	for (i = 0; i < n; i++)
		lane_text(out, r, lane[i]);
	if (lanes > n)
		fprintf(out, "%u further lanes: see --all\n", lanes - n);
}

static void clocks_text(FILE *out, const struct report *r)
{
	const struct trace_clock *c;
	unsigned int i;

	for (i = 0; r->trace->num_files > 1 && i < r->trace->num_files; i++) {
		c = &r->clock[i];
		fprintf(out, "%s: clock %+.3f us, drift %+.3f ppm", r->file[i]->name,
			(double)c->offset / 1e3, c->drift * 1e6);
		if (c->drift_error > 0)
			fprintf(out, " (+-%.3f)", c->drift_error * 1e6);
		if (c->base && c->base != i)
			fprintf(out, " from %s", r->file[c->base]->name);
		fputs(!c->known                  ? " (no frame in common)\n"
		      : c->equal && i != c->base ? " (no frame contradicts it)\n"
						 : "\n",
		      out);
	}
}

void report_text(FILE *out, const struct report *r, const struct list *l)
{
	bool all = l->o->all || r->trace->num_flows <= 2 * LANES;
	unsigned int i, n = 0, hidden = 0;
	struct report_conversation c;

	verdict_text(out, l);
	clocks_text(out, r);
	dump_counts_text(out, r->counts);
	roce_text(out, r->roce);
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!report_conversation(r, i, &c))
			continue;
		if (all || n++ < LANES)
			conversation_text(out, r, i, &c);
		else
			hidden++;
	}
	if (hidden)
		fprintf(out, "%u further conversations: see --all\n", hidden);
	protocols_text(out, r->trace->follow);
	lanes_text(out, r, all);
	list_sentences(l, sentence_text, out);
	slowest_text(out, l);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void flight_json(struct json *j, const struct report *r, const struct trace_flow *f)
{
	unsigned int i;

	if (f->gaps) {
		json_real(j, "sender_gaps_ms", (double)f->gap_ns / 1e6);
		json_real(j, "sender_gap_most_ms", (double)(f->gap_longest * PROGRESS_UNIT) / 1e6);
	}
	if (f->rtt.count) {
		json_number(j, "round_trips", f->rtt.count);
		json_real(j, "round_trip_us", quantile_us(&f->rtt, 0.5));
		json_real(j, "round_trip_p99_us", quantile_us(&f->rtt, 0.99));
	}
	if (f->most_bytes) {
		json_real(j, "in_flight_bytes", report_flight(f));
		json_number(j, "in_flight_most_bytes", f->most_bytes);
		json_number(j, "in_flight_most_frames", f->most_frames);
	}
	if (f->rx_frames)
		json_number(j, "receiver_ring", f->rx_frames);
	json_begin(j, "paths", '[');
	for (i = 0; i < WEFT_FRAME_PATHS_MAX; i++) {
		if (!f->path[i].frames)
			continue;
		json_begin(j, NULL, '{');
		json_number(j, "path", i);
		json_number(j, "frames", f->path[i].frames);
		json_number(j, "bytes", f->path[i].bytes);
		json_number(j, "sent_again", f->path[i].again);
		json_number(j, "lost", f->path[i].lost);
		json_number(j, "late", f->path[i].late);
		state_json(j, r, f, i);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void messages_json(struct json *j, const struct trace_follow *fo)
{
	const struct msg_sum *s;
	unsigned int i;

	json_number(j, "messages", fo->messages);
	json_number(j, "messages_unfinished", fo->unfinished);
	json_number(j, "messages_sent_again", fo->sent_again);
	json_number(j, "messages_left", fo->forced);
	json_number(j, "stray_pieces", fo->strays);
	json_begin(j, "protocols", '[');
	for (i = 0; i < MSG_PROTOCOLS; i++) {
		s = &fo->sum[i];
		if (!s->count)
			continue;
		json_begin(j, NULL, '{');
		json_text(j, "protocol", msg_protocol_name(i));
		json_number(j, "messages", s->count);
		json_number(j, "bytes", s->bytes);
		json_real(j, "took_us", quantile_us(&s->took, 0.5));
		json_real(j, "took_p99_us", quantile_us(&s->took, 0.99));
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void conversations_json(struct json *j, const struct report *r)
{
	struct report_conversation c;
	char name[80];
	unsigned int i;

	json_begin(j, "conversations", '[');
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!report_conversation(r, i, &c))
			continue;
		json_begin(j, NULL, '{');
		json_text(j, "from",
			  stream_end_name(r->trace, &r->trace->flow[i], false, name, sizeof(name)));
		json_text(j, "to",
			  stream_end_name(r->trace, &r->trace->flow[i], true, name, sizeof(name)));
		json_number(j, "messages", c.messages);
		json_number(j, "bytes", c.bytes);
		json_number(j, "lanes", c.lanes);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void sentence_json(void *arg, const struct msg *m, const char *text)
{
	json_begin(arg, NULL, '{');
	if (m) {
		json_number(arg, "message", m->number);
		json_number(arg, "time", m->first);
	}
	json_text(arg, "text", text);
	json_end(arg, '}');
}

static void lists_json(struct json *j, const struct list *l)
{
	unsigned int i;

	json_begin(j, "message_anomalies", '[');
	list_sentences(l, sentence_json, j);
	list_unanswered(l, sentence_json, j);
	json_end(j, ']');
	json_begin(j, "slowest", '[');
	for (i = 0; i < l->slowest.num; i++)
		list_json(j, l, NULL, &l->slowest.one[i].msg);
	json_end(j, ']');
}

static void flow_json(struct json *j, const struct report *r, const struct trace_flow *f)
{
	json_begin(j, NULL, '{');
	json_text(j, "from", port_name(r, &f->out));
	json_text(j, "from_file", host_name(r, &f->out));
	json_text(j, "to", port_name(r, &f->in));
	json_text(j, "to_file", host_name(r, &f->in));
	json_number(j, "frames", f->frames);
	json_number(j, "bytes", f->bytes);
	json_real(j, "rate_mb_s", report_rate(f));
	json_number(j, "records", f->record);
	for (unsigned int i = WEFT_RECORD_READ; i < WEFT_RECORD_KINDS; i++)
		if (f->natives[i])
			json_number(j, native_names[i], f->native_bytes[i]);
	json_number(j, "sent_again", f->again);
	flight_json(j, r, f);
	if (f->judged) {
		json_number(j, "compared", f->judged);
		json_number(j, "lost", f->lost);
		json_number(j, "twice", f->twice);
		json_number(j, "late", f->late);
		json_number(j, "changed", f->changed);
		if (f->min_delay != INT64_MAX)
			json_real(j, "least_delay_us", (double)f->min_delay / 1e3);
	}
	json_end(j, '}');
}

static void stops_json(struct json *j, const struct trace_host *h)
{
	struct trace_gap stop[TRACE_STOPS];
	unsigned int i, n = trace_host_stops(h, stop);

	json_begin(j, "stops", '[');
	for (i = 0; i < n && i < TRACE_STOPS; i++) {
		json_begin(j, NULL, '{');
		json_number(j, "time", stop[i].from);
		json_real(j, "seconds", (double)(stop[i].to - stop[i].from) / 1e9);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void anomaly_json(struct json *j, const struct report *r, const struct trace_anomaly *a)
{
	const struct trace_flow *f = a->flow == TRACE_NONE ? NULL : &r->trace->flow[a->flow];
	char where[400];

	json_begin(j, NULL, '{');
	json_text(j, "class", trace_fault_name(a->fault));
	json_number(j, "time", a->time);
	if (f) {
		json_begin(j, "lane", '[');
		json_text(j, NULL, port_name(r, &f->out));
		json_text(j, NULL, port_name(r, &f->in));
		json_end(j, ']');
	}
	json_text(j, "host", r->file[a->host]->name);
	json_text(j, "where", verdict_where(r, a, where, sizeof(where)));
	if (f)
		json_text(j, "from_file", host_name(r, &f->out));
	if (f)
		json_text(j, "to_file", host_name(r, &f->in));
	if (a->share > 0)
		json_real(j, "share", a->share);
	if (a->fault == FAULT_STOPPED_PEER && !a->past)
		stops_json(j, &r->trace->host[a->host]);
	json_text(j, "evidence", a->text);
	json_text(j, "advice", trace_fault_advice(a->fault));
	json_end(j, '}');
}

static void reason_json(void *arg, const char *text)
{
	json_text(arg, NULL, text);
}

/* The counters of RoCE devices that have grown. */
static void devices_json(struct json *j, const struct dump_devices *d)
{
	const struct dump_device_counter *c;
	bool any = false;

	for (c = d->of; c < d->of + d->num; c++) {
		if (c->last <= c->first)
			continue;
		if (!any)
			json_begin(j, "device_counters", '[');
		any = true;
		json_begin(j, NULL, '{');
		json_text(j, "device", c->device);
		json_text(j, "port", c->port);
		json_text(j, "counter", c->name);
		json_number(j, "grown", c->last - c->first);
		json_number(j, "since", c->since);
		json_end(j, '}');
	}
	if (any)
		json_end(j, ']');
}

static void clocks_json(struct json *j, const struct report *r)
{
	unsigned int i;

	json_begin(j, "captures", '[');
	for (i = 0; i < r->trace->num_files; i++) {
		json_begin(j, NULL, '{');
		json_text(j, "file", r->file[i]->name);
		json_number(j, "frames", r->file[i]->frames);
		json_number(j, "lost_by_writer", dump_file_dropped(r->file[i]));
		json_real(j, "clock_us", (double)r->clock[i].offset / 1e3);
		json_real(j, "drift_ppm", r->clock[i].drift * 1e6);
		if (r->trace->survey && r->trace->survey->done &&
		    r->trace->survey->file[i].comment[0])
			json_text(j, "comment", r->trace->survey->file[i].comment);
		if (r->file[i]->why[0])
			json_text(j, "damaged", r->file[i]->why);
		devices_json(j, &r->file[i]->devices);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void report_json(FILE *out, const struct report *r, const struct list *l)
{
	struct json j = {.out = out};
	unsigned int i, n, verdicts;

	json_begin(&j, NULL, '{');
	json_number(&j, "version", DUMP_FORMAT_VERSION);
	dump_counts_json(&j, r->counts);
	clocks_json(&j, r);
	json_begin(&j, "lanes", '[');
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!report_lane(r, i))
			continue;
		json_begin(&j, NULL, '[');
		flow_json(&j, r, report_lane(r, i));
		if (trace_other(r->trace, report_lane(r, i)))
			flow_json(&j, r, trace_other(r->trace, report_lane(r, i)));
		json_end(&j, ']');
	}
	json_end(&j, ']');
	json_begin(&j, "anomalies", '[');
	n = trace_anomalies(r->trace, found);
	verdicts = trace_verdicts(found, n);
	for (i = 0; i < verdicts; i++)
		anomaly_json(&j, r, &found[i]);
	json_end(&j, ']');
	json_begin(&j, "observations", '[');
	for (i = verdicts; i < n; i++)
		anomaly_json(&j, r, &found[i]);
	json_end(&j, ']');
	roce_json(&j, r);
	json_begin(&j, "not_judged", '[');
	verdict_not_judged(r, reason_json, &j);
	json_end(&j, ']');
	messages_json(&j, r->trace->follow);
	conversations_json(&j, r);
	lists_json(&j, l);
	json_end(&j, '}');
	fputc('\n', out);
}

void report_csv(FILE *out, const struct report *r)
{
	const struct trace_flow *f;
	unsigned int i;

	fprintf(out, "lane,from,to,frames,bytes,mb_s,sent_again,compared,lost,twice,late,changed,"
		     "rtt_us,rtt_p99_us,in_flight_bytes,in_flight_most_bytes,version\n");
	for (i = 0; i < r->trace->num_flows; i++) {
		f = &r->trace->flow[i];
		fprintf(out, "%u,", f->other < i ? f->other : i);
		csv_text(out, port_name(r, &f->out));
		putc(',', out);
		csv_text(out, port_name(r, &f->in));
		fprintf(out,
			",%" PRIu64 ",%" PRIu64 ",%.3f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64 ",%" PRIu64 ",%.3f,%.3f,%.0f,%" PRIu64 ",%d\n",
			f->frames, f->bytes, report_rate(f), f->again, f->judged, f->lost, f->twice,
			f->late, f->changed, quantile_us(&f->rtt, 0.5), quantile_us(&f->rtt, 0.99),
			report_flight(f), f->most_bytes, DUMP_FORMAT_VERSION);
	}
}
