/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/lane_options.h"

#include <errno.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "drivers/dpdk/port/lane_opts.h"
#include "info/iface_facts.h"

/* NICs whose DPDK driver works together with the kernel's. */
static bool is_bifurcated(const char *driver)
{
	static const char *const names[] = {"mlx5_core", "mlx4_core", "mana"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(driver, names[i]) == 0)
			return true;
	return false;
}

static const char *ip_text(uint32_t ip, char buf[16])
{
	snprintf(buf, 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
	return buf;
}

static bool is_link_local(uint32_t ip)
{
	return ip >> 16 == 0xa9fe;
}

static void print_device(const struct iface_facts *f)
{
	printf("%s\n", f->name);
	if (f->pci)
		printf("  PCI address      %s\n", f->device);
	else
		printf("  device           %s\n", f->device[0] ? f->device : "none: virtual");
	printf("  kernel driver    %s\n", f->driver[0] ? f->driver : "none");
	printf("  MAC address      %s\n", f->mac);
	if (f->speed > 0)
		printf("  speed            %g Gb/s\n", f->speed / 1000.0);
	else
		printf("  speed            not known\n");
	if (f->numa >= 0)
		printf("  NUMA node        %d\n", f->numa);
	printf("  link             %s\n", f->up ? "up" : "down");
}

/* A VMBus device, which DPDK names by its UUID. */
static bool is_vmbus(const struct iface_facts *f)
{
	static const char form[] = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
	size_t i;

	for (i = 0; i < sizeof(form); i++)
		if (form[i] == 'h' ? !isxdigit((unsigned char)f->device[i])
				   : f->device[i] != form[i])
			return false;
	return true;
}

/* net_af_packet: ring frames have 2048 bytes, of which headers of the kernel take 66. */
#define RING_FRAME_DEFAULT 2048u
#define RING_FRAME_HEADERS 66u

static void print_af_packet(const struct iface_facts *f)
{
	uint32_t framesz = f->mtu + 14 + RING_FRAME_HEADERS;

	printf("  EAL              --no-pci --vdev=net_af_packet0,iface=%s", f->name);
	/* A block of the ring must have whole pages: four frames of whole KiB do. */
	framesz = (framesz + 1023) / 1024 * 1024;
	if (f->mtu <= WEFT_MTU_MAX && framesz > RING_FRAME_DEFAULT)
		printf(",framesz=%u,blocksz=%u,framecnt=512", framesz, 4 * framesz);
	printf("\n");
}

/* A line of lane options for each address, best first. Those of a virtual one stay the kernel's. */
static void print_options(const struct iface_facts *f, const struct iface_addr *addr, int n,
			  uint32_t gateway)
{
	char port[96], ip[16], gw[16], via[24] = "", mtu[16] = "";
	bool nic = f->pci || is_vmbus(f);
	int i;

	snprintf(port, sizeof(port), "dpdk:%s", nic ? f->device : "0");
	if (gateway)
		snprintf(via, sizeof(via), ",gw=%s", ip_text(gateway, gw));
	/* The loopback interface has a larger MTU than lanes allow. */
	if (f->mtu >= WEFT_MTU_MIN && f->mtu <= WEFT_MTU_MAX)
		snprintf(mtu, sizeof(mtu), ",mtu=%u", f->mtu);
	for (i = 0; nic && i < n; i++)
		printf("  %-16s %s,ip=%s/%u%s%s\n", i ? "or" : "lane", port,
		       ip_text(addr[i].ip, ip), addr[i].prefix, addr[i].ip == gateway ? "" : via,
		       mtu);
	if (!nic || n == 0)
		printf("  lane             %s%s\n", port, mtu);
	if (nic)
		printf("  EAL              -a %s\n", f->device);
	else if (strchr(f->name, ','))
		printf("  EAL              none: --vdev allows no comma in a name; rename the "
		       "interface (ip link set dev '%s' name NAME)\n",
		       f->name);
	else if (!f->device[0])
		print_af_packet(f);
}

/* Without ip= a lane chooses a link-local address, which reaches the interface's own network. */
static void print_virtual(const struct iface_addr *addr, int n)
{
	char ip[16];

	printf("  note             the kernel keeps a virtual interface, and responds for its "
	       "addresses");
	if (n > 0)
		printf(" (%s/%u): for a lane that peers reach over a router add ip= with a "
		       "free address of that network, and gw=",
		       ip_text(addr[0].ip, ip), addr[0].prefix);
	printf("\n");
}

static void print_notes(const struct iface_facts *f, const struct iface_addr *addr, int n,
			const struct iface_routes *r)
{
	if (n == 0)
		printf("  note             it has no IPv4 address: get one by DHCP or from the "
		       "cloud first; without ip= a lane takes a link-local address, which "
		       "clouds drop\n");
	if (n > 0 && is_link_local(addr[0].ip))
		printf("  note             its address is link-local: no network behind a "
		       "router\n");
	if (n > 1 && f->device[0])
		printf("  note             a lane has one address: choose one of these\n");
	if (n > 0 && !r->gateway)
		printf("  note             no route over it has a gateway, so the lane reaches its "
		       "own network only\n");
	if (r->default_here)
		printf("  note             the machine's default route goes over it: bind another "
		       "NIC, or this machine can no longer be reached\n");
	if (f->rdma[0])
		printf("  note             it has the RDMA device %s: where the network carries "
		       "RoCE, a lane roce:%s is better and leaves the NIC to the kernel\n",
		       f->rdma, f->rdma);
	if (is_bifurcated(f->driver))
		printf("  note             do not bind it: DPDK uses it together with %s\n",
		       f->driver);
	if (f->bond)
		printf("  note             a bond of %s: give each member a lane of its own, with "
		       "an address of its own\n",
		       f->members);
	else if (f->master[0])
		printf("  note             a member of %s, which has the addresses\n", f->master);
	if (f->lower[0])
		printf("  note             its lower interface is %s: bind that one; for a VLAN "
		       "add vlan=\n",
		       f->lower);
	else if (!f->device[0] && !f->bond)
		print_virtual(addr, n);
	if (is_vmbus(f))
		printf("  note             on VMBus, not PCI: bind it with driverctl, as "
		       "in doc/clouds.md for Azure\n");
	else if (f->device[0] && !f->pci)
		printf("  note             neither on PCI nor on VMBus: DPDK has no driver for "
		       "it\n");
}

int info_lane_options(const char *name)
{
	struct iface_addr addr[IFACE_ADDRS_MAX];
	struct iface_routes routes;
	struct iface_facts facts;
	int n, rc = iface_facts_read("/sys", name, &facts);

	if (rc) {
		cli_error("there is no network interface '%s' here; see 'ip link' (a NIC that is "
			  "bound to DPDK's driver has none: weft-bind --undo returns it)",
			  name);
		return APP_FAIL;
	}
	n = iface_addrs(name, addr, IFACE_ADDRS_MAX);
	if (n >= 0)
		rc = iface_routes(if_nametoindex(name), &routes);
	if (n < 0 || rc < 0) {
		cli_error("cannot read %s's addresses from the kernel: %s", name,
			  strerror(n < 0 ? -n : -rc));
		return APP_FAIL;
	}
	print_device(&facts);
	print_options(&facts, addr, n, routes.gateway);
	print_notes(&facts, addr, n, &routes);
	return APP_OK;
}
