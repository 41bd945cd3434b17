/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp.h
 * Frame ports over UDP sockets: lanes of an ordinary user over a kernel's interfaces. doc/ports.md.
 *
 * The engine above is that of raw lanes. Its frames have Ethernet, IPv4 and UDP headers. This port
 * takes them off and passes the rest to a socket, and puts such headers in front of what it
 * receives.
 *
 *	udp/udp.c         interfaces of this host and routes; opening, closing, events, counters
 *	udp/udp_socket.c  sockets: one to listen, one for each source port of paths
 *	udp/udp_io.c      frames into datagrams, datagrams into frames
 *	udp/udp_header.h  the headers in front of a received frame; replies to ARP requests
 */
#ifndef WEFT_UDP_H
#define WEFT_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/frame_port.h"
#include "lane.h"

/** Zero = the default. */
struct weft_udp_opts {
	uint32_t ip;          /**< one of the interface's addresses, host order */
	uint16_t udp_port;    /**< on which the lane listens; 0 = a free one */
	uint16_t first, last; /**< ports that the lane may bind; last 0 = any */
	uint16_t mtu;         /**< IP MTU; 0 = the interface's */
	uint32_t frame_size;  /**< at most; 0 = by the MTU */
	uint32_t rx_bufs;     /**< buffers of the pool */
	bool no_extbuf;       /**< no sends from user memory */
};

/** The address of an open port. */
struct weft_udp_addr {
	uint32_t ip; /**< host order */
	uint8_t prefix;
};

/**
 * List the interfaces that can be lanes: those that are up and have an IPv4 address. Loopback is
 * marked as "inside". Point-to-point interfaces, and bridges without a device of this host are not
 * listed; they can be opened by name.
 * @param add  called for each, as in query() of struct weft_lane_driver
 * @return 0, or a negative error
 */
int weft_udp_list(weft_lane_resource_cb add, void *arg);

/**
 * Open an interface. The EAL is up.
 * @return 0, or a negative error with a sentence in @p why
 */
int weft_udp_open(const char *name, const struct weft_udp_opts *o, struct weft_frame_port **port,
		  struct weft_udp_addr *addr, char *why, size_t why_len);

#endif /* WEFT_UDP_H */
