/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Is there a route from a lane's address to a peer's? Within the lane's own network: yes. Otherwise
 * the kernel's routes decide, and the route must use the lane's network device. (A query for a
 * route by that device is no test: the kernel then takes any address for a neighbour, and address
 * resolution fails a second later.)
 */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roce_dev.h"
#include "roce_wire.h"

/* Bits of an IPv4-mapped or IPv6 address. */
static unsigned int mask_bits(const struct sockaddr *mask)
{
	const uint8_t *p =
		mask->sa_family == AF_INET
			? (const uint8_t *)&((const struct sockaddr_in *)mask)->sin_addr
			: (const uint8_t *)&((const struct sockaddr_in6 *)mask)->sin6_addr;
	unsigned int n = mask->sa_family == AF_INET ? 4 : 16, bits = n == 4 ? 96 : 0, i;

	for (i = 0; i < n; i++)
		bits += (unsigned int)__builtin_popcount(p[i]);
	return bits;
}

static bool is_gid(const struct sockaddr *addr, const uint8_t gid[16])
{
	if (addr->sa_family == AF_INET)
		return weft_roce_gid_is_ipv4(gid) &&
		       memcmp(&((const struct sockaddr_in *)addr)->sin_addr, gid + 12, 4) == 0;
	return addr->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr, gid, 16) == 0;
}

/*
 * @return 1 in the network of our address, 0 not, -1 unknown: the device is in another network
 * namespace
 */
static int same_network(const char *netdev, const uint8_t own[16], const uint8_t peer[16])
{
	struct weft_roce_subnet net = {0};
	struct ifaddrs *list, *i;
	int rc = -1;

	if (getifaddrs(&list) < 0)
		return -1;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || !i->ifa_netmask || strcmp(i->ifa_name, netdev) != 0 ||
		    !is_gid(i->ifa_addr, own))
			continue;
		memcpy(net.net, own, 16);
		net.prefix = (uint8_t)mask_bits(i->ifa_netmask);
		rc = weft_roce_gid_in(peer, &net);
		break;
	}
	freeifaddrs(list);
	return rc;
}

struct route_request {
	struct nlmsghdr nlh;
	struct rtmsg rtm;
	uint8_t attrs[64];
};

static void add_attr(struct route_request *req, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)req + NLMSG_ALIGN(req->nlh.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	req->nlh.nlmsg_len = NLMSG_ALIGN(req->nlh.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* The device by which the kernel would send. @return its index, 0 = no route, -1 = unknown */
static int route_device(const uint8_t own[16], const uint8_t peer[16])
{
	bool v4 = weft_roce_gid_is_ipv4(peer);
	size_t len = v4 ? 4 : 16;
	struct route_request req = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST},
		.rtm = {.rtm_family = v4 ? AF_INET : AF_INET6,
			.rtm_dst_len = (unsigned char)(len * 8),
			.rtm_src_len = (unsigned char)(len * 8)},
	};
	_Alignas(8) uint8_t buf[4096];
	struct nlmsghdr *answer = (struct nlmsghdr *)buf;
	struct rtattr *a;
	ssize_t n;
	int fd, left, oif = 0;

	add_attr(&req, RTA_DST, peer + 16 - len, len);
	add_attr(&req, RTA_SRC, own + 16 - len, len);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -1;
	n = send(fd, &req, req.nlh.nlmsg_len, 0);
	/* The reply of the kernel is there when send() returns. */
	if (n > 0)
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	close(fd);
	if (n < (ssize_t)sizeof(*answer) || !NLMSG_OK(answer, (size_t)n))
		return -1;
	if (answer->nlmsg_type != RTM_NEWROUTE)
		return 0;
	a = RTM_RTA((struct rtmsg *)NLMSG_DATA(answer));
	for (left = (int)RTM_PAYLOAD(answer); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_OIF)
			memcpy(&oif, RTA_DATA(a), sizeof(oif));
	return oif;
}

int roce_route(const char *netdev, const uint8_t own[16], const uint8_t peer[16], char *why,
	       size_t why_len)
{
	bool v4 = weft_roce_gid_is_ipv4(peer);
	char text[48];
	int oif;

	weft_roce_gid_print(peer, text, sizeof(text));
	if (v4 != weft_roce_gid_is_ipv4(own)) {
		snprintf(why, why_len, "%s is %s, and the address of this lane is %s", text,
			 v4 ? "IPv4" : "IPv6", v4 ? "IPv6" : "IPv4");
		return -EHOSTUNREACH;
	}
	if (netdev[0] == '\0' || same_network(netdev, own, peer) != 0)
		return 0;
	oif = route_device(own, peer);
	if (oif < 0 || oif == (int)if_nametoindex(netdev))
		return 0;
	snprintf(why, why_len, "%s has no route to %s", netdev, text);
	return -EHOSTUNREACH;
}
