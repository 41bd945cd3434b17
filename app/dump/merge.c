/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "drivers/dpdk/capture/pcapng.h"
#include "dump/decode.h"
#include "dump/keylog.h"
#include "dump/message.h"
#include "dump/options.h"
#include "lane_tap.h"

/* ---- several captures as one ---------------------------------------------------------------- */

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
	if (!dump_keylog_rewind(m->o->keylog)) {
		cli_error("no memory");
		return APP_FAIL;
	}
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

/* ---- a part of them as a capture ------------------------------------------------------------ */

/*
 * All captures become one section, whose time is that of the first capture's clock. Each of their
 * interfaces is an interface of the slice, so that frames of both hosts can be distinguished.
 */

#define COMMENT 256 /* bytes of a frame's comment */
/* The number of a sealed frame: its slot, and the count of this slot's frames. */
#define NUMBER_SLOT_SHIFT 56
#define NUMBER_COUNT (((uint64_t)1 << NUMBER_SLOT_SHIFT) - 1)

/* An interface of a capture, and its number in the slice. */
struct slice_iface {
	char name[sizeof(((struct dump_iface *)0)->name)];
	uint32_t number;
	bool records, known;
};

struct slice {
	struct merge *m;
	const struct msg_watch *watch;
	unsigned int next; /* index of the next frame of the watched message */
	uint64_t begin, frames, selected;
	uint64_t closed; /* sealed frames that no key opens */
	struct weft_pcapng out;
	struct slice_iface iface[DUMP_FILES][DUMP_IFACES];
	uint8_t *plain; /* a frame that was sealed */
	uint32_t plain_room;
};

/* ---- which ---------------------------------------------------------------------------------- */

/* The frames of the message are in the order of all captures, as those of the slice are. */
static bool is_watched(struct slice *s, const struct dump_frame *frame)
{
	const struct msg_frame *next;

	if (!s->watch)
		return true;
	if (s->next == s->watch->num_frames)
		return false;
	next = &s->watch->frame[s->next];
	if (next->file != frame->file || next->number != frame->number)
		return false;
	s->next++;
	return true;
}

static bool is_selected(struct slice *s, const struct merge_reader *r)
{
	const struct dump_options *o = s->m->o;
	uint64_t since = r->time > s->begin ? r->time - s->begin : 0;

	if (!is_watched(s, &r->frame))
		return false;
	if (o->lane && strcmp(o->lane, r->file->iface[r->frame.iface].lane))
		return false;
	return since >= o->time_from && since <= o->time_to;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The station is the address of the interface, if the survey has found it. */
static const uint8_t *mac_of(const struct survey *s, const struct dump_frame *frame)
{
	const struct survey_port *p;

	if (!s->done)
		return NULL;
	p = &s->file[frame->file].port[frame->iface];
	return p->station == SURVEY_NO_STATION ? NULL : p->mac[p->station];
}

/* A capture may have several sections, and then other interfaces of the same numbers. */
static uint32_t interface_of(struct slice *s, const struct merge_reader *r)
{
	const struct dump_iface *i = &r->file->iface[r->frame.iface];
	struct slice_iface *known = &s->iface[r->file->index][r->frame.iface];
	char name[400];

	if (known->known && known->records == i->records && !strcmp(known->name, i->name))
		return known->number;
	memcpy(known->name, i->name, sizeof(known->name));
	known->records = i->records;
	known->known = true;
	snprintf(name, sizeof(name), "%s", i->name);
	if (s->m->num > 1)
		snprintf(name, sizeof(name), "%s of %.256s", i->name, r->file->name);
	known->number = weft_pcapng_interface(
		&s->out, i->records ? WEFT_RECORD_LINKTYPE : WEFT_PCAPNG_ETHERNET, name,
		r->file->name, mac_of(&s->m->survey, &r->frame), 0, i->snaplen);
	return known->number;
}

static void write_frame(struct slice *s, const struct merge_reader *r)
{
	const struct dump_frame *f = &r->frame;
	char comment[COMMENT];
	size_t len = f->comment_len < COMMENT - 1 ? f->comment_len : COMMENT - 1;

	if (f->comment)
		memcpy(comment, f->comment, len);
	comment[f->comment ? len : 0] = '\0';
	weft_pcapng_packet(&s->out, &(struct weft_pcapng_packet){
					    .interface = interface_of(s, r),
					    .direction = (enum weft_pcapng_direction)f->way,
					    .time_ns = r->time,
					    .data = f->data,
					    .caplen = f->caplen,
					    .len = f->len,
					    .comment = f->comment ? comment : NULL,
				    });
	s->selected++;
}

/* The frame in a sealed one, with a comment of it. A frame that no key opens stays as it is. */
static void write_plain(struct slice *s, const struct merge_reader *r, const struct dump_view *v)
{
	struct merge_reader plain = *r;
	struct dump_frame *f = &plain.frame;
	char comment[COMMENT];
	weft_le64 wire;
	uint64_t number;
	int n;

	f->caplen = dump_decode_plain(&r->frame, v, s->plain, &f->len);
	if (f->caplen == 0) {
		s->closed += v->hdr && (v->flags & WEFT_FRAME_F_SEALED);
		write_frame(s, r);
		return;
	}
	memcpy(&wire, v->opened + sizeof(*v->hdr), sizeof(wire));
	number = weft_get64(wire);
	n = snprintf(comment, sizeof(comment), "sealed, number %u:%" PRIu64 "%s%.*s",
		     (unsigned int)(number >> NUMBER_SLOT_SHIFT), number & NUMBER_COUNT,
		     f->comment ? "; " : "", f->comment ? (int)f->comment_len : 0,
		     f->comment ? f->comment : "");
	f->data = s->plain;
	f->comment = comment;
	f->comment_len = (uint16_t)(n < COMMENT ? n : COMMENT - 1);
	write_frame(s, &plain);
}

static bool has_room(struct slice *s, uint32_t bytes)
{
	uint8_t *more;

	if (bytes <= s->plain_room)
		return true;
	more = realloc(s->plain, bytes);
	if (!more)
		return false;
	s->plain = more;
	s->plain_room = bytes;
	return true;
}

static void write_all(struct slice *s)
{
	const struct merge_reader *r;
	struct dump_view view;

	while (!s->out.error && (r = merge_next(s->m))) {
		if (!s->frames++)
			s->begin = r->time;
		/* Frames that are left out change keys, too. */
		if (s->m->o->decrypt)
			dump_decode(&r->frame, &view);
		if (!is_selected(s, r))
			continue;
		if (!s->m->o->decrypt)
			write_frame(s, r);
		else if (has_room(s, r->frame.caplen))
			write_plain(s, r, &view);
		else
			s->out.error = -ENOMEM;
	}
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Is the output one of the captures? Opening it for writing would empty it. */
static bool is_capture(const struct dump_options *o)
{
	struct stat out, in;
	unsigned int i;

	if (stat(o->slice, &out))
		return false;
	for (i = 0; i < o->num_names; i++)
		if (!stat(o->names[i], &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return true;
	return false;
}

/* Frames contain secrets and keys, so others can't read the file. @return -1 after a message */
static int open_slice(const struct dump_options *o)
{
	int fd;

	if (!strcmp(o->slice, "-"))
		return STDOUT_FILENO;
	if (is_capture(o)) {
		cli_error("--slice %s: it is one of the captures", o->slice);
		return -1;
	}
	fd = open(o->slice, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		cli_error("--slice %s: %s", o->slice, strerror(errno));
	return fd;
}

/* @return APP_OK or an exit code */
static int end(struct slice *s)
{
	const struct dump_options *o = s->m->o;
	uint64_t lost = 0;
	unsigned int i;
	int ret = weft_pcapng_flush(&s->out);

	if (s->out.fd != STDOUT_FILENO && close(s->out.fd) && !ret)
		ret = -errno;
	if (ret) {
		cli_error("--slice %s: %s", o->slice, strerror(-ret));
		return APP_FAIL;
	}
	for (i = 0; i < WEFT_PCAPNG_INTERFACES; i++)
		lost += s->out.lost[i];
	if (s->watch && s->watch->missed_frames)
		cli_error("--slice: message %" PRIu64 " has more than %u frames; the slice has the "
			  "first ones",
			  s->watch->number, s->watch->num_frames);
	if (lost)
		cli_error("--slice: %" PRIu64 " frames are too long and left out", lost);
	if (s->closed)
		cli_error("--decrypt: no key opens %" PRIu64 " sealed frames; they are as captured",
			  s->closed);
	fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " frames are in the slice\n", cli_program,
		s->selected - lost, s->frames);
	return APP_OK;
}

int slice_write(struct merge *m, const struct msg_watch *w)
{
	struct slice *s;
	int ret, fd = open_slice(m->o);

	if (fd < 0)
		return APP_FAIL;
	s = calloc(1, sizeof(*s));
	ret = s ? merge_open(m) : APP_FAIL;
	if (ret == APP_OK) {
		s->m = m;
		s->watch = w;
		/* Without a comment weft-dump would take it for a file of a killed process. */
		weft_pcapng_begin(&s->out, fd, "a slice, by weft-dump", 0);
		write_all(s);
		ret = end(s);
	}
	if (s)
		free(s->plain);
	free(s);
	return ret;
}
