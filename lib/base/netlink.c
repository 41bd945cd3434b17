/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/netlink.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes of an answer that one recv() returns: the kernel sizes a dump by this buffer. */
#define ANSWER 16384

void weft_netlink_init(struct weft_netlink *n, uint16_t type, uint16_t flags, const void *body,
		       size_t length)
{
	assert(length <= sizeof(n->room));
	memset(n, 0, sizeof(*n));
	n->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(length);
	n->head.nlmsg_type = type;
	n->head.nlmsg_flags = NLM_F_REQUEST | flags;
	memcpy(n->room, body, length);
}

void weft_netlink_add(struct weft_netlink *n, unsigned short type, const void *value, size_t length)
{
	size_t at = NLMSG_ALIGN(n->head.nlmsg_len);
	struct rtattr *a = (struct rtattr *)((uint8_t *)n + at);

	assert(at + RTA_SPACE(length) <= sizeof(*n));
	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(length);
	memcpy(RTA_DATA(a), value, length);
	n->head.nlmsg_len = (uint32_t)(at + RTA_SPACE(length));
}

uint32_t weft_netlink_u32(const struct rtattr *a)
{
	uint32_t v = 0;

	if (RTA_PAYLOAD(a) >= sizeof(v))
		memcpy(&v, RTA_DATA(a), sizeof(v));
	return v;
}

struct answer {
	uint16_t wanted;
	size_t least;
	weft_netlink_cb take;
	void *arg;
	bool any; /* a wanted message has come */
};

/* NLMSG_NEXT() for a last message without padding. */
static const struct nlmsghdr *next_message(const struct nlmsghdr *msg, size_t *left)
{
	size_t step = NLMSG_ALIGN(msg->nlmsg_len);

	*left -= step < *left ? step : *left;
	return (const struct nlmsghdr *)((uintptr_t)msg + step);
}

/* @return 1 the answer is complete; 0 more follows; or an error */
static int take_messages(struct answer *to, const void *buf, size_t left)
{
	const struct nlmsghdr *msg = buf;
	const struct nlmsgerr *e;
	bool more = false;

	for (; NLMSG_OK(msg, left); msg = next_message(msg, &left)) {
		if (msg->nlmsg_type == NLMSG_DONE)
			return 1;
		if (msg->nlmsg_type == NLMSG_ERROR) {
			e = NLMSG_DATA(msg);
			if (msg->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
				return -EPROTO;
			return e->error < 0 ? e->error : 1;
		}
		more = msg->nlmsg_flags & NLM_F_MULTI;
		if (msg->nlmsg_type != to->wanted || msg->nlmsg_len < NLMSG_SPACE(to->least))
			continue;
		to->any = true;
		if (to->take)
			to->take(msg, to->arg);
	}
	return !more;
}

int weft_netlink_call(int protocol, const struct weft_netlink *n, uint16_t wanted, size_t least,
		      weft_netlink_cb take, void *arg)
{
	struct answer to = {.wanted = wanted, .least = least, .take = take, .arg = arg};
	_Alignas(struct nlmsghdr) uint8_t buf[ANSWER];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	ssize_t got;
	int rc;

	if (fd < 0)
		return -EPERM;
	got = send(fd, n, n->head.nlmsg_len, 0);
	rc = got == (ssize_t)n->head.nlmsg_len ? 0 : -EPROTO;
	while (rc == 0) {
		got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);
		rc = got <= 0 || (size_t)got > sizeof(buf) ? -EPROTO
							   : take_messages(&to, buf, (size_t)got);
	}
	close(fd);
	if (rc < 0)
		return rc;
	return to.any || n->head.nlmsg_flags & NLM_F_DUMP ? 0 : -EPROTO;
}

#ifndef RTM_F_FIB_MATCH
#define RTM_F_FIB_MATCH 0x2000
#endif

static void take_route(const struct nlmsghdr *msg, void *arg)
{
	struct rtattr *a;
	int left;

	for (a = weft_netlink_attrs(msg, sizeof(struct rtmsg), &left); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_OIF)
			*(uint32_t *)arg = weft_netlink_u32(a);
}

bool weft_netlink_has_route(unsigned int if_index, int family, const void *src, const void *dst)
{
	size_t len = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	const struct rtmsg rt = {
		.rtm_family = (unsigned char)family,
		.rtm_dst_len = (unsigned char)(len * 8),
		.rtm_src_len = (unsigned char)(len * 8),
		/* Without this flag IPv4 treats any address as one on the interface's own link. */
		.rtm_flags = family == AF_INET ? RTM_F_FIB_MATCH : 0,
	};
	struct weft_netlink n;
	uint32_t device = 0;
	int err;

	weft_netlink_init(&n, RTM_GETROUTE, 0, &rt, sizeof(rt));
	weft_netlink_add(&n, RTA_DST, dst, len);
	weft_netlink_add(&n, RTA_SRC, src, len);
	weft_netlink_add(&n, RTA_OIF, &if_index, sizeof(if_index));
	err = weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWROUTE, sizeof(rt), take_route, &device);
	/* For IPv6 the interface is only a preference if there is a source address: compare it. */
	if (err == 0)
		return family == AF_INET || device == if_index;
	return err != -ENETUNREACH && err != -EHOSTUNREACH && err != -EACCES && err != -EINVAL;
}
