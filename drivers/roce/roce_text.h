/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_text.h
 * Options of a lane, and error messages. Pure: it uses codes of verbs, and no calls.
 */
#ifndef WEFT_ROCE_TEXT_H
#define WEFT_ROCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* ------------------------------------------------------------------ options */

/* Options follow the device in an item of WEFT_LANES, as in `roce:mlx5_0:1,gid=3,tc=106`. */

struct weft_roce_gid {
	uint8_t gid[16];
	uint8_t index; /**< in the table, 0..255 */
	bool v2;       /**< RoCE v2 (UDP); else v1, or InfiniBand */
};

/** Addresses that a lane may have: subnet=10.0.0.0/16. */
struct weft_roce_subnet {
	uint8_t net[16];
	uint8_t prefix; /**< length in bits, 96 more for IPv4; 0 = no subnet was given */
};

bool weft_roce_gid_in(const uint8_t gid[16], const struct weft_roce_subnet *net);

/**
 * Choose an entry of the GID table. With gid=N it is that one. Otherwise it is of RoCE v2: IPv4
 * before IPv6, then other addresses before link-local ones, then the first in @p table.
 *
 * @param index   requested index (gid=N), or -1; RoCE v1 requires it
 * @param subnet  NULL or prefix 0 = any; ignored if @p index is given
 * @param[out] why  the reason for the choice, or an error message with the entries and the remedy
 * @return position in @p table, or -EADDRNOTAVAIL
 */
int weft_roce_gid_pick(const struct weft_roce_gid *table, int num, int index,
		       const struct weft_roce_subnet *subnet, char *why, size_t why_len);

#define WEFT_ROCE_OPTS_KNOWN "gid, subnet, mtu, tc, timeout, retry, rnr_timer, qps, window, seg"

struct weft_roce_opts {
	int gid; /**< index in the GID table; -1 = weft_roce_gid_pick() */
	struct weft_roce_subnet subnet;
	unsigned int mtu;       /**< largest path MTU, bytes; 0 = the port's */
	unsigned int tc;        /**< traffic class of the IP header: DSCP << 2 | ECN */
	unsigned int timeout;   /**< 4.096 us x 2^timeout until a retransmission, 1..31 */
	unsigned int retry;     /**< retransmissions, 0..6; 7 would be endless */
	unsigned int rnr_timer; /**< IBTA code, 1..31; 0 would be 655 ms */
	unsigned int qps;       /**< queue pairs of a lane, at most */
	unsigned int window;    /**< outstanding messages of a peer, per queue pair */
	unsigned int seg;       /**< largest message and size of a receive buffer, bytes */
};

/**
 * @param text      NULL or "" = none; options that are not given get their defaults
 * @param[out] why  after an error, one sentence that names the option and its values
 * @return 0 or -EINVAL
 */
int weft_roce_opts_parse(const char *text, struct weft_roce_opts *opts, char *why, size_t why_len);

/** Split "DEVICE" or "DEVICE:PORT"; the default of @p port is 1. @return 0 or -EINVAL */
int weft_roce_resource_parse(const char *text, char *device, size_t size, unsigned int *port);

/** ns until the device gives up a connection whose peer does not respond. */
uint64_t weft_roce_give_up_ns(const struct weft_roce_opts *opts);

/* ------------------------------------------------------------------ error messages */

struct weft_roce_names {
	const char *device;
	const char *peer;
};

/**
 * "rxe0: peer 10.0.0.2 gave no answer for 1.9 s (transport retry counter exceeded)".
 * @param waited_ns  since the last completion on the queue pair, or the first request after it
 */
void weft_roce_text_wc(const struct weft_roce_names *names, enum ibv_wc_status status,
		       uint64_t waited_ns, char *buf, size_t size);

/** @return negative errno of a lane that ends by this completion status */
int weft_roce_wc_error(enum ibv_wc_status status);

/** Why a queue pair could not be connected. @p err: errno of ibv_modify_qp(), ibv_create_ah() */
void weft_roce_text_connect(const struct weft_roce_names *names, int err, char *buf, size_t size);

void weft_roce_text_qp_event(const struct weft_roce_names *names, enum ibv_event_type type,
			     char *buf, size_t size);

/**
 * Why a verbs call failed at set-up, with the remedy where there is one.
 * @param what      "a completion queue for 8192 entries"
 * @param memlock   RLIMIT_MEMLOCK in bytes, UINT64_MAX = unlimited
 */
void weft_roce_text_setup(const char *device, const char *what, int err, uint64_t memlock,
			  char *buf, size_t size);

#endif /* WEFT_ROCE_TEXT_H */
