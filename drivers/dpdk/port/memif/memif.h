/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/memif.h
 * The interface of this folder to the rest of port/. The folder works around faults of DPDK's
 * memif:
 *
 *	memif.c        starting, stopping and losing a connection, all in the EAL's interrupt
 *	               thread; lets an owner sleep until frames arrive, which the PMD can't
 *	relay.c        keeps the peer's socket away from the PMD (relay.h has the reasons)
 *
 * The faults were found in the PMD of DPDK 22.11. The code does not check the version: it can be
 * left out for a later PMD without these faults. One difference does depend on the version, chains
 * of mbufs from 23.03 on: WEFT_MEMIF_SPLITS_CHAINS in compat.h.
 */
#ifndef WEFT_MEMIF_H
#define WEFT_MEMIF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_memif_relay;

struct weft_memif_name {
	char path[108];
	bool abstract;
	bool server;
};

/** A memif connection; the comment of memif.c describes the threads. */
struct weft_memif {
	struct weft_memif_name name;
	uint32_t id;
	uint16_t port_id;
	bool alone;   /**< no other port of the process uses the socket */
	bool no_wait; /**< frames cannot wake its owner: several queues, or a zero-copy client */
	/** the port is started: read by the owner's thread, written by the interrupt thread, too */
	atomic_bool *started;
	/** set by the interrupt thread; NULL = the PMD has the real socket */
	struct weft_memif_relay *relay;
	bool running;      /**< interrupt thread only: the PMD's port is started */
	bool busy;         /**< an alarm is scheduled in the interrupt thread */
	uint64_t next_tsc; /**< TSC: the earliest time of the next try to start */
	bool armed;        /**< the owner sleeps, and frames wake it */
};

/* For the thread that polls the port; the port's owner has set the members up to `started`. */
void weft_memif_start(struct weft_memif *mi);
void weft_memif_stop(struct weft_memif *mi);
/** Start the port again, at most every 100 ms, if the peer has left or the start has failed. */
void weft_memif_look(struct weft_memif *mi);
bool weft_memif_link_up(struct weft_memif *mi);
/** As in frame/frame_port.h. */
int weft_memif_wait_fd(struct weft_memif *mi);
int weft_memif_arm(struct weft_memif *mi, uint64_t *within);
void weft_memif_disarm(struct weft_memif *mi);

/* ---- sleeping on a ring --------------------------------------------------------------------- */

/*
 * A sender signals the receiver's eventfd after each burst, unless the receiver has set a flag in
 * the ring for polling. DPDK's PMD sets it and has no call to clear it. So the port finds the ring
 * and the eventfd in the messages on the control socket (port/memif/relay.h), and clears the flag
 * while its owner sleeps.
 *
 * The PMD's sender checks the flag right after it has moved the ring's index, without a barrier in
 * between. The sleeping end requests a barrier on all processors from the kernel (membarrier(2)).
 * So the sender sees the flag cleared, or the sleeping end sees the index moved. membarrier() may
 * be missing, or a switch between the peers may not be registered for it. Then, in rare cases, a
 * frame stays in the ring until the sender's next tail probe.
 *
 * message(), forget() and poke() run in the interrupt thread, arm() and disarm() in the owner's.
 * The owner does not use the ring while the connection is removed: the comment of memif.c.
 */

struct weft_memif_ring;

/** @return NULL without memory or descriptors: the port cannot wake its owner */
struct weft_memif_ring *weft_memif_ring_make(bool server);
/** NULL is allowed. */
void weft_memif_ring_free(struct weft_memif_ring *r);
/** A message has passed, in either direction, with @p num descriptors, which stay the caller's. */
void weft_memif_ring_message(struct weft_memif_ring *r, const void *data, size_t len,
			     const int *fds, size_t num);
void weft_memif_ring_forget(struct weft_memif_ring *r);
void weft_memif_ring_poke(struct weft_memif_ring *r);
/** The descriptor to be polled for reading; the same from make() to free(). */
int weft_memif_ring_fd(const struct weft_memif_ring *r);
/** @return 0: a frame makes the descriptor readable; -EBUSY: one is there; -ENOTCONN: no ring */
int weft_memif_ring_arm(struct weft_memif_ring *r);
/** After an arm() that returned 0. */
void weft_memif_ring_disarm(struct weft_memif_ring *r);
/** The owner has woken up without a connection: the descriptor is not readable any more. */
void weft_memif_ring_awake(struct weft_memif_ring *r);

#endif /* WEFT_MEMIF_H */
