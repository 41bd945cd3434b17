/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/ethdev.h
 * A frame port (frame/frame_port.h) over one queue pair of a DPDK ethdev port.
 * Limits of virtual ports that no capability reports, as memif's longest frame, are in one table,
 * port/conf.c.
 * Threads: list, open and close take weft_port_lock (port/ports.h). An open queue pair belongs to
 * one thread.
 */
#ifndef WEFT_PORT_ETHDEV_H
#define WEFT_PORT_ETHDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/frame_port.h"

struct rte_mempool;
struct weft_lane_resource;

/** WEFT_RX_INTR: are RX interrupts requested? */
enum weft_rx_intr {
	WEFT_RX_INTR_AUTO, /**< for PMDs that are known to poll at the same speed with them */
	/** for any PMD, except memif, net_ring, net_af_packet and net_af_xdp */
	WEFT_RX_INTR_YES,
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
	/** Frames have no UDP to steer or to hash by: options with several queues are refused. */
	bool raw_ethertype;
	/** No UDP checksums are wanted: the port need not fill or check any. */
	bool no_udp_csum;
	/** No external buffers (WEFT_ZCOPY=n). */
	bool no_extbuf;
	/** IPv4 address, host order; 0 = link-local. Workers on one port have the same address. */
	uint32_t ip;
	/** ip6 is the address, not ip. With prefix6 64, a lower half of 0 is made from the MAC. */
	bool six;
	uint8_t ip6[16];
	uint8_t prefix6;
	/** UDP port of arriving frames, host order; of queue k of several udp_port + k. */
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
 * Open a queue pair of a port. A link that is down is no error (a memif server waits for its
 * client): ops->link_up() returns the state.
 *
 * @param resource  port id ("0") or device name ("net_memif0", "0000:00:06.0")
 * @param opts      never NULL
 * @param[out] port freed by (*port)->ops->close()
 * @param[out] why  on error a sentence that names the port, and the remedy if one is known
 * @return 0; -ENODEV no such port, or it was removed; -EADDRINUSE another process has it; -EBUSY
 * every queue pair has a worker, or the port was lost while it was open; -EINVAL options that the
 * port, or its other workers, can't have; -EMSGSIZE the MTU of its kernel interface is too large
 * for AF_XDP; -ENOMEM; or the PMD's error
 */
int weft_port_ethdev_open(const char *resource, const struct weft_port_opts *opts,
			  struct weft_frame_port **port, char *why, size_t why_len);

/* ---- ports of programs that forward frames -------------------------------------------------- */

/*
 * A port of a program that forwards frames (weft-switch, weft-wire): one queue pair over buffers of
 * the program, which receives all frames. One thread at a time may call.
 */

struct weft_passing_limits {
	uint16_t mtu;  /**< bytes: the one requested, at least 1280; or the port's default */
	uint16_t room; /**< data room of its buffers for the MTU requested, headroom included */
};

/**
 * Find a port's limits, without a change of the port.
 * @param mtu      the requested MTU in bytes; 0 = the port's own
 * @param[out] why on error a sentence that names the port, and the remedy if one is known
 * @return 0; -EINVAL: the port does not carry the MTU, or its device arguments are invalid;
 *   -ENODEV: its kernel interface is gone; -EMSGSIZE: the MTU of that interface is too large for
 *   AF_XDP; or the PMD's error
 */
int weft_passing_find(uint16_t port, uint16_t mtu, struct weft_passing_limits *limits, char *why,
		      size_t why_len);

/**
 * Configure and start a port, promiscuous unless it has no such mode. Errors as
 * weft_passing_find().
 * @param mtu   in bytes, from weft_passing_find() or as requested; never 0
 * @param ring  entries of each ring, if the port has as many
 * @param pool  stays the caller's; the port uses it until it is closed
 * @param[out] why on error a sentence that names the port, and the remedy if one is known
 * @return as weft_passing_find()
 */
int weft_passing_open(uint16_t port, uint16_t mtu, uint16_t ring, struct rte_mempool *pool,
		      char *why, size_t why_len);

/* ---- buffers -------------------------------------------------------------------------------- */

/* Buffers of a port: a pool of whole frames, one of small mbufs (headers, external buffers). */

struct weft_port_dev;

/** Both pools of a queue pair together take at most this, unless rings or the user need more. */
#define WEFT_PORT_POOL_BYTES (16u << 20)

/** Data room of the buffers of a port, headroom included. */
uint16_t weft_port_pool_room(const struct weft_port_dev *d);

/**
 * @param rx_bufs  buffers beyond those of the rings; 0 = as many as fit WEFT_PORT_POOL_BYTES, at
 *   most 4095 with those of the rings, but at least 255 without them
 * @return 0 or -ENOMEM with @p why
 */
int weft_port_pools_create(struct weft_port_dev *d, uint16_t q, uint16_t nb_rx, uint16_t nb_tx,
			   uint32_t rx_bufs, char *why, size_t why_len);

/**
 * Free the pools of queue pair @p q once all their buffers are back. A peer in this process
 * (net_ring), or the PMD's ring, may still hold some. Then a later weft_port_pools_create() for any
 * port frees them.
 *
 * When the MTU is set, a PMD may also check the frame pool of a queue that the port's next opening
 * does not use. So the frame pool of each queue except the first stays until the queue has another.
 */
void weft_port_pools_free(struct weft_port_dev *d, uint16_t q);

#endif /* WEFT_PORT_ETHDEV_H */
