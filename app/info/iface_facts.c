/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "info/iface_facts.h"

/* The name becomes a part of a path, so it must not lead to another folder. */
static bool iface_name_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < IF_NAMESIZE && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

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
 * The device of a virtio NIC is below its PCI device, whose address is the last one in the path.
 * Binding replaces the driver of the PCI device.
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

/* @param[out] buf  name of the first entry that begins with @p prefix, without it; "" = none */
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

/* ---- addresses and routes ------------------------------------------------------------------- */

struct route {
	uint32_t gateway, metric, table;
	bool over; /* the route, or one hop of a multipath route, is over the interface */
	uint8_t dst_len;
};

struct best {
	struct iface_routes *out;
	bool has_default; /* the main table has a default route, over any interface */
	uint32_t default_metric;
	uint64_t rank; /* of out->gateway; less is better */
};

static void take_hops(struct route *r, const struct rtattr *a, unsigned int if_index)
{
	struct rtnexthop *hop = RTA_DATA(a);
	int len = (int)RTA_PAYLOAD(a), left;
	struct rtattr *sub;

	for (; RTNH_OK(hop, len); len -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
		if ((unsigned int)hop->rtnh_ifindex != if_index)
			continue;
		r->over = true;
		left = (int)(hop->rtnh_len - sizeof(*hop));
		for (sub = RTNH_DATA(hop); RTA_OK(sub, left); sub = RTA_NEXT(sub, left))
			if (sub->rta_type == RTA_GATEWAY)
				r->gateway = ntohl(weft_netlink_u32(sub));
	}
}

static void read_route(const struct nlmsghdr *msg, unsigned int if_index, struct route *r)
{
	const struct rtmsg *rt = NLMSG_DATA(msg);
	struct rtattr *a;
	int len;

	*r = (struct route){.table = rt->rtm_table, .dst_len = rt->rtm_dst_len};
	if (rt->rtm_family != AF_INET || rt->rtm_type != RTN_UNICAST)
		return;
	for (a = weft_netlink_attrs(msg, sizeof(*rt), &len); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		switch (a->rta_type) {
		case RTA_TABLE:
			r->table = weft_netlink_u32(a);
			break;
		case RTA_OIF:
			r->over = weft_netlink_u32(a) == if_index;
			break;
		case RTA_GATEWAY:
			r->gateway = ntohl(weft_netlink_u32(a));
			break;
		case RTA_PRIORITY:
			r->metric = weft_netlink_u32(a);
			break;
		case RTA_MULTIPATH:
			take_hops(r, a, if_index);
			break;
		}
	}
}

static void take_route(const struct route *r, struct best *b)
{
	bool main_table = r->table == RT_TABLE_MAIN;
	uint64_t rank = (uint64_t)(r->dst_len > 0) << 48 | (uint64_t)!main_table << 40 |
			(uint64_t)r->dst_len << 32 | r->metric;

	/* DHCP sets a default route for each NIC. The machine uses that of the lowest metric. */
	if (r->dst_len == 0 && main_table &&
	    (!b->has_default || r->metric < b->default_metric ||
	     (r->metric == b->default_metric && r->over))) {
		b->has_default = true;
		b->default_metric = r->metric;
		b->out->default_here = r->over;
	}
	if (!r->over)
		return;
	if (r->gateway != 0 && rank < b->rank) {
		b->rank = rank;
		b->out->gateway = r->gateway;
	}
}

struct wanted {
	struct best best;
	unsigned int if_index;
};

static void take_answer(const struct nlmsghdr *msg, void *arg)
{
	struct wanted *w = arg;
	struct route r;

	read_route(msg, w->if_index, &r);
	take_route(&r, &w->best);
}

int iface_routes(unsigned int if_index, struct iface_routes *routes)
{
	struct wanted w = {.best = {.out = routes, .rank = UINT64_MAX}, .if_index = if_index};
	const struct rtmsg rt = {.rtm_family = AF_INET};
	struct weft_netlink n;

	*routes = (struct iface_routes){0};
	weft_netlink_init(&n, RTM_GETROUTE, NLM_F_DUMP, &rt, sizeof(rt));
	return weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWROUTE, sizeof(rt), take_answer, &w);
}
