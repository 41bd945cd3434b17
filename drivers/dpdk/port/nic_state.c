/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "port/nic_state.h"

#define NODE_BYTES_MIN (32ull << 20) /* less is no room for a lane's buffers */
#define NODES_MAX 64

/* ---- reading the kernel's folders ----------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static bool link_name(char *name, size_t size,
							    const char *fmt, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	last = strrchr(target, '/');
	snprintf(name, size, "%s", last ? last + 1 : target);
	return true;
}

__attribute__((format(printf, 3, 4))) static bool first_match(char *name, size_t size,
							      const char *fmt, ...)
{
	char pattern[PATH_MAX];
	const char *last;
	va_list ap;
	glob_t g;

	va_start(ap, fmt);
	vsnprintf(pattern, sizeof(pattern), fmt, ap);
	va_end(ap);
	if (glob(pattern, 0, NULL, &g))
		return false;
	last = strrchr(g.gl_pathv[0], '/');
	snprintf(name, size, "%s", last ? last + 1 : g.gl_pathv[0]);
	globfree(&g);
	return true;
}

__attribute__((format(printf, 1, 2))) static unsigned long long read_number(const char *fmt, ...)
{
	unsigned long long v = 0;
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lli", (long long *)&v) != 1)
		v = 0;
	fclose(f);
	return v;
}

/* ---- one NIC -------------------------------------------------------------------------------- */

bool weft_nic_address(const char *text, char address[16])
{
	unsigned int domain = 0, bus, device, function;
	int end = 0;

	if (sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4) {
		domain = 0;
		end = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
			return false;
	}
	if (text[end] != '\0')
		return false;
	snprintf(address, 16, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, device & 0xff,
		 function & 7);
	return true;
}

static bool is_one_of(const char *name, const char *const list[])
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

static bool is_uio(const char *driver)
{
	static const char *const list[] = {"uio_pci_generic", "igb_uio", NULL};

	return is_one_of(driver, list);
}

static bool is_shared(const char *driver)
{
	static const char *const list[] = {"mlx5_core", "mlx4_core", "mana", NULL};

	return is_one_of(driver, list);
}

bool weft_nic_is_bound(const struct weft_nic_env *env, const char *address)
{
	char driver[64];

	return link_name(driver, sizeof(driver), "%s/bus/pci/devices/%s/driver", env->sys,
			 address) &&
	       (is_uio(driver) || !strcmp(driver, "vfio-pci"));
}

static bool may_open(const char *path, bool *exists)
{
	*exists = access(path, F_OK) == 0;
	return access(path, R_OK | W_OK) == 0;
}

static void bind_how(const struct weft_nic_env *env, const char *address, char *how, size_t size)
{
	char group[32];

	if (env->noiommu ||
	    link_name(group, sizeof(group), "%s/bus/pci/devices/%s/iommu_group", env->sys, address))
		snprintf(how, size,
			 "bind it to vfio-pci (modprobe vfio-pci; dpdk-devbind.py -b vfio-pci %s)",
			 address);
	else
		snprintf(how, size,
			 "no IOMMU is on, and vfio-pci needs one: bind the NIC to another driver "
			 "(weft-bind %s chooses one), or switch an IOMMU on (firmware; "
			 "intel_iommu=on or amd_iommu=on on the kernel's command line)",
			 address);
}

static bool vfio_problem(const struct weft_nic_env *env, const char *address, char *why,
			 size_t why_len)
{
	char group[32], path[PATH_MAX];
	bool exists;

	if (!link_name(group, sizeof(group), "%s/bus/pci/devices/%s/iommu_group", env->sys,
		       address)) {
		snprintf(why, why_len,
			 "%s is bound to vfio-pci, but no IOMMU of this machine is on: "
			 "switch one on (firmware; intel_iommu=on or amd_iommu=on on the kernel's "
			 "command line), or bind the NIC to uio_pci_generic, which needs hugepages "
			 "(dpdk-devbind.py -b uio_pci_generic %s)",
			 address, address);
		return true;
	}
	snprintf(path, sizeof(path), "%s/vfio/%s%s", env->dev, env->noiommu ? "noiommu-" : "",
		 group);
	if (may_open(path, &exists))
		return false;
	if (exists)
		snprintf(why, why_len,
			 "%s is bound to vfio-pci, but you may not open %s: run as root, or give "
			 "the file to the user (chown USER %s)",
			 address, path, path);
	else
		snprintf(why, why_len,
			 "%s is bound to vfio-pci, but %s is not there: bind all devices of IOMMU "
			 "group %s to vfio-pci, or to no driver, and mount /dev with it "
			 "(containers: --device)",
			 address, path, group);
	return true;
}

static bool uio_problem(const struct weft_nic_env *env, const char *address, const char *driver,
			char *why, size_t why_len)
{
	char uio[32], path[PATH_MAX];
	bool exists;

	if (!env->hugepages) {
		snprintf(why, why_len,
			 "%s is bound to %s, which needs hugepages, and the EAL runs without: "
			 "reserve some (echo 512 "
			 ">/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages; 96 MiB must be "
			 "free, and no --no-huge), or bind the NIC to vfio-pci, which needs an "
			 "IOMMU",
			 address, driver);
		return true;
	}
	if (!first_match(uio, sizeof(uio), "%s/bus/pci/devices/%s/uio/*", env->sys, address))
		return false;
	snprintf(path, sizeof(path), "%s/%s", env->dev, uio);
	if (may_open(path, &exists))
		return false;
	snprintf(why, why_len,
		 "%s is bound to %s, but you may not open %s: run as root (only root sees physical "
		 "addresses)",
		 address, driver, path);
	return true;
}

bool weft_nic_problem(const struct weft_nic_env *env, const char *address, char *why,
		      size_t why_len)
{
	char path[PATH_MAX], driver[64], interface[32], how[256];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", env->sys, address);
	if (access(path, F_OK)) {
		snprintf(why, why_len,
			 "%s is no PCI device of this machine: dpdk-devbind.py --status lists them",
			 address);
		return true;
	}
	bind_how(env, address, how, sizeof(how));
	if (!link_name(driver, sizeof(driver), "%s/driver", path)) {
		snprintf(why, why_len, "%s has no driver: %s", address, how);
		return true;
	}
	if (!strcmp(driver, "vfio-pci"))
		return vfio_problem(env, address, why, why_len);
	if (is_uio(driver))
		return uio_problem(env, address, driver, why, why_len);
	if (is_shared(driver))
		return false;
	/* virtio's interfaces are one folder further down. */
	if (!first_match(interface, sizeof(interface), "%s/net/*", path) &&
	    !first_match(interface, sizeof(interface), "%s/virtio*/net/*", path))
		snprintf(interface, sizeof(interface), "none");
	snprintf(why, why_len,
		 "%s is still the kernel's (driver %s, interface %s): note its IP address, take "
		 "the interface down; %s",
		 address, driver, interface, how);
	return true;
}

/* A device without a driver may be a port, too: virtio's PMD takes such devices. */
static bool may_be_port(const struct weft_nic_env *env, const char *address)
{
	char driver[64];

	return !link_name(driver, sizeof(driver), "%s/bus/pci/devices/%s/driver", env->sys,
			  address) ||
	       is_shared(driver) || weft_nic_is_bound(env, address);
}

bool weft_nic_any(const struct weft_nic_env *env)
{
	char path[PATH_MAX], address[16], name[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	/* NICs of Hyper-V, functions of mlx5, and buses of some boards are no PCI devices. */
	if (first_match(name, sizeof(name), "%s/bus/vmbus/drivers/uio_hv_generic/*-*", env->sys) ||
	    first_match(name, sizeof(name), "%s/bus/auxiliary/devices/mlx5_core.sf.*", env->sys) ||
	    first_match(name, sizeof(name), "%s/bus/fsl-mc/devices/*", env->sys) ||
	    first_match(name, sizeof(name), "%s/bus/cdx/devices/*", env->sys) ||
	    first_match(name, sizeof(name), "%s/bus/platform/devices/fsl,dpaa*", env->sys))
		return true;
	snprintf(path, sizeof(path), "%s/bus/pci/devices", env->sys);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)))
		found = weft_nic_address(entry->d_name, address) &&
			read_number("%s/%s/class", path, address) >> 16 == 2 &&
			may_be_port(env, address);
	closedir(dir);
	return found;
}

/* ---- memory of a node ----------------------------------------------------------------------- */

static unsigned long long free_on_node(const struct weft_nic_env *env, int node)
{
	unsigned long long kb, bytes = 0;
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/hugepages", env->sys, node);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (sscanf(entry->d_name, "hugepages-%llukB", &kb) == 1)
			bytes += kb * 1024 *
				 read_number("%s/%s/free_hugepages", path, entry->d_name);
	closedir(dir);
	return bytes;
}

void weft_nic_node_memory(const struct weft_nic_env *env, int node, char *why, size_t why_len)
{
	unsigned long long there, elsewhere = 0;
	int other, with = -1;

	if (why_len)
		why[0] = '\0';
	if (node < 0 || !env->hugepages)
		return;
	there = free_on_node(env, node);
	for (other = 0; other < NODES_MAX; other++) {
		if (other == node || free_on_node(env, other) <= elsewhere)
			continue;
		elsewhere = free_on_node(env, other);
		with = other;
	}
	if (there >= NODE_BYTES_MIN || elsewhere < NODE_BYTES_MIN)
		return;
	snprintf(why, why_len,
		 "; the NIC is on NUMA node %d, where %llu MiB of hugepages are free, and node %d "
		 "has %llu: reserve hugepages on the NIC's node (echo 512 "
		 ">/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages)",
		 node, there >> 20, with, elsewhere >> 20, node);
}

/* ---- this machine --------------------------------------------------------------------------- */

void weft_nic_env_here(struct weft_nic_env *env)
{
	*env = (struct weft_nic_env){
		.sys = "/sys",
		.dev = "/dev",
		.hugepages = rte_eal_has_hugepages(),
		.noiommu =
			read_number("%s",
				    "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") != 0,
	};
}

static bool is_port(const char *address)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	for (id = 0; id < RTE_MAX_ETHPORTS; id++)
		if (rte_eth_dev_is_valid_port(id) && rte_eth_dev_info_get(id, &info) == 0 &&
		    info.device && !strcmp(rte_dev_name(info.device), address))
			return true;
	return false;
}

#define CAP_NET_RAW_BIT 13

/* Sockets of net_af_packet and net_af_xdp need CAP_NET_RAW. Root of a container may lack it. */
static bool have_net_raw(void)
{
	unsigned long long caps = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return true;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(f);
	return caps >> CAP_NET_RAW_BIT & 1;
}

static void explain_one(const struct weft_nic_env *env, const char *address,
			void (*report)(const char *sentence))
{
	char why[512];

	if (!weft_nic_problem(env, address, why, sizeof(why)))
		snprintf(why, sizeof(why),
			 "%s is no port: no PMD took it; --log-level=info logs the EAL's reason, "
			 "and WEFT_EAL_ARGS, or the words before --, name the NICs to use%s",
			 address,
			 geteuid() ? "; a process that is not root's needs rights on its device "
				     "files"
				   : "");
	report(why);
}

/* Network controllers have the PCI class 2. */
static unsigned int explain_bound(const struct weft_nic_env *env,
				  void (*report)(const char *sentence))
{
	char path[PATH_MAX], address[16];
	const struct dirent *entry;
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/bus/pci/devices", env->sys);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (!weft_nic_address(entry->d_name, address) ||
		    read_number("%s/%s/class", path, address) >> 16 != 2 ||
		    !weft_nic_is_bound(env, address) || is_port(address))
			continue;
		explain_one(env, address, report);
		n++;
	}
	closedir(dir);
	return n;
}

/* @param[out] named  -a or -b names a NIC. @return the number of NICs of -a that are no ports */
static unsigned int explain_named(const struct weft_nic_env *env,
				  void (*report)(const char *sentence), bool *named)
{
	struct rte_devargs *da;
	unsigned int n = 0;
	char address[16];

	*named = false;
	RTE_EAL_DEVARGS_FOREACH("pci", da)
	{
		*named = true;
		if (da->policy != RTE_DEV_ALLOWED || !weft_nic_address(da->name, address) ||
		    is_port(address))
			continue;
		if (report)
			explain_one(env, address, report);
		n++;
	}
	return n;
}

unsigned int weft_nic_explain(const struct weft_nic_env *env, void (*report)(const char *sentence))
{
	unsigned int n;
	bool named;

	if (!rte_eal_has_pci())
		return 0;
	n = explain_named(env, report, &named);
	return named ? n : explain_bound(env, report);
}

bool weft_vdev_is_missing(const struct rte_devargs *da, char *why, size_t why_len)
{
	uint16_t id;

	if ((strncmp(da->name, "net_", 4) && strncmp(da->name, "eth_", 4)) ||
	    !rte_eth_dev_get_port_by_name(da->name, &id))
		return false;
	if ((strstr(da->name, "af_packet") || strstr(da->name, "af_xdp")) && !have_net_raw())
		snprintf(why, why_len, "--vdev=%.64s made no port: it needs root or CAP_NET_RAW",
			 da->name);
	else
		snprintf(why, why_len,
			 "--vdev=%.64s made no port: check its arguments, and DPDK's lines "
			 "above",
			 da->name);
	return true;
}

unsigned int weft_port_explain_missing(void (*report)(const char *sentence))
{
	struct weft_nic_env env;
	struct rte_devargs *da;
	unsigned int n = 0;
	char why[160];
	bool named;

	weft_nic_env_here(&env);
	if (rte_eal_has_pci())
		n = explain_named(&env, report, &named);
	RTE_EAL_DEVARGS_FOREACH("vdev", da)
	{
		if (!weft_vdev_is_missing(da, why, sizeof(why)))
			continue;
		if (report)
			report(why);
		n++;
	}
	return n;
}

/* ---- NICs that the kernel drives, too ------------------------------------------------------- */

bool weft_port_rdma(const char *sysfs, const char *device, char *rdma, size_t size)
{
	const struct dirent *entry;
	bool found = false;
	char path[512];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s/infiniband", sysfs, device);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(rdma, size, "%s", entry->d_name);
	}
	closedir(dir);
	return found;
}
