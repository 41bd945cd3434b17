/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/options.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "dump/keylog.h"

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

/* "FROM-TO", "FROM-", "-TO", or one value. @return 0, or -EINVAL: too long */
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

/* A program of the build folder prints the dissector there, others the installed one. */
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
	{"message", 0, "N", "one message: what its frames did when, lane by lane",
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
	bool printed = o->frames || o->wrong || o->messages || o->html || o->graph || o->trace;

	if (o->slice && printed)
		cli_error("--slice writes a capture and prints nothing: -F, -w, -m, --html, "
			  "--graph and --trace do not go with it");
	else if (o->trace && (o->frames || o->wrong || o->html))
		cli_error("-F, -w and --html do not go with --trace");
	else if (o->every && (o->frames || o->wrong || o->slice || o->json || o->csv || o->html))
		cli_error("--every prints text: -F, -w, -j, --csv, --html and --slice do not go "
			  "with it");
	else if (o->lane && !o->slice)
		cli_error("--lane is for --slice");
	else if (o->decrypt && !(o->slice && o->keylog))
		cli_error("--decrypt is for --slice with --keylog");
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
