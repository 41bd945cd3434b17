/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/eth_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "drivers/dpdk/port/kernel.h"

const char *eth_port_name(uint16_t port, char *buf)
{
	if (rte_eth_dev_get_name_by_port(port, buf))
		snprintf(buf, RTE_ETH_NAME_MAX_LEN, "port %u", port);
	return buf;
}

int eth_port_find(uint16_t port, uint16_t mtu, struct weft_passing_limits *limits)
{
	char why[512];
	int rc = weft_passing_find(port, mtu, limits, why, sizeof(why));

	if (!rc)
		return APP_OK;
	cli_error("%s", why);
	return rc == -EINVAL ? APP_USAGE : APP_FAIL;
}

uint16_t eth_port_room(uint16_t mtu, uint16_t room)
{
	uint32_t least = RTE_PKTMBUF_HEADROOM + mtu + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;

	least = RTE_MAX(least, (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE);
	return (uint16_t)RTE_ALIGN_CEIL(RTE_MAX(least, room), RTE_CACHE_LINE_SIZE);
}

int eth_port_open(uint16_t port, uint16_t mtu, struct rte_mempool *pool)
{
	char why[512];

	if (weft_passing_open(port, mtu, ETH_PORT_RING, pool, why, sizeof(why)) == 0)
		return APP_OK;
	cli_error("%s", why);
	return APP_FAIL;
}

void eth_port_ring_init(uint16_t port, struct eth_port_ring *r)
{
	struct rte_eth_dev_info info;

	*r = (struct eth_port_ring){.sock = -1};
	if (rte_eth_dev_info_get(port, &info) == 0 &&
	    strcmp(info.driver_name, "net_af_packet") == 0)
		r->sock = weft_packet_socket_find(info.if_index, 0);
}

uint64_t eth_port_ring_lost(uint16_t port, struct eth_port_ring *r)
{
	struct rte_eth_stats stats;

	if (r->sock >= 0)
		r->lost += weft_packet_socket_lost(r->sock);
	else if (rte_eth_stats_get(port, &stats) == 0)
		r->lost = stats.imissed + stats.rx_nombuf;
	return r->lost;
}
