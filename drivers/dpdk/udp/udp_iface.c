/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "udp/udp_iface.h"

static void fill_ip6(struct weft_udp_iface *i, const struct sockaddr_in6 *ip,
		     const struct sockaddr_in6 *mask)
{
	i->ip6 = ip->sin6_addr;
	for (unsigned int k = 0; k < sizeof(i->ip6); k++)
		i->prefix = (uint8_t)(i->prefix + __builtin_popcount(mask->sin6_addr.s6_addr[k]));
}

static bool fill(struct weft_udp_iface *i, const struct ifaddrs *a)
{
	const struct sockaddr_in *ip = (const void *)a->ifa_addr, *mask = (void *)a->ifa_netmask;

	if (!ip || (ip->sin_family != AF_INET && ip->sin_family != AF_INET6) || !mask)
		return false;
	*i = (struct weft_udp_iface){.flags = a->ifa_flags};
	/* "eth0:1" is a label of eth0 */
	snprintf(i->name, sizeof(i->name), "%.*s", (int)strcspn(a->ifa_name, ":"), a->ifa_name);
	i->index = if_nametoindex(i->name);
	if (ip->sin_family == AF_INET6) {
		fill_ip6(i, (const void *)ip, (const void *)mask);
		return i->index != 0;
	}
	i->ip = ntohl(ip->sin_addr.s_addr);
	i->prefix = (uint8_t)__builtin_popcount(mask->sin_addr.s_addr);
	return i->index != 0;
}

int weft_udp_iface_list(struct weft_udp_iface **list)
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

/* Does WEFT_LANES=udp:* open the interface? Loopback is for workers without another lane. */
static bool is_default(const struct weft_udp_iface *i)
{
	const unsigned int up = IFF_UP | IFF_RUNNING;

	/* Each interface has a link-local address, also where it reaches nothing. */
	if (i->ip == 0 && IN6_IS_ADDR_LINKLOCAL(&i->ip6))
		return false;
	return (i->flags & up) == up && !(i->flags & IFF_POINTOPOINT) && !is_inner_bridge(i->name);
}

/* The first address of an interface is the lane's: those of IPv4 come first. */
static bool is_listed_before(const struct weft_udp_iface *all, int i)
{
	for (int k = 0; k < i; k++)
		if (strcmp(all[k].name, all[i].name) == 0 && is_default(&all[k]))
			return true;
	return false;
}

int weft_udp_list(weft_lane_resource_cb add, void *arg)
{
	struct weft_udp_iface *all = NULL;
	int n = weft_udp_iface_list(&all), rc = n < 0 ? n : 0;

	for (int i = 0; rc == 0 && i < n; i++)
		if (is_default(&all[i]) && !is_listed_before(all, i))
			rc = add(arg, &(struct weft_lane_resource){
					      .name = all[i].name,
					      .inside = all[i].flags & IFF_LOOPBACK,
				      });
	free(all);
	return rc;
}

static int iface_ioctl(int fd, const char *name, unsigned long request, struct ifreq *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", name);
	return ioctl(fd, request, r) < 0 ? -errno : 0;
}

int weft_udp_iface_mtu(int fd, const char *name)
{
	struct ifreq r;
	int err = iface_ioctl(fd, name, SIOCGIFMTU, &r);

	return err < 0 ? err : r.ifr_mtu;
}

int weft_udp_iface_flags(int fd, const char *name)
{
	struct ifreq r;
	int err = iface_ioctl(fd, name, SIOCGIFFLAGS, &r);

	return err < 0 ? err : (unsigned short)r.ifr_flags;
}

double weft_udp_iface_speed(const char *name)
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
