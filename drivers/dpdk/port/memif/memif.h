/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/memif.h
 * The interface of this folder to the rest of port/. The folder works around faults of DPDK's
 * memif:
 *
 *	dead.c   a killed server leaves a socket file on which no other process can bind
 *	memif.c  starting, stopping and losing a connection, all in the EAL's interrupt thread
 *	relay.c  keeps the peer's socket away from the PMD (relay.h has the reasons)
 *	ring.c   lets an owner sleep until frames arrive, which the PMD does not support
 *
 * The faults were found in the PMD of DPDK 22.11. The code does not check the version: it can be
 * left out for a later PMD without these faults. One difference does depend on the version, chains
 * of mbufs from 23.03 on: WEFT_MEMIF_SPLITS_CHAINS in compat.h.
 */
#ifndef WEFT_MEMIF_H
#define WEFT_MEMIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_memif_relay;

/** The address of a port's control socket, and the port's end of it. */
struct weft_memif_name {
	char path[108];
	bool abstract;
	bool server;
	/**
	 * The peer is weft-switch, whose identity was checked when it granted the port. In a
	 * container its user may have no number.
	 */
	bool vouched;
};

/** A memif connection; the comment of memif.c describes the threads. */
struct weft_memif {
	struct weft_memif_name name;
	uint32_t id;
	uint16_t port_id;
	bool alone;   /**< no other port of the process uses the socket */
	bool no_wait; /**< frames cannot wake its owner: several queues, or a zero-copy client */
	/** whether the port is started, as read by the owner's thread; written by either thread */
	bool *started;
	struct weft_memif_relay *relay; /**< interrupt thread; NULL = the PMD has the real socket */
	bool running;                   /**< interrupt thread: between start and stop */
	bool busy;                      /**< an alarm is scheduled in the interrupt thread */
	uint64_t next_tsc;              /**< time of the next try to start */
	bool armed;                     /**< of the owner: it sleeps, and frames wake it */
};

/*
 * Called by the port's owner, whose thread polls it. name, id, port_id, alone, no_wait and started
 * are set.
 */
void weft_memif_start(struct weft_memif *mi);
void weft_memif_stop(struct weft_memif *mi);
/** Check whether the peer has arrived or left. Cheap enough for every few thousand polls. */
void weft_memif_look(struct weft_memif *mi);
bool weft_memif_link_up(struct weft_memif *mi);
/** As in frame/frame_port.h. */
int weft_memif_wait_fd(struct weft_memif *mi);
int weft_memif_arm(struct weft_memif *mi, uint64_t *within);
void weft_memif_disarm(struct weft_memif *mi);

/**
 * Before the EAL starts: a copy of its words in which each `--vdev=net_memif...` without
 * `socket-abstract=` has `socket-abstract=no`. With the PMD's default, an abstract name, each user
 * of the network namespace can be the peer, and the PMD trusts the offsets that a peer writes.
 *
 * @return the words, one block for free(); NULL: out of memory
 */
char **weft_memif_private_words(int count, char *const *words);

/**
 * Before the EAL starts: for each `--vdev=net_memif...,role=server,...,socket-abstract=no` among
 * its words, remove the socket file if no process listens there any more. Libc only.
 *
 * The check does not disturb a live server, which does not notice it. Two servers that start at the
 * very same time on one path can still conflict.
 *
 * @param words  the EAL's words
 * @param[out] why  a sentence on error
 * @return 0; -EADDRINUSE: a process listens there, or the file is no socket
 */
int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len);

#endif /* WEFT_MEMIF_H */
