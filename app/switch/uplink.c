/* SPDX-License-Identifier: BSD-3-Clause */

#include "switch/switch.h"

#include <string.h>

#include <rte_errno.h>

#include "common/cli.h"
#include "common/eth_port.h"

#define CACHE 256u

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

int sw_uplink_open(struct sw *s, const char *name)
{
	struct sw_uplink *u = &s->uplink;
	uint16_t mtu = 0, room;
	int ret = find(name, &u->id);

	if (ret || u->id == SW_NO_UPLINK)
		return ret;
	if (s->mtu == 0 && (rte_eth_dev_get_mtu(u->id, &mtu) || mtu < 1280))
		mtu = RTE_ETHER_MTU;
	s->mtu = s->mtu ? s->mtu : mtu;
	room = (uint16_t)RTE_MAX(RTE_PKTMBUF_HEADROOM + s->mtu + RTE_ETHER_HDR_LEN +
					 2 * RTE_VLAN_HLEN,
				 RTE_MBUF_DEFAULT_BUF_SIZE);
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
