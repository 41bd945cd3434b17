/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/iface_facts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Is it a valid interface name, which as a part of a path leads nowhere else? */
static bool iface_name_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < IF_NAMESIZE && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

/* First line of a file below the interface's folder; "" when there is none. */
static void read_line(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	FILE *f;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "r");
	if (!f)
		return;
	if (!fgets(buf, (int)size, f))
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

static int read_number(const char *dir, const char *file, int otherwise)
{
	char line[32], *end;
	long n;

	read_line(dir, file, line, sizeof(line));
	n = strtol(line, &end, 10);
	return end == line || n < INT_MIN || n > INT_MAX ? otherwise : (int)n;
}

/* The last component of a symbolic link's target. */
static void link_name(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX], *target, *slash;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	target = realpath(path, NULL);
	if (!target)
		return;
	slash = strrchr(target, '/');
	snprintf(buf, size, "%s", slash ? slash + 1 : target);
	free(target);
}

/* "0000:00:06.0" */
static bool is_pci(const char *s, size_t len)
{
	static const char form[] = "hhhh:hh:hh.h";
	size_t i;

	if (len != sizeof(form) - 1)
		return false;
	for (i = 0; i < len; i++)
		if (form[i] == 'h' ? !isxdigit((unsigned char)s[i]) : s[i] != form[i])
			return false;
	return true;
}

/*
 * An interface of virtio belongs to a virtio device, which belongs to a PCI device. So the last PCI
 * address in the path is that of the NIC, and binding replaces the driver of that device.
 */
static void find_device(const char *dir, struct iface_facts *f)
{
	char path[PATH_MAX], *target, *part, *next, *pci = NULL;

	snprintf(path, sizeof(path), "%s/device", dir);
	target = realpath(path, NULL);
	if (!target)
		return;
	for (part = target; part; part = next) {
		next = strchr(part, '/');
		if (next)
			next++;
		if (is_pci(part, next ? (size_t)(next - part - 1) : strlen(part)))
			pci = part;
	}
	if (pci) {
		pci[12] = '\0';
		f->pci = true;
	}
	part = strrchr(target, '/');
	snprintf(f->device, sizeof(f->device), "%s", part ? part + 1 : target);
	f->numa = read_number(target, "numa_node", -1);
	link_name(target, "driver", f->driver, sizeof(f->driver));
	free(target);
}

/* The first entry of a folder whose name begins with @p prefix; without the prefix. */
static void first_entry(const char *dir, const char *sub, const char *prefix, char *buf,
			size_t size)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	d = opendir(path);
	while (d && !buf[0] && (e = readdir(d)))
		if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0)
			snprintf(buf, size, "%s", e->d_name + strlen(prefix));
	if (d)
		closedir(d);
}

int iface_facts_read(const char *sys, const char *name, struct iface_facts *f)
{
	char dir[PATH_MAX], line[64];
	struct stat st;

	*f = (struct iface_facts){.numa = -1, .speed = -1};
	if (!iface_name_valid(name))
		return -EINVAL;
	snprintf(dir, sizeof(dir), "%s/class/net/%s", sys, name);
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return -ENODEV;
	snprintf(f->name, sizeof(f->name), "%s", name);
	read_line(dir, "address", f->mac, sizeof(f->mac));
	f->mtu = (unsigned int)read_number(dir, "mtu", 0);
	f->speed = read_number(dir, "speed", -1);
	if (f->speed <= 0)
		f->speed = -1;
	read_line(dir, "operstate", line, sizeof(line));
	f->up = strcmp(line, "up") == 0;
	find_device(dir, f);
	first_entry(dir, "device/infiniband", "", f->rdma, sizeof(f->rdma));
	read_line(dir, "bonding/slaves", f->members, sizeof(f->members));
	f->bond = f->members[0] != '\0';
	link_name(dir, "master", f->master, sizeof(f->master));
	if (!f->bond && !f->device[0])
		first_entry(dir, "", "lower_", f->lower, sizeof(f->lower));
	return 0;
}

int iface_addrs(const char *name, struct iface_addr *list, unsigned int max)
{
	struct ifaddrs *all, *a;
	unsigned int n = 0;
	uint32_t mask;

	if (getifaddrs(&all))
		return -errno;
	for (a = all; a && n < max; a = a->ifa_next) {
		if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !a->ifa_netmask ||
		    strncmp(a->ifa_name, name, IF_NAMESIZE) != 0)
			continue;
		mask = ntohl(((struct sockaddr_in *)a->ifa_netmask)->sin_addr.s_addr);
		list[n].ip = ntohl(((struct sockaddr_in *)a->ifa_addr)->sin_addr.s_addr);
		list[n++].prefix = (uint8_t)__builtin_popcount(mask);
	}
	freeifaddrs(all);
	return (int)n;
}
