/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/host.h
 * The real machine: its clock and randomness, the copy rate of a CPU, the memory that this process
 * may use, requests to its kernel, the user's folder. Drivers get the platform when an interface is
 * opened, so this header is not installed.
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
 * now(): the CPU's counter if its rate is constant and known, else clock_gettime(). On x86 the rate
 * is known 10 ms after the first call. random(): getrandom(). host_id(): a hash of the kernel's
 * boot id; 0 = the id cannot be read.
 */
extern const struct weft_platform weft_platform_host;

/* ------------------------------------------------------------------ copy rate */

/* The copy rate of a CPU of this machine, in bytes/s, for the cost model (proto/proto.h). */

/** The rate where none can be measured: the simulator's clock does not advance during a copy. */
#define WEFT_BCOPY_BW_DEFAULT 7e9
/**
 * Lower bound of the measured rate; it replaces a lower result. Such a result means that other load
 * has disturbed the whole measurement, or that the CPU is emulated. The other costs of the model
 * are fixed, so zero copy would then seem worthwhile for a few bytes.
 */
#define WEFT_BCOPY_BW_LEAST 5e8

/**
 * Bytes per second of memcpy() between buffers that the nearest cache does not hold. The first call
 * of the process measures, for about 1 ms on an idle CPU. Later calls return the same number. The
 * fastest of several rounds counts, so preemption in some rounds does no harm.
 * @param platform one with another clock than weft_platform_host, or NULL, gets
 *   #WEFT_BCOPY_BW_DEFAULT
 */
double weft_bcopy_bw(const struct weft_platform *platform);

/**
 * The measurement itself, by any clock. @return bytes per second, at least #WEFT_BCOPY_BW_LEAST;
 * #WEFT_BCOPY_BW_DEFAULT when there is no memory, the clock does not advance, or the result is
 * above 1e13
 */
double weft_bcopy_bw_measure(const struct weft_platform *platform);

/* ------------------------------------------------------------------ memory limit */

/**
 * The least memory limit of the process's control group and of the groups above it, version 1 or 2.
 *
 * @param groups  the groups of the process: "/proc/self/cgroup"
 * @param mount   where control groups are mounted: "/sys/fs/cgroup"
 * @return bytes; SIZE_MAX = no limit, or none that can be read
 */
size_t weft_memory_group_limit(const char *groups, const char *mount);

/**
 * @return bytes: the host's memory, or the limit of the control group if that is less;
 *         0 = unknown
 */
size_t weft_memory_limit(void);

/* ------------------------------------------------------------------ requests to the kernel */

/*
 * Requests to the kernel: its routing tables and interfaces (rtnetlink), its list of sockets. The
 * kernel queues the answer within send(), so receiving it never waits.
 */

/** A request. The struct can be used again after another weft_netlink_init(). */
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
/** Append an attribute. The caller ensures that all attributes fit into `room`. */
void weft_netlink_add(struct weft_netlink *n, unsigned short type, const void *value,
		      size_t length);

/** Called for each wanted message of the answer. */
typedef void (*weft_netlink_cb)(const struct nlmsghdr *msg, void *arg);

/**
 * Send the request, and receive the answer.
 * @param protocol  NETLINK_ROUTE, NETLINK_SOCK_DIAG
 * @param wanted    type of the messages that @p take gets: RTM_NEW*. Others are dropped
 * @param least     bytes of such a message, header not included. Shorter messages are dropped
 * @param take      may be NULL
 * @return 0; the kernel's negative errno; -EPERM: no socket; -EPROTO: the request cannot be sent,
 *   the answer is damaged, or a request without NLM_F_DUMP has got no wanted message
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
 * @return the first attribute behind the body, of @p body bytes, of a message; for a loop:
 *
 *	for (a = weft_netlink_attrs(msg, sizeof(struct rtmsg), &left); RTA_OK(a, left);
 *	     a = RTA_NEXT(a, left))
 */
static inline struct rtattr *weft_netlink_attrs(const struct nlmsghdr *msg, size_t body, int *left)
{
	*left = (int)(msg->nlmsg_len - NLMSG_SPACE(body));
	return (struct rtattr *)((uintptr_t)msg + NLMSG_SPACE(body));
}

/** @return the first 32 bits of an attribute's value; 0 if the value is shorter */
uint32_t weft_netlink_u32(const struct rtattr *a);

/* ------------------------------------------------------------------ the user's folder */

/*
 * A folder that one user owns and no other user can write to. Processes of the user find each
 * other's sockets and files there.
 */

/** Bytes of the folder's path, zero byte included. With a socket's name it fits into sun_path. */
#define WEFT_USER_FOLDER 64

/** weft-info finds processes without raw lanes by sockets whose names begin so (answer.h). */
#define WEFT_ANSWERS_PREFIX "answers-"

/**
 * Make @p path with mode 0700, if it is not there.
 * @return true: it is a folder, no link, belongs to the effective user, and no other user can write
 *   to it
 */
bool weft_private_folder(const char *path);

/**
 * Make TMP/weft-UID, if it is not there.
 * @param[out] own  path of the folder; @p size bytes, zero byte included
 * @return false: the path is too long, the folder cannot be made, or weft_private_folder() is false
 */
bool weft_user_folder(uid_t uid, const char *tmp, char *own, size_t size);

/**
 * Make or find the folder of the effective user: /tmp/weft-UID. If weft_private_folder() is false
 * for it, the folder is /run/user/UID/weft, or /run/weft-0 for root. Only the user or root can
 * write to the parents of these. Processes that see the same /tmp and /run come to the same result.
 *
 * @param[out] why  on error: the folder, and the remedy
 * @return 0; -EACCES: weft_private_folder() is false for both
 */
int weft_user_folder_find(char path[WEFT_USER_FOLDER], char *why, size_t why_len);

/**
 * Probe the socket at @p path; a process that has it open notices nothing.
 * @return true: no process has it open; false: one has, or this is unknown
 */
bool weft_socket_is_dead(const char *path);

/**
 * Remove this user's sockets in @p folder whose names begin with @p prefix and that no process has
 * open. Sockets younger than @p age_s seconds stay, so that many processes that start at a time do
 * not probe each other.
 */
void weft_sockets_sweep(const char *folder, const char *prefix, unsigned int age_s);

#endif /* WEFT_HOST_H */
