/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/passing.h
 * A port of a program that forwards frames (weft-switch, weft-wire): one queue pair over buffers of
 * the program, which receives all frames. Its limits, MTU and queues are set by the same code as
 * for lanes.
 *
 * Threads: as rte_ethdev's configuration, one at a time.
 */
#ifndef WEFT_PORT_PASSING_H
#define WEFT_PORT_PASSING_H

#include <stddef.h>
#include <stdint.h>

struct rte_mempool;

/** The limits of a port. */
struct weft_passing_limits {
	uint16_t mtu;  /**< bytes; lanes' default */
	uint16_t room; /**< data room of its buffers for the MTU requested, headroom included */
};

/**
 * Find a port's limits; it is not changed.
 *
 * @param mtu      the requested MTU in bytes; 0 = the port's own
 * @param[out] why on error a sentence that names the port and the remedy
 * @return 0; -EINVAL: the port does not carry the MTU; or the PMD's error
 */
int weft_passing_find(uint16_t port, uint16_t mtu, struct weft_passing_limits *limits, char *why,
		      size_t why_len);

/**
 * Configure and start a port, promiscuous if it has a filter.
 *
 * @param mtu   in bytes, from weft_passing_find() or as requested; never 0
 * @param ring  entries of each ring, if the port has as many
 * @param pool  stays the caller's; the port uses it until it is closed
 * @param[out] why as above
 * @return as above
 */
int weft_passing_open(uint16_t port, uint16_t mtu, uint16_t ring, struct rte_mempool *pool,
		      char *why, size_t why_len);

#endif /* WEFT_PORT_PASSING_H */
