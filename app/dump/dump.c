/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft-dump: a reader of captures, which doc/capture.md describes. Start, frames one by one, and
 * several captures in the order of one clock. The other files:
 *
 *  dump/options.c      options
 *  dump/file.c         captures, frame by frame; filter expressions; how far a file has been read
 *  dump/decode.c       decodes a frame, or a record, into a view: its parts, and errors in it;
 *                      tables of the fields of frames, messages, records
 *  dump/frames.c       goes through a frame by these tables: text, JSON, counts
 *  dump/verdict.c      what was wrong: the first lines
 *  dump/list.c         which messages are selected; a line each; problems of messages
 *  dump/timeline.c     one message over its lanes
 *  dump/svg.c          parts of pictures; lanes over time
 *  dump/html.c         a report for a browser
 *
 * dump/trace.h has the analysis of several captures together.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "dump/clock.h"
#include "dump/file.h"
#include "dump/frames.h"
#include "dump/host.h"
#include "dump/html.h"
#include "dump/list.h"
#include "dump/options.h"
#include "dump/svg.h"
#include "dump/timeline.h"

/* ---- merging -------------------------------------------------------------------------------- */

/* Merges several captures in the order of one clock into one trace, which is then reported. */

struct reader {
	struct dump_file *file;
	struct dump_frame frame;
	uint64_t time; /* of the frame, common clock */
	bool has;
};

struct merge {
	const struct dump_options *o;
	struct reader reader[DUMP_FILES];
	struct dump_file *file[DUMP_FILES];
	struct trace_clock clock[DUMP_FILES];
	struct survey survey;
	struct dump_counts counts;
	struct trace *trace;
	struct list *list;
	struct report report;
	unsigned int num;
};

static void next(struct merge *m, struct reader *r)
{
	const struct dump_options *o = m->o;

	do
		r->has = (!o->number || r->file->frames < o->number) &&
			 dump_file_next(r->file, &r->frame);
	while (r->has && o->filter && !dump_filter_takes(o->filter, &r->frame));
	if (!r->has)
		return;
	survey_way(&m->survey, &r->frame);
	r->time = trace_time(&m->clock[r->file->index], r->frame.time);
}

static struct reader *earliest(struct merge *m)
{
	struct reader *best = NULL;
	unsigned int i;

	for (i = 0; i < m->num; i++)
		if (m->reader[i].has && (!best || m->reader[i].time < best->time))
			best = &m->reader[i];
	return best;
}

static int open_all(struct merge *m)
{
	char why[400];

	for (; m->num < m->o->num_names; m->num++) {
		m->file[m->num] =
			dump_file_open(m->o->names[m->num], (uint8_t)m->num, why, sizeof(why));
		if (!m->file[m->num]) {
			cli_error("%s", why);
			return APP_FAIL;
		}
		m->reader[m->num].file = m->file[m->num];
	}
	m->trace = trace_make(m->num);
	if (m->trace && !trace_spans(m->trace, &m->survey, m->clock))
		return APP_OK;
	cli_error("no memory");
	return APP_FAIL;
}

static void read_all(struct merge *m)
{
	struct dump_progress progress;
	struct dump_view view;
	struct reader *r;
	unsigned int i;

	dump_progress_begin(&progress, m->file[0]);
	for (i = 0; i < m->num; i++)
		next(m, &m->reader[i]);
	while ((r = earliest(m))) {
		dump_decode(&r->frame, &view);
		dump_count(&m->counts, &view);
		trace_frame(m->trace, &r->frame, &view, r->time);
		if (r == &m->reader[0])
			dump_progress(&progress, r->file);
		next(m, r);
	}
	dump_progress_end(&progress);
	trace_end(m->trace);
}

/* Print the errors of a file that has been read. @return whether it is damaged */
static bool dump_file_complain(const struct dump_file *file)
{
	if (file->why[0])
		cli_error("%s; %" PRIu64 " frames before it are read", file->why, file->frames);
	if (dump_file_dropped(file))
		cli_error("%s: the program that wrote it lost %" PRIu64 " frames", file->name,
			  dump_file_dropped(file));
	if (file->foreign)
		cli_error("%s: %" PRIu64
			  " frames of interfaces that are neither Ethernet nor message records are "
			  "left out",
			  file->name, file->foreign);
	return file->why[0] != '\0';
}

/* @return APP_OK or an exit code */
static int complain(const struct merge *m)
{
	int ret = m->counts.wrong ? APP_DATA : APP_OK;
	unsigned int i;

	for (i = 0; i < m->num; i++) {
		if (dump_file_complain(m->file[i]))
			ret = APP_DATA;
		if (!m->clock[i].known)
			cli_error("%s: no frame is also in another capture: its clock is not "
				  "corrected",
				  m->file[i]->name);
	}
	if (m->trace->too_many)
		cli_error("%" PRIu64
			  " frames belong to further directions than the first %u: they are "
			  "counted, and not followed",
			  m->trace->too_many, TRACE_FLOWS);
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

static void close_all(struct merge *m)
{
	while (m->num)
		dump_file_close(m->file[--m->num]);
	trace_free(m->trace);
	free(m->list);
	m->trace = NULL;
	m->list = NULL;
	m->counts = (struct dump_counts){0};
}

/* Reads all captures. @param watch  messages to keep events of. @return APP_OK or an exit code */
static int pass(struct merge *m, const uint64_t *watch, unsigned int num_watch)
{
	unsigned int i;
	int ret = open_all(m);

	if (ret != APP_OK)
		return ret;
	m->report = (struct report){m->trace, m->file, m->clock, &m->counts};
	m->list = list_make(m->o, &m->report);
	if (!m->list)
		return APP_FAIL;
	m->trace->follow->over = list_over;
	m->trace->follow->arg = m->list;
	for (i = 0; i < num_watch; i++)
		if (!follow_watch(m->trace->follow, watch[i]))
			return APP_FAIL;
	read_all(m);
	return APP_OK;
}

/* A report draws the slowest messages, which are known only after a first pass. */
static int two_passes(struct merge *m)
{
	uint64_t watch[MSG_WATCHED];
	unsigned int i, num;
	int ret = pass(m, NULL, 0);

	if (ret != APP_OK)
		return ret;
	num = m->list->slowest.num < MSG_WATCHED ? m->list->slowest.num : MSG_WATCHED;
	for (i = 0; i < num; i++)
		watch[i] = m->list->slowest.one[i].msg.number;
	close_all(m);
	return pass(m, watch, num);
}

static int into_file(const struct merge *m, const char *name, void (*write)(FILE *, struct list *))
{
	FILE *out = fopen(name, "we");
	bool bad;

	if (!out) {
		cli_error("%s: %s", name, strerror(errno));
		return APP_FAIL;
	}
	write(out, m->list);
	bad = fflush(out) || ferror(out);
	if (fclose(out) || bad) {
		cli_error("%s can't be written: %s", name, strerror(errno));
		return APP_FAIL;
	}
	fprintf(stderr, "%s: %s is written\n", cli_program, name);
	return APP_OK;
}

/* @return APP_OK or an exit code */
static int show(const struct merge *m)
{
	const struct dump_options *o = m->o;
	const struct msg_watch *w = m->trace->follow->watch;
	int ret = APP_OK;

	if (o->message && !w->found) {
		cli_error("there is no message %" PRIu64 ": they are numbered from 1 to %" PRIu64,
			  o->message, m->trace->follow->messages);
		return APP_USAGE;
	}
	if (o->graph)
		ret = into_file(m, o->graph, o->message ? draw_message : draw_lanes);
	if (o->html && ret == APP_OK)
		ret = into_file(m, o->html, html_report);
	if (o->messages || ret != APP_OK)
		return ret;
	if (o->message)
		(o->json ? message_json : message_text)(m->list);
	else if (o->csv)
		report_csv(stdout, &m->report);
	else if (!o->html && !o->graph)
		(o->json ? report_json : report_text)(stdout, &m->report, m->list);
	return APP_OK;
}

static int readable_twice(const struct dump_options *o)
{
	unsigned int i;

	for (i = 0; o->html && i < o->num_names; i++) {
		if (strcmp(o->names[i], "-"))
			continue;
		cli_error("--html reads captures twice, and standard input only once: write it "
			  "to a file");
		return APP_USAGE;
	}
	return APP_OK;
}

/* Reads all captures and reports. @return APP_OK or an exit code (dump/dump.c) */
static int dump_analyse(const struct dump_options *o)
{
	struct merge *m = calloc(1, sizeof(*m));
	int ret = APP_FAIL, more;

	if (!m)
		return APP_FAIL;
	m->o = o;
	if (o->messages && o->csv)
		list_csv_head(stdout);
	ret = readable_twice(o);
	if (ret == APP_OK)
		ret = trace_clocks(o->names, o->num_names, m->clock, &m->survey);
	if (ret == APP_OK)
		ret = o->html ? two_passes(m) : pass(m, &o->message, o->message != 0);
	if (ret == APP_OK) {
		ret = show(m);
		more = complain(m);
		ret = ret != APP_OK ? ret : more;
	}
	close_all(m);
	survey_free(&m->survey);
	free(m);
	return ret;
}

/* ---- frames one by one, and start ----------------------------------------------------------- */

static void one_frame(const struct dump_options *o, const struct dump_file *file,
		      const struct dump_frame *frame, struct dump_counts *counts)
{
	struct dump_view view;
	const char *wrong;

	if (o->filter && !dump_filter_takes(o->filter, frame))
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
	while ((!o->number || file->frames < o->number) && dump_file_next(file, &frame)) {
		one_frame(o, file, &frame, counts);
		dump_progress(&progress, file);
	}
	dump_progress_end(&progress);
	if (dump_file_complain(file))
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
