/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mixed.h
 * Whole scenarios from a seed: nodes, lanes, links, thresholds and traffic are diced. For sys_mixed
 * and sim_soak.
 */
#ifndef SIM_MIXED_H
#define SIM_MIXED_H

#include "traffic.h"

enum mixed_kind {
	MIXED_CLEAN,
	MIXED_FAULTY,  /**< 1 % loss, 1 % duplication, 5 % reordering on every lane */
	MIXED_CORRUPT, /**< 2 % corruption besides, with crc32c */
	MIXED_PAUSES,  /**< faulty, and nodes that do not poll for up to 2 s now and then */
	MIXED_WRAP,    /**< faulty, all sequences just before their wrap */
	MIXED_SMALL,   /**< faulty, small windows, credits, rings and buffers */
	/** clean hosts; a network of short queues, cross traffic, outages of paths and switches */
	MIXED_BREAK,
	/** two lanes and more, which die and come back */
	MIXED_LANES_DIE,
	MIXED_KINDS,
};

struct mixed_conf {
	enum mixed_kind kind;
	unsigned int messages; /**< per flow; 0 = 60 */
};

/** @return NULL, or what went wrong (in static memory). @p hash may be NULL */
const char *mixed_run(struct sim *sim, const struct mixed_conf *conf, uint64_t *hash);
/** What the last run has left, when its simulation is destroyed. */
void mixed_free(void);
/** Messages and operations, and bytes, verified by the last run; sends that were withdrawn. */
extern uint64_t mixed_messages, mixed_bytes, mixed_withdrawn;
/** Lanes that endpoints have lost, both ends counted. */
extern uint64_t mixed_lanes_lost;
/** "2 nodes, 3 lanes, ..." of the last run. */
extern char mixed_text[400];

#endif /* SIM_MIXED_H */
