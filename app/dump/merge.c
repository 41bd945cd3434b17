/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/merge.h"

#include <inttypes.h>

#include "common/cli.h"
#include "dump/options.h"

int merge_survey(struct merge *m, const struct dump_options *o)
{
	*m = (struct merge){.o = o};
	return trace_clocks(o->names, o->num_names, m->clock, &m->survey);
}

int merge_open(struct merge *m)
{
	char why[400];

	m->begun = false;
	m->last = NULL;
	for (; m->num < m->o->num_names; m->num++) {
		m->file[m->num] =
			dump_file_open(m->o->names[m->num], (uint8_t)m->num, why, sizeof(why));
		if (!m->file[m->num]) {
			cli_error("%s", why);
			return APP_FAIL;
		}
		m->reader[m->num] = (struct merge_reader){.file = m->file[m->num]};
	}
	dump_progress_begin(&m->progress, m->file[0]);
	return APP_OK;
}

static void advance(struct merge *m, struct merge_reader *r)
{
	do
		r->has = dump_options_next(m->o, r->file, &r->frame);
	while (r->has && !dump_options_take(m->o, &r->frame));
	if (!r->has)
		return;
	survey_way(&m->survey, &r->frame);
	r->time = trace_time(&m->clock[r->file->index], r->frame.time);
}

struct merge_reader *merge_next(struct merge *m)
{
	struct merge_reader *best = NULL;
	unsigned int i;

	for (i = 0; !m->begun && i < m->num; i++)
		advance(m, &m->reader[i]);
	m->begun = true;
	if (m->last == &m->reader[0])
		dump_progress(&m->progress, m->file[0]);
	if (m->last)
		advance(m, m->last);
	for (i = 0; i < m->num; i++)
		if (m->reader[i].has && (!best || m->reader[i].time < best->time))
			best = &m->reader[i];
	m->last = best;
	if (!best)
		dump_progress_end(&m->progress);
	return best;
}

void merge_close(struct merge *m)
{
	while (m->num)
		dump_file_close(m->file[--m->num]);
}

void merge_free(struct merge *m)
{
	merge_close(m);
	survey_free(&m->survey);
}

bool merge_complain(const struct dump_file *file)
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
