/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-switch: a port for each process of a host. Options, the uplink, and start. */

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ether.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "common/eth_port.h"
#include "drivers/dpdk/frame/arp.h"
#include "drivers/dpdk/port/claim.h"
#include "drivers/dpdk/port/eal.h"
#include "drivers/dpdk/port/nic_state.h"
#include "switch/client.h"
#include "switch/control.h"
#include "switch/grant.h"
#include "switch/pump.h"
#include "switch/switch.h"
#include "weft.h"

/* ---- the uplink ----------------------------------------------------------------------------- */

#define CACHE 256u

static void print_missing(const char *sentence)
{
	cli_error("%s", sentence);
}

/* Without its uplink, a switch would grant ports that reach no other host. */
static int no_uplink(void)
{
	if (weft_port_explain_missing(print_missing) == 0)
		cli_error("there is no DPDK port for the uplink: name one for the EAL (-a ADDRESS "
			  "or --vdev=...); the word 'none' starts a switch without an uplink");
	return APP_FAIL;
}

static int find_only(uint16_t *id)
{
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port) {
		if (*id != SW_NO_UPLINK) {
			cli_error("there are several ports; name the one that is the uplink, or "
				  "'none'");
			return APP_USAGE;
		}
		*id = port;
	}
	if (*id == SW_NO_UPLINK)
		return no_uplink();
	return weft_port_explain_missing(print_missing) ? APP_FAIL : APP_OK;
}

static int find(const char *name, uint16_t *id)
{
	*id = SW_NO_UPLINK;
	if (!name)
		return find_only(id);
	if (strcmp(name, "none") == 0 || rte_eth_dev_get_port_by_name(name, id) == 0)
		return APP_OK;
	*id = SW_NO_UPLINK;
	if (weft_port_explain_missing(print_missing) == 0)
		cli_error("there is no port '%s'; name ports in the EAL's arguments, before --",
			  name);
	return APP_USAGE;
}

/* As for lanes (doc/ports.md). WEFT_PORTS may have claimed the port at the start of the EAL. */
static int claim(uint16_t id)
{
	char port[RTE_ETH_NAME_MAX_LEN], holder[96];
	const struct rte_devargs *args;
	struct weft_device_claim c;
	struct rte_eth_dev_info info;
	struct weft_device d;
	int rc;

	if (rte_eth_dev_info_get(id, &info) || !info.device || !rte_dev_bus(info.device))
		return APP_OK;
	args = rte_dev_devargs(info.device);
	d = (struct weft_device){.bus = rte_bus_name(rte_dev_bus(info.device)),
				 .name = rte_dev_name(info.device),
				 .args = args ? args->args : NULL};
	rc = weft_device_claim(&d, weft_claim, &c);
	if (rc == 0 || (rc == -EADDRINUSE && c.owner.pid == getpid()))
		return APP_OK;
	eth_port_name(id, port);
	weft_claim_owner_text(&c.owner, holder, sizeof(holder));
	if (rc == -EADDRINUSE) {
		cli_error("the uplink %s is in use by %s: %s belongs to one process at a time",
			  port, holder, c.what);
		return APP_FAIL;
	}
	fprintf(stderr,
		"weft-switch: the uplink %s can't be claimed (%s, %s): see that no other process "
		"uses it\n",
		port, c.what, rc == -EPERM ? holder : strerror(-rc));
	return APP_OK;
}

static int sw_uplink_open(struct sw *s, const char *name)
{
	struct sw_uplink *u = &s->uplink;
	struct weft_passing_limits limits;
	int ret = find(name, &u->id);
	uint16_t room;

	if (ret || u->id == SW_NO_UPLINK)
		return ret;
	ret = claim(u->id);
	if (!ret)
		ret = eth_port_find(u->id, s->mtu, &limits);
	if (ret)
		return ret;
	s->mtu = s->mtu ? s->mtu : limits.mtu;
	room = eth_port_room(s->mtu, limits.room);
	u->pool = rte_pktmbuf_pool_create("uplink", 4 * ETH_PORT_RING + CACHE, CACHE, 0, room,
					  SOCKET_ID_ANY);
	if (!u->pool) {
		cli_error("there is no memory for %u buffers of %u bytes: %s; give more to the "
			  "EAL (-m)",
			  4 * ETH_PORT_RING, room, rte_strerror(rte_errno));
		return APP_FAIL;
	}
	s->plan.uplink = true;
	return eth_port_open(u->id, s->mtu, u->pool);
}

static void sw_uplink_text(const struct sw *s, char *text, size_t len)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	struct rte_eth_dev_info info;

	if (s->uplink.id == SW_NO_UPLINK || rte_eth_dev_info_get(s->uplink.id, &info))
		snprintf(text, len, "no uplink, MTU %u", s->mtu);
	else
		snprintf(text, len, "uplink %s %s, MTU %u", info.driver_name,
			 eth_port_name(s->uplink.id, name), s->mtu);
}

/* ---- options -------------------------------------------------------------------------------- */

#define UDP_PORT 9338    /* the default of lanes, which firewall rules allow */
#define IDLE_ROUNDS 2000 /* rounds without a frame, before the thread sleeps */
#define FILES_MAX 2048
#define MTU_INSIDE 9000 /* without an uplink */

struct options {
	const char *uplink;
	uint32_t ip;
	uint64_t ports, per_user, mtu, udp_port, sleep_us;
	struct sw sw;
};

static int bad_address(const char *option, const char *text)
{
	cli_error("%s takes IP/BITS[,GATEWAY], such as 10.0.0.16/24,10.0.0.1, not '%s'", option,
		  text);
	return APP_USAGE;
}

static bool read_ip(const char *text, uint32_t *ip)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	*ip = ntohl(in.s_addr);
	return weft_lane_is_unicast(*ip);
}

static int option_address(void *options, const char *option, const char *text)
{
	struct options *o = options;
	char ip[64], *slash, *comma, *end;
	unsigned long prefix;

	if (strlen(text) >= sizeof(ip))
		return bad_address(option, text);
	snprintf(ip, sizeof(ip), "%s", text);
	comma = strchr(ip, ',');
	if (comma)
		*comma++ = '\0';
	slash = strchr(ip, '/');
	if (!slash || (comma && !read_ip(comma, &o->sw.plan.gw)))
		return bad_address(option, text);
	*slash++ = '\0';
	prefix = strtoul(slash, &end, 10);
	if (!read_ip(ip, &o->ip) || *end || end == slash || prefix < 1 || prefix > 32)
		return bad_address(option, text);
	o->sw.plan.prefix = (uint8_t)prefix;
	return APP_OK;
}

static int option_path(void *options, const char *option, const char *value)
{
	struct sw *s = &((struct options *)options)->sw;

	if (value[0] != '/' || strlen(value) >= sizeof(s->path)) {
		cli_error("%s '%s': give an absolute path of at most %zu bytes", option, value,
			  sizeof(s->path) - 1);
		return APP_USAGE;
	}
	snprintf(s->path, sizeof(s->path), "%s", value);
	return APP_OK;
}

static int option_mode(void *options, const char *option, const char *value)
{
	unsigned long mode;
	char *end;

	mode = strtoul(value, &end, 8);
	if (*end || end == value || mode > 0777) {
		cli_error("%s takes an octal number, such as 660, not '%s'", option, value);
		return APP_USAGE;
	}
	((struct options *)options)->sw.mode = (mode_t)mode;
	return APP_OK;
}

static int option_vlan(void *options, const char *option, const char *value)
{
	struct sw_plan *p = &((struct options *)options)->sw.plan;
	unsigned long vlan;
	const char *at = value;
	char *end;

	do {
		vlan = strtoul(at, &end, 10);
		if (end == at || !strchr("0123456789", *at) || vlan > 4094 || (*end && *end != ','))
			break;
		p->vlans[vlan / 64] |= 1ull << vlan % 64;
		at = end + 1;
	} while (*end);
	if (*end == '\0' && at == end + 1)
		return APP_OK;
	cli_error("%s takes VLAN tags from 0 to 4094, such as 10,20, not '%s'", option, value);
	return APP_USAGE;
}

static const struct cli_option table[] = {
	{"ports", 'n', "N", "ports for processes (16; at most 64)",
	 .number = {offsetof(struct options, ports), 1, WEFT_SWITCH_PORTS}},
	{"address", 'a', "IP/BITS[,GATEWAY]",
	 "IP address of the first port; the other ports have the next ones. With -1 that of all "
	 "(default: link-local addresses)",
	 .set = option_address},
	{"single", '1', NULL,
	 "one MAC and IP address for all, the uplink's; frames go by UDP port. For clouds that "
	 "require it; needs -a (the default for net_ena, net_gve, net_netvsc)",
	 .flag = offsetof(struct options, sw.plan.single)},
	{"per-user", 'u', "N", "ports at a time for one user other than the switch's (3/4 of all)",
	 .number = {offsetof(struct options, per_user), 1, WEFT_SWITCH_PORTS}},
	{"mode", 'M', "OCTAL", "mode of the sockets: which users may request a port (660)",
	 .set = option_mode},
	{"path", 'p', "PATH", "the well-known socket (" WEFT_SWITCH_SOCKET ")", .set = option_path},
	{"mtu", 'm', "BYTES", "longest packet (the uplink's; without one 9000)",
	 .number = {offsetof(struct options, mtu), 1280, 9700}},
	{"vlan", 'v', "N[,N...]",
	 "VLAN tags that frames may have, in both directions (none, untagged only)",
	 .set = option_vlan},
	{"udp-port", 'P', "N", "with -1: UDP port of the first port (9338)",
	 .number = {offsetof(struct options, udp_port), 1, UINT16_MAX - WEFT_SWITCH_PORTS}},
	{"sleep", 'S', "US", "sleep for US microseconds while no frames come (50; 0: never)",
	 .number = {offsetof(struct options, sleep_us), 0, 100000}},
	{0},
};

static const struct cli_command command = {
	.name = "weft-switch",
	.usage = "usage: weft-switch [EAL ARGUMENTS --] [options] [UPLINK | none]\n"
		 "\n"
		 "Gives each process of this host a port, and carries frames between them and "
		 "over the uplink, a\n"
		 "DPDK port. Weft's processes find it automatically. It ends with a signal and "
		 "prints counters; it\n"
		 "prints them on SIGUSR1, too.\n"
		 "\n",
	.options = table,
	.after = {"\nExit code: 0 ended by a signal, 1 could not start, 2 wrong usage.\n"},
};

static int parse(struct options *o, int argc, char **argv)
{
	int ret = cli_options_parse(&command, o, argc, argv);

	if (ret)
		return ret;
	if (optind + 1 < argc) {
		cli_error("name one uplink, not %d", argc - optind);
		return APP_USAGE;
	}
	o->uplink = optind < argc ? argv[optind] : NULL;
	o->sw.plan.ports = (uint16_t)o->ports;
	o->sw.plan.udp_port = (uint16_t)o->udp_port;
	o->sw.mtu = (uint16_t)o->mtu;
	o->sw.per_user = (unsigned int)o->per_user;
	o->sw.sleep_us = (unsigned int)o->sleep_us;
	return APP_OK;
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* Clouds whose network accepts only one MAC and one IP address from a NIC. */
static bool takes_one_address(uint16_t uplink)
{
	static const char *const drivers[] = {"net_ena", "net_gve", "net_netvsc"};
	struct rte_eth_dev_info info;
	size_t i;

	if (uplink == SW_NO_UPLINK || rte_eth_dev_info_get(uplink, &info) || !info.driver_name)
		return false;
	for (i = 0; i < RTE_DIM(drivers); i++)
		if (!strcmp(info.driver_name, drivers[i]))
			return true;
	return false;
}

static bool all_differ(const struct sw_plan *p)
{
	unsigned int i, k;

	for (i = 0; i < p->ports; i++)
		for (k = 0; k < i; k++)
			if (p->ip[i] == p->ip[k])
				return false;
	return true;
}

/* MACs come from the key, so a restart keeps them. Two may have the same link-local address. */
static void address_each(struct options *o)
{
	struct sw_plan *p = &o->sw.plan;
	uint64_t try = 0, hash;
	unsigned int i;
	uint8_t mac[6];

	do {
		hash = weft_siphash(&o->sw.key, &try, sizeof(try));
		memcpy(p->mac, (const uint8_t[]){0x02, 0x57}, 2); /* locally administered */
		memcpy(p->mac + 2, &hash, 3);
		for (i = 0; i < p->ports; i++) {
			sw_plan_mac(p, i, mac);
			p->ip[i] = p->prefix ? o->ip + i : weft_lane_link_local(mac);
		}
		try++;
	} while (!all_differ(p));
}

static int address_single(struct options *o)
{
	struct sw_plan *p = &o->sw.plan;
	struct rte_ether_addr mac;
	unsigned int i;

	if (o->sw.uplink.id == SW_NO_UPLINK || !p->prefix) {
		cli_error("one address for all (-1, or a cloud's uplink) needs an uplink, and its "
			  "IP address: -a IP/BITS[,GATEWAY]");
		return APP_USAGE;
	}
	if (rte_eth_macaddr_get(o->sw.uplink.id, &mac)) {
		cli_error("the uplink has no MAC address");
		return APP_FAIL;
	}
	memcpy(p->mac, &mac, sizeof(p->mac));
	for (i = 0; i < p->ports; i++)
		p->ip[i] = o->ip;
	return APP_OK;
}

static const char *ip_text(uint32_t ip, char text[INET_ADDRSTRLEN])
{
	const struct in_addr in = {htonl(ip)};

	return inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN);
}

/* With 32 bits each port has a network of its own, as clouds route them. */
static int check_network(const struct options *o)
{
	const struct sw_plan *p = &o->sw.plan;
	uint32_t last = o->ip + (p->single ? 0 : p->ports - 1u);
	char a[INET_ADDRSTRLEN], b[INET_ADDRSTRLEN];

	if (!p->prefix)
		return APP_OK;
	if (p->gw && p->gw >= o->ip && p->gw <= last) {
		cli_error("-a: the gateway %s is the address of a port: give another first address",
			  ip_text(p->gw, a));
		return APP_USAGE;
	}
	if (weft_lane_is_hosts(o->ip, p->prefix) && weft_lane_is_hosts(last, p->prefix) &&
	    (p->prefix == 32 || weft_lane_same_net(o->ip, last, p->prefix)))
		return APP_OK;
	cli_error("-a: hosts of the network of %s/%u cannot have all addresses up to %s, that of "
		  "the last port: give another first address, fewer ports (-n) or fewer BITS",
		  ip_text(o->ip, a), p->prefix, ip_text(last, b));
	return APP_USAGE;
}

static int make_plan(struct options *o)
{
	struct sw_plan *p = &o->sw.plan;
	int ret;

	p->single = p->single || takes_one_address(o->sw.uplink.id);
	ret = check_network(o);
	if (ret)
		return ret;
	if (p->single)
		return address_single(o);
	address_each(o);
	return APP_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

static void rest(const struct sw *s, unsigned int idle)
{
	if (idle < IDLE_ROUNDS)
		rte_pause();
	else if (s->sleep_us)
		nanosleep(&(struct timespec){.tv_nsec = s->sleep_us * 1000l}, NULL);
	else
		sched_yield();
}

/* No system call of this thread waits for another process; other threads make calls that may. */
static void forward(struct sw *s)
{
	unsigned int idle = 0;

	while (!sys_signal()) {
		idle = sw_round(s, sw_now()) ? 0 : idle + 1;
		if (idle)
			rest(s, idle);
	}
	/* release: the control thread may use the state of this thread from now on */
	atomic_store_explicit(&s->handover.ended, true, memory_order_release);
}

/*
 * DPDK raises the limit to the hard one, so descriptors from clients could fill a table of a
 * million entries. This limit is enough for five for each port, half-open connections, and those
 * that wait to be closed.
 */
static int limit_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur <= FILES_MAX)
		return APP_OK;
	r.rlim_cur = FILES_MAX;
	if (setrlimit(RLIMIT_NOFILE, &r) == 0)
		return APP_OK;
	cli_error("the limit of open files can't be set: %s", strerror(errno));
	return APP_FAIL;
}

/* systemd's Type=notify: processes can request ports. sd_notify(3) describes the message. */
static void notify_ready(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length < 2 || length >= sizeof(to.sun_path) || !strchr("/@", *path))
		return;
	memcpy(to.sun_path, path, length);
	if (*path == '@') /* an abstract name */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		cli_error("systemd is not notified at NOTIFY_SOCKET: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static int run(struct options *o, int eal_count, char **eal_words)
{
	struct weft_config *config;
	struct sw *s = &o->sw;
	char uplink[128];
	int ret = weft_config_read(&config);

	if (ret) {
		cli_error("the configuration is invalid: %s; weft-info -c lists all variables",
			  weft_strerror(ret));
		return APP_USAGE;
	}
	ret = eal_start(eal_count, eal_words, config, -1);
	weft_config_release(config);
	if (!ret)
		ret = sw_uplink_open(s, o->uplink);
	if (ret)
		return ret;
	s->mtu = s->mtu ? s->mtu : MTU_INSIDE;
	s->bsize = RTE_MAX(RTE_ALIGN_CEIL(s->mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN, 64u), 2048u);
	/* This gives half a MiB to two and a half MiB of buffers for each direction. */
	s->log2_ring = s->bsize > 2048 ? 8 : 9;
	if (!s->per_user)
		s->per_user = RTE_MAX(s->plan.ports * 3u / 4, 1u);
	s->region_max = sw_region_max(s->log2_ring, s->bsize);
	sw_close_init();
	ret = sw_listen(s);
	if (!ret)
		ret = make_plan(o);
	if (!ret)
		ret = sw_wake_start(s);
	if (!ret)
		ret = limit_files();
	if (!ret)
		ret = sw_control_start(s);
	if (ret)
		return ret;
	sw_report_start(s);
	sw_uplink_text(s, uplink, sizeof(uplink));
	printf("weft-switch: %u ports at %s, %s; %s\n", s->plan.ports, s->path,
	       s->plan.single ? "one address for all" : "an address for each", uplink);
	fflush(stdout);
	notify_ready();
	forward(s);
	sw_unlisten(s);
	if (s->uplink.id != SW_NO_UPLINK)
		rte_eth_dev_stop(s->uplink.id);
	sw_report_print(s);
	return APP_OK;
}

int main(int argc, char **argv)
{
	static struct options o = {.ports = 16,
				   .udp_port = UDP_PORT,
				   .sleep_us = 50,
				   .sw = {
					   .uplink = {.id = SW_NO_UPLINK},
					   .path = WEFT_SWITCH_SOCKET,
					   .mode = 0660,
					   .lock = PTHREAD_MUTEX_INITIALIZER,
				   }};
	char **eal_words;
	int eal_count, ret;

	cli_program = "weft-switch";
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	sys_catch_signals();
	ret = parse(&o, argc, argv);
	if (!ret)
		ret = run(&o, eal_count, eal_words);
	/* Telemetry callbacks may still run: the ports stay until the process ends. */
	return eal_exit(ret < 0 ? APP_OK : ret);
}
