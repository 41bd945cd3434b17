/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-info: the version of Weft, the interfaces that it can use here, its configuration. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/dpdk/port/eal.h"
#include "drivers/dpdk/port/nic_state.h"
#include "common/eal_start.h"
#include "info/lane_options.h"
#include "info/protocols.h"
#include "info/running.h"
#include "common/peer.h"
#include "common/sys.h"

#define LINK_SECONDS 6

static const char help[] =
	"usage: weft-info [EAL ARGUMENTS --] options\n"
	"       weft-info protocols --lanes FILE [options]   see weft-info protocols --help\n"
	"       weft-info --capture [start,FILE[,OPTIONS] | filter,EXPR | stop] [--pid PID]\n"
	"                        capture in a process that runs; without words: its state\n"
	"       weft-info --recorder [--pid PID]   the process writes its flight recorder's file\n"
	"       weft-info --metrics [--listen [HOST:]PORT] [--pid PID]\n"
	"                        counters of all processes, for Prometheus; with --listen over\n"
	"                        HTTP at /metrics (127.0.0.1 without HOST)\n"
	"       weft-info --live [--once] [--pid PID]   rates of their lanes, every second, and\n"
	"                        the slowest peers\n"
	"       weft-info --show lanes|endpoints|paths|thresholds|counters [--pid PID]\n"
	"                        the state of their workers\n"
	"\n"
	"  -v, --version          version and build\n"
	"  -c, --config           all WEFT_ variables with type, default and help, as they are "
	"set now,\n"
	"                         and the source of each value: default, file and line, "
	"environment,\n"
	"                         or program (-S, -L)\n"
	"  -C, --changed          only those that differ from their default\n"
	"  -A, --all              with -c: also those for tests, which weft-config(7) does not "
	"have\n"
	"  -d, --devices          the interfaces that a program started like this would use, with "
	"all their\n"
	"                         attributes; needs the EAL, and the rights it needs; NICs get 5 "
	"s for\n"
	"                         their link to come\n"
	"  -o, --lane-options IFNAME\n"
	"                         options that a lane on the NIC of this kernel interface needs "
	"(ip=,gw=,\n"
	"                         mtu=, PCI address), to be kept before the NIC is bound to "
	"DPDK's driver\n"
	"  -n, --counters         with -d: all counters of the interfaces too\n"
	"  -L, --lanes LIST       lanes to use, as WEFT_LANES, e.g. 'dpdk:0,mtu=9000;dpdk:1'\n"
	"  -S, --set NAME=VALUE   set a configuration variable\n"
	"  -h, --help             this text\n"
	"\n"
	"Arguments before a \"--\" are the EAL's; without one the EAL gets WEFT_EAL_ARGS.\n"
	"Exit code: 0 all well, 1 no interface could be opened, a device that the EAL was given\n"
	"is no port, there is no interface of that name, no process answers or it refuses,\n"
	"2 wrong usage.\n";

static const char shorts[] = ":vcCAdnhL:S:o:";
static const struct option longs[] = {{"version", no_argument, NULL, 'v'},
				      {"config", no_argument, NULL, 'c'},
				      {"changed", no_argument, NULL, 'C'},
				      {"all", no_argument, NULL, 'A'},
				      {"devices", no_argument, NULL, 'd'},
				      {"lane-options", required_argument, NULL, 'o'},
				      {"counters", no_argument, NULL, 'n'},
				      {"lanes", required_argument, NULL, 'L'},
				      {"set", required_argument, NULL, 'S'},
				      {"help", no_argument, NULL, 'h'},
				      {0}};

struct info {
	struct peer_options opts;
	bool version, config, changed, all, devices, counters;
	const char *interface;
};

/* ---- interfaces */

static void print_features(uint64_t features)
{
	/* The bits of lane.h, which programs don't include. */
	static const char *const names[] = {"short",       "bcopy",   "zcopy",   "zcopy-registered",
					    "to-iface",    "to-ep",   "get",     "put",
					    "loopback",    "atomics", "control", "set-bandwidth",
					    "set-latency", "copies",  "memory",  "host"};

	printf("  features        ");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (features & 1ull << i)
			printf(" %s", names[i]);
	printf("\n");
}

static void print_iface(const struct weft_iface_info *i)
{
	printf("%s\n", i->name);
	printf("  driver           %s\n", i->driver);
	printf("  device           %s\n", i->device);
	printf("  address          %s\n", i->address);
	if (i->up && i->up_after > 0.05)
		printf("  link             up after %.1f s\n", i->up_after);
	else
		printf("  link             %s\n", i->up ? "up" : "down");
	if (i->why[0])
		printf("  note             %s\n", i->why);
	printf("  waiting          %s\n",
	       i->wakes ? "an arrival wakes a sleeping worker"
			: "a sleeping worker polls it every WEFT_WAIT_SLEEP");
	printf("  bandwidth        %.2f MB/s (%.2f Gb/s): %s\n", i->bandwidth / 1e6,
	       i->bandwidth * 8e-9, i->bandwidth_from);
	printf("  latency          %.0f ns: %s\n", i->latency * 1e9, i->latency_from);
	printf("  overhead         %.0f ns to send, %.0f ns to receive a message: %s\n",
	       i->send_overhead * 1e9, i->recv_overhead * 1e9, i->overhead_from);
	printf("  registration     %.0f ns + %.4f ns/byte\n", i->reg_cost * 1e9,
	       i->reg_growth * 1e9);
	printf("  frame            %zu bytes\n", i->frame_size);
	printf("  short            up to %zu bytes\n", i->max_short);
	printf("  bcopy            up to %zu bytes\n", i->max_bcopy);
	printf("  zcopy            up to %zu bytes, %u entries\n", i->max_zcopy, i->max_iov);
	print_features(i->features);
}

static void print_counter(const char *name, uint64_t value, void *arg)
{
	(void)arg;
	printf("  %-36s %llu\n", name, (unsigned long long)value);
}

/* Does a NIC that was started with the worker still wait for its link? */
static bool link_missing(struct weft_worker *worker)
{
	struct weft_iface_info iface = {.size = sizeof(iface)};

	for (unsigned int i = 0; weft_worker_query_iface(worker, i, &iface) == 0; i++)
		if (iface.link_expected)
			return true;
	return false;
}

/*
 * Wait for all ports together. The library gives up after 5 s; the limit here is for clocks that do
 * not advance.
 */
static void wait_for_links(struct weft_worker *worker)
{
	double end = sys_seconds() + LINK_SECONDS;

	while (link_missing(worker) && sys_seconds() < end) {
		weft_worker_progress(worker);
		usleep(1000);
	}
}

static int print_devices(struct info *info)
{
	struct weft_iface_info iface = {.size = sizeof(iface)};
	struct peer p;
	int ret = peer_init(&p, &info->opts);
	unsigned int missing;

	if (!ret)
		ret = peer_open(&p);
	if (!ret)
		wait_for_links(p.worker);
	for (unsigned int i = 0; !ret && weft_worker_query_iface(p.worker, i, &iface) == 0; i++)
		print_iface(&iface);
	if (!ret && info->counters) {
		printf("counters\n");
		weft_worker_counters(p.worker, print_counter, NULL);
	}
	missing = weft_port_explain_missing(NULL);
	if (!ret && missing) {
		cli_error("%u of the devices that the EAL was given %s no port (see above)",
			  missing, missing == 1 ? "is" : "are");
		ret = APP_FAIL;
	}
	return peer_end(&p, ret);
}

/* ---- options */

static int parse(struct info *info, int argc, char **argv)
{
	int c, ret;

	while ((c = cli_getopt(argc, argv, shorts, longs)) != -1) {
		switch (c) {
		case 'v':
			info->version = true;
			break;
		case 'c':
			info->config = true;
			break;
		case 'C':
			info->changed = true;
			break;
		case 'A':
			info->all = true;
			break;
		case 'n':
			info->counters = true;
			/* fall through */
		case 'd':
			info->devices = true;
			break;
		case 'o':
			info->interface = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		case '?':
			return APP_USAGE;
		default:
			ret = peer_option(&info->opts, c, optarg);
			if (ret)
				return ret;
		}
	}
	if (optind < argc) {
		cli_error("'%s' is no option; see --help", argv[optind]);
		return APP_USAGE;
	}
	if (info->version || info->config || info->changed || info->devices || info->interface)
		return APP_OK;
	cli_error("choose what to show: -v (version), -c (configuration), -d (interfaces) or "
		  "-o (a kernel interface's lane options); see --help");
	return APP_USAGE;
}

static int written(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return APP_OK;
	cli_error("standard output: %s", strerror(errno));
	return APP_FAIL;
}

static int show(struct info *info, int eal_count, char **eal_words)
{
	unsigned int flags = (info->config ? WEFT_CONFIG_PRINT_HELP : WEFT_CONFIG_PRINT_CHANGED) |
			     (info->all ? WEFT_CONFIG_PRINT_ALL : 0) | WEFT_CONFIG_PRINT_ORIGIN;
	int ret = APP_OK;

	if (info->version)
		fputs(weft_build_info(), stdout);
	if (info->config || info->changed)
		weft_config_print(info->opts.config, stdout, flags);
	if (info->interface)
		ret = info_lane_options(info->interface);
	if (!ret)
		ret = written();
	if (!ret && info->devices) {
		ret = eal_start(eal_count, eal_words, info->opts.config, -1);
		if (!ret)
			ret = print_devices(info);
		if (!ret)
			ret = written();
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct info info = {0};
	char **eal_words;
	int eal_count, ret = APP_OK;

	cli_program = "weft-info";
	/* This needs only a file, and no EAL. */
	if (argc > 1 && strcmp(argv[1], "protocols") == 0)
		return info_protocols(argc - 1, argv + 1);
	if (argc > 1 && info_is_running(argv[1]))
		return info_running(argc - 1, argv + 1);
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	if (!cli_wants_help(argc, argv))
		ret = peer_options_init(&info.opts);
	if (!ret)
		ret = parse(&info, argc, argv);
	if (!ret)
		ret = show(&info, eal_count, eal_words);
	weft_config_release(info.opts.config);
	return eal_exit(ret < 0 ? APP_OK : ret);
}
