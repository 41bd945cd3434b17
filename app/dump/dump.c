/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft-dump: a reader of captures, which doc/capture.md describes. Start, frames one by one,
 * passes over several captures, and reports while they are read. The other files:
 *
 *  dump/options.c      options; what they select of several captures, in the order of one clock
 *  dump/file.c         captures, frame by frame; filter expressions; how far a file has been read
 *  dump/keylog.c       keys of sealed frames, and opening of frames with them
 *  dump/decode.c       decodes a frame, or a record, into a view: its parts, and errors in it
 *  dump/rocev2.c       decodes a packet of RoCE v2
 *  dump/roce_flow.c    connections of RoCE v2, and their faults
 *  dump/shapes.c       tables of the fields of frames, messages, records
 *  dump/frames.c       goes through a frame by these tables: text, JSON, counts
 *  dump/json.c         JSON to a stream
 *  dump/list.c         what was wrong; which messages are selected, a line each, their problems
 *  dump/timeline.c     one message over its lanes; a trace for Perfetto
 *  dump/draw.c         parts of pictures; lanes over time; a report for a browser
 *  dump/plot_draw.c    frames over time: pictures, CSV
 *  dump/state.c        states of paths over time, as captures have them
 *  dump/state_draw.c   pictures, CSV and JSON of these
 *
 * dump/trace.h has the analysis of several captures together.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "dump/anomaly.h"
#include "dump/draw.h"
#include "dump/file.h"
#include "dump/frames.h"
#include "dump/host.h"
#include "dump/list.h"
#include "dump/message.h"
#include "dump/options.h"
#include "dump/plot.h"
#include "dump/plot_draw.h"
#include "dump/roce_flow.h"
#include "dump/timeline.h"
#include "dump/trace.h"

/* ---- a report for each interval ------------------------------------------------------------- */

/*
 * Intervals are measured by the time stamps of frames, so a file has the same report as the live
 * capture. Frames are judged lost after TRACE_LOST_NS, so their count is late by that.
 */

#define LANES 10u /* directions of lanes that are printed, the busiest first; all with --all */

/* Counters of a flow when the interval began. */
struct live_flow {
	uint64_t frames, bytes, again, lost;
};

/* A fault that has been printed. */
struct live_fault {
	uint32_t flow;
	uint8_t host;
};

struct live {
	const struct list *l;
	uint64_t interval, begin, next; /* next: the end of this interval; 0 = no frame so far */
	uint64_t messages, frames;
	struct live_flow flow[TRACE_FLOWS];
	struct live_fault fault[FAULT_COUNT][TRACE_ANOMALIES];
	unsigned int num_faults[FAULT_COUNT];
	struct trace_anomaly found[TRACE_ANOMALIES];
	uint32_t order[TRACE_FLOWS]; /* flows with frames in this interval */
	unsigned int num;
};

/* @param interval  ns. @return NULL: no memory */
static struct live *live_make(const struct list *l, uint64_t interval)
{
	struct live *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->l = l;
	v->interval = interval;
	return v;
}

static void live_free(struct live *v)
{
	free(v);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static struct live_flow counters(const struct trace_flow *f)
{
	return (struct live_flow){f->frames, f->bytes, f->again, f->lost};
}

static struct live_flow since(const struct live *v, uint32_t flow)
{
	struct live_flow now = counters(&v->l->r->trace->flow[flow]);
	const struct live_flow *before = &v->flow[flow];

	return (struct live_flow){now.frames - before->frames, now.bytes - before->bytes,
				  now.again - before->again, now.lost - before->lost};
}

static const struct live *sorted;

static int by_bytes(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t of_x = since(sorted, x).bytes, of_y = since(sorted, y).bytes;

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void lane_text(const struct live *v, uint32_t flow)
{
	const struct report *r = v->l->r;
	const struct trace_flow *f = &r->trace->flow[flow];
	struct live_flow d = since(v, flow);
	double seconds = (double)v->interval / 1e9;
	char from[200], to[200];

	printf("    %s > %s: %.2f MB/s, %.0f frames/s, %" PRIu64 " sent again",
	       verdict_end(r, f, false, from, sizeof(from)),
	       verdict_end(r, f, true, to, sizeof(to)), (double)d.bytes / 1e6 / seconds,
	       (double)d.frames / seconds, d.again);
	if (f->judged)
		printf(", %" PRIu64 " lost", d.lost);
	if (f->flight_frames)
		printf(", %" PRIu64 " bytes in flight", f->flight_bytes);
	putchar('\n');
}

static void lanes(struct live *v)
{
	const struct trace *t = v->l->r->trace;
	unsigned int i, most = v->l->o->all ? TRACE_FLOWS : LANES;

	v->num = 0;
	for (i = 0; i < t->num_flows; i++)
		if (since(v, i).frames)
			v->order[v->num++] = i;
	sorted = v;
	qsort(v->order, v->num, sizeof(v->order[0]), by_bytes);
	for (i = 0; i < v->num && i < most; i++)
		lane_text(v, v->order[i]);
	if (i < v->num)
		printf("    %u further directions of lanes: see --all\n", v->num - i);
	for (i = 0; i < t->num_flows; i++)
		v->flow[i] = counters(&t->flow[i]);
}

/* ---- faults --------------------------------------------------------------------------------- */

static bool is_new(struct live *v, const struct trace_anomaly *a)
{
	struct live_fault *f = v->fault[a->fault];
	unsigned int i, *n = &v->num_faults[a->fault];

	for (i = 0; i < *n; i++)
		if (f[i].flow == a->flow && (a->flow != TRACE_NONE || f[i].host == a->host))
			return false;
	if (*n < TRACE_ANOMALIES)
		f[(*n)++] = (struct live_fault){a->flow, a->host};
	return true;
}

static void faults(struct live *v)
{
	const struct report *r = v->l->r;
	unsigned int i, n = trace_verdicts(v->found, trace_anomalies(r->trace, v->found));
	const struct trace_anomaly *a;
	char where[400];

	for (i = 0; i < n; i++) {
		a = &v->found[i];
		if (is_new(v, a))
			printf("    fault: %s, %s: %s\n", trace_fault_name(a->fault),
			       verdict_where(r, a, where, sizeof(where)), a->text);
	}
}

/* ---- intervals ------------------------------------------------------------------------------ */

static void interval_over(struct live *v)
{
	const struct report *r = v->l->r;
	uint64_t messages = r->trace->follow->messages;
	char when[40];

	printf("%s (%.3f s): %" PRIu64 " frames, %" PRIu64 " messages\n",
	       dump_time_text(v->next, when, sizeof(when)), (double)(v->next - v->begin) / 1e9,
	       r->counts->frames - v->frames, messages - v->messages);
	v->messages = messages;
	v->frames = r->counts->frames;
	lanes(v);
	faults(v);
}

/*
 * Report the intervals that are over, before a frame of this time is taken. Intervals without
 * frames are one line.
 */
static void live_frame(struct live *v, uint64_t time)
{
	uint64_t empty;
	char when[40];

	if (!v->next) {
		v->begin = time;
		v->next = time + v->interval;
	}
	if (time < v->next)
		return;
	interval_over(v);
	empty = (time - v->next) / v->interval;
	v->next += v->interval * (empty + 1);
	if (empty)
		printf("%s (%.3f s): no frame in %.3f s\n",
		       dump_time_text(v->next - v->interval, when, sizeof(when)),
		       (double)(v->next - v->interval - v->begin) / 1e9,
		       (double)(empty * v->interval) / 1e9);
	fflush(stdout);
}

/* ---- several captures together -------------------------------------------------------------- */

struct analysis {
	struct merge merge;
	struct dump_counts counts;
	struct trace *trace;
	struct roce *roce;
	struct list *list;
	struct report report;
	struct live *live; /* NULL without --every */
	FILE *events;      /* NULL without --trace */
};

static void message_over(void *arg, struct trace *t, const struct msg *m)
{
	struct analysis *a = arg;

	if (list_take(a->list, t, m) && a->events)
		events_message(a->events, a->list, m);
}

static int make_trace(struct analysis *a)
{
	struct merge *m = &a->merge;

	a->trace = trace_make(m->num);
	a->roce = roce_make();
	if (!a->trace || !a->roce || trace_spans(a->trace, &m->survey, m->clock))
		return APP_FAIL;
	if (m->o->html || m->o->points) {
		a->trace->plot = plot_make();
		if (!a->trace->plot)
			return APP_FAIL;
	}
	a->report = (struct report){a->trace, m->file, m->clock, &a->counts, a->roce};
	a->list = list_make(m->o, &a->report);
	if (!a->list)
		return APP_FAIL;
	a->trace->follow->over = message_over;
	a->trace->follow->arg = a;
	if (m->o->every)
		a->live = live_make(a->list, m->o->every);
	return m->o->every && !a->live ? APP_FAIL : APP_OK;
}

static void read_all(struct analysis *a)
{
	struct merge_reader *r;
	struct dump_view view;

	while ((r = merge_next(&a->merge))) {
		if (a->live)
			live_frame(a->live, r->time);
		dump_decode(&r->frame, &view);
		dump_count(&a->counts, &view);
		trace_frame(a->trace, &r->frame, &view, r->time);
		if (view.what == DUMP_ROCE)
			roce_packet(a->roce, &r->frame, &view, r->time);
	}
	trace_end(a->trace);
}

/* @return APP_OK or an exit code */
static int complain(const struct analysis *a)
{
	const struct merge *m = &a->merge;
	int ret = a->counts.wrong ? APP_DATA : APP_OK;
	unsigned int i;

	for (i = 0; i < m->num; i++) {
		if (merge_complain(m->file[i]))
			ret = APP_DATA;
		if (!m->clock[i].known)
			cli_error("no frame of %s is in another capture, so its clock is not "
				  "corrected",
				  m->file[i]->name);
		else if (m->clock[i].base == i && i > 0)
			cli_error("no frame connects %s to %s: the captures that share frames with "
				  "it have its clock",
				  m->file[i]->name, m->file[0]->name);
	}
	if (a->trace && a->trace->too_many)
		cli_error("%" PRIu64
			  " frames belong to directions of lanes beyond the first %u: these are "
			  "counted, but not followed",
			  a->trace->too_many, TRACE_FLOWS);
	return ret;
}

static void draw_message(FILE *out, struct list *l)
{
	svg_message(out, l, l->r->trace->follow->watch);
}

static void draw_lanes(FILE *out, struct list *l)
{
	svg_lanes(out, l);
}

static void message_text(struct list *l)
{
	timeline_text(stdout, l, l->r->trace->follow->watch);
}

static void message_json(struct list *l)
{
	timeline_json(stdout, l, l->r->trace->follow->watch);
}

static void forget(struct analysis *a)
{
	merge_close(&a->merge);
	live_free(a->live);
	trace_free(a->trace);
	free(a->roce);
	free(a->list);
	a->live = NULL;
	a->trace = NULL;
	a->roce = NULL;
	a->list = NULL;
	a->counts = (struct dump_counts){0};
}

/* Read all captures. @param watch  numbers of messages whose events are kept. @return exit code */
static int pass(struct analysis *a, const uint64_t *watch, unsigned int num_watch)
{
	unsigned int i;
	int ret = merge_open(&a->merge);

	if (ret != APP_OK)
		return ret;
	ret = make_trace(a);
	for (i = 0; ret == APP_OK && i < num_watch; i++)
		if (!follow_watch(a->trace->follow, watch[i]))
			ret = APP_FAIL;
	if (ret == APP_OK)
		read_all(a);
	else
		cli_error("no memory");
	return ret;
}

/* A report draws the slowest messages, which are known only after a first pass. */
static int two_passes(struct analysis *a)
{
	uint64_t watch[MSG_WATCHED];
	unsigned int i, num;
	int ret = pass(a, NULL, 0);

	if (ret != APP_OK)
		return ret;
	num = a->list->slowest.num < MSG_WATCHED ? a->list->slowest.num : MSG_WATCHED;
	for (i = 0; i < num; i++)
		watch[i] = a->list->slowest.one[i].msg.number;
	forget(a);
	return pass(a, watch, num);
}

static int written(FILE *out, const char *name)
{
	bool bad = fflush(out) || ferror(out);

	if (fclose(out) || bad) {
		cli_error("%s can't be written: %s", name, strerror(errno));
		return APP_FAIL;
	}
	fprintf(stderr, "%s: %s is written\n", cli_program, name);
	return APP_OK;
}

static int into_file(const struct analysis *a, const char *name,
		     void (*write)(FILE *, struct list *))
{
	FILE *out = fopen(name, "we");

	if (!out) {
		cli_error("%s: %s", name, strerror(errno));
		return APP_FAIL;
	}
	write(out, a->list);
	return written(out, name);
}

/* @return APP_OK or an exit code */
static int found(const struct analysis *a)
{
	uint64_t message = a->merge.o->message;

	if (!message || a->trace->follow->watch->found)
		return APP_OK;
	if (a->trace->follow->messages)
		cli_error("there is no message %" PRIu64 ": messages have numbers 1 to %" PRIu64,
			  message, a->trace->follow->messages);
	else
		cli_error("there is no message %" PRIu64 ": the captures contain no messages",
			  message);
	return APP_USAGE;
}

/* @return APP_OK or an exit code */
static int show(const struct analysis *a)
{
	const struct dump_options *o = a->merge.o;
	int ret = found(a);

	if (o->graph && ret == APP_OK)
		ret = into_file(a, o->graph, o->message ? draw_message : draw_lanes);
	if (o->html && ret == APP_OK)
		ret = into_file(a, o->html, html_report);
	if (o->points && ret == APP_OK)
		ret = into_file(a, o->points, plot_csv);
	if (o->messages || ret != APP_OK)
		return ret;
	if (o->message)
		(o->json ? message_json : message_text)(a->list);
	else if (o->csv)
		report_csv(stdout, &a->report);
	else if (!o->html && !o->graph && !o->points && !o->trace)
		(o->json ? report_json : report_text)(stdout, &a->report, a->list);
	return APP_OK;
}

static int readable_twice(const struct dump_options *o)
{
	bool twice = o->html || (o->slice && o->message);
	unsigned int i;

	for (i = 0; twice && i < o->num_names; i++) {
		if (strcmp(o->names[i], "-"))
			continue;
		cli_error("%s reads captures twice, but standard input can be read only once: "
			  "write it to a file first",
			  o->html ? "--html" : "--slice with --message");
		return APP_USAGE;
	}
	return APP_OK;
}

/* The frames of a message are known only after a first pass. */
static int slice(struct analysis *a)
{
	const struct dump_options *o = a->merge.o;
	int ret;

	if (!o->message)
		return slice_write(&a->merge, NULL);
	ret = pass(a, &o->message, 1);
	if (ret == APP_OK)
		ret = found(a);
	if (ret != APP_OK)
		return ret;
	merge_close(&a->merge);
	return slice_write(&a->merge, a->trace->follow->watch);
}

/* Events are written while captures are read. */
static int open_events(struct analysis *a)
{
	const char *name = a->merge.o->trace;

	if (!name)
		return APP_OK;
	a->events = fopen(name, "we");
	if (!a->events) {
		cli_error("%s: %s", name, strerror(errno));
		return APP_FAIL;
	}
	events_begin(a->events);
	return APP_OK;
}

static int close_events(struct analysis *a)
{
	FILE *out = a->events;

	if (!out)
		return APP_OK;
	a->events = NULL;
	if (a->list)
		events_end(out, a->list);
	return written(out, a->merge.o->trace);
}

static int report(struct analysis *a)
{
	const struct dump_options *o = a->merge.o;
	int ret = open_events(a);

	if (ret != APP_OK)
		return ret;
	if (o->messages && o->csv)
		list_csv_head(stdout);
	ret = o->html ? two_passes(a) : pass(a, &o->message, o->message != 0);
	if (ret == APP_OK)
		ret = show(a);
	return close_events(a) == APP_OK ? ret : APP_FAIL;
}

/* Reads all captures together. @return APP_OK or an exit code */
static int dump_analyse(const struct dump_options *o)
{
	struct analysis *a = calloc(1, sizeof(*a));
	int ret = APP_FAIL, more;

	if (!a)
		return APP_FAIL;
	ret = readable_twice(o);
	if (ret == APP_OK)
		ret = merge_survey(&a->merge, o);
	if (ret == APP_OK)
		ret = o->slice ? slice(a) : report(a);
	if (a->merge.begun) {
		more = complain(a);
		ret = ret != APP_OK ? ret : more;
	}
	forget(a);
	merge_free(&a->merge);
	free(a);
	return ret;
}

/* ---- frames one by one, and start ----------------------------------------------------------- */

static void one_frame(const struct dump_options *o, const struct dump_file *file,
		      const struct dump_frame *frame, struct dump_counts *counts)
{
	struct dump_view view;
	const char *wrong;

	if (!dump_options_take(o, frame))
		return;
	dump_decode(frame, &view);
	wrong = dump_count(counts, &view);
	if (!o->frames && !(o->wrong && wrong))
		return;
	if (o->json)
		dump_frame_json(stdout, file, frame, &view);
	else
		dump_frame_text(stdout, file, frame, &view);
}

/* @return APP_OK or an exit code */
static int read_file(const struct dump_options *o, const char *name, uint8_t index,
		     struct dump_counts *counts)
{
	struct dump_progress progress;
	struct dump_frame frame;
	struct dump_file *file;
	int ret = APP_OK;
	char why[400];

	file = dump_file_open(name, index, why, sizeof(why));
	if (!file) {
		cli_error("%s", why);
		return APP_FAIL;
	}
	dump_progress_begin(&progress, file);
	while (dump_options_next(o, file, &frame)) {
		one_frame(o, file, &frame, counts);
		dump_progress(&progress, file);
	}
	dump_progress_end(&progress);
	if (merge_complain(file))
		ret = APP_DATA;
	dump_file_close(file);
	return ret;
}

/* Print frames one by one. @return APP_OK or an exit code */
static int print_frames(const struct dump_options *o)
{
	struct dump_counts counts = {0};
	int ret = APP_OK, one;
	unsigned int i;

	for (i = 0; ret != APP_FAIL && i < o->num_names; i++) {
		one = read_file(o, o->names[i], (uint8_t)i, &counts);
		ret = one ? one : ret;
	}
	return ret == APP_OK && counts.wrong ? APP_DATA : ret;
}

/* What has been read is reported. A second signal of the same number ends the program. */
static void stop_reading(int sig)
{
	(void)sig;
	dump_file_stop = 1;
}

static void catch_signals(void)
{
	struct sigaction act = {.sa_handler = stop_reading, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

/* A capture from standard input may be live, so each line is flushed. */
static void set_output(const struct dump_options *o)
{
	static char output[256 << 10];
	bool live = o->num_names == 1 && !strcmp(o->names[0], "-");

	setvbuf(stdout, output, live ? _IOLBF : _IOFBF, sizeof(output));
}

int main(int argc, char **argv)
{
	struct dump_options o;
	int ret;

	cli_program = "weft-dump";
	cli_has_eal = false;
	ret = dump_options_read(&o, argc, argv);
	set_output(&o);
	catch_signals();
	if (ret == APP_OK)
		ret = o.frames || o.wrong ? print_frames(&o) : dump_analyse(&o);
	dump_options_free(&o);
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("standard output can't be written");
		return APP_FAIL;
	}
	return ret < 0 ? APP_OK : ret;
}
