/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft-dump: a reader of captures, which doc/capture.md describes. Start, frames one by one, and
 * the passes over several captures. The other files:
 *
 *  dump/options.c      options
 *  dump/merge.c        several captures in the order of one clock; a part of them as one capture
 *  dump/file.c         captures, frame by frame; filter expressions; how far a file has been read
 *  dump/keylog.c       keys of sealed frames, and opening of frames with them
 *  dump/decode.c       decodes a frame, or a record, into a view: its parts, and errors in it
 *  dump/shapes.c       tables of the fields of frames, messages, records
 *  dump/frames.c       goes through a frame by these tables: text, JSON, counts
 *  dump/live.c         a report for each interval, while captures are read
 *  dump/list.c         what was wrong; which messages are selected, a line each, their problems
 *  dump/timeline.c     one message over its lanes; a trace for Perfetto
 *  dump/draw.c         parts of pictures; lanes over time; a report for a browser
 *
 * dump/trace.h has the analysis of several captures together.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "dump/draw.h"
#include "dump/file.h"
#include "dump/frames.h"
#include "dump/host.h"
#include "dump/list.h"
#include "dump/live.h"
#include "dump/merge.h"
#include "dump/options.h"
#include "dump/timeline.h"

/* ---- several captures together -------------------------------------------------------------- */

struct analysis {
	struct merge merge;
	struct dump_counts counts;
	struct trace *trace;
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
	if (!a->trace || trace_spans(a->trace, &m->survey, m->clock))
		return APP_FAIL;
	a->report = (struct report){a->trace, m->file, m->clock, &a->counts};
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
			cli_error("%s has no frame in common with another capture, so its clock is "
				  "not corrected",
				  m->file[i]->name);
	}
	if (a->trace && a->trace->too_many)
		cli_error("%" PRIu64
			  " frames belong to directions beyond the first %u: these frames are "
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
	free(a->list);
	a->live = NULL;
	a->trace = NULL;
	a->list = NULL;
	a->counts = (struct dump_counts){0};
}

/* Reads all captures. @param watch  messages to keep events of. @return APP_OK or an exit code */
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
	if (o->messages || ret != APP_OK)
		return ret;
	if (o->message)
		(o->json ? message_json : message_text)(a->list);
	else if (o->csv)
		report_csv(stdout, &a->report);
	else if (!o->html && !o->graph && !o->trace)
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

/* The report of what has been read is printed. A second signal ends the program. */
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

/* From a pipe lines are printed as they come, so that a live capture can be watched. */
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
		cli_error("the output can't be written");
		return APP_FAIL;
	}
	return ret < 0 ? APP_OK : ret;
}
