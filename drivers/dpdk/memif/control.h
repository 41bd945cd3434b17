/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memif/control.h
 * A memif connection: the messages on its control socket, and the memory with its rings.
 *
 * The server sends HELLO. The client makes the memory and sends INIT, ADD_REGION, two ADD_RING and
 * CONNECT, each after the server's ACK of the previous one. CONNECTED is the last answer. A
 * connection has one ring for each direction. A message that does not fit the state ends it.
 *
 * All calls are the owner's; none waits. Everything from the peer is checked here: lengths and
 * types of messages, descriptors, and the place of rings in their region. memif/ring.h checks what
 * the rings contain.
 */
#ifndef WEFT_MEMIF_CONTROL_H
#define WEFT_MEMIF_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/ring.h"

/** Bytes of all regions at most. Missing pages that this end touches are charged to its process. */
#define WEFT_MCONN_REGIONS_MAX (1ull << 30)

struct weft_mconn_conf {
	bool server;
	uint32_t id;
	uint32_t bsize;    /**< client: bytes of each buffer */
	uint8_t log2_ring; /**< client: entries of a ring; server: at most */
	char secret[24];   /**< of both ends; not terminated by a zero byte if it has 24 */
};

enum weft_mconn_state {
	WEFT_MCONN_NONE,  /**< no control socket */
	WEFT_MCONN_HELLO, /**< client: waits for HELLO */
	WEFT_MCONN_STEPS, /**< client: it sends its messages, up to CONNECT */
	WEFT_MCONN_INIT,  /**< server: waits for INIT */
	WEFT_MCONN_RINGS, /**< server: gets regions and rings */
	WEFT_MCONN_UP,
};

struct weft_mconn {
	const struct weft_mconn_conf *conf;
	int epoll; /**< the owner's set; fd and rx.event leave it at the end */
	enum weft_mconn_state state;
	int fd;
	unsigned int step; /**< client: messages that the server has acknowledged */
	int file;          /**< client: the region, until it is passed; -1 = none */
	unsigned int num_regions;
	struct weft_mregion region[WEFT_MRING_REGIONS];
	struct weft_mring rx, tx;
	char why[160]; /**< after the end: the reason */
};

void weft_mconn_init(struct weft_mconn *c, const struct weft_mconn_conf *conf, int epoll);

/**
 * Begin on a connected control socket, which is @p c's from now on. @return 0, or a negative error:
 * the connection has ended, its socket is closed, and the reason is in c->why
 */
int weft_mconn_start(struct weft_mconn *c, int fd);

/**
 * Handle the messages that have arrived.
 * @return 0, or a negative error: the connection has ended, and the reason is in c->why
 */
int weft_mconn_input(struct weft_mconn *c);

/** End a connection, if there is one. @p why, if not NULL, is sent to the peer, and kept. */
void weft_mconn_end(struct weft_mconn *c, const char *why);

#endif /* WEFT_MEMIF_CONTROL_H */
