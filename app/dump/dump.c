/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-dump: reads captures. Options and start. */

#include "dump/dump.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "dump/frames.h"
#include "weft.h"

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

bool dump_file_complain(const struct dump_file *file)
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
