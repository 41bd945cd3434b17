/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of weft-info. -c, -d and -o are done here; commands.h has the other commands. */

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "common/program.h"
#include "drivers/dpdk/port/eal.h"
#include "drivers/dpdk/port/lane_opts.h"
#include "drivers/dpdk/port/nic_state.h"
#include "info/commands.h"
#include "info/iface_facts.h"

/* ---- lane options --------------------------------------------------------------------------- */

/* DPDK uses such a NIC together with the kernel's driver, which stays bound. */
static bool is_bifurcated(const char *driver)
{
	static const char *const names[] = {"mlx5_core", "mlx4_core", "mana"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(driver, names[i]) == 0)
			return true;
	return false;
}

static const char *ip_text(uint32_t ip, char buf[16])
{
	snprintf(buf, 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
	return buf;
}

static bool is_link_local(uint32_t ip)
{
	return ip >> 16 == 0xa9fe;
}

static void print_device(const struct iface_facts *f)
{
	printf("%s\n", f->name);
	if (f->pci)
		printf("  PCI address      %s\n", f->device);
	else
		printf("  device           %s\n", f->device[0] ? f->device : "none: virtual");
	printf("  kernel driver    %s\n", f->driver[0] ? f->driver : "none");
	printf("  MAC address      %s\n", f->mac);
	if (f->speed > 0)
		printf("  speed            %g Gb/s\n", f->speed / 1000.0);
	else
		printf("  speed            not known\n");
	if (f->numa >= 0)
		printf("  NUMA node        %d\n", f->numa);
	printf("  link             %s\n", f->up ? "up" : "down");
}

/* DPDK names a VMBus device by its UUID. */
static bool is_vmbus(const struct iface_facts *f)
{
	static const char form[] = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
	size_t i;

	for (i = 0; i < sizeof(form); i++)
		if (form[i] == 'h' ? !isxdigit((unsigned char)f->device[i])
				   : f->device[i] != form[i])
			return false;
	return true;
}

/* net_af_packet: default bytes of a frame in the ring, and those that the kernel's headers take. */
#define RING_FRAME_DEFAULT 2048u
#define RING_FRAME_HEADERS 66u

static void print_af_packet(const struct iface_facts *f)
{
	uint32_t framesz = f->mtu + 14 + RING_FRAME_HEADERS;

	printf("  EAL              --no-pci --vdev=net_af_packet0,iface=%s", f->name);
	/* A block of the ring must have whole pages: four frames of whole KiB do. */
	framesz = (framesz + 1023) / 1024 * 1024;
	if (f->mtu <= WEFT_MTU_MAX && framesz > RING_FRAME_DEFAULT)
		printf(",framesz=%u,blocksz=%u,framecnt=512", framesz, 4 * framesz);
	printf("\n");
}

/*
 * Print a line for each address. The kernel keeps the addresses of an interface that is neither on
 * PCI nor on VMBus, so its one line has none.
 */
static void print_options(const struct iface_facts *f, const struct iface_addr *addr, int n,
			  uint32_t gateway)
{
	char port[96], ip[16], gw[16], via[24] = "", mtu[16] = "";
	bool nic = f->pci || is_vmbus(f);
	int i;

	snprintf(port, sizeof(port), "dpdk:%s", nic ? f->device : "0");
	if (gateway)
		snprintf(via, sizeof(via), ",gw=%s", ip_text(gateway, gw));
	/* The MTU of the loopback interface is larger than lanes allow. */
	if (f->mtu >= WEFT_MTU_MIN && f->mtu <= WEFT_MTU_MAX)
		snprintf(mtu, sizeof(mtu), ",mtu=%u", f->mtu);
	for (i = 0; nic && i < n; i++)
		printf("  %-16s %s,ip=%s/%u%s%s\n", i ? "or" : "lane", port,
		       ip_text(addr[i].ip, ip), addr[i].prefix, addr[i].ip == gateway ? "" : via,
		       mtu);
	if (!nic || n == 0)
		printf("  lane             %s%s\n", port, mtu);
	if (nic)
		printf("  EAL              -a %s\n", f->device);
	else if (strchr(f->name, ','))
		printf("  EAL              none: --vdev allows no comma in a name; rename the "
		       "interface (ip link set dev '%s' name NAME)\n",
		       f->name);
	else if (!f->device[0])
		print_af_packet(f);
}

/* Without ip= a lane chooses a link-local address, which reaches the interface's own network. */
static void print_virtual(const struct iface_addr *addr, int n)
{
	char ip[16];

	printf("  note             the kernel keeps a virtual interface, and responds for its "
	       "addresses");
	if (n > 0)
		printf(" (%s/%u): for a lane that peers reach over a router add ip= with a "
		       "free address of that network, and gw=",
		       ip_text(addr[0].ip, ip), addr[0].prefix);
	printf("\n");
}

static void print_notes(const struct iface_facts *f, const struct iface_addr *addr, int n,
			const struct iface_routes *r)
{
	if (n == 0)
		printf("  note             it has no IPv4 address: get one by DHCP or from the "
		       "cloud first; without ip= a lane takes a link-local address, which "
		       "clouds drop\n");
	if (n > 0 && is_link_local(addr[0].ip))
		printf("  note             its address is link-local: the lane reaches no network "
		       "behind a router\n");
	if (n > 1 && f->device[0])
		printf("  note             it has several addresses, and a lane has one: set it by "
		       "ip=\n");
	if (n > 0 && !r->gateway)
		printf("  note             no route over it has a gateway, so the lane reaches its "
		       "own network only\n");
	if (r->default_here)
		printf("  note             the machine's default route goes over it: bind another "
		       "NIC, or this machine can no longer be reached\n");
	if (f->rdma[0])
		printf("  note             it has the RDMA device %s: where the network carries "
		       "RoCE, a lane roce:%s is better and leaves the NIC to the kernel\n",
		       f->rdma, f->rdma);
	if (is_bifurcated(f->driver))
		printf("  note             do not bind it: DPDK uses it together with %s\n",
		       f->driver);
	if (f->bond)
		printf("  note             a bond of %s: give each member a lane of its own, with "
		       "an address of its own\n",
		       f->members);
	else if (f->master[0])
		printf("  note             a member of %s, which has the addresses\n", f->master);
	if (f->lower[0])
		printf("  note             its lower interface is %s: bind that one; for a VLAN "
		       "add vlan=\n",
		       f->lower);
	else if (!f->device[0] && !f->bond)
		print_virtual(addr, n);
	if (is_vmbus(f))
		printf("  note             on VMBus, not PCI: bind it with driverctl, as "
		       "in doc/clouds.md for Azure\n");
	else if (f->device[0] && !f->pci)
		printf("  note             neither on PCI nor on VMBus: DPDK has no driver for "
		       "it\n");
}

static int info_lane_options(const char *name)
{
	struct iface_addr addr[IFACE_ADDRS_MAX];
	struct iface_routes routes;
	struct iface_facts facts;
	int n, rc = iface_facts_read("/sys", name, &facts);

	if (rc) {
		cli_error("there is no network interface '%s' here; see 'ip link' (a NIC that is "
			  "bound to DPDK's driver has none: weft-bind --undo returns it)",
			  name);
		return APP_FAIL;
	}
	n = iface_addrs(name, addr, IFACE_ADDRS_MAX);
	if (n >= 0)
		rc = iface_routes(if_nametoindex(name), &routes);
	if (n < 0 || rc < 0) {
		cli_error("cannot read %s's addresses from the kernel: %s", name,
			  strerror(n < 0 ? -n : -rc));
		return APP_FAIL;
	}
	print_device(&facts);
	print_options(&facts, addr, n, routes.gateway);
	print_notes(&facts, addr, n, &routes);
	return APP_OK;
}

/* ---- interfaces, options and start ---------------------------------------------------------- */

#define LINK_SECONDS 6

struct info {
	struct peer_options opts;
	struct info_running running;
	bool config, changed, all, devices, counters;
	const char *interface;
	/* --check */
	bool check, serve;
	char host[256];
	uint16_t port;
};

static void print_features(uint64_t features)
{
	/* In the order of the bits WEFT_LANE_F_* of lane.h, which programs do not include. */
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

static bool link_missing(struct weft_worker *worker)
{
	struct weft_iface_info iface = {.size = sizeof(iface)};

	for (unsigned int i = 0; weft_worker_query_iface(worker, i, &iface) == 0; i++)
		if (iface.link_expected)
			return true;
	return false;
}

/* The library expects a link for 5 s; LINK_SECONDS is a safeguard. */
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

/* needs_config() is false for --check, help and running processes: no configuration is read. */
static int option_config(void *options, const char *option, const char *value)
{
	if (((struct info *)options)->opts.config)
		return peer_option(options, option, value);
	cli_error("%s is for -c, -C and -d", option);
	return APP_USAGE;
}

static int option_interface(void *options, const char *option, const char *value)
{
	(void)option;
	((struct info *)options)->interface = value;
	return APP_OK;
}

static int option_show(void *options, const char *option, const char *value)
{
	((struct info *)options)->running.show = value;
	return info_show_check(option, value);
}

static int option_listen(void *options, const char *option, const char *value)
{
	(void)option;
	((struct info *)options)->running.listen = value;
	return APP_OK;
}

static int option_port(void *options, const char *option, const char *value)
{
	return cli_port(option, value, &((struct info *)options)->port) ? APP_USAGE : APP_OK;
}

static const struct cli_option table[] = {
	{"version", 'v', NULL, "version and build"},
	{"config", 'c', NULL,
	 "all WEFT_ variables with type, default and help, as they are set now, and the source of "
	 "each value: default, file and line, environment, or program (-S, -L)",
	 .flag = offsetof(struct info, config)},
	{"changed", 'C', NULL, "only variables that differ from their default",
	 .flag = offsetof(struct info, changed)},
	{"all", 'A', NULL, "with -c: also variables for tests, which weft-config(7) lacks",
	 .flag = offsetof(struct info, all)},
	{"devices", 'd', NULL,
	 "the interfaces that a program started like this would use, with all their attributes; "
	 "needs the EAL and its rights; a NIC has 5 s to get its link",
	 .flag = offsetof(struct info, devices)},
	{"lane-options", 'o', "IFNAME",
	 "options that a lane on the NIC of this kernel interface needs (ip=, gw=, mtu=, PCI "
	 "address), to be kept before the NIC is bound to DPDK's driver",
	 .set = option_interface},
	{"counters", 'n', NULL, "as -d, with all counters of the interfaces",
	 .flag = offsetof(struct info, counters)},
	{"lanes", 'L', "LIST", "lanes to use, as WEFT_LANES, e.g. 'dpdk:0,mtu=9000;dpdk:1'",
	 .set = option_config},
	{"set", 'S', "NAME=VALUE", "set a configuration variable", .set = option_config},
	{"help", 'h', NULL, "this text"},
	{.heading = "Running processes"},
	{"capture", 0, NULL,
	 "capture in a running process. WORDS are start,FILE[,OPTIONS] or filter,EXPR or stop; "
	 "without WORDS the capture's state is printed",
	 .flag = offsetof(struct info, running.capture)},
	{"recorder", 0, NULL, "the process writes its flight recorder's file",
	 .flag = offsetof(struct info, running.recorder)},
	{"metrics", 0, NULL, "counters of all processes, for Prometheus",
	 .flag = offsetof(struct info, running.metrics)},
	{"listen", 0, "[HOST:]PORT",
	 "with --metrics: over HTTP at /metrics (127.0.0.1 without HOST)", .set = option_listen},
	{"live", 0, NULL,
	 "rates of the lanes of all processes, every second, and the slowest peers",
	 .flag = offsetof(struct info, running.live)},
	{"why", 0, NULL,
	 "what limits the processes: shares of the last second, and latencies of sends",
	 .flag = offsetof(struct info, running.why)},
	{"once", 0, NULL, "with --live: one second only",
	 .flag = offsetof(struct info, running.once)},
	{"show", 0, "WHAT",
	 "the state of all workers: lanes, endpoints, paths, thresholds or counters",
	 .set = option_show},
	{"pid", 0, "PID", "only this process",
	 .number = {offsetof(struct info, running.pid), 1, INT32_MAX}},
	{.heading = "Two hosts"},
	{"check", 0, NULL,
	 "why do lanes to HOST not work? HOST needs weft-info --check -l; a verdict comes within "
	 "3 s",
	 .flag = offsetof(struct info, check)},
	{"serve", 'l', NULL, "with --check: be the other end, and wait for one check",
	 .flag = offsetof(struct info, serve)},
	{"port", 'p', "PORT", "with --check -l: the TCP port (13377)", .set = option_port},
	{0},
};

static const struct cli_command command = {
	.name = "weft-info",
	.usage = "usage: weft-info [EAL ARGUMENTS --] options\n"
		 "       weft-info --capture [WORDS] [--pid PID]\n"
		 "       weft-info --recorder | --metrics | --live | --why [--pid PID]\n"
		 "       weft-info --show WHAT [--pid PID]\n"
		 "       weft-info --check HOST[:PORT] | --check -l [-p PORT]\n"
		 "       weft-info protocols --lanes FILE [options]   see weft-info protocols "
		 "--help\n"
		 "\n",
	.options = table,
	.after = {"\n"
		  "Arguments before a \"--\" are the EAL's; without one the EAL gets "
		  "WEFT_EAL_ARGS.\n"
		  "Exit code: 0 all well, 1 no interface could be opened, a device that the EAL "
		  "was given\n"
		  "is no port, there is no interface of that name, no process answers or it "
		  "refuses,\n"
		  "the verdict of --check is a fault,\n"
		  "2 wrong usage.\n"},
};

static int wrong(const char *sentence)
{
	cli_error("%s; see --help", sentence);
	return APP_USAGE;
}

static int complete(const struct info *info)
{
	const struct info_running *r = &info->running;
	int commands = r->capture + r->recorder + r->metrics + r->live + r->why +
		       (r->show != NULL) + info->check;

	if (commands > 1)
		return wrong("choose one of --capture, --recorder, --metrics, --live, --why, "
			     "--show and --check");
	if (r->listen && !r->metrics)
		return wrong("--listen is for --metrics");
	if (r->once && !r->live)
		return wrong("--once is for --live");
	if (r->pid && !info_is_running(r))
		return wrong("--pid is for --capture, --recorder, --metrics, --live, --why and "
			     "--show");
	if ((info->serve || info->port != CLI_DEFAULT_PORT) && !info->check)
		return wrong("-l and -p are for --check");
	if (info->check && info->serve == (info->host[0] != '\0'))
		return wrong("--check takes either the HOST[:PORT] of the other end, or -l to be "
			     "that end");
	if (commands && (info->config || info->changed || info->devices || info->interface))
		return wrong("-c, -C, -d and -o do not go with the commands for running processes "
			     "and hosts");
	if (commands || info->config || info->changed || info->devices || info->interface)
		return APP_OK;
	cli_error("choose what to show: -v (version), -c (configuration), -d (interfaces) or "
		  "-o (a kernel interface's lane options); see --help");
	return APP_USAGE;
}

/* @param[out] words  of --capture. @return as cli_options_parse() */
static int parse(struct info *info, int argc, char **argv, const char **words)
{
	int ret = cli_options_parse(&command, info, argc, argv);

	*words = "";
	if (ret)
		return ret;
	info->devices = info->devices || info->counters;
	if (optind < argc && info->running.capture)
		*words = argv[optind++];
	else if (optind < argc && info->check &&
		 cli_host_port(argv[optind++], info->host, sizeof(info->host), &info->port))
		return APP_USAGE;
	if (optind == argc)
		return complete(info);
	if (info_is_running(&info->running) &&
	    argv[optind][strspn(argv[optind], "0123456789")] == '\0')
		cli_error("'%s' is no option; a process is given as --pid %s", argv[optind],
			  argv[optind]);
	else
		cli_error("'%s' is no option; see --help", argv[optind]);
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
	unsigned int flags =
		(info->config ? WEFT_CONFIG_PRINT_F_HELP : WEFT_CONFIG_PRINT_F_CHANGED) |
		(info->all ? WEFT_CONFIG_PRINT_F_ALL : 0) | WEFT_CONFIG_PRINT_F_ORIGIN;
	int ret = APP_OK;

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

/* Commands for running processes, --check and help also work with a wrong configuration. */
static bool needs_config(int argc, char **argv)
{
	static const char *const others[] = {"--capture", "--recorder", "--metrics", "--live",
					     "--why",     "--show",     "--check"};

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
			if (!strcmp(argv[i], others[k]))
				return false;
	return !cli_wants_help(argc, argv);
}

int main(int argc, char **argv)
{
	struct info info = {.port = CLI_DEFAULT_PORT};
	const char *words = "";
	char **eal_words;
	int eal_count, ret = APP_OK;

	cli_program = "weft-info";
	if (argc > 1 && strcmp(argv[1], "protocols") == 0)
		return info_protocols(argc - 1, argv + 1);
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	if (needs_config(argc, argv))
		ret = peer_options_init(&info.opts);
	if (!ret)
		ret = parse(&info, argc, argv, &words);
	if (!ret && info.check)
		ret = info_check(info.host[0] ? info.host : NULL, info.port);
	else if (!ret && info_is_running(&info.running))
		ret = info_running(&info.running, words);
	else if (!ret)
		ret = show(&info, eal_count, eal_words);
	weft_config_release(info.opts.config);
	return eal_exit(ret < 0 ? APP_OK : ret);
}
