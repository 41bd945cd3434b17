/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_opts.h
 * Options of one RoCE lane: they follow the device in an item of WEFT_LANES, as in
 * `roce:mlx5_0:1,gid=3,tc=106`. Pure: no verbs.
 */
#ifndef WEFT_ROCE_OPTS_H
#define WEFT_ROCE_OPTS_H

#include "roce_gid.h"

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
