/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire/wire.h"

#include <errno.h>
#include <string.h>

#include "common/cli.h"
#include "common/eth_port.h"

#define POOL_CACHE 256

static int find_ports(char *const *names, unsigned int num, uint16_t *ports, unsigned int *found)
{
	uint16_t port;
	unsigned int i, k;

	for (*found = 0; *found < num; (*found)++) {
		i = *found;
		if (rte_eth_dev_get_port_by_name(names[i], &ports[i])) {
			cli_error("there is no port '%s'; the EAL's arguments before -- make ports",
				  names[i]);
			return APP_USAGE;
		}
		for (k = 0; k < i; k++) {
			if (ports[k] == ports[i]) {
				cli_error("port '%s' is named twice", names[i]);
				return APP_USAGE;
			}
		}
	}
	if (num)
		return APP_OK;
	RTE_ETH_FOREACH_DEV(port) {
		if (*found < 2 * WIRE_PAIRS)
			ports[*found] = port;
		(*found)++;
	}
	return APP_OK;
}

/* Without --mtu: the smallest MTU of the ports, and at most that of Ethernet, 1500. */
static int choose_mtu(struct wire *w, const uint16_t *ports, unsigned int num, uint16_t *room)
{
	struct weft_passing_limits limits;
	bool given = w->mtu;
	int ret = APP_OK;
	unsigned int i;

	w->mtu = given ? w->mtu : RTE_ETHER_MTU;
	for (i = 0; i < num && !ret && !given; i++) {
		ret = eth_port_find(ports[i], 0, &limits);
		if (!ret)
			w->mtu = RTE_MIN(w->mtu, limits.mtu);
	}
	/* Buffers for that MTU: a port in memory would request data room for 9000 bytes. */
	*room = 0;
	for (i = 0; i < num && !ret; i++) {
		ret = eth_port_find(ports[i], w->mtu, &limits);
		if (!ret)
			*room = RTE_MAX(*room, limits.room);
	}
	return ret;
}

static int make_pool(struct wire *w, unsigned int ports, uint16_t room)
{
	uint32_t rings = ports * (2 * ETH_PORT_RING + POOL_CACHE);

	w->limit = w->mbufs;
	w->mbufs += rings;
	room = eth_port_room(w->mtu, room);
	w->pool = rte_pktmbuf_pool_create("wire", w->mbufs, POOL_CACHE, 0, room, SOCKET_ID_ANY);
	if (w->pool)
		return APP_OK;
	cli_error("there is no memory for %u buffers of %u bytes: %s; give more to the EAL (-m), "
		  "or fewer with --mbufs",
		  w->mbufs, room, rte_strerror(rte_errno));
	return APP_FAIL;
}

int wire_ports_open(struct wire *w, char *const *names, unsigned int num_names)
{
	uint16_t ports[2 * WIRE_PAIRS], room = 0;
	unsigned int num, i;
	int ret;

	if (num_names > 2 * WIRE_PAIRS) {
		cli_error("weft-wire bridges %d pairs of ports at most", WIRE_PAIRS);
		return APP_USAGE;
	}
	ret = find_ports(names, num_names, ports, &num);
	if (ret)
		return ret;
	if (num < 2 || num % 2 || num > 2 * WIRE_PAIRS) {
		cli_error("ports are bridged in pairs, 1 to %d of them, but %s %u; the EAL's "
			  "arguments before -- make ports, e.g. "
			  "--vdev=net_memif0,role=server,socket=/run/a",
			  WIRE_PAIRS, num_names ? "these are" : "there are", num);
		return APP_USAGE;
	}
	ret = choose_mtu(w, ports, num, &room);
	if (!ret)
		ret = make_pool(w, num, room);
	for (i = 0; i < num && !ret; i++) {
		w->pair[i / 2].dir[i % 2].from = ports[i];
		w->pair[i / 2].dir[!(i % 2)].to = ports[i];
		ret = eth_port_open(ports[i], w->mtu, w->pool);
	}
	w->num_pairs = num / 2;
	return ret;
}

void wire_ports_stop(const struct wire *w)
{
	unsigned int i;

	for (i = 0; i < 2 * w->num_pairs; i++)
		rte_eth_dev_stop(w->pair[i / 2].dir[i % 2].from);
}
