/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/oob.h
 * The out-of-band connection of two programs: one TCP connection next to the lanes. It carries
 * worker addresses, parameters, barriers and results. Its end means that the peer has died: the
 * kernel closes the connections of a dead process long before the lanes' timeout.
 *
 * The socket never blocks: oob_poll() is cheap enough for a call per millisecond in a datapath
 * loop. A message has a 12-byte header {magic, type, length} and up to OOB_MAX bytes,
 * little-endian. Any other bytes end the connection with -EPROTO.
 *
 * With a job key all messages behind the greetings go through TLS (common/tls.h). Both ends then
 * need the same key: a peer without one, or with another one, is refused.
 */
#ifndef APP_OOB_H
#define APP_OOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OOB_MAX 16384u
#define OOB_BYE_TEXT 512u /**< bytes of the longest text of OOB_BYE */

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

/** @return type of the first message not taken yet; 0 = none is complete */
uint32_t oob_next(const struct oob *oob);

/** Called during a wait. @return 0 to continue, or a negative error that ends the wait */
typedef int (*oob_idle_cb)(void *arg);

/**
 * For all later connections of the process. @param job_key  32 bytes; NULL = none
 * @return 0, -ENOMEM, or the error of tls_key_derive()
 */
int oob_set_key(const uint8_t *job_key);

struct oob_server;

/** @param host  NULL = all, IPv4 and IPv6. @return 0, or a negative error after a message */
int oob_server_open(const char *host, uint16_t port, struct oob_server **server);

/** The TCP port on which a server listens, which may have been opened with port 0. */
uint16_t oob_server_port(const struct oob_server *server);

/**
 * Sleep until a peer connects that runs the same program. lib/base/tcp.h limits the number and the
 * time of clients that have not sent a valid greeting. A message reports refused clients.
 * @param idle  called at least every 100 ms; may be NULL
 * @return 0, idle's error, or the error of memory or TLS, for which no message is printed
 */
int oob_server_accept(struct oob_server *server, oob_idle_cb idle, void *arg, struct oob **oob);

/** Refuse clients after their greetings; never blocks. Call repeatedly while a peer is served. */
void oob_server_refuse(struct oob_server *server, const char *text);

/** NULL is allowed. */
void oob_server_close(struct oob_server *server);

/**
 * Connect to the first address of the host where a peer listens; while no server listens, try again
 * for @p wait seconds.
 * @return 0, idle's error, or a negative error after an error message
 */
int oob_connect(const char *host, uint16_t port, double wait, oob_idle_cb idle, void *arg,
		struct oob **oob);

/** "HOST port PORT" of the peer. */
const char *oob_peer_name(const struct oob *oob);

/**
 * Send a message. Waits for space in the socket's buffer for 5 s at most.
 * @return 0; -EMSGSIZE: @p length exceeds OOB_MAX; -ETIMEDOUT: the peer does not read; or another
 *   negative error
 */
int oob_send(struct oob *oob, enum oob_type type, const void *data, size_t length);

/**
 * Read from the socket without waiting; complete messages are buffered for oob_recv().
 * @return 0; -ECONNRESET the peer has died or closed; -ETIMEDOUT its host does not answer; -EPROTO
 *   a malformed message. Errors are sticky
 */
int oob_poll(struct oob *oob);

/**
 * Take the next message if it has arrived.
 * @param[in,out] length  in: size of the buffer, out: length
 * @return 0, -EAGAIN when no message is there, -ESHUTDOWN for a BYE instead of the expected type,
 *   -EPROTO for any other type or a message that is too long, or the result of oob_poll()
 */
int oob_take(struct oob *oob, enum oob_type type, void *data, size_t *length);

/**
 * Alternate oob_poll() and @p idle until the message is there.
 * @param timeout  in seconds; 0 = none
 * @return as oob_take(), but -ETIMEDOUT instead of -EAGAIN; or the error of @p idle
 */
int oob_recv(struct oob *oob, enum oob_type type, void *data, size_t *length, double timeout,
	     oob_idle_cb idle, void *arg);

/** Wait until the peer calls oob_barrier(), too. @return 0, or as oob_send() or oob_recv() */
int oob_barrier(struct oob *oob, double timeout, oob_idle_cb idle, void *arg);

/** @return 1 with code and text once a BYE has arrived, also before it is taken; else 0 */
int oob_peer_bye(struct oob *oob, int *code, char *text, size_t len);

/** @param text  "" = none. @return as oob_send() */
int oob_bye(struct oob *oob, int code, const char *text);

int oob_fd(const struct oob *oob);

/** Sends no BYE. NULL is allowed. */
void oob_close(struct oob *oob);

#endif /* APP_OOB_H */
