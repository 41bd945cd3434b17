/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_opts.h
 * Options of one RoCE lane: they follow the device in an item of WEFT_LANES, as in
 * `roce:mlx5_0:1,gid=3,tc=106`. And which entry of a device's GID table the lane uses. Pure: no
 * verbs, and the table is given.
 */
#ifndef WEFT_ROCE_OPTS_H
#define WEFT_ROCE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_roce_gid {
	uint8_t gid[16];
	uint8_t index; /**< in the table, 0..255 */
	bool v2;       /**< RoCE v2 (UDP); else v1, or InfiniBand */
};

/** Addresses that a lane may have: subnet=10.0.0.0/16. */
struct weft_roce_subnet {
	uint8_t net[16];
	uint8_t prefix; /**< of 128 bits; 0 = not given */
};

/** Is @p gid in @p net? */
bool weft_roce_gid_in(const uint8_t gid[16], const struct weft_roce_subnet *net);

/**
 * Choose: RoCE v2 before v1, which is used only with gid=N; IPv4 before IPv6; addresses of the
 * network before link-local ones; then the lowest index.
 *
 * @param table   entries of the device; @p num of them
 * @param index   requested index, or -1; required for v1
 * @param subnet  NULL = any
 * @param[out] why  the reason for the choice, or an error message with the entries and the remedy
 * @return position in @p table, or -EADDRNOTAVAIL
 */
int weft_roce_gid_pick(const struct weft_roce_gid *table, int num, int index,
		       const struct weft_roce_subnet *subnet, char *why, size_t why_len);

#define WEFT_ROCE_OPTS_KNOWN "gid, subnet, mtu, tc, timeout, retry, rnr_timer, qps, window, seg"

struct weft_roce_opts {
	int gid;                        /**< index in the GID table; -1 = by rule */
	struct weft_roce_subnet subnet; /**< prefix 0 = any */
	unsigned int mtu;               /**< largest path MTU, bytes; 0 = the port's */
	unsigned int tc;                /**< traffic class of the IP header: DSCP << 2 | ECN */
	unsigned int timeout;           /**< 4.096 us x 2^timeout until a retransmission, 1..31 */
	unsigned int retry;             /**< tries after the first, 0..6; 7 would be endless */
	unsigned int rnr_timer;         /**< IBTA code, 1..31; 0 would be 655 ms */
	unsigned int qps;               /**< queue pairs of a lane */
	unsigned int window;            /**< outstanding messages per queue pair */
	unsigned int seg;               /**< largest message and size of a receive buffer, bytes */
};

/**
 * Parse.
 * @param text      NULL or "" = none; defaults are filled in
 * @param[out] why  after an error, one sentence that names the option and its values
 * @return 0 or -EINVAL
 */
int weft_roce_opts_parse(const char *text, struct weft_roce_opts *opts, char *why, size_t why_len);

/**
 * Split "DEVICE" or "DEVICE:PORT".
 * @param[out] port  1 when none is given
 * @return 0 or -EINVAL
 */
int weft_roce_resource_parse(const char *text, char *device, size_t size, unsigned int *port);

/** ns until the device gives up a connection whose peer does not respond. */
uint64_t weft_roce_give_up_ns(const struct weft_roce_opts *opts);

#endif /* WEFT_ROCE_OPTS_H */
