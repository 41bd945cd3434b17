/* SPDX-License-Identifier: BSD-3-Clause */
/* Several captures in the order of one clock, into one trace, which is then reported. */

#include <inttypes.h>
#include <stdlib.h>

#include "common/cli.h"
#include "dump/report.h"

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
	struct dump_counts counts;
	struct trace *trace;
	unsigned int num;
};

static void next(struct merge *m, struct reader *r)
{
	const struct dump_options *o = m->o;

	do
		r->has = (!o->number || r->file->frames < o->number) &&
			 dump_file_next(r->file, &r->frame);
	while (r->has && o->filter && !dump_filter_takes(o->filter, &r->frame));
	if (r->has)
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
	if (m->trace)
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
			cli_error("%s: no frame is in another capture, too: its clock is taken as "
				  "it is",
				  m->file[i]->name);
	}
	if (m->trace->too_many)
		cli_error("%" PRIu64 " frames are of more than %u connections' directions: they "
			  "are counted, and not followed",
			  m->trace->too_many, TRACE_FLOWS);
	return ret;
}

int dump_analyse(const struct dump_options *o)
{
	struct merge *m = calloc(1, sizeof(*m));
	struct report report;
	unsigned int i;
	int ret = APP_FAIL;

	if (!m)
		return APP_FAIL;
	m->o = o;
	ret = trace_clocks(o->names, o->num_names, m->clock);
	if (ret == APP_OK)
		ret = open_all(m);
	if (ret == APP_OK) {
		read_all(m);
		report = (struct report){m->trace, m->file, m->clock, &m->counts};
		(o->json ? report_json : report_text)(stdout, &report);
		ret = complain(m);
	}
	for (i = 0; i < m->num; i++)
		dump_file_close(m->file[i]);
	trace_free(m->trace);
	free(m);
	return ret;
}
