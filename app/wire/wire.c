/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-wire: a bad network between DPDK ports. Options and start. */

#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "common/sys.h"
#include "drivers/dpdk/port/eal.h"
#include "weft.h"

static const char help[] =
	"usage: weft-wire [EAL ARGUMENTS --] [options] [PORT PORT]...\n"
	"\n"
	"Bridges DPDK ports in pairs, as a bad network would: each direction of a pair is a link "
	"with a rate,\n"
	"queue, delay and faults of its own, which can change while frames pass; without a "
	"LINK it is perfect.\n"
	"Without PORTs it takes all ports, in their order. It ends with a signal or the "
	"command quit,\n"
	"and prints counters.\n"
	"\n"
	"  -l, --link LINK        both directions of all pairs\n"
	"  -f, --forth LINK       from the first port of a pair to the second\n"
	"  -b, --back LINK        from the second to the first\n"
	"  -s, --seed N           of all random numbers (1)\n"
	"  -m, --mtu BYTES        longest packet that is carried (the smallest MTU of the\n"
	"                         ports, at most 1500)\n"
	"  -n, --mbufs N          frames that may be in flight at a time (16k)\n"
	"  -S, --sleep US         sleep for US microseconds while no frames come (0: never)\n"
	"  -h, --help             this text\n"
	"      --version          version and build\n"
	"\n"
	"Commands, one a line on standard input:\n";

static const char example[] =
	"\n"
	"Exit code: 0 ended by quit, 1 could not start, 2 wrong usage, 128+N ended by signal N.\n"
	"\n"
	"1 % loss and 1 ms between two programs, each with a memif port of role=client:\n"
	"  weft-wire --no-pci --vdev=net_memif0,role=server,socket=/run/a \\\n"
	"            --vdev=net_memif1,role=server,socket=/run/b -- -l loss=1%,delay=1ms\n";

enum { OPT_VERSION = 256 };

static const char shorts[] = ":l:f:b:s:m:n:S:h";
static const struct option longs[] = {
	{"link", required_argument, NULL, 'l'},      {"forth", required_argument, NULL, 'f'},
	{"back", required_argument, NULL, 'b'},      {"seed", required_argument, NULL, 's'},
	{"mtu", required_argument, NULL, 'm'},       {"mbufs", required_argument, NULL, 'n'},
	{"sleep", required_argument, NULL, 'S'},     {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION}, {0}};

struct options {
	struct wire wire;
	struct sim_link link[2];
	char *const *ports;
	unsigned int num_ports;
};

static int option_link(struct options *o, int c, const char *value)
{
	char why[400];
	int dir;

	for (dir = WIRE_FORTH; dir <= WIRE_BACK; dir++) {
		if ((c == 'f' && dir != WIRE_FORTH) || (c == 'b' && dir != WIRE_BACK))
			continue;
		if (sim_link_parse(value, &o->link[dir], why, sizeof(why)) == 0)
			continue;
		cli_error("-%c '%s': %s", c, value, why);
		return APP_USAGE;
	}
	return APP_OK;
}

static int option_count(int c, const char *value, uint64_t min, uint64_t max, uint64_t *number)
{
	const char name[] = {'-', (char)c, '\0'};

	return cli_count(name, value, min, max, number) ? APP_USAGE : APP_OK;
}

/* @return APP_OK or an exit code */
static int option(struct options *o, int c, const char *value)
{
	struct wire *w = &o->wire;
	uint64_t number = 0;
	int ret;

	switch (c) {
	case 's':
		return option_count(c, value, 0, UINT64_MAX, &w->seed);
	case 'm':
		ret = option_count(c, value, 68, 9700, &number);
		w->mtu = (uint16_t)number;
		return ret;
	case 'n':
		ret = option_count(c, value, 64, 10000000, &number);
		w->mbufs = (uint32_t)number;
		return ret;
	case 'S':
		ret = option_count(c, value, 0, 100000, &number);
		w->sleep_us = (unsigned int)number;
		return ret;
	default:
		return option_link(o, c, value);
	}
}

static void print_help(void)
{
	printf("%s%s\nLINK is a list of items, and changes those that it names:\n%s%s", help,
	       wire_command_help, sim_link_help, example);
}

/* @return APP_OK, an exit code, or -1 = done, end with 0 */
static int parse(struct options *o, int argc, char **argv)
{
	int c, ret;

	while ((c = cli_getopt(argc, argv, shorts, longs)) != -1) {
		if (c == '?')
			return APP_USAGE;
		if (c == 'h') {
			print_help();
			return -1;
		}
		if (c == OPT_VERSION) {
			fputs(weft_build_info(), stdout);
			return -1;
		}
		ret = option(o, c, optarg);
		if (ret)
			return ret;
	}
	o->ports = argv + optind;
	o->num_ports = (unsigned int)(argc - optind);
	return APP_OK;
}

static void print_all(struct wire *w, void (*report)(const struct wire *w, char *buf, size_t len),
		      FILE *out)
{
	static char text[65536];

	rte_ticketlock_lock(&w->lock);
	report(w, text, sizeof(text));
	rte_ticketlock_unlock(&w->lock);
	fputs(text, out);
	fflush(out);
}

static int bridge(struct options *o)
{
	struct wire *w = &o->wire;
	unsigned int i;
	int ret = wire_ports_open(w, o->ports, o->num_ports);

	if (!ret)
		ret = wire_bridge_init(w);
	if (!ret) {
		for (i = 0; i < 2 * w->num_pairs; i++)
			w->pair[i / 2].dir[i % 2].link = o->link[i % 2];
		wire_telemetry(w);
		print_all(w, wire_report_links, stdout);
		wire_bridge_run(w);
		wire_ports_stop(w);
		print_all(w, wire_report_counters, stdout);
	}
	return ret;
}

static int run(struct options *o, int eal_count, char **eal_words)
{
	struct weft_config *config;
	int ret = weft_config_read(&config);

	if (ret) {
		cli_error("the configuration is invalid: %s; weft-info -c lists all variables",
			  weft_strerror(ret));
		return APP_USAGE;
	}
	ret = eal_start(eal_count, eal_words, config, -1);
	weft_config_release(config);
	if (!ret)
		ret = bridge(o);
	if (!ret && sys_signal())
		ret = 128 + sys_signal();
	return ret;
}

int main(int argc, char **argv)
{
	static struct options o = {.wire = {.seed = 1, .mbufs = 16000}};
	char **eal_words;
	int eal_count, ret;

	cli_program = "weft-wire";
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	sys_catch_signals();
	ret = parse(&o, argc, argv);
	if (!ret)
		ret = run(&o, eal_count, eal_words);
	/* Telemetry callbacks may still run: the links stay until the process ends. */
	return eal_exit(ret < 0 ? APP_OK : ret);
}
