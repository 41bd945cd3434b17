/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp_socket.h
 * The state of a UDP port, and its sockets.
 */
#ifndef WEFT_UDP_SOCKET_H
#define WEFT_UDP_SOCKET_H

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "udp/udp.h"

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

/** An IPv4 address of an interface. */
struct weft_udp_iface {
	char name[IF_NAMESIZE];
	unsigned int index;
	unsigned int flags; /**< IFF_* */
	uint32_t ip;        /**< host order */
	uint8_t prefix;
};

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
	/** empty buffers: the first ones are those of the next call */
	struct rte_mbuf *stash[WEFT_UDP_MSGS * WEFT_UDP_SEGS];
	uint32_t stashed;
	uint32_t seg;   /**< payload of the frames that the kernel merges; 0 = none are merged */
	uint32_t calm;  /**< calls without a merged datagram */
	uint32_t quiet; /**< calls since the other sockets were checked */
	uint32_t hot;   /**< socket that received last */
	uint8_t *spill; /**< WEFT_UDP_MSGS x 64 KiB, for what does not fit the buffers */
	uint8_t *flat;  /**< 64 KiB: a datagram whose frames have another length than expected */
};

struct weft_udp {
	struct weft_frame_port fp; /* first */
	char name[IF_NAMESIZE];
	unsigned int if_index;
	uint32_t ip;
	uint16_t listens;
	uint16_t block; /**< first of WEFT_UDP_PORTS ports, a multiple of their number */
	bool gso, gro;
	bool link_up; /**< as last reported */
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

/** Bind the port on which the lane listens. @return 0, or a negative error with @p why */
int weft_udp_listen(struct weft_udp *u, const struct weft_udp_opts *o, char *why, size_t why_len);
/** The socket bound to a source port; binds it at the first use. @return NULL: it is not free */
struct weft_udp_sock *weft_udp_sock(struct weft_udp *u, uint16_t port);
/** The interface has another index: it was deleted and made again. */
void weft_udp_sock_iface(struct weft_udp *u);
void weft_udp_sock_close(struct weft_udp *u);

#endif /* WEFT_UDP_SOCKET_H */
