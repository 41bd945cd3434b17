/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges several captures in the order of one clock into one trace, which is then reported. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "dump/survey.h"
#include "dump/timeline.h"

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

int dump_analyse(const struct dump_options *o)
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
