/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unit/seal/seal_util.h
 * Bytes of published vectors, and random bytes that each run has again.
 */
#ifndef SEAL_UTIL_H
#define SEAL_UTIL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** Hexadecimal digits to bytes. @return number of bytes */
static inline size_t from_hex(const char *text, uint8_t *out)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = {text[2 * i], text[2 * i + 1], '\0'}, *end;

		out[i] = (uint8_t)strtoul(two, &end, 16);
		assert_ptr_equal(end, two + 2);
	}
	return n;
}

/** The bytes are those of the text. */
static inline void expect_hex(const uint8_t *bytes, size_t len, const char *text)
{
	uint8_t wanted[1024];

	assert_true(strlen(text) / 2 <= sizeof(wanted));
	assert_int_equal(from_hex(text, wanted), len);
	assert_memory_equal(bytes, wanted, len);
}

static inline void dice(uint64_t *state, void *out, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		*state = *state * 6364136223846793005ull + 1442695040888963407ull;
		((uint8_t *)out)[i] = (uint8_t)(*state >> 56);
	}
}

#endif /* SEAL_UTIL_H */
