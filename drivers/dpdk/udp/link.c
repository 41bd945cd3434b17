/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces of this host, and routes, as the kernel has them. */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "udp/priv.h"

#ifndef RTM_F_FIB_MATCH
#define RTM_F_FIB_MATCH 0x2000
#endif

/* ---- interfaces ----------------------------------------------------------------------------- */

static bool fill(struct weft_udp_iface *i, const struct ifaddrs *a)
{
	const struct sockaddr_in *ip = (const void *)a->ifa_addr, *mask = (void *)a->ifa_netmask;

	if (!ip || ip->sin_family != AF_INET || !mask)
		return false;
	/* "eth0:1" is a label of eth0 */
	snprintf(i->name, sizeof(i->name), "%.*s", (int)strcspn(a->ifa_name, ":"), a->ifa_name);
	i->index = if_nametoindex(i->name);
	i->flags = a->ifa_flags;
	i->ip = ntohl(ip->sin_addr.s_addr);
	i->prefix = (uint8_t)__builtin_popcount(mask->sin_addr.s_addr);
	return i->index != 0;
}

int weft_udp_ifaces(struct weft_udp_iface **list)
{
	struct ifaddrs *all, *a;
	int n = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (a = all; a; a = a->ifa_next)
		n++;
	*list = calloc((size_t)n + 1, sizeof(**list));
	n = *list ? 0 : -ENOMEM;
	for (a = all; *list && a; a = a->ifa_next)
		n += fill(&(*list)[n], a);
	freeifaddrs(all);
	return n;
}

/* Is there /sys/class/net/NAME/WHAT? */
static bool has(const char *name, const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, what);
	return access(path, F_OK) == 0;
}

/* A bridge without a device of this host connects containers or guests, not hosts. */
static bool is_inner_bridge(const char *name)
{
	const struct dirent *e;
	bool inner = true;
	char path[128];
	DIR *dir;

	if (!has(name, "bridge"))
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/brif", name);
	dir = opendir(path);
	while (dir && inner && (e = readdir(dir)))
		inner = e->d_name[0] == '.' || !has(e->d_name, "device");
	if (dir)
		closedir(dir);
	return inner;
}

/* Does WEFT_LANES=udp:* open the interface? */
static bool is_default(const struct weft_udp_iface *i)
{
	const unsigned int up = IFF_UP | IFF_RUNNING;

	return (i->flags & up) == up && !(i->flags & (IFF_LOOPBACK | IFF_POINTOPOINT)) &&
	       !is_inner_bridge(i->name);
}

int weft_udp_list(struct weft_lane_resource **out)
{
	struct weft_lane_resource *list;
	struct weft_udp_iface *all = NULL;
	int n = weft_udp_ifaces(&all), num = 0, k;

	*out = NULL;
	list = n > 0 ? calloc((size_t)n, sizeof(*list)) : NULL;
	for (int i = 0; list && i < n; i++) {
		for (k = 0; k < num && strcmp(list[k].name, all[i].name) != 0; k++)
			;
		if (k < num || !is_default(&all[i]))
			continue; /* the first address is the lane's */
		snprintf(list[num].name, sizeof(list[num].name), "%s", all[i].name);
		snprintf(list[num].device, sizeof(list[num].device), "%s", all[i].name);
		num++;
	}
	free(all);
	if (n > 0 && !list)
		return -ENOMEM;
	if (num == 0) {
		free(list);
		list = NULL;
	}
	*out = list;
	return n < 0 ? n : num;
}

static int iface_ioctl(int fd, const char *name, unsigned long request, struct ifreq *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", name);
	return ioctl(fd, request, r) < 0 ? -errno : 0;
}

int weft_udp_mtu(int fd, const char *name)
{
	struct ifreq r;
	int err = iface_ioctl(fd, name, SIOCGIFMTU, &r);

	return err < 0 ? err : r.ifr_mtu;
}

int weft_udp_flags(int fd, const char *name)
{
	struct ifreq r;
	int err = iface_ioctl(fd, name, SIOCGIFFLAGS, &r);

	return err < 0 ? err : (unsigned short)r.ifr_flags;
}

double weft_udp_speed(const char *name)
{
	char path[128];
	long mbit = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%ld", &mbit) != 1 || mbit < 0)
		mbit = 0;
	fclose(f);
	return (double)mbit * 1e6 / 8;
}

/* ---- routes --------------------------------------------------------------------------------- */

struct question {
	struct nlmsghdr h;
	struct rtmsg rt;
	char attrs[64];
};

static void add(struct question *q, unsigned short type, const void *value, unsigned short len)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), value, len);
	q->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->h.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

/* @return 0 = there is a route by this interface; a negative error: none, or not known */
static int query(const struct weft_udp *u, uint32_t ip)
{
	uint32_t dst = htonl(ip), src = htonl(u->ip), oif = u->if_index;
	struct question q = {
		.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
		      .nlmsg_type = RTM_GETROUTE,
		      .nlmsg_flags = NLM_F_REQUEST},
		/* Without it, the kernel takes any address for one on the link of the interface. */
		.rt = {.rtm_family = AF_INET,
		       .rtm_dst_len = 32,
		       .rtm_src_len = 32,
		       .rtm_flags = RTM_F_FIB_MATCH},
	};
	union {
		struct nlmsghdr h;
		char room[4096];
	} answer;
	const struct nlmsgerr *e = NLMSG_DATA(&answer.h);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd < 0)
		return -EPERM;
	add(&q, RTA_DST, &dst, sizeof(dst));
	add(&q, RTA_SRC, &src, sizeof(src));
	add(&q, RTA_OIF, &oif, sizeof(oif));
	/* The kernel answers within send(): recv() does not wait. */
	if (send(fd, &q, q.h.nlmsg_len, 0) == (ssize_t)q.h.nlmsg_len)
		n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	close(fd);
	if (n < (ssize_t)sizeof(answer.h))
		return -EPERM;
	if (answer.h.nlmsg_type != NLMSG_ERROR || n < (ssize_t)NLMSG_LENGTH(sizeof(*e)))
		return 0;
	return e->error;
}

int weft_udp_route(const struct weft_udp *u, uint32_t ip, char *why, size_t why_len)
{
	int err = query(u, ip);

	/* Without an answer, frames show whether there is a route. */
	if (err != -ENETUNREACH && err != -EHOSTUNREACH && err != -EACCES && err != -EINVAL)
		return 0;
	snprintf(why, why_len,
		 "no route leads from interface %s to %u.%u.%u.%u: check its subnet, or add one "
		 "(ip route add ... dev %s)",
		 u->name, ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255, u->name);
	return -EHOSTUNREACH;
}
