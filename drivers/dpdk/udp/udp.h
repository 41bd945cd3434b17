/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp.h
 * Frame ports over UDP sockets: lanes of an ordinary user over a kernel's interfaces. doc/ports.md.
 *
 * The engine above is that of raw lanes. Its frames have Ethernet, IPv4 and UDP headers. This port
 * removes the headers of a frame before a socket sends it, and adds headers to a received datagram.
 *
 *	udp/udp.c        interfaces of this host; routes; opening, closing, events, counters
 *	udp/udp_sock.c   sockets: one to listen, one for each source port of paths
 *	udp/udp_io.c     sends frames as datagrams, makes frames of received datagrams
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
 * List the interfaces that can be lanes: those that are up with a carrier, and have an IPv4 address
 * or an IPv6 address that is not link-local. Loopback is marked as "inside". Point-to-point
 * interfaces, and bridges without a physical device, are not listed, but can be opened by name.
 * @param add  called for each interface, as in query() of struct weft_lane_driver
 * @return 0, or a negative error
 */
int weft_udp_list(weft_lane_resource_cb add, void *arg);

/* ------------------------------------------------------------------ ports */

/** A member that is zero has the default. */
struct weft_udp_opts {
	uint32_t ip;          /**< address of the interface, host order; 0 and no ip6 = the first */
	struct in6_addr ip6;  /**< or an IPv6 address of the interface */
	uint16_t udp_port;    /**< port on which the lane listens; 0 = a free one */
	uint16_t first, last; /**< with udp_port 0: range of the lane's ports; last 0 = any */
	uint16_t mtu;         /**< IP MTU, at most the interface's; 0 = the interface's */
	uint32_t frame_size;  /**< most bytes of a frame, if the MTU allows more; 0 = by the MTU */
	uint32_t rx_bufs;     /**< number of frame buffers; 0 = by their size */
	bool no_extbuf;       /**< no sends from user memory */
	bool farewells;       /**< enter farewells: sealed connections do not trust ICMP */
};

/** The address of an open port. */
struct weft_udp_addr {
	uint32_t ip; /**< host order; on an IPv6 lane the host's number (frame/arp.h) */
	uint8_t prefix;
};

/**
 * Open a port over the interface @p name. The EAL must be initialised before.
 * @return 0, or a negative error with a sentence in @p why
 */
int weft_udp_open(const char *name, const struct weft_udp_opts *o, struct weft_frame_port **port,
		  struct weft_udp_addr *addr, char *why, size_t why_len);

/* ---- sockets --------------------------------------------------------------------------------- */

/** UDP ports of a lane: it listens on one of them, and the others are source ports of its paths. */
#define WEFT_UDP_PORTS 32u
/** The maximum number of frames in one message that the kernel cuts (GSO) or has merged (GRO). */
#define WEFT_UDP_SEGS 64u
/** The maximum number of payload bytes of such a message. */
#define WEFT_UDP_BYTES 65507u
/** The maximum number of messages of one system call. */
#define WEFT_UDP_MSGS 16u
/** Room for received frames that wait for rx_burst(), a power of two: for at least two calls. */
#define WEFT_UDP_QUEUE 4096u

/** Number of marks for hosts whose frames are not merged. Hosts with the same hash share a mark. */
#define WEFT_UDP_ALONE 4096u

/** State of one port of the lane's block. */
struct weft_udp_sock {
	int fd;          /**< -1 = none */
	bool taken;      /**< another socket of this host has the port */
	uint32_t missed; /**< last value of the kernel's count of dropped datagrams */
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
	uint32_t msgs;  /**< most messages of the next call; grows while calls are full */
	uint32_t seg;   /**< payload bytes of each merged frame; 0 = the kernel merges none */
	uint32_t calm;  /**< calls since the last merged message */
	uint32_t quiet; /**< polls since the other sockets were checked */
	uint32_t hot;   /**< index of the socket that received last */
	uint8_t *spill; /**< WEFT_UDP_MSGS x 64 KiB, for bytes that do not fit the buffers */
	uint8_t *flat;  /**< 64 KiB for a message whose frames have another length than seg */
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
	uint64_t alone[WEFT_UDP_ALONE / 64]; /**< marks: bits by the hash of the host's address */
	bool link_up;                        /**< state of the link that look() reported last */
	bool farewells;                      /**< the port uses the helper of frame/farewell.h */
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
 * Fill in the address of a socket.
 * @param ip, port  in host order; on an IPv6 lane @p ip is the host's number
 * @return length of the address; 0: no host has this number any more
 */
socklen_t weft_udp_to(struct weft_udp *u, uint32_t ip, uint16_t port, union weft_udp_sockaddr *a);

/** The socket bound to a source port, made at the first use. @return NULL: the port is not free */
struct weft_udp_sock *weft_udp_sock(struct weft_udp *u, uint16_t port);

#endif /* WEFT_UDP_H */
