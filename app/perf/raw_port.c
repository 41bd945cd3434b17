/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of the bare-port tests: found in the configuration and opened by the same code as the
 * port of a lane.
 */

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "drivers/dpdk/port/lane_opts.h"
#include "drivers/dpdk/port/ethdev.h"
#include "perf/raw.h"

#define LINK_SECONDS 10.0
#define LOOKS_PER_SECOND 10

/* ---- which port */

/* The first "dpdk:..." item of a list like WEFT_LANES; "" when there is none. */
static void first_item(const char *list, char *item, size_t len)
{
	const char *end;

	item[0] = '\0';
	while (*list) {
		end = strchrnul(list, ';');
		while (*list == ' ')
			list++;
		if (!strncmp(list, "dpdk:", 5)) {
			snprintf(item, len, "%.*s", (int)(end - list - 5), list + 5);
			return;
		}
		list = *end ? end + 1 : end;
	}
}

/* Choose resource and options. Without an item, or with a star: the first port. */
static int choose_port(struct peer *p, char *resource, size_t len, struct weft_lane_opts *opts)
{
	char list[1024] = "", item[256], why[256], *comma;

	weft_config_get(p->opts->config, "LANES", list, sizeof(list));
	first_item(list, item, sizeof(item));
	if (list[0] && !strstr(list, "dpdk") && strcmp(list, "all") && strcmp(list, "*")) {
		cli_error(
			"raw_lat and raw_bw need a DPDK port, and the lanes '%s' have none; a RoCE "
			"device is tested by ib_send_lat, ib_send_bw and ib_read_bw of perftest",
			list);
		return peer_fail(p, APP_USAGE);
	}
	comma = strchr(item, ',');
	if (comma)
		*comma++ = '\0';
	if (weft_lane_opts_parse(comma, opts, why, sizeof(why))) {
		cli_error("%s", why);
		return peer_fail(p, APP_USAGE);
	}
	snprintf(resource, len, "%s", item[0] && strcmp(item, "*") ? item : "0");
	return APP_OK;
}

static uint64_t config_number(struct peer *p, const char *name)
{
	char text[64];
	int n = weft_config_get(p->opts->config, name, text, sizeof(text));
	uint64_t v = 0;

	if (n > 0 && text[0] >= '0' && text[0] <= '9')
		cli_size(name, text, &v);
	return v;
}

/* ---- frames */

static void make_head(struct perf_raw *r, uint64_t peer_mac)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)r->head;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	uint8_t dst[8];
	uint16_t w[sizeof(*ip) / 2];

	memcpy(dst, &peer_mac, sizeof(dst));
	memcpy(&eth->dst_addr, dst, RTE_ETHER_ADDR_LEN);
	memcpy(&eth->src_addr, r->port->mac, RTE_ETHER_ADDR_LEN);
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->time_to_live = 64;
	ip->next_proto_id = IPPROTO_UDP;
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	ip->src_addr = rte_cpu_to_be_32(weft_lane_link_local(r->port->mac));
	ip->dst_addr = rte_cpu_to_be_32(weft_lane_link_local(dst));
	udp->src_port = udp->dst_port = RTE_BE16(WEFT_LANE_UDP_PORT);
	memcpy(w, ip, sizeof(w));
	for (size_t i = 0; i < sizeof(w) / 2; i++)
		r->ip_sum += w[i];
}

/* Both ends send their frame size, and use the smaller one. */
static int agree(struct perf_raw *r)
{
	uint64_t mine_size = r->port->frame_size, size;
	struct perf_raw_hello mine = {.frame_size = mine_size}, theirs;
	struct peer *p = r->peer;
	int ret;

	memcpy(&mine.mac, r->port->mac, RTE_ETHER_ADDR_LEN);
	mine.mac = htole64(mine.mac);
	mine.frame_size = htole64(mine.frame_size);
	ret = peer_send(p, OOB_ADDRESS, &mine, sizeof(mine));
	if (!ret)
		ret = peer_recv(p, OOB_ADDRESS, &theirs, sizeof(theirs));
	if (ret)
		return ret;
	size = RTE_MIN(mine_size, le64toh(theirs.frame_size));
	if (size < 2 * PERF_RAW_HEAD) {
		cli_error("the peer's port carries frames of %llu bytes only",
			  (unsigned long long)size);
		return peer_fail(p, APP_PEER);
	}
	r->room = (uint32_t)size - PERF_RAW_HEAD;
	make_head(r, le64toh(theirs.mac));
	return APP_OK;
}

static int lost(const struct perf_raw *r, const char *cause)
{
	/* Between two processes of one host the link is the peer itself. */
	int code = r->port->link == WEFT_LANE_LINK_PEER ? APP_PEER : APP_FAIL;

	cli_error("port %s (%s) has lost its link%s%s", r->port->name, r->port->device,
		  cause[0] ? ": " : "", cause);
	return peer_fail(r->peer, code);
}

int perf_raw_look(struct perf_raw *r)
{
	struct weft_frame_port_event ev = {0};
	enum weft_frame_port_what what;
	uint64_t now = rte_rdtsc();

	if ((now < r->look_at && !r->port->event) || !r->port->ops->look)
		return APP_OK;
	r->look_at = now + rte_get_tsc_hz() / LOOKS_PER_SECOND;
	r->port->event = false;
	while ((what = r->port->ops->look(r->port, &ev)) != WEFT_FRAME_PORT_NOTHING) {
		if (what == WEFT_FRAME_PORT_ENDED) {
			cli_error("port %s (%s): %s", r->port->name, r->port->device, ev.text);
			return peer_fail(r->peer, APP_FAIL);
		}
		if (what == WEFT_FRAME_PORT_LINK_DOWN && r->linked)
			return lost(r, ev.text);
	}
	return APP_OK;
}

static int wait_link(struct perf_raw *r)
{
	double end = sys_seconds() + LINK_SECONDS;
	struct rte_mbuf *m;
	char why[512];

	while (!r->port->ops->link_up(r->port)) {
		if (peer_check(r->peer) || perf_raw_look(r))
			return r->peer->exit_code;
		if (r->port->ops->rx_burst(r->port, &m, 1))
			rte_pktmbuf_free(m);
		if (sys_seconds() > end) {
			weft_frame_port_link_text(r->port, why, sizeof(why));
			cli_error("%s", why);
			return peer_fail(r->peer, APP_FAIL);
		}
	}
	r->linked = true;
	return peer_barrier(r->peer);
}

int perf_raw_open(struct peer *p, struct perf_raw **raw)
{
	struct perf_raw *r = calloc(1, sizeof(*r));
	/* The UDP port of lanes, which firewall rules for Weft allow. */
	struct weft_port_opts po = {.udp_port = WEFT_LANE_UDP_PORT};
	struct weft_lane_opts lo;
	char resource[64], why[512];
	int ret;

	if (!r) {
		cli_error("no memory");
		return peer_fail(p, APP_FAIL);
	}
	r->peer = p;
	ret = choose_port(p, resource, sizeof(resource), &lo);
	if (!ret) {
		po.mtu = lo.mtu;
		po.frame_size = (uint16_t)config_number(p, "FRAME_SIZE");
		if (weft_port_ethdev_open(resource, &po, &r->port, why, sizeof(why))) {
			cli_error("%s", why);
			ret = peer_fail(p, APP_FAIL);
		}
	}
	*raw = r;
	return ret;
}

int perf_raw_connect(struct perf_raw *raw)
{
	int ret = agree(raw);

	return ret ? ret : wait_link(raw);
}

void perf_raw_close(struct perf_raw *raw)
{
	if (raw && raw->port)
		raw->port->ops->close(raw->port);
	free(raw);
}
