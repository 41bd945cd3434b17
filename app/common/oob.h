/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/oob.h
 * The out-of-band connection of two programs: one TCP connection beside the lanes. It carries
 * worker addresses, parameters, barriers and results, and its end means that the peer is gone: a
 * kernel closes it when a process dies, long before the lanes' own timeout.
 *
 * The socket never blocks: oob_poll() is cheap enough to be called every millisecond from a
 * datapath loop. Messages are a 12-byte header {magic, type, length} and up to OOB_MAX bytes,
 * little-endian; whatever else arrives ends the connection with -EPROTO.
 */
#ifndef APP_OOB_H
#define APP_OOB_H

#include <stddef.h>
#include <stdint.h>

#define OOB_MAX 16384u
/** Longest text of OOB_BYE, in bytes. */
#define OOB_BYE_TEXT 512u

enum oob_type {
	OOB_HELLO = 1, /**< program and version; both must be the same at both ends */
	OOB_ADDRESS,   /**< worker address, opaque */
	OOB_BARRIER,   /**< u32 number of the barrier */
	OOB_PARAMS,    /**< program-defined */
	OOB_RESULT,    /**< program-defined */
	OOB_BYE,       /**< i32 exit code, then a message text; nothing follows */
	OOB_KEY,       /**< packed remote key, opaque */
	OOB_MORE,      /**< program-defined: the sender announces more work */
	OOB_SEEN,      /**< program-defined: the sender reports what has arrived */
	OOB_TYPES
};

struct oob;

/** Type of the first message that has arrived whole and was not taken; 0 = there is none. */
uint32_t oob_next(const struct oob *oob);

/**
 * Called while something is waited for. @return 0 to go on, or a negative error that ends the
 * waiting
 */
typedef int (*oob_idle_cb)(void *arg);

struct oob_server;

/**
 * Listen. @p host is the local address, NULL = all (IPv4 and IPv6).
 * @return 0, or a negative error after an error message
 */
int oob_server_open(const char *host, uint16_t port, struct oob_server **server);

/** The port it listens on (it was asked for 0). */
uint16_t oob_server_port(const struct oob_server *server);

/**
 * Wait for a peer that runs the same program, sleeping. Up to 16 others that have connected are
 * heard at the same time; one that sends nothing for 5 s, or something else, is refused with a
 * warning, and of more than 16 those of the host that has most give up their places.
 * @param idle  called at least every 100 ms; may be NULL
 * @return 0, idle's error, or a negative error after an error message
 */
int oob_server_accept(struct oob_server *server, oob_idle_cb idle, void *arg, struct oob **oob);

/**
 * Refuse whoever waits, with this text; never blocks. To be called again and again while a
 * peer is served.
 */
void oob_server_refuse(struct oob_server *server, const char *text);

/** NULL is allowed. */
void oob_server_close(struct oob_server *server);

/**
 * Connect, trying again for @p wait seconds while nobody listens.
 * @return 0, idle's error, or a negative error after an error message
 */
int oob_connect(const char *host, uint16_t port, double wait, oob_idle_cb idle, void *arg,
		struct oob **oob);

/** "host:port" of the peer. */
const char *oob_peer_name(const struct oob *oob);

/**
 * Send a message. The socket's buffer takes it unless the peer has stopped reading for seconds.
 * @return 0 or a negative error
 */
int oob_send(struct oob *oob, enum oob_type type, const void *data, size_t length);

/**
 * Check the socket without waiting; complete messages are kept for oob_recv().
 * @return 0; -ECONNRESET the peer is gone; -EPROTO; sticky
 */
int oob_poll(struct oob *oob);

/**
 * Take the next message if it is there. A BYE that comes instead of another type ends the
 * connection (-ESHUTDOWN).
 * @param[out] length  in: room, out: length
 * @return 0, -EAGAIN when nothing is there, -EPROTO for another type or a too long one, or what
 *   oob_poll() says
 */
int oob_take(struct oob *oob, enum oob_type type, void *data, size_t *length);

/**
 * Wait for a message: alternate oob_poll() and @p idle until it is there or @p timeout seconds (0 =
 * any time) are over (-ETIMEDOUT).
 */
int oob_recv(struct oob *oob, enum oob_type type, void *data, size_t *length, double timeout,
	     oob_idle_cb idle, void *arg);

/** Both sides call it; nobody leaves before both are there. */
int oob_barrier(struct oob *oob, double timeout, oob_idle_cb idle, void *arg);

/** Has the peer sent BYE (it may still be unread)? @return 1 with its code and text, else 0 */
int oob_peer_bye(struct oob *oob, int *code, char *text, size_t len);

/** Send BYE with an exit code and a message text ("" = none). */
int oob_bye(struct oob *oob, int code, const char *text);

/** The socket, for poll(). */
int oob_fd(const struct oob *oob);

/** NULL is allowed. */
void oob_close(struct oob *oob);

#endif /* APP_OOB_H */
