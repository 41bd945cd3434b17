/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/iface_facts.h
 * The kernel's data on a network interface, which a lane on its NIC needs as options. The kernel
 * has these data only until the NIC is bound to DPDK's driver.
 */
#ifndef APP_IFACE_FACTS_H
#define APP_IFACE_FACTS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IFACE_ADDRS_MAX 16

struct iface_facts {
	char name[IF_NAMESIZE];
	char device[64]; /**< name on its bus, as a PCI address or VMBus UUID; "" = virtual */
	bool pci;
	char driver[32]; /**< the kernel's driver of the device; "" = none */
	char mac[18];
	unsigned int mtu;
	int speed; /**< Mb/s; -1 = not known */
	int numa;  /**< -1 = not known, or none */
	bool up;
	char rdma[64];            /**< RDMA device of the same NIC; "" = none */
	bool bond;                /**< a bonding master with members */
	char members[128];        /**< interfaces of a bond, separated by blanks */
	char master[IF_NAMESIZE]; /**< bond or bridge that has it as a member; "" = none */
	char lower[IF_NAMESIZE];  /**< the interface below a virtual one, as of a VLAN; "" = none */
};

struct iface_addr {
	uint32_t ip; /**< host byte order */
	uint8_t prefix;
};

struct iface_routes {
	uint32_t gateway;  /**< of the preferred route over the interface, host order; 0 = none */
	bool default_here; /**< the machine's default route goes over it */
};

/**
 * @param sys  "/sys", or a copy of such a folder
 * @return 0; -EINVAL: @p name is no valid name; -ENODEV: there is no such interface
 */
int iface_facts_read(const char *sys, const char *name, struct iface_facts *facts);

/** @param[out] list  IPv4 addresses in the kernel's order. @return number or negative error */
int iface_addrs(const char *name, struct iface_addr *list, unsigned int max);

/**
 * Search all routing tables: agents of clouds put the gateway of a second NIC into a separate
 * table. A default route is preferred, and the main table is preferred over others.
 * @return 0 or a negative error
 */
int iface_routes(unsigned int if_index, struct iface_routes *routes);

#endif /* APP_IFACE_FACTS_H */
