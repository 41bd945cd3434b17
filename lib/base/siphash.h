/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/siphash.h
 * SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, 2012): a keyed hash of 64 bits. Without the key a
 * sender can neither compute nor guess the hash, nor choose inputs that collide. For cookies,
 * identifiers made from a secret, and hash tables that unknown senders fill. Not for the path of
 * messages.
 */
#ifndef WEFT_SIPHASH_H
#define WEFT_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct weft_siphash_key {
	uint64_t k0, k1;
};

/** State of the hash of an input that is added in parts. */
struct weft_siphash {
	uint64_t v[4];
	uint64_t tail; /**< bytes of an incomplete word */
	uint64_t length;
};

void weft_siphash_init(struct weft_siphash *s, const struct weft_siphash_key *key);
void weft_siphash_add(struct weft_siphash *s, const void *data, size_t length);
uint64_t weft_siphash_end(struct weft_siphash *s);

/** Hash of @p length bytes at @p data. */
uint64_t weft_siphash(const struct weft_siphash_key *key, const void *data, size_t length);

#endif /* WEFT_SIPHASH_H */
