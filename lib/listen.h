/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file listen.h
 * The worker's side of weft_listen.h, and the bytes on the TCP connection.
 *
 *	client -> listener  struct weft_hello
 *	client <- listener  struct weft_hello_reply, then `length` bytes: the packed worker address
 *
 * With a job key, version WEFT_HELLO_SEALED, the messages of struct weft_greeting_ops (base/tcp.h)
 * follow: behind weft_hello the request, and behind weft_hello_reply the answer, whose text is the
 * address.
 *
 * All numbers are little-endian. A client that sends no weft_hello gets no byte. A listener of
 * another version, and one that refuses a request, sends its own version and no address.
 *
 * A listener is a thread with the packed address; the worker takes no part. A connect runs in a
 * thread for blocking calls (base/thread.h). Its states: *queued*; *running*; *done*, when the
 * result waits for the worker; *abandoned*, when the worker has ended it first. The thread frees an
 * abandoned connect, the worker any other. Sockets and bounds are those of base/tcp.h.
 */
#ifndef WEFT_LISTEN_INTERNAL_H
#define WEFT_LISTEN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct weft_worker;

#define WEFT_HELLO_MAGIC 0x54464557u /**< "WEFT" */
#define WEFT_HELLO_VERSION 1u
#define WEFT_HELLO_SEALED 2u          /**< version of an end with a job key */
#define WEFT_HELLO_ADDRESS_MAX 16384u /**< bytes that a client accepts; WEFT_ADDRESS_MAX is less */

struct weft_hello {
	uint32_t magic, version;
};

struct weft_hello_reply {
	uint32_t magic, version, length;
};

/** Report connects that have ended or are late. The worker is locked. @return their number */
unsigned int weft_connects_progress(struct weft_worker *w);

/**
 * Called before a worker with connects sleeps. The worker is locked.
 * @param[in,out] due  lowered to the first deadline
 * @return true: a result waits
 */
bool weft_connects_ready(struct weft_worker *w, uint64_t *due);

/** End all connects with -ECANCELED, when the worker is destroyed. The worker is locked. */
void weft_connects_cancel(struct weft_worker *w);

/** Destroy all listeners of the worker. */
void weft_listeners_end(struct weft_worker *w);

#endif /* WEFT_LISTEN_INTERNAL_H */
