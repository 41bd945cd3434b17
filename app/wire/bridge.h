/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wire/bridge.h
 * weft-wire bridges pairs of DPDK ports. bridge.c carries frames from a port through the model of a
 * link (link/link.h) to the other port. wire.c has options, commands and output.
 */
#ifndef APP_WIRE_BRIDGE_H
#define APP_WIRE_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ticketlock.h>

#include "common/eth_port.h"
#include "link/link.h"

#define WIRE_PAIRS 16
#define WIRE_BURST 32

struct wire_counters {
	uint64_t rx_frames, tx_frames, tx_bytes;
	uint64_t oversize;  /**< dropped: longer than the MTU of the bridge */
	uint64_t no_room;   /**< dropped: all buffers hold delayed frames */
	uint64_t ring_full; /**< dropped by the receive ring of the port, before the link */
	uint64_t port_busy; /**< sent later, because the ring of the port was full */
};

struct wire_held {
	struct sim_due due; /* must be the first member */
	struct rte_mbuf *mbuf;
};

struct wire_dir {
	uint16_t from, to; /* ids of ports */
	struct sim_link link;
	struct sim_link_state state;
	struct wire_held *held; /* a heap with space for all buffers */
	size_t num_held;
	uint64_t number;                  /* sim_due.number of the next frame */
	struct rte_mbuf *out[WIRE_BURST]; /* frames that are due; a full ring has not taken them */
	uint16_t num_out;
	struct wire_counters counters;
	struct eth_port_ring ring; /* losses of the receive ring of port `from` */
	bool oversize_logged, no_room_logged;
};

enum { WIRE_FORTH, WIRE_BACK };

extern const char *const wire_dir_name[2];

struct wire_counter {
	const char *name;
	size_t offset; /* in struct wire_dir */
};

#define WIRE_COUNTERS 19
extern const struct wire_counter wire_counter[WIRE_COUNTERS];

static inline uint64_t wire_counter_value(const struct wire_dir *d, size_t i)
{
	return *(const uint64_t *)((const char *)d + wire_counter[i].offset);
}

struct wire_pair {
	struct wire_dir dir[2];
};

struct wire {
	rte_ticketlock_t lock; /* of links and counters, which DPDK's telemetry thread also uses */
	struct wire_pair pair[WIRE_PAIRS];
	unsigned int num_pairs;
	struct rte_mempool *pool;
	uint32_t mbufs, limit; /* limit: of held frames; the ports' rings have the other buffers */
	uint16_t mtu;
	uint64_t seed;
	unsigned int sleep_us; /* 0 = poll all the time */
	FILE *trace;           /* NULL = none */
	bool ended;
};

/**
 * Open the ports in @p names, or all if there are none. The first two are the first pair.
 * @return APP_OK or an exit code after an error message
 */
int wire_ports_open(struct wire *w, char *const *names, unsigned int num_names);
void wire_ports_stop(const struct wire *w);
/** @return APP_OK or an exit code after an error message */
int wire_bridge_init(struct wire *w);
/**
 * Forward until a signal or a command ends the program.
 * @param input  reads commands; called at most 100 times a second, without the lock
 */
void wire_bridge_run(struct wire *w, void (*input)(struct wire *w));

/**
 * Write a line for each frame that a link drops, delays, changes or duplicates: time of day, pair,
 * direction, length, events, delay. Frames lost in a port's ring get one line for each INPUT_NS.
 * @return APP_OK or an exit code after an error message
 */
int wire_trace_open(struct wire *w, const char *name);
/** @return APP_OK; an exit code after an error message: lines are missing in the file */
int wire_trace_close(struct wire *w, const char *name);

#endif /* APP_WIRE_BRIDGE_H */
