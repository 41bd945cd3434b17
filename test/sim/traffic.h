/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file traffic.h
 * Random traffic with full verification, for system tests and the soak: tagged messages, and beside
 * them active messages and operations on remote memory.
 *
 * A **flow** is all that one node sends to another over one endpoint. Every message has a number, a
 * class and a size that follow from the seed, its content is a function of (seed, flow, number),
 * and its tag names flow, class and number:
 *
 *	63 plane   55..48 flow   43..40 class   31..0 number
 *
 * Receives ask for one class or for any, in random order, with random buffers, some from the flow's
 * endpoint only, some by probes; some are cancelled. What must match what is known exactly (see
 * oracle() in traffic.c): for one source matching does not depend on time. Messages of the "any"
 * plane are received with the flow masked out; of those only the order per flow is certain.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "sim.h"

struct traffic_conf {
	unsigned int messages; /**< per flow */
	size_t max_size;       /**< of a message */
	unsigned int window;   /**< sends, and receives, under way per flow */
	double large;          /**< share of messages above 16 KiB */
	double sync, iov, generic, cancel, probe, trunc, any, drop, source; /**< shares */
	/** chance per step that a receiver sits idle for a while: makes unexpected messages */
	double lag;
	/** share of tagged sends that are cancelled while they wait for their receive */
	double withdraw;
	unsigned int am;  /**< active messages per flow */
	unsigned int rma; /**< puts, gets and atomics per endpoint */
	bool loopback;    /**< flows from each node to itself */
};

/** A mixture with everything in it. */
extern const struct traffic_conf traffic_mixed;

struct traffic;

/**
 * Connect all nodes with each other and make flows both ways. The nodes' order is that of @p nodes.
 */
struct traffic *traffic_create(struct sim *sim, struct sim_node *const *nodes, unsigned int n,
			       const struct traffic_conf *conf);
/**
 * Run until everything is sent, received and verified, endpoints are flushed and closed.
 * @return NULL, or an error message that says what went wrong (valid until traffic_destroy())
 */
const char *traffic_run(struct traffic *t, uint64_t max_ns);
void traffic_destroy(struct traffic *t);

/** Messages received, and operations on memory, verified. */
uint64_t traffic_done(const struct traffic *t);
uint64_t traffic_bytes(const struct traffic *t);
/** Sends cancelled before anybody had matched them. */
uint64_t traffic_withdrawn(const struct traffic *t);

#endif /* SIM_TRAFFIC_H */
