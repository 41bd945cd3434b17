/* SPDX-License-Identifier: BSD-3-Clause */

#include "switch/switch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>

#include "common/cli.h"
#include "common/eth_port.h"
#include "drivers/dpdk/port/claim_dev.h"
#include "drivers/dpdk/port/nic_state.h"

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
		cli_error("there is no port '%s'; the EAL's arguments before -- make ports", name);
	return APP_USAGE;
}

/*
 * Claim the port, as lanes do (doc/ports.md): no other switch or process can use it until this one
 * has ended. WEFT_PORTS may have claimed it at the start of the EAL.
 */
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

int sw_uplink_open(struct sw *s, const char *name)
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

void sw_uplink_text(const struct sw *s, char *text, size_t len)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	struct rte_eth_dev_info info;

	if (s->uplink.id == SW_NO_UPLINK || rte_eth_dev_info_get(s->uplink.id, &info))
		snprintf(text, len, "no uplink, MTU %u", s->mtu);
	else
		snprintf(text, len, "uplink %s %s, MTU %u", info.driver_name,
			 eth_port_name(s->uplink.id, name), s->mtu);
}
