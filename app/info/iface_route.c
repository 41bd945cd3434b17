/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "info/iface_facts.h"

/* The attributes of one route that are used here. */
struct route {
	uint32_t gateway, metric, table;
	bool over; /* the route is over the interface */
	uint8_t dst_len;
};

/* The rank of the best gateway so far: less is better. */
struct best {
	struct iface_routes *out;
	bool has_default; /* of the main table, over any interface */
	uint32_t default_metric;
	uint64_t rank;
};

static uint32_t u32_of(const struct rtattr *a)
{
	uint32_t v = 0;

	if (RTA_PAYLOAD(a) >= sizeof(v))
		memcpy(&v, RTA_DATA(a), sizeof(v));
	return v;
}

/* A multipath route: take the next hop over the interface. */
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
				r->gateway = ntohl(u32_of(sub));
	}
}

static void read_route(struct nlmsghdr *msg, unsigned int if_index, struct route *r)
{
	struct rtmsg *rt = NLMSG_DATA(msg);
	struct rtattr *a = RTM_RTA(rt);
	int len = (int)RTM_PAYLOAD(msg);

	*r = (struct route){.table = rt->rtm_table, .dst_len = rt->rtm_dst_len};
	if (rt->rtm_family != AF_INET || rt->rtm_type != RTN_UNICAST)
		return;
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		switch (a->rta_type) {
		case RTA_TABLE:
			r->table = u32_of(a);
			break;
		case RTA_OIF:
			r->over = u32_of(a) == if_index;
			break;
		case RTA_GATEWAY:
			r->gateway = ntohl(u32_of(a));
			break;
		case RTA_PRIORITY:
			r->metric = u32_of(a);
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

	/*
	 * The machine's default route is the one of the lowest metric: DHCP sets one for further
	 * NICs, too.
	 */
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

static int query_routes(int fd)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
	} msg = {
		.head = {.nlmsg_len = sizeof(msg),
			 .nlmsg_type = RTM_GETROUTE,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.route = {.rtm_family = AF_INET},
	};

	return send(fd, &msg, sizeof(msg), 0) == sizeof(msg) ? 0 : -errno;
}

/* @return 1 at the end of the answer, 0, or a negative error */
static int take_answer(int fd, unsigned int if_index, struct best *b)
{
	_Alignas(struct nlmsghdr) char buf[32768];
	struct nlmsghdr *msg = (struct nlmsghdr *)buf;
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	unsigned int len = n > 0 ? (unsigned int)n : 0;
	struct route r;

	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	for (; NLMSG_OK(msg, len); msg = NLMSG_NEXT(msg, len)) {
		if (msg->nlmsg_type == NLMSG_DONE)
			return 1;
		if (msg->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		if (msg->nlmsg_type != RTM_NEWROUTE)
			continue;
		read_route(msg, if_index, &r);
		take_route(&r, b);
	}
	return 0;
}

int iface_routes(unsigned int if_index, struct iface_routes *routes)
{
	struct best b = {.out = routes, .rank = UINT64_MAX};
	int fd, rc;

	*routes = (struct iface_routes){0};
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	rc = query_routes(fd);
	while (rc == 0)
		rc = take_answer(fd, if_index, &b);
	close(fd);
	return rc < 0 ? rc : 0;
}
