/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/eth_port.h"

#include <errno.h>
#include <stdio.h>

#include <rte_errno.h>

#include "common/cli.h"

const char *eth_port_name(uint16_t port, char *buf)
{
	if (rte_eth_dev_get_name_by_port(port, buf))
		snprintf(buf, RTE_ETH_NAME_MAX_LEN, "port %u", port);
	return buf;
}

static int failed(uint16_t port, const char *what, int ret)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	cli_error("%s: %s: %s", eth_port_name(port, name), what, rte_strerror(-ret));
	return APP_FAIL;
}

/* A port that carries less than --mtu says what it can. */
static int set_mtu(uint16_t port, uint16_t mtu, const struct rte_eth_dev_info *info)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t now = 0;
	int ret;

	if (rte_eth_dev_get_mtu(port, &now) == 0 && now >= mtu)
		return APP_OK;
	ret = rte_eth_dev_set_mtu(port, mtu);
	/* Ports in software often have no limit to set. */
	if (ret == 0 || ret == -ENOTSUP)
		return APP_OK;
	if (info->max_mtu < mtu) {
		cli_error("%s carries packets of at most %u bytes, not of %u; see --mtu",
			  eth_port_name(port, name), info->max_mtu, mtu);
		return APP_USAGE;
	}
	return failed(port, "its MTU can't be set", ret);
}

static int set_up_queues(uint16_t port, struct rte_mempool *pool)
{
	uint16_t rx = ETH_PORT_RING, tx = ETH_PORT_RING;
	int socket = rte_eth_dev_socket_id(port), ret;

	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	if (!ret)
		ret = rte_eth_rx_queue_setup(port, 0, rx, (unsigned int)socket, NULL, pool);
	if (!ret)
		ret = rte_eth_tx_queue_setup(port, 0, tx, (unsigned int)socket, NULL);
	return ret ? failed(port, "its queues can't be set up", ret) : APP_OK;
}

int eth_port_open(uint16_t port, uint16_t mtu, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {.rxmode = {.mtu = mtu}};
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret)
		return failed(port, "it does not say what it can", ret);
	if (info.max_mtu && info.max_mtu < mtu)
		conf.rxmode.mtu = info.max_mtu;
	ret = rte_eth_dev_configure(port, 1, 1, &conf);
	if (ret)
		return failed(port, "it can't be configured", ret);
	ret = set_mtu(port, mtu, &info);
	if (!ret)
		ret = set_up_queues(port, pool);
	if (ret)
		return ret;
	ret = rte_eth_dev_start(port);
	if (ret)
		return failed(port, "it does not start", ret);
	/* Frames are for others than the port. Ports with two ends have no filter to open. */
	ret = rte_eth_promiscuous_enable(port);
	return ret && ret != -ENOTSUP ? failed(port, "it can't be made promiscuous", ret) : APP_OK;
}
