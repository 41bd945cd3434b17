/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-perf: latency, bandwidth and message rate between two processes. Options and start. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/eal_start.h"
#include "common/gnuplot.h"
#include "common/program.h"
#include "perf/run.h"

static int stands_alone(const char *name)
{
	cli_error("-t: %s can't be combined with another test", name);
	return APP_USAGE;
}

static int add_test(struct perf_options *o, const char *name)
{
	enum perf_test test = perf_test_named(name);

	for (unsigned int i = 0; i < o->num_tests; i++) {
		if (o->tests[i] != test)
			continue;
		cli_error("-t: %s is there twice", name);
		return APP_USAGE;
	}
	if (test != PERF_END) {
		o->tests[o->num_tests++] = test;
		return APP_OK;
	}
	if (strcmp(name, "table") == 0)
		return stands_alone(name);
	cli_error("there is no test '%s'; there are tag_lat, tag_sync_lat, tag_bw, tag_bibw, "
		  "tag_flood, table, am_lat, am_bw, put_lat, put_bw, get_lat, get_bw, fadd_lat, "
		  "cswap_lat, raw_lat and raw_bw",
		  name);
	return APP_USAGE;
}

static int option_test(void *options, const char *option, const char *names)
{
	struct perf_options *o = options;
	char list[256], *rest = NULL, *name;
	int ret = APP_OK;

	(void)option;
	o->test_given = true;
	o->table = strcmp(names, "table") == 0;
	o->num_tests = 0;
	if ((size_t)snprintf(list, sizeof(list), "%s", o->table ? "tag_lat,tag_bw" : names) >=
	    sizeof(list)) {
		cli_error("-t: '%.40s...' is too long", names);
		return APP_USAGE;
	}
	for (name = strtok_r(list, ",", &rest); name && !ret; name = strtok_r(NULL, ",", &rest))
		ret = add_test(o, name);
	if (!ret && !o->num_tests)
		ret = add_test(o, names);
	return ret;
}

/* 1 B to 16 MiB, doubling with half steps. */
#define SWEEP_SIZES                                                                      \
	"1,2,3,4,6,8,12,16,24,32,48,64,96,128,192,256,384,512,768,1024,1536,2048,3072,"  \
	"4096,6144,8192,12288,16384,24576,32768,49152,65536,98304,131072,196608,262144," \
	"393216,524288,786432,1048576,1572864,2097152,3145728,4194304,6291456,8388608,"  \
	"12582912,16777216"

static int option_size(void *options, const char *option, const char *value)
{
	struct perf_options *o = options;

	cli_sizes_free(&o->sizes);
	return cli_sizes_parse(option, value, &o->sizes) ? APP_USAGE : APP_OK;
}

static int option_duration(void *options, const char *option, const char *value)
{
	struct perf_options *o = options;

	o->seconds_given = true;
	return cli_seconds(option, value, 0.001, 1e6, &o->seconds) ? APP_USAGE : APP_OK;
}

static int option_parallel(void *options, const char *option, const char *value)
{
	struct perf_options *o = options;
	uint64_t number;

	if (cli_count(option, value, 1, PEER_PARALLEL, &number))
		return APP_USAGE;
	o->peer.parallel = (unsigned int)number;
	return APP_OK;
}

static int option_bind(void *options, const char *option, const char *value)
{
	struct perf_options *o = options;

	(void)option;
	return peer_local(&o->peer, value);
}

static int option_graph(void *options, const char *option, const char *value)
{
	struct perf_options *o = options;

	(void)option;
	o->graph = value;
	return gnuplot_check_name(value);
}

static int option_sweep(void *options, const char *option, const char *value)
{
	struct perf_options *o = options;

	(void)option;
	(void)value;
	o->sweep = true;
	o->table = false;
	o->num_tests = 1;
	o->tests[0] = PERF_TAG_LAT;
	return APP_OK;
}

static int option_bit(void *options, const char *option, const char *value)
{
	static const struct {
		const char *option;
		uint32_t bit;
	} bits[] = {
		{"-V", PERF_F_VALIDATE}, {"-U", PERF_F_UNEXPECTED}, {"-z", PERF_F_REGISTERED},
		{"-R", PERF_F_REVERSE},  {"--sleep", PERF_F_SLEEP},
	};
	struct perf_options *o = options;

	(void)value;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (strcmp(bits[i].option, option) == 0)
			o->flags |= bits[i].bit;
	return APP_OK;
}

static const struct cli_option table[] = {
	{.heading = "What to measure"},
	{"test", 't', "TEST[,...]",
	 "these tests, one after the other for each size (tag_bw); tag_flood, table and "
	 "raw_* stand alone",
	 .set = option_test},
	{"size", 's', "SIZES",
	 "message sizes: 8 or 8,1k,64k or 8:4M (doubling); k, M, G are 2^10, 2^20, 2^30 "
	 "(default 8; table 8:4M)",
	 .set = option_size},
	{"iterations", 'n', "N",
	 "iterations, or messages of a flood (default: as many as fit in -D)",
	 .number = {offsetof(struct perf_options, iters), 1, 1ull << 40}},
	{"duration", 'D', "SECONDS",
	 "without -n: a deadline for each size; messages in flight then (-O) still end (1)",
	 .set = option_duration},
	{"warmup", 'w', "N", "iterations before the clock starts (default: some)",
	 .number = {offsetof(struct perf_options, warmup), 0, 1ull << 40}},
	{"window", 'O', "N", "messages in flight of a stream (32)",
	 .number = {offsetof(struct perf_options, window), 1, 65536}},
	{"validate", 'V', NULL,
	 "fill and compare every byte (takes time, which is part of the figures)",
	 .set = option_bit},
	{"unexpected", 'U', NULL, "tag_*: receive each message only after it has arrived",
	 .set = option_bit},
	{"registered", 'z', NULL, "register the buffers", .set = option_bit},
	{"reverse", 'R', NULL, "tag_bw, am_bw: the server sends", .set = option_bit},
	{"parallel", 'P', "N", "tag_bw, am_bw: over N connections to the server, in turn (1)",
	 .set = option_parallel},
	{"sleep", 0, NULL, "both ends sleep while no messages come, instead of polling",
	 .set = option_bit},
	{"sweep", 0, NULL,
	 "every usable protocol forced at every size: predicted and measured times, "
	 "crossings, and the loss by the automatic one (default sizes 1 B to 16 MiB with "
	 "half steps; -D is the duration of one trial, 0.02)",
	 .set = option_sweep},
	{"graph", 0, "FILE", "with --sweep: draw it with gnuplot into FILE (.svg or .png)",
	 .set = option_graph},
	{.heading = "What to print"},
	{"final", 'f', NULL, "only the last line of each size, no line per second",
	 .flag = offsetof(struct perf_options, final_only)},
	{"csv", 'v', NULL, "CSV with ucx_perftest's columns, then percentiles, lanes and memory",
	 .flag = offsetof(struct perf_options, csv)},
	{"json", 0, NULL, "an object of JSON in each line",
	 .flag = offsetof(struct perf_options, json)},
	{.heading = "Where"},
	{.table = peer_option_table},
	{"bind", 'B', "ADDRESS", "server: local address to listen on (all)", .set = option_bind},
	{"keep", 'k', NULL, "server: serve one client after the other until a signal ends it",
	 .flag = offsetof(struct perf_options, keep)},
	{0},
};

static const struct cli_command command = {
	.name = "weft-perf",
	.usage = "usage: weft-perf [EAL ARGUMENTS --] [options]            server: waits for one "
		 "client\n"
		 "       weft-perf [EAL ARGUMENTS --] [options] HOST       client: measures, and "
		 "prints\n"
		 "\n"
		 "Measures messages and remote memory between two processes over all their lanes. "
		 "The options of the client\n"
		 "apply; of the server only -p, -c, -L, -S, -B, -k, --counters. Without a \"--\"\n"
		 "all arguments are weft-perf's, and the EAL gets those of WEFT_EAL_ARGS.\n"
		 "\n"
		 "Tests:\n"
		 "  tag_lat                ping-pong of tagged messages: half the round trip\n"
		 "  tag_sync_lat           the same with synchronous sends\n"
		 "  tag_bw                 a stream to the server, until it has all of it "
		 "(default)\n"
		 "  tag_bibw               a stream each way, counted together\n"
		 "  tag_flood              messages received late and in reverse order: memory\n"
		 "  table                  tag_lat and tag_bw of each size in one line\n"
		 "  am_lat                 ping-pong of active messages: half the round trip\n"
		 "  am_bw                  a stream of them, until all have arrived\n"
		 "  put_lat                each side polls on the last byte of its own memory, "
		 "which\n"
		 "                         the other's put writes: half the round trip\n"
		 "  put_bw                 a stream of puts, until the server's memory has them "
		 "all\n"
		 "  get_lat, get_bw        gets, one at a time or many: the whole operation\n"
		 "  fadd_lat, cswap_lat    fetch-and-add, compare-and-swap of 4 or 8 bytes: the "
		 "whole\n"
		 "                         operation\n"
		 "  raw_lat, raw_bw        the bare ports under the same frames, without Weft\n"
		 "\n",
	.options = table,
	.after = {"\n"
		  "Figures are those of ucx_perftest: a ping-pong's latency is half its round trip "
		  "and its\n"
		  "bandwidth counts both ways; the latency of get_lat, fadd_lat and cswap_lat is "
		  "from the call until\n"
		  "the result is there, and the server only progresses. MB/s are 2^20 bytes per "
		  "second, avg is since the\n"
		  "last line, overall since the start, times are in microseconds. A line per "
		  "second of\n"
		  "tag_bw or am_bw counts received messages.\n"
		  "\n"
		  "Exit code: 0 all well, 1 could not start or go on, 2 wrong usage, 3 the peer "
		  "died or gave up,\n"
		  "4 bytes arrived wrong, 128+N ended by signal N.\n"
		  "\n"
		  "Two processes on one host over one memif lane:\n"
		  "  weft-perf --no-pci --vdev=net_memif0,role=server,socket=/run/m0,bsize=9216 -- "
		  "-L dpdk\n"
		  "  weft-perf --no-pci --vdev=net_memif0,role=client,socket=/run/m0,bsize=9216 -- "
		  "-L dpdk -t table localhost\n"},
};

static int judge_test(const struct perf_options *o, enum perf_test test)
{
	if (o->num_tests > 1 && (perf_is_raw(test) || test == PERF_TAG_FLOOD))
		return stands_alone(perf_test_name(test));
	if (o->flags & PERF_F_SLEEP && !perf_can_sleep(test)) {
		cli_error("--sleep is for tests of tagged and active messages except tag_flood; "
			  "%s always polls",
			  perf_test_name(test));
		return APP_USAGE;
	}
	if (o->flags & PERF_F_REVERSE && !perf_can_reverse(test)) {
		cli_error("-R is for tag_bw and am_bw: %s has no single sender that could be the "
			  "server",
			  perf_test_name(test));
		return APP_USAGE;
	}
	if (o->peer.parallel > 1 && (!perf_can_reverse(test) || o->flags & PERF_F_REVERSE)) {
		cli_error("-P is for tag_bw and am_bw from the client, and goes neither with %s "
			  "nor with -R",
			  perf_can_reverse(test) ? "other tests" : perf_test_name(test));
		return APP_USAGE;
	}
	if (o->peer.parallel > 1 && o->flags & PERF_F_VALIDATE) {
		cli_error("-P does not go with -V: messages of several connections come in any "
			  "order");
		return APP_USAGE;
	}
	if (o->json && test == PERF_TAG_FLOOD) {
		cli_error("--json: tag_flood prints text or CSV");
		return APP_USAGE;
	}
	if (!perf_is_am(test) && !perf_is_rma(test))
		return APP_OK;
	if (o->flags & PERF_F_UNEXPECTED) {
		cli_error("-U is for tagged messages: %s has no receives that could come late",
			  perf_test_name(test));
		return APP_USAGE;
	}
	for (unsigned int i = 0; i < o->sizes.count; i++) {
		if (perf_size_fits(test, o->sizes.size[i]))
			continue;
		cli_error("-s %llu: %s takes %s", (unsigned long long)o->sizes.size[i],
			  perf_test_name(test),
			  perf_is_atomic(test) ? "4 or 8 bytes" : "at least 1 byte");
		return APP_USAGE;
	}
	return APP_OK;
}

static int judge_tests(const struct perf_options *o)
{
	int ret = APP_OK;

	for (unsigned int i = 0; i < o->num_tests && !ret; i++)
		ret = judge_test(o, o->tests[i]);
	return ret;
}

static int complete(struct perf_options *o, int argc, char **argv)
{
	if (argc - optind > 1) {
		cli_error("only one host is possible, not both '%s' and '%s'", argv[optind],
			  argv[optind + 1]);
		return APP_USAGE;
	}
	if (optind < argc && peer_host(&o->peer, argv[optind]))
		return APP_USAGE;
	if (o->keep && o->peer.host) {
		cli_error("-k is for a server, which has no host to connect to");
		return APP_USAGE;
	}
	if (o->tests[0] == PERF_TAG_FLOOD && !o->iters)
		o->iters = 1000;
	if (o->sweep && o->test_given && (o->num_tests > 1 || o->tests[0] != PERF_TAG_LAT)) {
		cli_error("--sweep measures ping-pongs of tagged messages (tag_lat); there is no "
			  "sweep of another -t");
		return APP_USAGE;
	}
	if (o->graph && !o->sweep) {
		cli_error("--graph needs --sweep, whose measurements it draws");
		return APP_USAGE;
	}
	/* Check this before minutes of measurement, not after. */
	if (o->graph && !gnuplot_is_installed()) {
		cli_error("--graph %s: gnuplot is not installed (Debian: gnuplot-nox)", o->graph);
		return APP_FAIL;
	}
	if (!o->sizes.count && cli_sizes_parse("-s",
					       o->sweep   ? SWEEP_SIZES
					       : o->table ? "8:4M"
							  : "8",
					       &o->sizes))
		return APP_FAIL;
	if (o->json && (o->csv || o->sweep)) {
		cli_error("--json goes neither with -v nor with --sweep");
		return APP_USAGE;
	}
	/* In CSV and JSON the two tests of a size are two rows. */
	if (o->csv || o->json)
		o->table = false;
	return judge_tests(o);
}

static int parse(void *options, int argc, char **argv)
{
	struct perf_options *o = options;
	int ret;

	/* The server creates its context before the client has sent its tests, so enable all. */
	o->peer.features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA |
			   WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64;
	o->num_tests = 1;
	o->tests[0] = PERF_TAG_BW;
	o->warmup = UINT64_MAX;
	o->seconds = 1;
	ret = cli_options_parse(&command, o, argc, argv);
	if (ret)
		return ret;
	return complete(o, argc, argv);
}

static int run(void *options, int eal_count, char **eal_words)
{
	struct perf_options *o = options;
	int ret = eal_start(eal_count, eal_words, o->peer.config, o->peer.core);

	if (!ret)
		ret = o->peer.host ? perf_client(o) : perf_server(o);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct program program = {.name = "weft-perf",
					       .server = "weft-perf without a host",
					       .parse = parse,
					       .run = run};
	struct perf_options o = {0};
	int ret = program_main(&program, &o.peer, argc, argv);

	cli_sizes_free(&o.sizes);
	return eal_exit(ret);
}
