/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire/wire.h"

#include <errno.h>
#include <string.h>

#include "common/cli.h"

#define RING 1024
#define POOL_CACHE 256

const char *wire_port_name(uint16_t port, char *buf)
{
	if (rte_eth_dev_get_name_by_port(port, buf))
		snprintf(buf, RTE_ETH_NAME_MAX_LEN, "port %u", port);
	return buf;
}

static int failed(uint16_t port, const char *what, int ret)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	cli_error("%s: %s: %s", wire_port_name(port, name), what, rte_strerror(-ret));
	return APP_FAIL;
}

/* A port that carries less than --mtu says what it can. */
static int set_mtu(const struct wire *w, uint16_t port, const struct rte_eth_dev_info *info)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t now = 0;
	int ret;

	if (rte_eth_dev_get_mtu(port, &now) == 0 && now >= w->mtu)
		return APP_OK;
	ret = rte_eth_dev_set_mtu(port, w->mtu);
	/* Ports in software often have no limit to set. */
	if (ret == 0 || ret == -ENOTSUP)
		return APP_OK;
	if (info->max_mtu < w->mtu) {
		cli_error("%s carries packets of at most %u bytes, not of %u; see --mtu",
			  wire_port_name(port, name), info->max_mtu, w->mtu);
		return APP_USAGE;
	}
	return failed(port, "its MTU can't be set", ret);
}

static int set_up_queues(const struct wire *w, uint16_t port)
{
	uint16_t rx = RING, tx = RING;
	int socket = rte_eth_dev_socket_id(port), ret;

	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	if (!ret)
		ret = rte_eth_rx_queue_setup(port, 0, rx, (unsigned int)socket, NULL, w->pool);
	if (!ret)
		ret = rte_eth_tx_queue_setup(port, 0, tx, (unsigned int)socket, NULL);
	return ret ? failed(port, "its queues can't be set up", ret) : APP_OK;
}

static int open_port(const struct wire *w, uint16_t port)
{
	struct rte_eth_conf conf = {.rxmode = {.mtu = w->mtu}};
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret)
		return failed(port, "it does not say what it can", ret);
	if (info.max_mtu && info.max_mtu < w->mtu)
		conf.rxmode.mtu = info.max_mtu;
	ret = rte_eth_dev_configure(port, 1, 1, &conf);
	if (ret)
		return failed(port, "it can't be configured", ret);
	ret = set_mtu(w, port, &info);
	if (!ret)
		ret = set_up_queues(w, port);
	if (ret)
		return ret;
	ret = rte_eth_dev_start(port);
	if (ret)
		return failed(port, "it does not start", ret);
	/* All frames are for the other end. Ports with two ends have no filter to open. */
	ret = rte_eth_promiscuous_enable(port);
	return ret && ret != -ENOTSUP ? failed(port, "it can't be made promiscuous", ret) : APP_OK;
}

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

static int make_pool(struct wire *w, unsigned int ports)
{
	uint32_t rings = ports * (2 * RING + POOL_CACHE);
	uint32_t room = RTE_PKTMBUF_HEADROOM + w->mtu + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;

	w->limit = w->mbufs;
	w->mbufs += rings;
	room = room < RTE_MBUF_DEFAULT_BUF_SIZE ? RTE_MBUF_DEFAULT_BUF_SIZE : room;
	w->pool = rte_pktmbuf_pool_create("wire", w->mbufs, POOL_CACHE, 0,
					  (uint16_t)RTE_ALIGN_CEIL(room, 64), SOCKET_ID_ANY);
	if (w->pool)
		return APP_OK;
	cli_error("there is no memory for %u buffers of %u bytes: %s; give more to the EAL (-m), "
		  "or fewer with --mbufs",
		  w->mbufs, room, rte_strerror(rte_errno));
	return APP_FAIL;
}

int wire_ports_open(struct wire *w, char *const *names, unsigned int num_names)
{
	uint16_t ports[2 * WIRE_PAIRS];
	unsigned int num, i;
	int ret;

	if (num_names > 2 * WIRE_PAIRS) {
		cli_error("there can be %d pairs of ports at most", WIRE_PAIRS);
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
	ret = make_pool(w, num);
	for (i = 0; i < num && !ret; i++) {
		w->pair[i / 2].dir[i % 2].from = ports[i];
		w->pair[i / 2].dir[!(i % 2)].to = ports[i];
		ret = open_port(w, ports[i]);
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
