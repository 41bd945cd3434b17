/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
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
#include "lane_tap.h"

/* ---- values --------------------------------------------------------------------------------- */

#define YEAR_S (366.0 * 86400)

static int option_tag(void *options, const char *option, const char *value)
{
	struct dump_options *o = options;
	char *end;

	errno = 0;
	o->tag = strtoull(value, &end, 0);
	o->has_tag = true;
	if (*value && *value != '-' && !*end && !errno)
		return APP_OK;
	cli_error("%s takes a number, not '%s'", option, value);
	return APP_USAGE;
}

/* "FROM-TO", "FROM-", "-TO", or one value. @return 0, or -EINVAL: empty or too long */
static int halves(const char *option, const char *value, char from[40], char to[40])
{
	const char *dash = strchr(value, '-');
	size_t first = dash ? (size_t)(dash - value) : strlen(value);

	if (!*value || first >= 40 || strlen(dash ? dash + 1 : value) >= 40) {
		cli_error("%s takes a range FROM-TO, not '%s'", option, value);
		return -EINVAL;
	}
	memcpy(from, value, first);
	from[first] = '\0';
	snprintf(to, 40, "%s", dash ? dash + 1 : value);
	return 0;
}

static int option_size(void *options, const char *option, const char *value)
{
	struct dump_options *o = options;
	char from[40], to[40];

	if (halves(option, value, from, to) || (from[0] && cli_size(option, from, &o->size_from)) ||
	    (to[0] && cli_size(option, to, &o->size_to)))
		return APP_USAGE;
	return APP_OK;
}

static int time_of(const char *option, const char *text, uint64_t *ns)
{
	double seconds;

	if (!text[0])
		return 0;
	if (cli_seconds(option, text, 0, YEAR_S, &seconds))
		return -EINVAL;
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int option_time(void *options, const char *option, const char *value)
{
	struct dump_options *o = options;
	char from[40], to[40];

	if (halves(option, value, from, to) || time_of(option, from, &o->time_from))
		return APP_USAGE;
	if (strchr(value, '-') && time_of(option, to, &o->time_to))
		return APP_USAGE;
	return APP_OK;
}

static int option_took(void *options, const char *option, const char *value)
{
	return time_of(option, value, &((struct dump_options *)options)->took) ? APP_USAGE : APP_OK;
}

#define EVERY_LEAST 0.001
#define EVERY_MOST 86400

static int option_every(void *options, const char *option, const char *value)
{
	double seconds;

	if (cli_seconds(option, value, EVERY_LEAST, EVERY_MOST, &seconds))
		return APP_USAGE;
	((struct dump_options *)options)->every = (uint64_t)(seconds * 1e9);
	return APP_OK;
}

static int option_filter(void *options, const char *option, const char *value)
{
	struct dump_options *o = options;
	char why[400];

	(void)option;
	dump_filter_free(o->filter);
	o->filter = dump_filter_make(value, why, sizeof(why));
	if (o->filter)
		return APP_OK;
	cli_error("%s", why);
	return APP_USAGE;
}

static int option_keylog(void *options, const char *option, const char *value)
{
	struct dump_options *o = options;
	char why[400];

	(void)option;
	dump_keylog_free(o->keylog);
	o->keylog = dump_keylog_load(value, why, sizeof(why));
	if (o->keylog)
		return APP_OK;
	cli_error("--keylog %s", why);
	return APP_FAIL;
}

static int option_peer(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->peer = value;
	return APP_OK;
}

static int option_graph(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->graph = value;
	return APP_OK;
}

static int option_lane(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->lane = value;
	return APP_OK;
}

static int option_slice(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->slice = value;
	return APP_OK;
}

static int option_trace(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->trace = value;
	return APP_OK;
}

static int option_html(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->html = value;
	return APP_OK;
}

static int option_points(void *options, const char *option, const char *value)
{
	(void)option;
	((struct dump_options *)options)->points = value;
	return APP_OK;
}

/* A program in the build folder prints the path of weft.lua there, others the installed one's. */
static int option_dissector(void *options, const char *option, const char *value)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("weft.lua"));
	char *slash;

	(void)options;
	(void)option;
	(void)value;
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		memcpy(slash + 1, "weft.lua", sizeof("weft.lua"));
	if (!slash || access(path, R_OK))
		snprintf(path, sizeof(path), "%s/weft.lua", WEFT_WIRESHARK_PLUGINS);
	if (access(path, R_OK)) {
		cli_error("there is no dissector at %s; install it: ninja -C build install", path);
		return APP_FAIL;
	}
	puts(path);
	return -1;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define SLOWEST 5
#define SLOWEST_MOST 1000

#define FLAG(member) .flag = offsetof(struct dump_options, member)
#define NUMBER(member, least, most) .number = {offsetof(struct dump_options, member), least, most}

static const struct cli_option table[] = {
	{"frames", 'F', NULL, "print every frame with all of its fields", FLAG(frames)},
	{"wrong", 'w', NULL, "print the frames that contradict the wire format", FLAG(wrong)},
	{"filter", 'f', "EXPR", "only frames that tcpdump's filter expression takes",
	 .set = option_filter},
	{"number", 'n', "N", "only the first N frames of each file", NUMBER(number, 1, UINT64_MAX)},
	{"keylog", 0, "FILE", "open sealed frames with the keys that WEFT_KEYLOG has written",
	 .set = option_keylog},
	{"json", 'j', NULL, "print JSON, one object a line", FLAG(json)},
	{"all", 0, NULL, "print all faults and all lanes, not only the worst", FLAG(all)},
	{"csv", 0, NULL, "print lanes, or with --messages these, as CSV", FLAG(csv)},
	{"every", 0, "SECONDS",
	 "print rates of lanes, and new faults, for each SECONDS of the captures, while they are "
	 "read",
	 .set = option_every},
	{"dissector", 0, NULL,
	 "print the path of Wireshark's dissector, for tshark -X "
	 "lua_script:$(weft-dump --dissector)",
	 .set = option_dissector},
	{"help", 'h', NULL, "this text"},
	{"version", 0, NULL, "version and build"},
	{.heading = "Messages"},
	{"messages", 'm', NULL, "print a line for each message, when it is over", FLAG(messages)},
	{"slowest", 's', "N", "show the N slowest messages (5; at most 1000)",
	 NUMBER(slowest, 0, SLOWEST_MOST)},
	{"message", 0, "N", "print when each frame of message N was sent and came, lane by lane",
	 NUMBER(message, 1, UINT64_MAX)},
	{"peer", 0, "TEXT", "only messages from or to a peer with TEXT in its name or address",
	 .set = option_peer},
	{"tag", 0, "N", "only tagged messages with this tag", .set = option_tag},
	{"size", 0, "FROM-TO", "only messages of FROM to TO bytes (k, M, G)", .set = option_size},
	{"time", 0, "FROM-TO",
	 "only messages that begin in this interval, in seconds from the first frame; with --slice "
	 "the frames in it",
	 .set = option_time},
	{"took", 0, "SECONDS", "only messages that took SECONDS or longer", .set = option_took},
	{.heading = "Files"},
	{"graph", 0, "FILE", "draw the lanes, or with --message that one, as SVG",
	 .set = option_graph},
	{"points", 0, "FILE",
	 "write frames over time as CSV: sent, acknowledged, sent again, lost; --html draws them",
	 .set = option_points},
	{"slice", 0, "FILE",
	 "write the frames that --message, --lane, --time and --filter select to a capture for "
	 "Wireshark; - is standard output",
	 .set = option_slice},
	{"decrypt", 0, NULL,
	 "with --slice and --keylog: write sealed frames as plain ones, which Wireshark dissects",
	 FLAG(decrypt)},
	{"lane", 0, "NAME", "with --slice: only frames of this lane, as dpdk:0",
	 .set = option_lane},
	{"trace", 0, "FILE",
	 "write messages, rates of lanes and faults as a trace for Perfetto (ui.perfetto.dev)",
	 .set = option_trace},
	{"html", 0, "FILE", "write a report for a browser, with the slowest messages drawn",
	 .set = option_html},
	{0},
};

static const struct cli_command command = {
	.name = "weft-dump",
	.usage = "usage: weft-dump [options] FILE...\n"
		 "\n"
		 "Reads captures of raw lanes (WEFT_CAPTURE=FILE, tcpdump, dumpcap; pcapng and "
		 "pcap), checks every frame\n"
		 "against the wire format, and prints how many frames and messages of each kind "
		 "there are, and what the\n"
		 "lanes carried. With the captures of both hosts it also finds the fate of each "
		 "frame, and names the\n"
		 "fault of a network that loses, delays or changes them. A file that is damaged or "
		 "cut short is read as\n"
		 "far as it is whole. FILE - is standard input.\n"
		 "\n",
	.options = table,
	.after = {"\n"
		  "Exit code: 0 all is read and correct, 1 a file can't be read, 2 wrong usage, "
		  "4 a file is damaged, or\n"
		  "frames contradict the wire format.\n"},
};

bool dump_options_next(const struct dump_options *o, struct dump_file *file,
		       struct dump_frame *frame)
{
	if ((o->number && file->frames >= o->number) || !dump_file_next(file, frame))
		return false;
	frame->keylog = o->keylog;
	return true;
}

bool dump_options_take(const struct dump_options *o, const struct dump_frame *frame)
{
	return !o->filter || dump_filter_takes(o->filter, frame);
}

/* Do the options belong together? */
static bool are_consistent(const struct dump_options *o)
{
	bool printed = o->frames || o->wrong || o->messages || o->html || o->graph || o->points ||
		       o->trace;

	if (o->slice && printed)
		cli_error("--slice writes a capture and prints nothing: -F, -w, -m, --html, "
			  "--graph, --points and --trace do not go with it");
	else if (o->trace && (o->frames || o->wrong || o->html))
		cli_error("-F, -w and --html do not go with --trace");
	else if (o->every && (o->frames || o->wrong || o->slice || o->json || o->csv || o->html))
		cli_error("--every prints text: -F, -w, -j, --csv, --html and --slice do not go "
			  "with it");
	else if (o->lane && !o->slice)
		cli_error("--lane selects frames for --slice: give --slice FILE, too");
	else if (o->decrypt && !(o->slice && o->keylog))
		cli_error("--decrypt needs --slice FILE and --keylog FILE");
	else
		return true;
	return false;
}

int dump_options_read(struct dump_options *o, int argc, char **argv)
{
	int ret;

	*o = (struct dump_options){
		.slowest = SLOWEST, .size_to = UINT64_MAX, .time_to = UINT64_MAX};
	ret = cli_options_parse(&command, o, argc, argv);
	if (ret)
		return ret;
	o->names = argv + optind;
	o->num_names = (unsigned int)(argc - optind);
	if (!are_consistent(o))
		return APP_USAGE;
	if (o->num_names >= 1 && o->num_names <= DUMP_FILES)
		return APP_OK;
	cli_error(o->num_names ? "more than %u captures: name fewer files"
			       : "no capture: name one file, or up to %u",
		  DUMP_FILES);
	return APP_USAGE;
}

void dump_options_free(struct dump_options *o)
{
	dump_filter_free(o->filter);
	dump_keylog_free(o->keylog);
}

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

#define COMMENT 256 /* bytes of a frame's comment with its NUL, at most */
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
	uint8_t *plain; /* buffer for a sealed frame that was opened */
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

/* @return MAC address of the frame's interface; NULL: the survey has not found it */
static const uint8_t *mac_of(const struct survey *s, const struct dump_frame *frame)
{
	const struct survey_port *p;

	if (!s->done)
		return NULL;
	p = &s->file[frame->file].port[frame->iface];
	return p->station == SURVEY_NO_STATION ? NULL : p->mac[p->station];
}

/* Each section of a capture has its own numbers of interfaces. */
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

/* Write a sealed frame as the plain one, with its number as a comment; without a key as it is. */
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
		/* Frames that the slice lacks are opened, too: keys may change with them. */
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

/* Frames contain secrets, so other users can't read the file. @return -1 after a message */
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
