/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/iface_facts.h
 * What the kernel knows of a network interface: what a lane on its NIC needs as options once the
 * NIC is DPDK's and the kernel has forgotten it. sysfs, netlink and libc only.
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
	char device[64]; /**< of its bus: a PCI address, a VMBus UUID; "" = a virtual interface */
	bool pci;        /**< device is a PCI address */
	char driver[32]; /**< the kernel's; "" = none */
	char mac[18];
	unsigned int mtu;
	int speed; /**< Mb/s; -1 = not known */
	int numa;  /**< -1 = not known, or none */
	bool up;
	char rdma[64];            /**< RDMA device of the same NIC; "" = none */
	bool bond;                /**< a bonding or team master */
	char members[128];        /**< of it, separated by blanks */
	char master[IF_NAMESIZE]; /**< bond or bridge that it is a member of; "" = none */
	char lower[IF_NAMESIZE];  /**< a VLAN's or macvlan's interface; "" = it rests on none */
};

struct iface_addr {
	uint32_t ip; /**< host byte order */
	uint8_t prefix;
};

struct iface_routes {
	uint32_t gateway;  /**< of routes over the interface; 0 = none */
	bool default_here; /**< the machine's default route goes over it */
};

/**
 * @param sys  "/sys"
 * @return 0, -EINVAL (no interface's name), -ENODEV
 */
int iface_facts_read(const char *sys, const char *name, struct iface_facts *facts);

/** IPv4 addresses, in the kernel's order. @return how many, or a negative error */
int iface_addrs(const char *name, struct iface_addr *list, unsigned int max);

/**
 * From all routing tables: clouds' agents put a second NIC's gateway into a table of its own. The
 * default route's counts first, and the main table's before others.
 * @return 0 or a negative error
 */
int iface_routes(unsigned int if_index, struct iface_routes *routes);

#endif /* APP_IFACE_FACTS_H */
