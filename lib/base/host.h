/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/host.h
 * The real machine. Not installed: drivers get the platform when an interface is opened.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/platform.h"

/* ------------------------------------------------------------------ clock and randomness */

/**
 * now(): the CPU's counter if its rate is constant and known (x86: 10 ms after the first call),
 * else clock_gettime(). random(): getrandom(). host_id(): a hash of the kernel's boot id; 0 =
 * unknown.
 */
extern const struct weft_platform weft_platform_host;

/* ------------------------------------------------------------------ copy rate */

/** bytes/s, where no rate can be measured: simulated time does not advance during a copy. */
#define WEFT_BCOPY_BW_DEFAULT 7e9
/**
 * bytes/s; replaces a lower measured rate, which other load or an emulated CPU causes. With a lower
 * one zero copy would seem worthwhile for a few bytes.
 */
#define WEFT_BCOPY_BW_LEAST 5e8

/**
 * @return bytes/s of memcpy() between buffers that the nearest cache does not hold. The first call
 *   of the process measures, for about 1 ms on an idle CPU; later calls return the same rate.
 * @param platform  NULL, or with another clock than weft_platform_host: #WEFT_BCOPY_BW_DEFAULT
 */
double weft_bcopy_bw(const struct weft_platform *platform);

/**
 * By any clock. @return bytes/s, at least #WEFT_BCOPY_BW_LEAST; #WEFT_BCOPY_BW_DEFAULT when there
 * is no memory, the clock does not advance, or the result is above 1e13
 */
double weft_bcopy_bw_measure(const struct weft_platform *platform);

/* ------------------------------------------------------------------ memory limit */

/**
 * The least limit of the process's control group and of those above it, version 1 or 2.
 * @param groups  "/proc/self/cgroup". @param mount  "/sys/fs/cgroup"
 * @return bytes; SIZE_MAX = no limit, or none that can be read
 */
size_t weft_memory_group_limit(const char *groups, const char *mount);

/** @return bytes: the host's memory, or a lower limit of the control group; 0 = unknown */
size_t weft_memory_limit(void);

/* ------------------------------------------------------------------ requests to the kernel */

/* The kernel queues the answer within send(), so receiving it never waits. */

struct weft_netlink {
	struct nlmsghdr head;
	_Alignas(NLMSG_ALIGNTO) uint8_t room[120];
};

/**
 * @param type   RTM_GET*, SOCK_DIAG_BY_FAMILY
 * @param flags  in addition to NLM_F_REQUEST: 0, or NLM_F_DUMP
 * @param body   struct rtmsg, struct ifinfomsg, ...
 */
void weft_netlink_init(struct weft_netlink *n, uint16_t type, uint16_t flags, const void *body,
		       size_t length);
/** All attributes must fit into `room`. */
void weft_netlink_add(struct weft_netlink *n, unsigned short type, const void *value,
		      size_t length);

typedef void (*weft_netlink_cb)(const struct nlmsghdr *msg, void *arg);

/**
 * @param protocol  NETLINK_ROUTE, NETLINK_SOCK_DIAG
 * @param wanted    type of messages for @p take: RTM_NEW*. Others are dropped
 * @param least     bytes without the header. Shorter messages are dropped
 * @param take      may be NULL
 * @return 0; the kernel's negative errno; -EPERM: no socket; -EPROTO: the request cannot be sent,
 *   the answer is damaged, or a request without NLM_F_DUMP got no wanted message
 */
int weft_netlink_call(int protocol, const struct weft_netlink *n, uint16_t wanted, size_t least,
		      weft_netlink_cb take, void *arg);

/**
 * Does a route lead from an address of this host by one of its interfaces to @p dst?
 * @param src, dst  struct in_addr or struct in6_addr
 * @return false: none does; true: one does, or the kernel gives no answer
 */
bool weft_netlink_has_route(unsigned int if_index, int family, const void *src, const void *dst);

/** @return the first attribute behind a body of @p body bytes: see RTA_OK(), RTA_NEXT() */
static inline struct rtattr *weft_netlink_attrs(const struct nlmsghdr *msg, size_t body, int *left)
{
	*left = (int)(msg->nlmsg_len - NLMSG_SPACE(body));
	return (struct rtattr *)((uintptr_t)msg + NLMSG_SPACE(body));
}

/** @return the first 32 bits of the value; 0 if it is shorter */
uint32_t weft_netlink_u32(const struct rtattr *a);

/* ------------------------------------------------------------------ the user's folder */

/* In this folder the user's processes find each other's sockets and files. */

/** Bytes of the folder's path with the zero byte. With a socket's name it fits into sun_path. */
#define WEFT_USER_FOLDER 64

/** Sockets by which weft-info finds processes without raw lanes (answer.h). */
#define WEFT_ANSWERS_PREFIX "answers-"

/**
 * Make @p path with mode 0700, if it is not there.
 * @return true: a folder, no link, of the effective user, to which no other user can write
 */
bool weft_private_folder(const char *path);

/**
 * Make TMP/weft-UID, if it is not there, and write its path to @p own.
 * @return false: the path is too long, the folder cannot be made, or weft_private_folder() is false
 */
bool weft_user_folder(uid_t uid, const char *tmp, char *own, size_t size);

/**
 * Make or find /tmp/weft-UID of the effective user. If weft_private_folder() is false for it, the
 * folder is /run/user/UID/weft, or /run/weft-0 for root: only the user or root can write to their
 * parents. Processes that see the same /tmp and /run get the same result.
 * @param[out] why  on error: the folder, and the remedy
 * @return 0; -EACCES: weft_private_folder() is false for both
 */
int weft_user_folder_find(char path[WEFT_USER_FOLDER], char *why, size_t why_len);

/** @return true: no process has the socket open; false: one has (unnoticed), or it is unknown */
bool weft_socket_is_dead(const char *path);

/**
 * Remove this user's sockets with the name @p prefix* that no process has open. Those younger than
 * @p age_s seconds stay, so that processes that start at a time do not probe each other.
 */
void weft_sockets_sweep(const char *folder, const char *prefix, unsigned int age_s);

#endif /* WEFT_HOST_H */
