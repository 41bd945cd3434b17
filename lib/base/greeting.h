/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/greeting.h
 * Two messages by which a server with the job key gives a text to clients that have the key, and to
 * no other. doc/sealing.md, "Addresses by TCP", has the bytes. drivers/dpdk/seal/greeting.c has the
 * functions, since the library itself contains no cryptography.
 */
#ifndef WEFT_GREETING_H
#define WEFT_GREETING_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_GREETING_REQUEST 48u  /**< bytes of the client's message */
#define WEFT_GREETING_OVERHEAD 64u /**< bytes of the server's message beyond its text */

/** What one end brings to an exchange; to be wiped after it. */
struct weft_greeting_key {
	uint8_t job_key[32];
	uint8_t random[32]; /**< never used before; a client may repeat its own request */
};

/** Calls return 0; -EBADMSG for bytes that were not made with this key; -EIO of libcrypto. */
struct weft_greeting_ops {
	/** The client's message: the same bytes each time. */
	int (*request)(const struct weft_greeting_key *k, uint8_t message[WEFT_GREETING_REQUEST]);
	/** The server's message, of @p len + WEFT_GREETING_OVERHEAD bytes. */
	int (*answer)(const struct weft_greeting_key *k,
		      const uint8_t request[WEFT_GREETING_REQUEST], const void *text, size_t len,
		      uint8_t *message);
	/** @param text  @p len - WEFT_GREETING_OVERHEAD bytes, of no meaning after an error */
	int (*open)(const struct weft_greeting_key *k, const uint8_t *message, size_t len,
		    void *text);
};

/** Defined in builds that can seal (drivers/dpdk/seal) only: see weft_drivers_greeting(). */
extern const struct weft_greeting_ops weft_sealed_greeting;

#endif /* WEFT_GREETING_H */
