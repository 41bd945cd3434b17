/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MTU of a veth's other end. The veth driver refuses a longer frame, and the kernel reports
 * ENOBUFS to the sender. net_af_packet then keeps the frame at the head of its ring, and no later
 * frame leaves. So the port's frames must fit both ends.
 */

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "port/priv.h"

#ifndef IFLA_TARGET_NETNSID
#define IFLA_TARGET_NETNSID IFLA_IF_NETNSID
#endif

struct link {
	uint32_t mtu, peer; /* peer: interface index of the other end, 0 = none */
	int32_t netns;      /* number of the other end's namespace; -1 = this one */
	bool is_veth;
};

static void take_kind(struct link *l, struct rtattr *info)
{
	int left = (int)RTA_PAYLOAD(info);
	struct rtattr *a;

	for (a = RTA_DATA(info); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_KIND && RTA_PAYLOAD(a) >= 4)
			l->is_veth = !memcmp(RTA_DATA(a), "veth", 4);
}

static void take_attribute(struct link *l, struct rtattr *a)
{
	if (a->rta_type == IFLA_LINKINFO)
		take_kind(l, a);
	else if (RTA_PAYLOAD(a) < sizeof(uint32_t))
		return;
	else if (a->rta_type == IFLA_MTU)
		memcpy(&l->mtu, RTA_DATA(a), sizeof(l->mtu));
	else if (a->rta_type == IFLA_LINK)
		memcpy(&l->peer, RTA_DATA(a), sizeof(l->peer));
	else if (a->rta_type == IFLA_LINK_NETNSID)
		memcpy(&l->netns, RTA_DATA(a), sizeof(l->netns));
}

/* @param netns  -1 = this one. @return false: the kernel does not report the interface */
static bool read_link(int sock, uint32_t if_index, int32_t netns, struct link *l)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg info;
		struct rtattr a;
		int32_t netns;
	} request = {
		.h = {.nlmsg_len = netns < 0 ? NLMSG_LENGTH(sizeof(request.info)) : sizeof(request),
		      .nlmsg_type = RTM_GETLINK,
		      .nlmsg_flags = NLM_F_REQUEST},
		.info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_index},
		.a = {.rta_len = RTA_LENGTH(sizeof(netns)), .rta_type = IFLA_TARGET_NETNSID},
		.netns = netns,
	};
	_Alignas(8) uint8_t answer[16384];
	const struct nlmsghdr *h = (const struct nlmsghdr *)answer;
	struct rtattr *a;
	ssize_t n;
	int left;

	*l = (struct link){.netns = -1};
	if (send(sock, &request, request.h.nlmsg_len, 0) < 0)
		return false;
	n = recv(sock, answer, sizeof(answer), 0);
	if (n < 0 || !NLMSG_OK(h, (size_t)n) || h->nlmsg_type != RTM_NEWLINK ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifinfomsg)))
		return false;
	left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(struct ifinfomsg)));
	a = IFLA_RTA((struct ifinfomsg *)NLMSG_DATA(h));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		take_attribute(l, a);
	return true;
}

uint32_t weft_veth_peer_mtu(unsigned int if_index)
{
	const struct timeval second = {.tv_sec = 1};
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct link own, peer = {0};

	if (sock < 0)
		return 0;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	if (!read_link(sock, if_index, -1, &own) || !own.is_veth || !own.peer ||
	    !read_link(sock, own.peer, own.netns, &peer))
		peer.mtu = 0;
	close(sock);
	return peer.mtu;
}
