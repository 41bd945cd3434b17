/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The lane drivers of raw lanes, over DPDK's ports and over UDP sockets: lane options and
 * configuration become a port and an engine on it.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memzone.h>
#include <rte_pdump.h>

#include "base/log.h"
#include "capture/capture.h"
#include "engine/engine.h"
#include "frame/arp.h"
#include "lane.h"
#include "memif/memif.h"
#include "port/eal.h"
#include "port/ethdev.h"
#include "port/lane_opts.h"
#include "port/nic_state.h"
#include "port/ports.h"
#include "port/rxtx.h"
#include "port/spread.h"
#include "udp/udp.h"

extern const struct weft_lane_driver weft_dpdk_driver, weft_udp_driver;

static void log_error(const char *sentence)
{
	weft_error("dpdk: %s", sentence);
}

static void log_warning(const char *sentence)
{
	weft_warn("dpdk: %s", sentence);
}

static bool is_given(const char *text)
{
	return text && text[0] != '\0';
}

/* ---- WEFT_DUMPCAP --------------------------------------------------------------------------- */

/*
 * dpdk-dumpcap and dpdk-pdump attach as DPDK's secondary processes and get copies of the frames of
 * this process's ports. DPDK copies them, in callbacks of its own. It requires two things: its
 * handling of such processes has to be started, and ports must have no owner (port/ethdev.h).
 */

/* rte_pdump_init() reserves this memzone: it exists if the application has called that before. */
#define PDUMP_MEMZONE "rte_pdump_stats"

static int pdump_no_answer(const struct rte_mp_msg *msg, const void *peer)
{
	(void)msg;
	(void)peer;
	return 0;
}

/* No call reports whether the EAL shares files, but otherwise it registers no message handlers. */
static bool shares_files(void)
{
	static const char name[] = "weft_pdump_question";

	if (rte_mp_action_register(name, pdump_no_answer))
		return false;
	rte_mp_action_unregister(name);
	return true;
}

/* @return the reason why no process can attach, or NULL */
static const char *why_no_capture(void)
{
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return "this process is a secondary one itself";
	if (!rte_eal_has_hugepages())
		return "the EAL has no hugepages";
	if (!shares_files())
		return "the EAL shares no files (--in-memory, --no-shconf)";
	if (!rte_memzone_lookup(PDUMP_MEMZONE) && rte_pdump_init())
		return rte_strerror(rte_errno);
	return NULL;
}

static void serve_dumpcap(void)
{
	const char *prefix = rte_eal_get_runtime_dir(), *why = why_no_capture();

	if (why) {
		weft_warn("dpdk: WEFT_DUMPCAP: dpdk-dumpcap can't attach: %s", why);
		return;
	}
	prefix = strrchr(prefix, '/') + 1;
	weft_info("dpdk: for captures: dpdk-dumpcap --file-prefix=%s -i PORT", prefix);
}

/*
 * Once the EAL is up, before ports are opened: let dpdk-dumpcap attach. A log line contains the
 * command, or the reason why it can't attach. Any number of calls, from any thread.
 */
static void pdump_serve(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, serve_dumpcap);
}

/* ---- the EAL and its ports ------------------------------------------------------------------ */

/*
 * Starting the EAL takes tenths of a second and tens of megabytes. It is useless if no port is
 * configured and the EAL would find none.
 */
static bool nothing_to_find(const struct weft_lane_conf *conf)
{
	const struct weft_nic_env env = {.sys = "/sys", .dev = "/dev"};

	return !weft_eal_is_up() && !is_given(conf->eal_args) && !is_given(conf->ports) &&
	       !weft_switch_socket(conf->switch_path) && !weft_nic_any(&env);
}

static int start_eal(const struct weft_lane_conf *conf, char *why, size_t why_len)
{
	const struct weft_eal_conf ec = {.ports = conf->ports, .dumpcap = conf->dumpcap};
	char note[512];
	int err = weft_eal_start(conf->eal_args, &ec, note, sizeof(note), why, why_len);

	if (err == 0 && note[0] != '\0')
		weft_info("dpdk: %s", note);
	if (err == 0 && conf->dumpcap)
		pdump_serve();
	return err;
}

/*
 * The engine's buffers are DPDK's. No device, no hugepages and no privilege are needed for them.
 * Memory is address space until it is used.
 */
#define NO_DEVICE_ARGS "--no-pci --no-huge -m 512"

/* For a lane of driver @p name whose port is none of DPDK's. */
static int start_eal_alone(const struct weft_lane_conf *conf, const char *name, char *why,
			   size_t why_len)
{
	const struct weft_eal_conf ec = {.ports = conf->ports, .dumpcap = conf->dumpcap};
	char note[512];
	int err = weft_eal_start(is_given(conf->eal_args) ? conf->eal_args : NO_DEVICE_ARGS, &ec,
				 note, sizeof(note), why, why_len);

	if (err == 0 && note[0] != '\0')
		weft_info("%s: %s", name, note);
	return err;
}

/* If the EAL has no port, request one from a switch. @return 0 also if there is no switch */
static int request_switch_port(const struct weft_lane_conf *conf, char *why, size_t why_len)
{
	const char *path = weft_switch_socket(conf->switch_path);

	if (!path || rte_eth_dev_count_avail() > 0)
		return 0;
	return weft_switch_join(path, why, why_len);
}

static int dpdk_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	struct weft_nic_env env;
	char why[1024];
	int err, n;

	if (nothing_to_find(conf)) {
		weft_info("dpdk: no port: WEFT_EAL_ARGS is empty, and no NIC is bound to a driver "
			  "that DPDK can use; the EAL is not started");
		return 0;
	}
	err = start_eal(conf, why, sizeof(why));
	if (err != 0) {
		weft_error("dpdk: %s", why);
		return err;
	}
	err = request_switch_port(conf, why, sizeof(why));
	if (err != 0) {
		weft_error("dpdk: %s", why);
		/* Lanes over memif sockets do not need a switch that nothing names. */
		return conf->switch_path && conf->switch_path[0] == '/' ? err : 0;
	}
	if (rte_eth_dev_count_avail() == 0 && weft_switch_place())
		return add(arg, &(struct weft_lane_resource){.name = WEFT_SWITCH_RESOURCE});
	n = weft_port_ethdev_list(add, arg);
	weft_nic_env_here(&env);
	weft_nic_explain(&env, n > 0 ? log_warning : log_error);
	return n < 0 ? n : 0;
}

static bool is_ether(const struct weft_lane_opts *o, const struct weft_lane_conf *conf)
{
	return o->encap >= 0 ? o->encap == WEFT_ENCAP_ETHER : conf->raw_ethertype;
}

/* The process has a port of the switch only if DPDK has none. */
static const struct weft_switch_place *switch_place_of(const char *resource)
{
	bool named = strcmp(resource, WEFT_SWITCH_RESOURCE) == 0 || strcmp(resource, "0") == 0;

	return named && rte_eth_dev_count_avail() == 0 ? weft_switch_place() : NULL;
}

/* A port of the switch has the addresses that the switch assigned; no other addresses reach it. */
static int take_place(const char *resource, struct weft_lane_opts *o,
		      const struct weft_switch_place *p, char *why, size_t why_len)
{
	if ((o->ip != 0 && o->ip != p->ip) || o->six || (o->udp_port != 0 && p->udp_port != 0) ||
	    o->queues > 1) {
		snprintf(why, why_len,
			 "dpdk:%s is a port of weft-switch, which gives it its addresses: leave "
			 "ip=, port= and queues= out",
			 resource);
		return -EINVAL;
	}
	if (o->ip == 0 && p->ip != 0) {
		o->ip = p->ip;
		o->prefix = p->prefix;
		o->gw = o->gw != 0 ? o->gw : p->gw;
	}
	if (o->mtu == 0)
		o->mtu = p->mtu;
	if (p->udp_port != 0)
		o->udp_port = p->udp_port;
	return 0;
}

/* A peer that requests UDP checksums all the same gets them from the CPU. */
static bool wants_sums(const struct weft_lane_opts *o, const struct weft_lane_conf *conf)
{
	unsigned int mode = o->csum >= 0 ? (unsigned int)o->csum : conf->csum;

	return o->six || mode == WEFT_CSUM_AUTO || mode == WEFT_CSUM_UDP;
}

static int open_port(const struct weft_lane_open *params, const struct weft_lane_opts *o,
		     struct weft_frame_port **port, char *why, size_t why_len)
{
	const struct weft_lane_conf *conf = params->conf;
	struct weft_port_opts po = {
		.frame_size =
			(uint16_t)(conf->frame_size < UINT16_MAX ? conf->frame_size : UINT16_MAX),
		.mtu = o->mtu,
		.vlan = o->vlan,
		.raw_ethertype = is_ether(o, conf),
		.no_udp_csum = !wants_sums(o, conf),
		.no_extbuf = !conf->zcopy,
		.ip = o->ip,
		.six = o->six,
		.prefix6 = o->prefix,
		.udp_port = o->udp_port != 0      ? o->udp_port
			    : conf->udp_port != 0 ? conf->udp_port
						  : WEFT_LANE_UDP_PORT,
		.queues = o->queues,
		.rx_bufs = conf->rx_bufs,
		.rx_intr = (enum weft_rx_intr)conf->rx_intr,
		.no_owner = conf->dumpcap,
	};

	memcpy(po.ip6, o->ip6, sizeof(po.ip6));
	return weft_port_ethdev_open(params->resource, &po, port, why, why_len);
}

/* ---- memif sockets: ports of Weft's own ------------------------------------------------------ */

static bool is_memif_socket(const char *resource)
{
	return resource[0] == '/';
}

static int check_memif_opts(const char *resource, const struct weft_lane_opts *o, char *why,
			    size_t why_len)
{
	bool given = o->role >= 0 || o->id != 0 || o->bsize != 0 || o->rsize != 0;

	if (is_memif_socket(resource) && o->role < 0)
		snprintf(why, why_len,
			 "dpdk:%s is a memif socket: give role=server at one end, and role=client "
			 "at the other",
			 resource);
	else if (is_memif_socket(resource) && o->queues > 1)
		snprintf(why, why_len,
			 "dpdk:%s is a memif socket, which has one queue: leave "
			 "queues= out",
			 resource);
	else if (!is_memif_socket(resource) && given)
		snprintf(why, why_len,
			 "dpdk:%s is no memif socket, whose name is a path (dpdk:/run/x): leave "
			 "role=, id=, bsize= and rsize= out",
			 resource);
	else
		return 0;
	return -EINVAL;
}

static int open_memif(const struct weft_lane_open *params, const struct weft_lane_opts *o,
		      struct weft_frame_port **port, char *why, size_t why_len)
{
	const struct weft_lane_conf *conf = params->conf;
	const struct weft_mport_opts mo = {
		.server = o->role == WEFT_MEMIF_SERVER,
		.id = o->id,
		.log2_ring = o->rsize,
		.bsize = o->bsize,
		.mtu = o->mtu,
		.vlan = o->vlan != 0,
		.frame_size = (uint32_t)conf->frame_size,
		.rx_bufs = conf->rx_bufs,
		.no_extbuf = !conf->zcopy,
	};
	static const uint8_t none[8];
	int err = weft_mport_open(params->resource, &mo, port, why, why_len);

	if (err == 0 && o->six) {
		memcpy((*port)->ip6, o->ip6, sizeof((*port)->ip6));
		(*port)->prefix6 = o->prefix;
		if (o->prefix == 64 && memcmp(o->ip6 + 8, none, sizeof(none)) == 0)
			weft_ip6_from_mac((*port)->ip6, (*port)->mac);
	}
	return err;
}

/* The hosts that options name have numbers as long as the port is open. */
static uint32_t hold_host(struct weft_hosts *hosts, const uint8_t ip6[16])
{
	uint32_t number = weft_hosts_number(hosts, ip6);

	weft_hosts_hold(hosts, number, true);
	return number;
}

static int take_hosts(struct weft_frame_port *port, struct weft_lane_opts *o)
{
	static const uint8_t none[16];

	port->hosts = weft_hosts_new(port->ip6);
	if (!port->hosts)
		return -ENOMEM;
	o->ip = weft_hosts_find(port->hosts, port->ip6);
	if (memcmp(o->gw6, none, sizeof(none)) != 0)
		o->gw = hold_host(port->hosts, o->gw6);
	for (unsigned int i = 0; i < o->num_neigh; i++)
		o->neigh[i].ip = hold_host(port->hosts, o->neigh[i].ip6);
	return 0;
}

static void give_hint(struct weft_frame_port *port, unsigned int paths)
{
	char text[320];

	weft_port_hint(port, paths, text, sizeof(text));
	if (text[0] != '\0')
		weft_info("dpdk:%s: %s", port->name, text);
	weft_port_spread_text(port, text, sizeof(text));
	if (text[0] != '\0')
		weft_info("dpdk:%s: %s", port->name, text);
	weft_port_intr_text(port, text, sizeof(text));
	if (text[0] != '\0')
		weft_debug("dpdk:%s: %s", port->name, text);
}

/* Open the engine on @p port, and its tap. An error closes the port. */
static int open_engine(const struct weft_lane_driver *driver, struct weft_frame_port *port,
		       struct weft_raw_conf *rc, const struct weft_lane_open *open,
		       struct weft_lane_iface **iface, char *why, size_t why_len)
{
	int err;

	rc->tap = weft_tap_open(port, open->platform, open->worker_id, open->conf);
	err = weft_raw_iface_open(port, rc, open, iface, why, why_len);
	if (err != 0) {
		weft_tap_close(rc->tap);
		port->ops->close(port);
		return err;
	}
	(*iface)->driver = driver;
	return 0;
}

static int open_switch_port(const struct weft_lane_open *params, struct weft_lane_opts *o,
			    const struct weft_switch_place *place, struct weft_frame_port **port,
			    char *why, size_t why_len)
{
	const struct weft_lane_conf *conf = params->conf;
	struct weft_mport_opts mo = {
		.id = place->id,
		.log2_ring = place->log2_ring,
		.bsize = place->bsize,
		.vlan = o->vlan != 0,
		.frame_size = (uint32_t)conf->frame_size,
		.rx_bufs = conf->rx_bufs,
		.no_extbuf = !conf->zcopy,
		.vouched = true,
		.network = place->uplink,
		/* Frames that end a plain connection are the switch's own. */
		.farewells = place->farewells && conf->job_key != NULL,
		.name = WEFT_SWITCH_RESOURCE,
	};
	int err = take_place(params->resource, o, place, why, why_len);

	if (err != 0)
		return err;
	mo.mtu = o->mtu;
	memcpy(mo.mac, place->mac, sizeof(mo.mac));
	memcpy(mo.secret, place->secret, sizeof(mo.secret));
	err = weft_mport_open(place->socket, &mo, port, why, why_len);
	if (err == 0)
		(*port)->steering =
			(struct weft_steering){.queue = place->queue, .queues = place->queues};
	return err;
}

/* Open the port that @p params names, and complete @p o with what it requires. */
static int open_resource(const struct weft_lane_open *params, struct weft_lane_opts *o,
			 struct weft_frame_port **port, char *why, size_t why_len)
{
	const struct weft_switch_place *place;
	int err;

	if (is_memif_socket(params->resource)) {
		err = start_eal_alone(params->conf, weft_dpdk_driver.name, why, why_len);
		return err ? err : open_memif(params, o, port, why, why_len);
	}
	err = start_eal(params->conf, why, why_len);
	if (err != 0)
		return err;
	place = switch_place_of(params->resource);
	if (place)
		return open_switch_port(params, o, place, port, why, why_len);
	err = open_port(params, o, port, why, why_len);
	if (err == 0)
		give_hint(*port, o->paths != 0              ? o->paths
				 : params->conf->paths != 0 ? params->conf->paths
							    : RAW_PATHS_AUTO);
	return err;
}

static int dpdk_open(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	struct weft_lane_conf conf = *params->conf;
	struct weft_lane_open open = *params;
	struct weft_frame_port *port;
	struct weft_lane_opts o;
	struct weft_raw_conf rc;
	int err;

	err = weft_lane_opts_parse(params->options, &o, why, why_len);
	if (err == 0)
		err = check_memif_opts(params->resource, &o, why, why_len);
	if (err != 0)
		return err;
	if (is_ether(&o, &conf))
		o.six = false;
	err = open_resource(params, &o, &port, why, why_len);
	if (err != 0)
		return err;
	if (o.csum >= 0)
		conf.csum = (unsigned int)o.csum;
	open.conf = &conf;
	if (o.six && take_hosts(port, &o) != 0) {
		snprintf(why, why_len, "%s: out of memory", port->name);
		port->ops->close(port);
		return -ENOMEM;
	}
	rc = (struct weft_raw_conf){
		.raw_ethertype = is_ether(&o, &conf),
		.six = o.six,
		.vlan = o.vlan,
		.ip = o.ip,
		.prefix = o.prefix,
		.gateway = o.gw,
		.neigh = o.neigh,
		.num_neigh = o.num_neigh,
		.udp_port = o.udp_port,
		.paths = o.paths,
		.dscp = o.dscp,
		.no_ecn = o.no_ecn,
	};
	err = open_engine(&weft_dpdk_driver, port, &rc, &open, iface, why, why_len);
	if (err == 0 && port->warning)
		weft_warn("%s (%s): %s", (*iface)->name, port->device, port->warning);
	return err;
}

const struct weft_lane_driver weft_dpdk_driver = {
	.seals = true,
	.name = "dpdk",
	.counterpart = "udp",
	.counters = weft_raw_counter_help,
	.abi = WEFT_LANE_ABI,
	.query = dpdk_query,
	.open = dpdk_open,
	.options = WEFT_LANE_OPTS_KNOWN,
	.captures = true,
	.boot = &weft_raw_boot_ops,
	.mem_register = weft_raw_mem_register,
	.mem_deregister = weft_raw_mem_deregister,
};

/* ---- UDP sockets ----------------------------------------------------------------------------- */

/* The engine of raw lanes over a kernel's interfaces, for ordinary users (doc/ports.md). */

/* The UDP driver's own options; those of lane_opts.h are left in the text. */
struct own_opts {
	uint32_t ip;
	struct in6_addr ip6;
	uint16_t first, last;
	char rest[512];
};

static int udp_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	return weft_udp_list(add, arg);
}

static int take_ports(const char *value, struct own_opts *own, char *why, size_t why_len)
{
	unsigned int first, last;
	char end;

	if (sscanf(value, "%5u-%5u%c", &first, &last, &end) == 2 && first >= 1 && first <= last &&
	    last <= UINT16_MAX) {
		own->first = (uint16_t)first;
		own->last = (uint16_t)last;
		return 0;
	}
	snprintf(why, why_len, "ports=%s: expected a range of UDP ports such as 20000-20999",
		 value);
	return -EINVAL;
}

static int take_ip(const char *value, struct own_opts *own, char *why, size_t why_len)
{
	struct in_addr a;

	if (inet_pton(AF_INET, value, &a) == 1) {
		own->ip = ntohl(a.s_addr);
		return 0;
	}
	if (inet_pton(AF_INET6, value, &own->ip6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&own->ip6))
		return 0;
	snprintf(why, why_len,
		 "ip=%s: expected an IPv4 or IPv6 address of the interface, such as 10.0.0.1",
		 value);
	return -EINVAL;
}

static int take_own(const char *text, struct own_opts *own, char *why, size_t why_len)
{
	size_t used = 0, n;
	char item[64];
	int err = 0;

	*own = (struct own_opts){0};
	for (; *text != '\0' && err == 0; text += n) {
		text += strspn(text, ", ");
		n = strcspn(text, ",");
		if (n == 0)
			continue;
		snprintf(item, sizeof(item), "%.*s", (int)n, text);
		if (strncmp(item, "ports=", 6) == 0)
			err = take_ports(item + 6, own, why, why_len);
		else if (strncmp(item, "ip=", 3) == 0)
			err = take_ip(item + 3, own, why, why_len);
		else
			used += (size_t)snprintf(own->rest + used, sizeof(own->rest) - used,
						 "%s%.*s", used > 0 ? "," : "", (int)n, text);
	}
	return err;
}

static int udp_open(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		    size_t why_len)
{
	struct weft_lane_conf conf = *params->conf;
	struct weft_lane_open open = *params;
	struct weft_frame_port *port;
	struct weft_lane_neigh self;
	struct weft_lane_opts o;
	struct weft_udp_addr addr;
	struct weft_raw_conf rc;
	struct own_opts own;
	int err;

	err = take_own(params->options ? params->options : "", &own, why, why_len);
	if (err == 0)
		err = weft_lane_opts_parse(own.rest, &o, why, why_len);
	if (err == 0)
		err = start_eal_alone(&conf, weft_udp_driver.name, why, why_len);
	if (err != 0)
		return err;
	err = weft_udp_open(params->resource,
			    &(struct weft_udp_opts){
				    .ip = own.ip,
				    .ip6 = own.ip6,
				    .udp_port = o.udp_port,
				    .first = own.first,
				    .last = own.last,
				    .mtu = o.mtu,
				    .frame_size = (uint32_t)conf.frame_size,
				    .rx_bufs = conf.rx_bufs,
				    .no_extbuf = !conf.zcopy,
				    .farewells = conf.job_key != NULL,
			    },
			    &port, &addr, why, why_len);
	if (err != 0)
		return err;
	port->driver = weft_udp_driver.name;
	if (o.csum >= 0)
		conf.csum = (unsigned int)o.csum;
	open.conf = &conf;
	/* Another process of this host may have the same address: no request can resolve that. */
	self.ip = addr.ip;
	memcpy(self.mac, port->mac, sizeof(self.mac));
	rc = (struct weft_raw_conf){
		.ip = addr.ip,
		.prefix = addr.prefix,
		.neigh = &self,
		.num_neigh = 1,
		.paths = o.paths,
		.dscp = o.dscp,
		.no_ecn = o.no_ecn,
	};
	return open_engine(&weft_udp_driver, port, &rc, &open, iface, why, why_len);
}

const struct weft_lane_driver weft_udp_driver = {
	.name = "udp",
	.counterpart = "dpdk",
	.counters = weft_raw_counter_help,
	.abi = WEFT_LANE_ABI,
	.query = udp_query,
	.open = udp_open,
	.options = "ip, port, ports, mtu, paths, csum, dscp, ecn",
	.captures = true,
	.fallback = true,
	.seals = true,
	.boot = &weft_udp_boot_ops,
};
