/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/netlink.h
 * Requests to the kernel: its routing tables and interfaces (rtnetlink), its list of sockets.
 *
 * The kernel answers within send(), so a request never waits.
 */
#ifndef WEFT_NETLINK_H
#define WEFT_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

/** A request. Several may be made with one, after weft_netlink_init() each. */
struct weft_netlink {
	struct nlmsghdr head;
	_Alignas(NLMSG_ALIGNTO) uint8_t room[120]; /**< body and attributes */
};

/**
 * @param type   RTM_GET*, SOCK_DIAG_BY_FAMILY
 * @param flags  in addition to NLM_F_REQUEST: 0, or NLM_F_DUMP
 * @param body   struct rtmsg, struct ifinfomsg, ...; @p length bytes
 */
void weft_netlink_init(struct weft_netlink *n, uint16_t type, uint16_t flags, const void *body,
		       size_t length);
/** Append an attribute. All of them fit into the room, or it is a fault of the program. */
void weft_netlink_add(struct weft_netlink *n, unsigned short type, const void *value,
		      size_t length);

/** A message of the answer. */
typedef void (*weft_netlink_cb)(const struct nlmsghdr *msg, void *arg);

/**
 * Send the request, and receive the answer.
 * @param protocol  NETLINK_ROUTE, NETLINK_SOCK_DIAG
 * @param wanted    type of the messages that @p take gets: RTM_NEW*. Others are dropped
 * @param least     bytes of such a message, header not included. Shorter messages are dropped
 * @param take      may be NULL
 * @return 0; the kernel's error; -EPERM no socket; -EPROTO the answer is damaged, or a request
 *   without NLM_F_DUMP got none
 */
int weft_netlink_call(int protocol, const struct weft_netlink *n, uint16_t wanted, size_t least,
		      weft_netlink_cb take, void *arg);

/**
 * Does a route lead from an address of this host by one of its interfaces to @p dst?
 * @param family    AF_INET or AF_INET6
 * @param src, dst  struct in_addr or struct in6_addr
 * @return false: none does; true: one does, or the kernel gives no answer
 */
bool weft_netlink_has_route(unsigned int if_index, int family, const void *src, const void *dst);

/**
 * The attributes behind the body of a message:
 *
 *	for (a = weft_netlink_attrs(msg, sizeof(struct rtmsg), &left); RTA_OK(a, left);
 *	     a = RTA_NEXT(a, left))
 */
static inline struct rtattr *weft_netlink_attrs(const struct nlmsghdr *msg, size_t body, int *left)
{
	*left = (int)(msg->nlmsg_len - NLMSG_SPACE(body));
	return (struct rtattr *)((uintptr_t)msg + NLMSG_SPACE(body));
}

/** The value of an attribute of 32 bits, 0 if it is shorter. */
uint32_t weft_netlink_u32(const struct rtattr *a);

#endif /* WEFT_NETLINK_H */
