/* SPDX-License-Identifier: BSD-3-Clause */

/* The ports of DPDK, and those that are open. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_devargs.h>

#include "lane.h"
#include "port/claim_dev.h"
#include "port/ethdev.h"
#include "port/nic_state.h"
#include "port/priv.h"
#include "port/rdma.h"

pthread_mutex_t weft_port_lock = PTHREAD_MUTEX_INITIALIZER;
struct weft_port_dev *weft_port_devs[RTE_MAX_ETHPORTS];

/*
 * May Weft use the port? Another part of the process may have claimed it (a bond's members, the
 * application).
 */
static bool is_ours_to_use(uint16_t id)
{
	struct rte_eth_dev_owner owner;

	if (weft_port_devs[id])
		return true;
	return rte_eth_dev_is_valid_port(id) && rte_eth_dev_owner_get(id, &owner) == 0 &&
	       owner.id == RTE_ETH_DEV_NO_OWNER;
}

void weft_port_name(uint16_t id, char name[RTE_ETH_NAME_MAX_LEN])
{
	if (rte_eth_dev_get_name_by_port(id, name))
		snprintf(name, RTE_ETH_NAME_MAX_LEN, "?");
}

/* Has this process claimed the device, since WEFT_PORTS names it? */
static bool is_picked(const char *device)
{
	char name[WEFT_CLAIM_NAME];

	weft_claim_bus_name(name, "pci", device);
	return weft_claim_find(name) >= 0;
}

/* A port whose NIC the kernel uses, too, is used only if it is named. */
static void leave_to_kernel(uint16_t id, struct weft_lane_resource *r)
{
	struct rte_eth_dev_info info;
	char rdma[48];

	if (rte_eth_dev_info_get(id, &info) || !info.device ||
	    !weft_port_rdma(WEFT_PORT_RDMA_SYSFS, rte_dev_name(info.device), rdma, sizeof(rdma)) ||
	    is_picked(rte_dev_name(info.device)))
		return;
	snprintf(r->why, sizeof(r->why),
		 "its NIC has the RDMA device %s: use roce:%s; or name dpdk:%u, which takes "
		 "the NIC's traffic away from the kernel",
		 rdma, rdma, id);
}

/*
 * Devices among the EAL's arguments that are no ports, since their PMD has refused them. The EAL
 * goes on without.
 */
static int list_missing(struct weft_lane_resource *r, int n)
{
	struct rte_devargs *da;

	RTE_EAL_DEVARGS_FOREACH("vdev", da)
	{
		if (n == RTE_MAX_ETHPORTS || !weft_vdev_is_missing(da, r[n].why, sizeof(r[n].why)))
			continue;
		snprintf(r[n].name, sizeof(r[n].name), "%.63s", da->name);
		snprintf(r[n].device, sizeof(r[n].device), "%.63s", da->name);
		n++;
	}
	return n;
}

int weft_port_ethdev_list(struct weft_lane_resource **list)
{
	struct weft_lane_resource *r;
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t id;
	int n = 0;

	*list = NULL;
	r = calloc(RTE_MAX_ETHPORTS, sizeof(*r));
	if (!r)
		return -ENOMEM;
	/*
	 * Without the lock, a port that is just being opened or closed would look like one of
	 * another part.
	 */
	pthread_mutex_lock(&weft_port_lock);
	for (id = 0; id < RTE_MAX_ETHPORTS; id++) {
		if (!is_ours_to_use(id))
			continue;
		weft_port_name(id, name);
		snprintf(r[n].name, sizeof(r[n].name), "%u", id);
		snprintf(r[n].device, sizeof(r[n].device), "%s", name);
		leave_to_kernel(id, &r[n]);
		n++;
	}
	pthread_mutex_unlock(&weft_port_lock);
	n = list_missing(r, n);
	if (n == 0) {
		free(r);
		return 0;
	}
	*list = r;
	return n;
}

static int no_such_port(const char *resource, char *why, size_t why_len)
{
	char name[RTE_ETH_NAME_MAX_LEN], all[256] = "", address[16], problem[400];
	struct weft_nic_env env;
	size_t used = 0;
	uint16_t id;

	weft_nic_env_here(&env);
	if (weft_nic_address(resource, address) &&
	    weft_nic_problem(&env, address, problem, sizeof(problem)))
		return weft_port_fail(-ENODEV, why, why_len, "there is no DPDK port '%s': %s",
				      resource, problem);
	for (id = 0; id < RTE_MAX_ETHPORTS && used < sizeof(all) - 1; id++) {
		if (!is_ours_to_use(id))
			continue;
		weft_port_name(id, name);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%u (%s)",
					 used ? ", " : "", id, name);
	}
	if (!used)
		return weft_port_fail(
			-ENODEV, why, why_len,
			"there is no DPDK port '%s', nor any other: give one in the EAL "
			"arguments (--vdev=net_memif0,role=server) or bind a NIC with "
			"dpdk-devbind.py",
			resource);
	return weft_port_fail(-ENODEV, why, why_len, "there is no DPDK port '%s'; there are %s",
			      resource, all);
}

int weft_port_find(const char *resource, uint16_t *id, char *why, size_t why_len)
{
	char *end;
	unsigned long v = strtoul(resource, &end, 10);
	int rc = 0;

	if (*resource >= '0' && *resource <= '9' && !*end && v < RTE_MAX_ETHPORTS)
		*id = (uint16_t)v;
	else
		rc = rte_eth_dev_get_port_by_name(resource, id);
	if (rc || !is_ours_to_use(*id))
		return no_such_port(resource, why, why_len);
	return 0;
}
