/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/farewell.h
 * Farewells of a process whose lanes are over kernel interfaces, or sealed over UDP sockets. A
 * helper, the program weft-farewell, waits for the end of the process. The helper then sends a
 * farewell for each connection: a frame that was built when the connection came up. So peers learn
 * of a killed process at once. A stopped process has not ended.
 *
 * A process has one helper for all ports. The two processes share a table in memory. Without
 * CAP_NET_RAW the helper sends over UDP only. Peers without a farewell detect the end by
 * WEFT_PEER_TIMEOUT.
 */
#ifndef WEFT_FRAME_FAREWELL_H
#define WEFT_FRAME_FAREWELL_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Entries of the table, of which entry 0 is unused. Further connections have no farewell. */
#define WEFT_FAREWELL_SLOTS 4096u

enum weft_farewell_kind {
	WEFT_FAREWELL_NONE,
	WEFT_FAREWELL_PACKET, /**< a frame with its Ethernet header, for a packet socket */
	WEFT_FAREWELL_UDP,    /**< the payload of a datagram */
};

union weft_farewell_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct weft_farewell_way {
	uint32_t kind;                     /**< enum weft_farewell_kind */
	uint32_t if_index;                 /**< WEFT_FAREWELL_PACKET: the interface */
	union weft_farewell_addr from, to; /**< WEFT_FAREWELL_UDP: the addresses */
};

/** An entry of the table. The process writes it, its helper reads it. */
struct weft_farewell_slot {
	_Atomic uint32_t len; /**< bytes of the farewell; 0 = none, or it is being written */
	struct weft_farewell_way way;
	uint8_t bytes[120];
};

/* Descriptors of the helper at its start. */
#define WEFT_FAREWELL_FD_TABLE 3
#define WEFT_FAREWELL_FD_SOCKET 4 /**< a packet socket, to send; closed without CAP_NET_RAW */
#define WEFT_FAREWELL_FD_ALIVE 5  /**< a pipe: its other end closes with the process */

/** @return false: there is no helper, or the helper cannot send farewells of this kind */
bool weft_farewell_begin(enum weft_farewell_kind kind);
void weft_farewell_end(void);

/** As farewell() of frame/frame_port.h, for a port that has begun to use the helper. */
void weft_farewell_set(const struct weft_farewell_way *way, uint16_t *slot, const uint8_t *bytes,
		       uint32_t len);

#endif /* WEFT_FRAME_FAREWELL_H */
