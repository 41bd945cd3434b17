/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wire/bridge.h
 * weft-wire: bridges pairs of DPDK ports; both directions of a pair are links with faults.
 *
 * bridge.c opens the ports, and carries frames from a port through the model of a link
 * (link/link.h) to the other port. wire.c has options, commands and output.
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

/** Counters of frames at the ports; the model of the link has its own counters. */
struct wire_counters {
	uint64_t rx_frames, tx_frames, tx_bytes;
	uint64_t oversize;  /**< longer than --mtu: dropped */
	uint64_t no_room;   /**< all buffers hold delayed frames: dropped */
	uint64_t ring_full; /**< lost by the receive ring of the port, not by the link */
	uint64_t port_busy; /**< frames that a full ring of the port did not take at first */
};

struct wire_held {
	struct sim_due due; /* first */
	struct rte_mbuf *mbuf;
};

/** One direction of a pair. */
struct wire_dir {
	uint16_t from, to; /* ports */
	struct sim_link link;
	struct sim_link_state state;
	struct wire_held *held; /* a heap with space for all buffers */
	size_t num_held;
	uint64_t number;                  /* sim_due.number of the next frame */
	struct rte_mbuf *out[WIRE_BURST]; /* due, and without space in the port's ring yet */
	uint16_t num_out;
	struct wire_counters counters;
	struct eth_port_ring ring; /**< of @p from */
	bool oversize_logged, no_room_logged;
};

enum { WIRE_FORTH, WIRE_BACK };

extern const char *const wire_dir_name[2];

/** A counter of a direction: its name, and its place in struct wire_dir. */
struct wire_counter {
	const char *name;
	size_t offset;
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
	/* Between the forwarding thread and DPDK's thread, on which telemetry callbacks run. */
	rte_ticketlock_t lock;
	struct wire_pair pair[WIRE_PAIRS];
	unsigned int num_pairs;
	struct rte_mempool *pool;
	uint32_t mbufs,
		limit; /* limit: of held frames; the other buffers are for the ports' rings */
	uint16_t mtu;
	uint64_t seed;
	unsigned int sleep_us; /* 0 = poll all the time */
	FILE *trace;           /* NULL = none */
	bool ended;
};

/**
 * Open the ports of all pairs: those in @p names, or all if there are no names. The first two ports
 * are the first pair.
 * @return APP_OK or an exit code after an error message
 */
int wire_ports_open(struct wire *w, char *const *names, unsigned int num_names);
void wire_ports_stop(const struct wire *w);
/** @return APP_OK or an exit code after an error message */
int wire_bridge_init(struct wire *w);
/**
 * Forward until a signal or a command ends the program.
 * @param input  reads commands; called about a hundred times a second, without the lock
 */
void wire_bridge_run(struct wire *w, void (*input)(struct wire *w));

/**
 * Write, from now on, a line for each frame that a link drops, delays, changes or duplicates: time
 * of day, pair, direction, length, names of the events, and the delay. Frames that the port's
 * own ring has lost have one line for each INPUT_NS in which there are any.
 * @return APP_OK or an exit code after an error message
 */
int wire_trace_open(struct wire *w, const char *name);
/** @return APP_OK or an exit code after an error message: not all lines are in the file */
int wire_trace_close(struct wire *w, const char *name);

#endif /* APP_WIRE_BRIDGE_H */
