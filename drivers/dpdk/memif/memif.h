/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memif/memif.h
 * Frame ports over memif rings, without a port of DPDK: doc/ports.md, "Memif lanes of Weft's own".
 *
 *	memif/memif.c     a port: its sockets, frames into rings and out of them, sleeping
 *	memif/control.c   a connection: control messages, memory and rings, signals of eventfds
 */
#ifndef WEFT_MEMIF_MEMIF_H
#define WEFT_MEMIF_MEMIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/un.h>

#include <rte_mbuf.h>

#include "base/log.h"
#include "frame/frame_port.h"
#include "memif/control.h"

struct weft_mport_opts {
	bool server;
	uint32_t id;
	uint8_t log2_ring;   /**< log2 of the entries of a ring; 0 = the default */
	uint32_t bsize;      /**< bytes of a buffer; 0 = the default */
	uint8_t mac[6];      /**< zeros = a random one */
	uint16_t mtu;        /**< IP MTU; 0 = by bsize */
	bool vlan;           /**< frames have a tag */
	uint32_t frame_size; /**< bytes of a frame at most; 0 = by the MTU */
	uint32_t rx_bufs;
	bool no_extbuf; /**< no sends from user memory */
	char secret[24];
	/** the peer is weft-switch, checked when it granted the port; its user may be unknown */
	bool vouched;
	bool network;     /**< the peer forwards frames to a network */
	bool farewells;   /**< the peer forwards farewells when this process has ended */
	const char *name; /**< name of the lane's resource; NULL = the path */
};

/**
 * Open one end of a memif connection. A missing peer is no error. The EAL must be up.
 * @param path  of the control socket
 * @return 0, or a negative error with a sentence in @p why
 */
int weft_mport_open(const char *path, const struct weft_mport_opts *o,
		    struct weft_frame_port **port, char *why, size_t why_len);

/* ---- state ----------------------------------------------------------------------------------- */

struct weft_memif_stats {
	uint64_t connects, refused, rx_frames, tx_frames, wakes;
	uint64_t tx_full, tx_too_long, rx_invalid, rx_no_buffer;
};

/** Frames of a burst that are in place, at most. */
#define WEFT_MPORT_HELD 16u

struct weft_mport {
	struct weft_frame_port fp; /* first */
	struct weft_mconn_conf conf;
	struct weft_mconn conn;
	struct weft_mwake wake;
	struct weft_memif_farewell *farewells;
	uint16_t last_farewell;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int listener, claim, epoll; /**< -1 = none */
	bool armed, vouched;
	/** entries of a burst with frames in place; the next receive returns them; 0 = none */
	unsigned int held;
	uint32_t polls;
	uint64_t look_tsc;  /**< without a connection: time of the next check of the sockets */
	uint64_t try_tsc;   /**< time of a client's next try to connect */
	uint64_t since_tsc; /**< time at which the present connection began */
	struct weft_memif_stats stats;
	struct weft_log_limit limit;
	struct rte_mbuf rest[WEFT_MPORT_HELD]; /**< second segments of frames in place */
};

static inline struct weft_mport *weft_mport_of(struct weft_frame_port *fp)
{
	return (struct weft_mport *)fp;
}

#endif /* WEFT_MEMIF_MEMIF_H */
