/* SPDX-License-Identifier: BSD-3-Clause */

#include "switch/switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>

#include "common/cli.h"
#include "common/eth_port.h"
#include "drivers/dpdk/port/claim_dev.h"

#define CACHE 256u
#define BUFFER_MAX 32768u

static int find(const char *name, uint16_t *id)
{
	uint16_t port;

	*id = SW_NO_UPLINK;
	if (name && strcmp(name, "none") != 0) {
		if (rte_eth_dev_get_port_by_name(name, id) == 0)
			return APP_OK;
		cli_error("there is no port '%s'; the EAL's arguments before -- make ports", name);
		return APP_USAGE;
	}
	if (name)
		return APP_OK;
	RTE_ETH_FOREACH_DEV(port) {
		if (*id != SW_NO_UPLINK) {
			cli_error("there are several ports; name the one that is the uplink, or "
				  "'none'");
			return APP_USAGE;
		}
		*id = port;
	}
	return APP_OK;
}

/*
 * As lanes do (doc/ports.md): no other switch or process receives or sends there, until this one
 * has ended. WEFT_PORTS may have claimed it when the EAL was started.
 */
static int claim(uint16_t id)
{
	char port[RTE_ETH_NAME_MAX_LEN], who[96];
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
	weft_claim_owner_text(&c.owner, who, sizeof(who));
	if (rc == -EADDRINUSE) {
		cli_error("the uplink %s is in use by %s: %s belongs to one process at a time",
			  port, who, c.what);
		return APP_FAIL;
	}
	fprintf(stderr,
		"weft-switch: the uplink %s can't be claimed (%s, %s): see that no other process "
		"uses it\n",
		port, c.what, rc == -EPERM ? who : strerror(-rc));
	return APP_OK;
}

/* Some PMDs want more than the longest frame: net_af_packet what a slot of its ring has. */
static uint32_t least_buffer(uint16_t id)
{
	const struct rte_devargs *args;
	struct rte_eth_dev_info info;
	char framesz[16];
	uint32_t least;

	if (rte_eth_dev_info_get(id, &info))
		return 0;
	least = RTE_MIN(info.min_rx_bufsize, BUFFER_MAX);
	args = info.device ? rte_dev_devargs(info.device) : NULL;
	if (args && weft_device_arg(args->args, "framesz", framesz, sizeof(framesz)))
		least = RTE_MAX(least, RTE_MIN((uint32_t)strtoul(framesz, NULL, 10), BUFFER_MAX));
	return least;
}

int sw_uplink_open(struct sw *s, const char *name)
{
	struct sw_uplink *u = &s->uplink;
	uint16_t mtu = 0, room;
	int ret = find(name, &u->id);

	if (ret || u->id == SW_NO_UPLINK)
		return ret;
	ret = claim(u->id);
	if (ret)
		return ret;
	if (s->mtu == 0 && (rte_eth_dev_get_mtu(u->id, &mtu) || mtu < 1280))
		mtu = RTE_ETHER_MTU;
	s->mtu = s->mtu ? s->mtu : mtu;
	room = (uint16_t)RTE_MAX(RTE_PKTMBUF_HEADROOM + s->mtu + RTE_ETHER_HDR_LEN +
					 2 * RTE_VLAN_HLEN,
				 RTE_MBUF_DEFAULT_BUF_SIZE);
	room = (uint16_t)RTE_MAX(room, RTE_PKTMBUF_HEADROOM + least_buffer(u->id));
	u->pool = rte_pktmbuf_pool_create("uplink", 4 * ETH_PORT_RING + CACHE, CACHE, 0,
					  (uint16_t)RTE_ALIGN_CEIL(room, 64), SOCKET_ID_ANY);
	if (!u->pool) {
		cli_error("there is no memory for %u buffers of %u bytes: %s; give more to the "
			  "EAL (-m)",
			  4 * ETH_PORT_RING, room, rte_strerror(rte_errno));
		return APP_FAIL;
	}
	s->plan.uplink = true;
	return eth_port_open(u->id, s->mtu, u->pool);
}
