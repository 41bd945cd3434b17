/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-dump: reads captures. Options and start, and several captures together. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "dump/clock.h"
#include "dump/dump.h"
#include "dump/file.h"
#include "dump/frames.h"
#include "dump/host.h"
#include "dump/list.h"
#include "dump/timeline.h"
#include "weft.h"

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

/* ---- options and start ---------------------------------------------------------------------- */

static const char help[] =
	"usage: weft-dump [options] FILE...\n"
	"\n"
	"Reads captures of raw lanes (WEFT_CAPTURE=FILE, tcpdump, dumpcap; pcapng and pcap), "
	"checks every frame\n"
	"against the wire format, and prints how many frames and messages of each kind there are, "
	"and what the\n"
	"lanes carried. With the captures of both hosts it also finds the fate of each frame, "
	"and names the\n"
	"fault of a network that loses, delays or changes them. A file that is damaged or cut "
	"short is read as\n"
	"far as it is whole. FILE - is standard input.\n"
	"\n"
	"  -F, --frames          print every frame with all of its fields\n"
	"  -w, --wrong           print the frames that contradict the wire format\n"
	"  -f, --filter EXPR     only frames that tcpdump's filter expression takes\n"
	"  -n, --number N        only the first N frames of each file\n"
	"  -j, --json            print JSON, one object a line\n"
	"      --all             print all faults and all lanes, not only the worst\n"
	"      --csv             print lanes, or with --messages these, as CSV\n"
	"\n"
	"  -m, --messages        print a line for each message, when it is over\n"
	"  -s, --slowest N       show the N slowest messages (default 5)\n"
	"      --message N       one message: what its frames did when, lane by lane\n"
	"      --peer TEXT       only messages from or to a peer with TEXT in its name or address\n"
	"      --tag N           only tagged messages with this tag\n"
	"      --size FROM-TO    only messages of FROM to TO bytes (k, M, G)\n"
	"      --time FROM-TO    only messages that begin then, in seconds from the first frame\n"
	"      --took SECONDS    only messages that took SECONDS or longer\n"
	"      --graph FILE      draw the lanes, or with --message that one, as SVG\n"
	"      --dissector       print the path of Wireshark's dissector, for tshark -X\n"
	"                        lua_script:$(weft-dump --dissector)\n"
	"      --html FILE       write a report for a browser, with the slowest messages drawn\n"
	"  -h, --help            this text\n"
	"      --version         version and build\n"
	"\n"
	"Exit code: 0 all is read and correct, 1 a file can't be read, 2 wrong usage, 4 a file is "
	"damaged, or\n"
	"frames contradict the wire format.\n";

enum {
	OPT_VERSION = 256,
	OPT_CSV,
	OPT_MESSAGE,
	OPT_PEER,
	OPT_TAG,
	OPT_SIZE,
	OPT_TIME,
	OPT_TOOK,
	OPT_GRAPH,
	OPT_HTML,
	OPT_DISSECTOR,
	OPT_ALL,
};

#define SLOWEST 5
#define SLOWEST_MOST 1000

static const char shorts[] = ":Fwf:n:jms:h";
static const struct option longs[] = {{"frames", no_argument, NULL, 'F'},
				      {"wrong", no_argument, NULL, 'w'},
				      {"filter", required_argument, NULL, 'f'},
				      {"number", required_argument, NULL, 'n'},
				      {"json", no_argument, NULL, 'j'},
				      {"csv", no_argument, NULL, OPT_CSV},
				      {"all", no_argument, NULL, OPT_ALL},
				      {"messages", no_argument, NULL, 'm'},
				      {"slowest", required_argument, NULL, 's'},
				      {"message", required_argument, NULL, OPT_MESSAGE},
				      {"peer", required_argument, NULL, OPT_PEER},
				      {"tag", required_argument, NULL, OPT_TAG},
				      {"size", required_argument, NULL, OPT_SIZE},
				      {"time", required_argument, NULL, OPT_TIME},
				      {"took", required_argument, NULL, OPT_TOOK},
				      {"graph", required_argument, NULL, OPT_GRAPH},
				      {"dissector", no_argument, NULL, OPT_DISSECTOR},
				      {"html", required_argument, NULL, OPT_HTML},
				      {"help", no_argument, NULL, 'h'},
				      {"version", no_argument, NULL, OPT_VERSION},
				      {0}};

/* Options about messages. @return APP_OK or an exit code */
static int message_option(struct dump_options *o, int c, const char *value)
{
	switch (c) {
	case OPT_MESSAGE:
		return cli_count("--message", value, 1, UINT64_MAX, &o->message) ? APP_USAGE
										 : APP_OK;
	case 's':
		return cli_count("--slowest", value, 0, SLOWEST_MOST, &o->slowest) ? APP_USAGE
										   : APP_OK;
	case OPT_PEER:
		o->peer = value;
		return APP_OK;
	case OPT_TAG:
		return dump_option_tag(o, value) ? APP_USAGE : APP_OK;
	case OPT_SIZE:
		return dump_option_size(o, value) ? APP_USAGE : APP_OK;
	case OPT_TIME:
		return dump_option_time(o, value) ? APP_USAGE : APP_OK;
	case OPT_TOOK:
		return dump_option_took(o, value) ? APP_USAGE : APP_OK;
	case OPT_GRAPH:
		o->graph = value;
		return APP_OK;
	case OPT_HTML:
		o->html = value;
		return APP_OK;
	default:
		return APP_USAGE;
	}
}

/* @return APP_OK or an exit code */
static int option(struct dump_options *o, int c, const char *value)
{
	char why[400];

	switch (c) {
	case 'F':
		o->frames = true;
		return APP_OK;
	case 'w':
		o->wrong = true;
		return APP_OK;
	case 'j':
		o->json = true;
		return APP_OK;
	case 'n':
		return cli_count("-n", value, 1, UINT64_MAX, &o->number) ? APP_USAGE : APP_OK;
	case 'f':
		dump_filter_free(o->filter);
		o->filter = dump_filter_make(value, why, sizeof(why));
		if (o->filter)
			return APP_OK;
		cli_error("%s", why);
		return APP_USAGE;
	case 'm':
		o->messages = true;
		return APP_OK;
	case OPT_CSV:
		o->csv = true;
		return APP_OK;
	case OPT_ALL:
		o->all = true;
		return APP_OK;
	default:
		return message_option(o, c, value);
	}
}

/* A program of the build folder prints the dissector there, others the installed one. */
static int print_dissector(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("weft.lua"));
	char *slash;

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

/* @return APP_OK, an exit code, or -1 = done, end with 0 */
static int parse(struct dump_options *o, int argc, char **argv)
{
	int c, ret;

	while ((c = cli_getopt(argc, argv, shorts, longs)) != -1) {
		if (c == 'h' || c == OPT_VERSION) {
			fputs(c == 'h' ? help : weft_build_info(), stdout);
			return -1;
		}
		if (c == OPT_DISSECTOR)
			return print_dissector();
		ret = option(o, c, optarg);
		if (ret)
			return ret;
	}
	o->names = argv + optind;
	o->num_names = (unsigned int)(argc - optind);
	if (o->num_names >= 1 && o->num_names <= DUMP_FILES)
		return APP_OK;
	cli_error(o->num_names ? "more than %u captures" : "no capture: name one file, or up to %u",
		  DUMP_FILES);
	return APP_USAGE;
}

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
	struct dump_options o = {.slowest = SLOWEST, .size_to = UINT64_MAX, .time_to = UINT64_MAX};
	int ret;

	cli_program = "weft-dump";
	cli_has_eal = false;
	ret = parse(&o, argc, argv);
	set_output(&o);
	catch_signals();
	if (ret == APP_OK)
		ret = o.frames || o.wrong ? print_frames(&o) : dump_analyse(&o);
	dump_filter_free(o.filter);
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("the output can't be written");
		return APP_FAIL;
	}
	return ret < 0 ? APP_OK : ret;
}
