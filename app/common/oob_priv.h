/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/oob_priv.h
 * Shared by the files of the out-of-band connection: common/oob.c (messages), common/oob_connect.c
 * (the greeting of both ends, the client), common/oob_server.c (which connection is accepted).
 */
#ifndef APP_OOB_PRIV_H
#define APP_OOB_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/oob.h"

#define OOB_HEADER 12u
#define OOB_HELLO_SECONDS 5.0

struct addrinfo;
struct sockaddr_storage;

struct oob {
	int fd;
	int status; /* 0, or the error that ended the connection */
	uint32_t barriers;
	bool bye; /* a BYE is among the buffered messages, or was taken */
	int32_t bye_code;
	char bye_text[OOB_BYE_TEXT + 1];
	char name[96];
	size_t in_length;
	uint8_t in[4 * (OOB_HEADER + OOB_MAX)];
};

static inline void oob_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint32_t oob_get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* common/oob_connect.c */

/** Make a connection of a connected socket. @return NULL: no memory, and the socket is closed */
struct oob *oob_new(int fd);

/** Addresses of a host; NULL after an error message. */
struct addrinfo *oob_resolve(const char *host, uint16_t port, int flags);

/** Send our greeting: OOB_HELLO with program and version. */
int oob_send_hello(struct oob *oob);

/**
 * Check the peer's greeting without waiting.
 * @return 0 = the same program and version, -EAGAIN = incomplete yet, or -EPROTO with a reason in
 *   @p why
 */
int oob_check_hello(struct oob *oob, char *why, size_t len);

#endif /* APP_OOB_PRIV_H */
