/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/hash.h
 * Checksums and keyed hashes.
 */
#ifndef WEFT_HASH_H
#define WEFT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ CRC-32C */

/*
 * CRC-32C (Castagnoli) without special instructions: for messages at set-up, for processors without
 * the instruction, and as the reference for code that uses the instruction.
 */

#define WEFT_CRC32C_INIT 0xffffffffu

/**
 * Continue a CRC. Start with WEFT_CRC32C_INIT; the value on the wire is the complement of the last
 * result.
 */
uint32_t weft_crc32c_soft(uint32_t crc, const void *data, size_t len);

/**
 * The value for the wire of @p length bytes. The 4 bytes at offset @p at are its field and count as
 * 0.
 */
uint32_t weft_crc32c_of(const void *data, size_t length, size_t at);

/* ------------------------------------------------------------------ SipHash */

/*
 * SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, 2012): a keyed hash of 64 bits. Without the key a
 * sender can neither compute nor guess the hash, nor choose inputs that collide. For cookies,
 * identifiers made from a secret, and hash tables that unknown senders fill. Not for the path of
 * messages.
 */

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

#endif /* WEFT_HASH_H */
