/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The lane driver of UDP sockets: the engine of raw lanes over a kernel's interfaces, for ordinary
 * users (doc/ports.md).
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/log.h"
#include "capture/capture.h"
#include "engine/engine.h"
#include "lane.h"
#include "port/eal.h"
#include "port/lane_opts.h"
#include "udp/udp.h"

extern const struct weft_lane_driver weft_udp_driver;

/*
 * The engine's buffers are DPDK's. No device, no hugepages and no privilege are needed for them.
 * Memory is address space until it is used.
 */
#define EAL_ARGS "--no-pci --no-huge -m 512"

/* The driver's own options; those of lane_opts.h are left in the text. */
struct own_opts {
	uint32_t ip;
	uint16_t first, last;
	char rest[512];
};

static int start_eal(const struct weft_lane_conf *conf, char *why, size_t why_len)
{
	const struct weft_eal_conf ec = {.ports = conf->ports, .dumpcap = conf->dumpcap};
	bool given = conf->eal_args && conf->eal_args[0] != '\0';
	char note[512];
	int err = weft_eal_start(given ? conf->eal_args : EAL_ARGS, &ec, note, sizeof(note), why,
				 why_len);

	if (err == 0 && note[0] != '\0')
		weft_info("udp: %s", note);
	return err;
}

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
	snprintf(why, why_len, "ip=%s: expected an IPv4 address of the interface, such as 10.0.0.1",
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
		err = start_eal(&conf, why, why_len);
	if (err != 0)
		return err;
	err = weft_udp_open(params->resource,
			    &(struct weft_udp_opts){
				    .ip = own.ip,
				    .udp_port = o.udp_port,
				    .first = own.first,
				    .last = own.last,
				    .mtu = o.mtu,
				    .frame_size = (uint32_t)conf.frame_size,
				    .rx_bufs = conf.rx_bufs,
				    .no_extbuf = !conf.zcopy,
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
		.tap = weft_tap_open(port, params->platform, params->worker_id, params->conf),
	};
	err = weft_raw_iface_open(port, &rc, &open, iface, why, why_len);
	if (err != 0) {
		weft_tap_close(rc.tap);
		port->ops->close(port);
		return err;
	}
	(*iface)->driver = &weft_udp_driver;
	return 0;
}

const struct weft_lane_driver weft_udp_driver = {
	.name = "udp",
	.counters = weft_raw_counter_help,
	.abi = WEFT_LANE_ABI,
	.query = udp_query,
	.open = udp_open,
	.options = "ip, port, ports, mtu, paths, csum, dscp, ecn",
	.captures = true,
	.fallback = true,
	.boot = &weft_udp_boot_ops,
};
