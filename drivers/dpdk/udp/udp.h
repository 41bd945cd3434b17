/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp.h
 * Frame ports over UDP sockets: lanes of an ordinary user over a kernel's interfaces. doc/ports.md.
 *
 * The engine above is that of raw lanes. Its frames have Ethernet, IPv4 and UDP headers. This port
 * removes them from what a socket sends, and adds them to what it receives.
 *
 *	udp/udp.c        interfaces of this host; routes; opening, closing, events, counters;
 *	                 sockets: one to listen, one for each source port of paths
 *	udp/udp_io.c     frames into datagrams, datagrams into frames
 *	udp/udp_io.h     the headers in front of a received frame; replies to ARP requests
 *
 * The hosts of an IPv6 lane have numbers (frame/arp.h).
 */
#ifndef WEFT_UDP_H
#define WEFT_UDP_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "frame/arp.h"
#include "frame/frame_port.h"
#include "lane.h"

/* ------------------------------------------------------------------ interfaces */

/* The host's interfaces that can be lanes over UDP sockets, and what the kernel reports of them. */

/** An address of an interface. */
struct weft_udp_iface {
	char name[IF_NAMESIZE];
	unsigned int index;
	unsigned int flags; /**< IFF_* */
	uint32_t ip;        /**< host order; 0: the address is of IPv6 */
	struct in6_addr ip6;
	uint8_t prefix;
};

/**
 * List the interfaces that can be lanes: those that are up and have an IPv4 address, or an IPv6
 * address that is not link-local. Loopback is marked as "inside". Point-to-point interfaces, and
 * bridges without a device of this host are not listed; they can be opened by name.
 * @param add  called for each, as in query() of struct weft_lane_driver
 * @return 0, or a negative error
 */
int weft_udp_list(weft_lane_resource_cb add, void *arg);

/* ------------------------------------------------------------------ ports */

/** Zero = the default. */
struct weft_udp_opts {
	uint32_t ip;          /**< one of the interface's addresses, host order */
	struct in6_addr ip6;  /**< or this one */
	uint16_t udp_port;    /**< on which the lane listens; 0 = a free one */
	uint16_t first, last; /**< ports that the lane may bind; last 0 = any */
	uint16_t mtu;         /**< IP MTU; 0 = the interface's */
	uint32_t frame_size;  /**< bytes of a frame at most; 0 = by the MTU */
	uint32_t rx_bufs;     /**< buffers of the pool */
	bool no_extbuf;       /**< no sends from user memory */
	bool farewells;       /**< connections are sealed, so that ICMP cannot report their end */
};

/** The address of an open port. */
struct weft_udp_addr {
	uint32_t ip; /**< host order; of an IPv6 lane: the number of frame/arp.h */
	uint8_t prefix;
};

/**
 * Open an interface. The EAL is up.
 * @return 0, or a negative error with a sentence in @p why
 */
int weft_udp_open(const char *name, const struct weft_udp_opts *o, struct weft_frame_port **port,
		  struct weft_udp_addr *addr, char *why, size_t why_len);

/* ---- sockets --------------------------------------------------------------------------------- */

/** Ports of a lane: one on which it listens, the others are source ports of its paths. */
#define WEFT_UDP_PORTS 32u
/** The maximum number of frames of one datagram that the kernel cuts or has merged. */
#define WEFT_UDP_SEGS 64u
/** Bytes of payload of such a datagram. */
#define WEFT_UDP_BYTES 65507u
/** Datagrams of one system call. */
#define WEFT_UDP_MSGS 16u
/** Received frames that wait for rx_burst(): a power of two, for two calls and ARP replies. */
#define WEFT_UDP_QUEUE 4096u

/** Marks of hosts whose frames are not merged; hosts that share a mark are treated alike. */
#define WEFT_UDP_ALONE 4096u

/** State of one source port. */
struct weft_udp_sock {
	int fd;          /**< -1 = none */
	bool taken;      /**< another socket of this host has the port */
	uint32_t missed; /**< datagrams that the kernel has dropped, as last reported */
};

struct weft_udp_stats {
	uint64_t tx_calls, tx_datagrams, tx_failed, tx_too_long, tx_no_port;
	uint64_t rx_calls, rx_empty, rx_datagrams, rx_copied, rx_no_buffer, rx_missed, rx_too_long;
};

/** Receive state: buffers into which the kernel writes, and frames that are complete. */
struct weft_udp_rx {
	struct rte_mbuf *queue[WEFT_UDP_QUEUE];
	uint32_t head, count;
	/** empty buffers; the next call takes the last ones */
	struct rte_mbuf *stash[WEFT_UDP_MSGS * WEFT_UDP_SEGS];
	uint32_t stashed;
	uint32_t seg;   /**< payload of the frames that the kernel merges; 0 = none are merged */
	uint32_t calm;  /**< calls without a merged datagram */
	uint32_t quiet; /**< calls since the other sockets were checked */
	uint32_t hot;   /**< socket that received last */
	uint8_t *spill; /**< WEFT_UDP_MSGS x 64 KiB, for what does not fit the buffers */
	uint8_t *flat;  /**< 64 KiB: a datagram whose frames have another length than expected */
};

/** An address of a socket. */
union weft_udp_sockaddr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct weft_udp {
	struct weft_frame_port fp; /* first */
	char name[IF_NAMESIZE];
	unsigned int if_index;
	uint32_t ip; /**< as in struct weft_udp_addr */
	uint16_t listens;
	uint16_t block; /**< first of WEFT_UDP_PORTS ports, a multiple of their number */
	bool gso, gro;
	bool any_alone;
	uint64_t alone[WEFT_UDP_ALONE / 64]; /**< bits, by the hash of the address */
	bool link_up;                        /**< as last reported */
	bool farewells;                      /**< frame/farewell.c: a helper sends them */
	int epoll;
	unsigned int num_socks;
	struct weft_udp_sock sock[WEFT_UDP_PORTS];
	struct weft_udp_stats stats;
	struct weft_udp_rx rx;
};

static inline struct weft_udp *weft_udp_of(struct weft_frame_port *fp)
{
	return (struct weft_udp *)fp;
}

/**
 * The address of a socket at a host of the engine's, host order.
 * @return its length; 0: no host has this number any more
 */
socklen_t weft_udp_to(struct weft_udp *u, uint32_t ip, uint16_t port, union weft_udp_sockaddr *a);

/** The socket bound to a source port; binds it at the first use. @return NULL: it is not free */
struct weft_udp_sock *weft_udp_sock(struct weft_udp *u, uint16_t port);

#endif /* WEFT_UDP_H */
