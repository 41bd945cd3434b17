/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/tcp.h
 * TCP connections with hosts that have not authenticated themselves: a connect by host and port,
 * and a server that bounds the resources of its clients. weft_listen.h and the programs use both.
 *
 *	client -> server  its greeting
 *	client <- server  the reply, or nothing
 *
 * The server sends nothing before a client's greeting.
 */
#ifndef WEFT_TCP_H
#define WEFT_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define WEFT_TCP_SECOND 1000000000u

/** @return CLOCK_MONOTONIC in ns, as all points in time of this file */
uint64_t weft_tcp_now(void);

/** @return @p now + @p ns, at most UINT64_MAX */
uint64_t weft_tcp_after(uint64_t now, uint64_t ns);

/* ------------------------------------------------------------------ client */

struct weft_tcp_connect {
	const char *host; /**< name, IPv4, IPv6, or IPv6 with a zone */
	uint16_t port;
	const char *remedy;   /**< ends "no server listens on HOST port N: REMEDY" */
	uint64_t timeout;     /**< ns, of one attempt at all addresses of the name */
	uint64_t again_until; /**< until then attempts are repeated if no server listens */
	uint64_t end;         /**< end of the last attempt */
	/**
	 * Called at least every 100 ms, except during the resolution of the name. May be NULL.
	 * @return 0; or a negative error, which ends the connect
	 */
	int (*idle)(void *arg);
	/** @p fd does not block. @return 0; or a negative error, from weft_tcp_fail() */
	int (*greet)(struct weft_tcp_connect *c, int fd, uint64_t end);
	void *arg;
	int stopped;   /**< begins as 0; out: the error of idle, or 0 */
	char why[512]; /**< on error: a sentence with host, port and remedy */
};

/**
 * All addresses are tried in order; each gets an equal part of the remaining time. The error is
 * that of the attempt that came farthest. The call blocks.
 * @return the socket, which does not block; or a negative error: -ENOENT the name has no address;
 *   -EAGAIN the name service fails at present; -ENOMEM or -EIO of the resolution; -ECONNREFUSED no
 *   server listens; -ETIMEDOUT; errors of idle and greet; another error of the socket
 */
int weft_tcp_connect(struct weft_tcp_connect *c);

/** Sets c->why. @return @p status */
int weft_tcp_fail(struct weft_tcp_connect *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** @param events  POLLIN or POLLOUT. @return 0, -ETIMEDOUT, or the error of idle */
int weft_tcp_wait(struct weft_tcp_connect *c, int fd, short events, uint64_t end);

/** @return 0; -ENODATA: the peer has ended the connection before; or another negative error */
int weft_tcp_receive(struct weft_tcp_connect *c, int fd, void *buf, size_t size, uint64_t end);

/* ------------------------------------------------------------------ server */

#define WEFT_TCP_HELLO_MAX 8192u

struct weft_tcp_answer {
	const void *reply; /**< in `owned`, or outlives the server */
	size_t length;     /**< bytes; 0 = no reply */
	void *owned;       /**< memory that the server frees with the client's place; or NULL */
	bool accepted;
	char why[160]; /**< why the client is refused; "" = refused() is not called */
};

struct weft_tcp_server_params {
	const char *host; /**< local address; NULL = all, IPv4 and IPv6 */
	bool names;       /**< host may be a name: its resolution blocks */
	uint16_t port;    /**< 0 = a free one */
	int backlog;      /**< connections that wait in the kernel */
	bool keeps;       /**< accepted connections stay open for weft_tcp_server_take() */
	size_t hello;     /**< maximum of a greeting's bytes, <= WEFT_TCP_HELLO_MAX */
	/**
	 * Judge the first @p length bytes of a client.
	 * @return 0: @p answer is filled in; -EAGAIN, only if @p length < `hello`: more are needed
	 */
	int (*judge)(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer);
	/** Log a refused client. @p last: no further call follows. */
	void (*refused)(void *arg, const char *client, const char *why, bool last);
	/** Log that clients wait, since no descriptor or memory is free: @p err. NULL: no log. */
	void (*starved)(void *arg, int err);
	void *arg;
};

struct weft_tcp_server;

/**
 * At most 16 clients are served at once. A further one takes the place of a client that has its
 * reply, or else of one of the host (IPv6: the /64) with the most clients. A client is dropped
 * after 5 s. A connection is a client from its first bytes, or after a second without any. Only the
 * first 16 refused clients with a reason are passed to refused().
 * @return 0; -EINVAL: the host cannot be resolved, or `hello` is too large; an error of the socket;
 *   -ENOMEM
 */
int weft_tcp_server_open(const struct weft_tcp_server_params *params,
			 struct weft_tcp_server **server);

/** Make an IPv4 address of the IPv6 form ::ffff:a.b.c.d. */
void weft_tcp_unmap(struct sockaddr_storage *ss);

void weft_tcp_server_query(const struct weft_tcp_server *s, char *host, size_t size,
			   uint16_t *port);

/**
 * Sleep until there is an event, at most @p ms (-1: no limit), and serve the clients. Returns false
 * at once while an accepted client waits for weft_tcp_server_take().
 * @param stop  an eventfd that does not block; readable, it ends the sleep; -1 = none
 * @return true: @p stop is readable, and no client was served
 */
bool weft_tcp_server_run(struct weft_tcp_server *s, int stop, int ms);

/**
 * With `keeps`: the caller owns the accepted connection. The server judges no other one before.
 * @return the socket, which does not block; -1 = there is none
 */
int weft_tcp_server_take(struct weft_tcp_server *s);

/** Accepted clients with their whole reply, and refused ones. Any thread. */
uint64_t weft_tcp_server_served(const struct weft_tcp_server *s);
uint64_t weft_tcp_server_refused(const struct weft_tcp_server *s);

/** @p s may be NULL. */
void weft_tcp_server_close(struct weft_tcp_server *s);

/* ------------------------------------------------------------------ greetings */

/*
 * Two messages by which a server with the job key gives a text only to clients that have the key:
 * doc/sealing.md, "Addresses by TCP". drivers/dpdk/seal/exchange.c has the functions, since the
 * library itself encrypts nothing.
 */

#define WEFT_GREETING_REQUEST 48u  /**< length of the client's message */
#define WEFT_GREETING_OVERHEAD 64u /**< bytes of the server's message beyond its text */

/** Secrets of one end of an exchange; the caller wipes them. */
struct weft_greeting_key {
	uint8_t job_key[32];
	uint8_t random[32]; /**< new for each exchange; open() needs that of request() */
};

/** @return 0; -EBADMSG: bytes of another job key; -EIO: libcrypto failed */
struct weft_greeting_ops {
	/** The client's message depends on @p k only. */
	int (*request)(const struct weft_greeting_key *k, uint8_t message[WEFT_GREETING_REQUEST]);
	/** The server's @p message has @p len + WEFT_GREETING_OVERHEAD bytes. */
	int (*answer)(const struct weft_greeting_key *k,
		      const uint8_t request[WEFT_GREETING_REQUEST], const void *text, size_t len,
		      uint8_t *message);
	/** @p text has @p len - WEFT_GREETING_OVERHEAD bytes. */
	int (*open)(const struct weft_greeting_key *k, const uint8_t *message, size_t len,
		    void *text);
};

/** Only in builds that can seal: see weft_drivers_greeting(). */
extern const struct weft_greeting_ops weft_sealed_greeting;

#endif /* WEFT_TCP_H */
