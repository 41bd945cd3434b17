/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/tls.h
 * TLS 1.3 with a key that both ends have, over a connected socket that does not block. There are no
 * certificates: an end without the key fails the handshake. Keys have forward secrecy.
 */
#ifndef APP_TLS_H
#define APP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TLS_KEY_LEN 32u

struct tls;

/** Derive the key of TLS from the job key. @return 0 or -EIO; -ENOTSUP: this build has no TLS */
int tls_key_derive(const uint8_t job_key[TLS_KEY_LEN], uint8_t key[TLS_KEY_LEN]);

/** @param key  of tls_key_derive(). @return 0, -ENOMEM or -ENOTSUP */
int tls_open(const uint8_t key[TLS_KEY_LEN], int fd, bool server, struct tls **tls);

/**
 * Continue the handshake, until it returns 0. Nothing of the peer is authentic before.
 * @param[out] events  with -EAGAIN: POLLIN or POLLOUT, to wait for
 * @return 0; -EAGAIN; -EACCES: the peer does not have the key, or its bytes are no handshake;
 * -ENOTSUP; or another error of the connection
 */
int tls_handshake(struct tls *t, short *events);

/** As send(2). @return bytes; -EAGAIN; -EPIPE: the connection has ended; or a negative error */
ssize_t tls_send(struct tls *t, const void *data, size_t length);
/**
 * As recv(2). @return bytes; 0: the connection has ended; -EAGAIN; -EPROTO: the bytes are not from
 * the peer; or another negative error
 */
ssize_t tls_recv(struct tls *t, void *data, size_t length);

/** The socket stays open. NULL is allowed. */
void tls_close(struct tls *t);

#endif /* APP_TLS_H */
