/* SPDX-License-Identifier: BSD-3-Clause */
/* What a first pass finds about captures: spans, lost records, stations. */

#include "dump/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of all frames of an interface this share has its own address: switches flood a few others. */
#define STATION_SHARE 0.98

int survey_make(struct survey *s, unsigned int num)
{
	unsigned int i, n;

	*s = (struct survey){.num = num};
	s->file = calloc(num, sizeof(*s->file));
	if (!s->file)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		for (n = 0; n < DUMP_IFACES; n++)
			s->file[i].port[n].station = SURVEY_NO_STATION;
	return 0;
}

void survey_free(struct survey *s)
{
	free(s->file);
	*s = (struct survey){0};
}

uint8_t survey_index(const struct survey_port *p, const uint8_t mac[6])
{
	unsigned int i;

	for (i = 0; i < p->num_macs; i++)
		if (!memcmp(p->mac[i], mac, 6))
			return (uint8_t)i;
	return SURVEY_NO_STATION;
}

static uint8_t count_address(struct survey_port *p, const uint8_t mac[6])
{
	uint8_t at = survey_index(p, mac);

	if (at == SURVEY_NO_STATION && p->num_macs < SURVEY_MACS) {
		at = (uint8_t)p->num_macs++;
		memcpy(p->mac[at], mac, 6);
	}
	if (at != SURVEY_NO_STATION)
		p->count[at]++;
	return at;
}

static void add_hole(struct survey_file *s, uint64_t from, uint64_t to, uint64_t count,
		     uint16_t iface)
{
	struct survey_hole *h;

	s->placed += count;
	if (s->num_holes < SURVEY_HOLES) {
		s->hole[s->num_holes++] = (struct survey_hole){from, to, count, iface};
		return;
	}
	/* The last one then covers all further ones, of any interface. */
	h = &s->hole[SURVEY_HOLES - 1];
	h->to = to;
	h->count += count;
	h->iface = UINT16_MAX;
}

static void addresses(struct survey_port *p, const struct dump_frame *frame,
		      const struct dump_view *v)
{
	uint8_t from;

	if (!v->src_mac || v->dst_mac[0] & 1)
		return;
	p->frames++;
	p->undirected += frame->way == DUMP_WAY_UNKNOWN;
	from = count_address(p, v->src_mac);
	count_address(p, v->dst_mac);
	if (frame->way == DUMP_OUT && p->station == SURVEY_NO_STATION)
		p->station = from;
}

void survey_frame(struct survey *s, const struct dump_file *file, const struct dump_frame *frame,
		  const struct dump_view *v)
{
	struct survey_file *f = &s->file[frame->file];
	struct survey_port *p = &f->port[frame->iface];

	(void)file;
	if (frame->dropped)
		add_hole(f, p->last ? p->last : frame->time, frame->time, frame->dropped,
			 frame->iface);
	if (!p->first)
		p->first = frame->time;
	if (frame->time > p->last)
		p->last = frame->time;
	if (!f->first || frame->time < f->first)
		f->first = frame->time;
	if (frame->time > f->last)
		f->last = frame->time;
	addresses(p, frame, v);
	f->lane_frames += v->what == DUMP_LANE;
	f->undirected += v->what == DUMP_LANE && frame->way == DUMP_WAY_UNKNOWN;
	if (v->what == DUMP_CUT) {
		f->too_short++;
		f->caplen = frame->caplen > f->caplen ? frame->caplen : f->caplen;
	}
}

void survey_file_end(struct survey *s, const struct dump_file *file)
{
	struct survey_file *f = &s->file[file->index];

	f->end = file->end > f->last ? file->end : f->last;
	f->lost = dump_file_dropped(file);
	memcpy(f->comment, file->comment, sizeof(f->comment));
}

static bool is_in_all(const struct survey_port *p, unsigned int i)
{
	return (double)p->count[i] >= STATION_SHARE * (double)p->frames;
}

bool survey_pair(const struct survey_port *p, uint8_t index[2])
{
	unsigned int i, n = 0;

	if (p->station != SURVEY_NO_STATION)
		return false;
	for (i = 0; i < p->num_macs; i++) {
		if (!is_in_all(p, i))
			continue;
		if (n < 2)
			index[n] = (uint8_t)i;
		n++;
	}
	return n == 2;
}

static void station_of(struct survey_port *p)
{
	unsigned int i, n = 0;
	uint8_t found = SURVEY_NO_STATION;

	if (p->station != SURVEY_NO_STATION || !p->undirected)
		return;
	for (i = 0; i < p->num_macs; i++) {
		if (!is_in_all(p, i))
			continue;
		found = (uint8_t)i;
		n++;
	}
	if (n == 1)
		p->station = found;
}

void survey_stations(struct survey *s)
{
	unsigned int i, n;

	for (i = 0; i < s->num; i++)
		for (n = 0; n < DUMP_IFACES; n++)
			station_of(&s->file[i].port[n]);
}

void survey_way(const struct survey *s, struct dump_frame *frame)
{
	const struct survey_port *p;
	const uint8_t *own;

	if (!s->done || frame->way != DUMP_WAY_UNKNOWN || frame->record || frame->caplen < 12)
		return;
	p = &s->file[frame->file].port[frame->iface];
	if (p->station == SURVEY_NO_STATION)
		return;
	own = p->mac[p->station];
	if (!memcmp(frame->data + 6, own, 6))
		frame->way = DUMP_OUT;
	else if (!memcmp(frame->data, own, 6) || frame->data[0] & 1)
		frame->way = DUMP_IN;
}
