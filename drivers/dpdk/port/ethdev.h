/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/ethdev.h
 * A frame port (frame/frame_port.h) over one queue pair of a DPDK ethdev port.
 *
 * The capabilities of a port are queried from the port: offloads, MTU, queue counts, ring depths.
 * Limits of virtual ports that no capability reports (memif's real frame limit, af_packet's sleep)
 * are in one table, port/limits.c.
 *
 * Threads: list, open and close run under the caller's context-wide lock; the operations of an open
 * port belong to one thread.
 */
#ifndef WEFT_PORT_ETHDEV_H
#define WEFT_PORT_ETHDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/frame_port.h"

struct rte_mempool;
struct weft_lane_resource;

/** WEFT_RX_INTR. */
enum weft_rx_intr {
	WEFT_RX_INTR_AUTO, /**< for PMDs that are known to poll at the same speed with them */
	WEFT_RX_INTR_YES,  /**< for any PMD */
	WEFT_RX_INTR_NO,
};

/** The engine's requirements of a port. All zero is a good default. */
struct weft_port_opts {
	/** Largest frame, L2 header and VLAN tag included, without FCS; 0 = the port's default. */
	uint16_t frame_size;
	/** IP MTU (from 1280); has priority over frame_size; 0 = from frame_size. */
	uint16_t mtu;
	/** Frames carry the tag of this VLAN: a frame is MTU + 18 bytes; 0 = none. */
	uint16_t vlan;
	/** No UDP: nothing to steer or to hash by, so the port has one queue pair only. */
	bool raw_ethertype;
	/** No external buffers (WEFT_ZCOPY=n). */
	bool no_extbuf;
	/** The lane's address, host order; 0 = link-local. Workers on one port have the same. */
	uint32_t ip;
	/** UDP port to use, host order; queue k of a port with several gets udp_port + k. */
	uint16_t udp_port;
	/** Queue pairs to set up when the port is opened first; 0 = 1. */
	uint16_t queues;
	/** Receive buffers that receivers may keep, beyond what the rings hold; 0 = default. */
	uint32_t rx_bufs;
	enum weft_rx_intr rx_intr;
	/** Set no DPDK owner: dpdk-dumpcap skips ports that have one. */
	bool no_owner;
	/** Buffers of the caller, which also frees them; NULL = the port creates its own. */
	struct rte_mempool *pool;
	/** Entries of each ring, if the port has as many; 0 = lanes' default. */
	uint16_t ring;
};

/**
 * List the ports of the (initialised) EAL.
 *
 * @param[out] list  malloc()ed array, freed by the caller; NULL with 0
 * @return number of ports, or a negative errno
 */
int weft_port_ethdev_list(struct weft_lane_resource **list);

/**
 * Open a queue pair of a port. A link that is down is no error (a memif server waits for its
 * client): ops->link_up() returns the state.
 *
 * @param resource  port id ("0") or device name ("net_memif0", "0000:00:06.0")
 * @param opts      never NULL
 * @param[out] port freed by (*port)->ops->close()
 * @param[out] why  on error a sentence that names the port and the remedy
 * @return 0; -ENODEV no such port; -EBUSY every queue pair has a worker; -EINVAL a frame size or
 * MTU that the port can't take; -ENOMEM; or the PMD's error
 */
int weft_port_ethdev_open(const char *resource, const struct weft_port_opts *opts,
			  struct weft_frame_port **port, char *why, size_t why_len);

/** A hint about the network behind a port just opened, or "". @p paths: of the lane */
void weft_port_hint(struct weft_frame_port *port, unsigned int paths, char *text, size_t size);

/** How frames find the queue of a port with several queues, or "" */
void weft_port_spread_text(struct weft_frame_port *port, char *text, size_t size);

/** The reason why a port that should wake a sleeping owner can't, or "" */
void weft_port_intr_text(struct weft_frame_port *port, char *text, size_t size);

#endif /* WEFT_PORT_ETHDEV_H */
