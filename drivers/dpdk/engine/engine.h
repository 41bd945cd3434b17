/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/engine.h
 * The raw-DPDK lane engine over any frame port: what the ethdev driver and the simulator open.
 *
 * The folder, by subject:
 *	engine, iface, address             an open port: progress, its address; counters
 *	conn, lifetime, ep                 connections: state, life, how frames find theirs; unknown
 *	                                     senders
 *	handshake, path_probe              connecting: each step, ports of paths, latency and rate
 *	neighbour                          ARP, a peer whose MAC address changes, and hints that a
 *	                                     peer is gone or has moved
 *	tx, build                          sending: messages into frames, frames to the port
 *	mtu                                the path's MTU: its search, frames that are too long now
 *	outstanding                        unacknowledged frames: slots, shared buffers, flushes,
 *	                                     user memory
 *	reliability                        acknowledgements, retransmission, loss, its timer
 *	rules                              round trips, loss, received sequences, choice of a path
 *	cc, cc_delay, cc_sample, cc_cause  congestion control: the table of algorithms and a fixed
 *	                                     window, by delay, its samples, jitter and the mode
 *	                                     next to TCP
 *	multipath, path_open, path_change  several paths: the next one, bad ones, new ports; whether
 *	                                     more help
 *	window                             the sender's half of congestion control; what
 *	                                     holds frames back, as time
 *	rx, stray                          receiving: validation, duplicates, delivery; frames of no
 *	                                     connection; frames of other queues
 *	sealed, sealed_frame               sealed connections: exchange of keys; frames out and in
 *	liveness                           keepalive and peer timeout, a lane that may be dead,
 *	                                     events of the port, timers, clocks, sleep
 *	telemetry                          reports
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"
#include "engine/address.h"
#include "engine/rules.h"
#include "frame/arp.h"
#include "frame/frame_port.h"
#include "lane.h"

/** Settings of one iface; those of the whole context are in open->conf. Zero = default. */
struct weft_raw_conf {
	bool raw_ethertype; /**< own ethertype instead of IP and UDP */
	/** frames have IPv6 headers; ip, gateway and neigh number addresses in port->hosts */
	bool six;
	uint16_t vlan;    /**< 1..4094; 0 = untagged */
	uint32_t ip;      /**< host order; 0 = link-local, 169.254/16, derived from the MAC */
	uint8_t prefix;   /**< bits of the subnet; with ip 0: 16 */
	uint32_t gateway; /**< host order; 0 = none */
	/** static neighbours, whose MAC is known without ARP; WEFT_LANE_NEIGH_MAX at most */
	const struct weft_lane_neigh *neigh;
	unsigned int num_neigh;
	/** of this end, if port->udp_port is 0; 0 = open->conf->udp_port or WEFT_LANE_UDP_PORT */
	uint16_t udp_port;
	uint8_t dscp; /**< of all frames of connections, 0..63 */
	bool no_ecn;  /**< frames are sent as not ECN-capable */
	/**
	 * UDP source ports per lane, <= 16; 0 = open->conf->paths. If both are 0: one, and more
	 * while they help
	 */
	uint8_t paths;
	uint16_t frame_size; /**< at most port->frame_size; 0 = that */
	/** tests: begin sequences at first_seq, near the wrap, instead of at random */
	bool set_first_seq;
	uint32_t first_seq;
	struct weft_tap *tap; /**< gets all frames; the iface, once it is open, closes the tap */
};

/** Help of the iface's counters and of its port's, without the PMD's. Ends with a NULL name. */
extern const struct weft_lane_counter weft_raw_counter_help[];

/**
 * Open the engine over @p port. The iface owns the port from then on, and closes it with itself. On
 * error the caller still owns it.
 * @return 0 or a negative error with a sentence in @p why
 */
int weft_raw_iface_open(struct weft_frame_port *port, const struct weft_raw_conf *rc,
			const struct weft_lane_open *open, struct weft_lane_iface **out, char *why,
			size_t len);

/** Registers and deregisters memory for ifaces over ports with #WEFT_FRAME_PORT_REG. */
int weft_raw_mem_register(struct weft_lane_iface *iface, void *addr, size_t len,
			  unsigned int access, struct weft_mem_lane **mem, char *why,
			  size_t why_len);
void weft_raw_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem);

#endif /* WEFT_ENGINE_H */
