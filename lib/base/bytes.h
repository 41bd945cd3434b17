/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/bytes.h
 * Copies of a few bytes, parameter structs of callers of other versions, numbers of messages.
 */
#ifndef WEFT_BYTES_H
#define WEFT_BYTES_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ------------------------------------------------------------------ a few bytes */

/*
 * Copies of a few bytes are most of the cost of small messages. Two overlapping moves copy any
 * length between their size and twice that.
 */

/** As memcpy(), inline up to 32 bytes. */
static inline void weft_copy(void *to, const void *from, size_t n)
{
	const uint8_t *src = from;
	uint8_t *dst = to;

	if (n >= 16) {
		if (n > 32) {
			memcpy(dst, src, n);
			return;
		}
		memcpy(dst, src, 16);
		memcpy(dst + n - 16, src + n - 16, 16);
	} else if (n >= 8) {
		memcpy(dst, src, 8);
		memcpy(dst + n - 8, src + n - 8, 8);
	} else if (n >= 4) {
		memcpy(dst, src, 4);
		memcpy(dst + n - 4, src + n - 4, 4);
	} else {
		while (n-- > 0)
			*dst++ = *src++;
	}
}

/* ------------------------------------------------------------------ parameter structs */

/**
 * Copy a caller's struct, whose first member is `size`, into @p size bytes. Fields that the
 * caller's version lacks become zero. NULL = all zero.
 * @return 0; -EINVAL when `size` is less than sizeof(size_t), as when it is not set
 */
static inline int weft_struct_in(void *mine, size_t size, const void *theirs)
{
	size_t n;

	memset(mine, 0, size);
	if (!theirs)
		return 0;
	memcpy(&n, theirs, sizeof(n));
	if (n < sizeof(n))
		return -EINVAL;
	memcpy(mine, theirs, n < size ? n : size);
	return 0;
}

/**
 * Fill a caller's struct, whose `size` is set. Fields that this version lacks become zero.
 * @return 0; -EINVAL: @p theirs is NULL, or `size` is less than sizeof(size_t)
 */
static inline int weft_struct_out(void *theirs, const void *mine, size_t size)
{
	size_t n;

	if (!theirs)
		return -EINVAL;
	memcpy(&n, theirs, sizeof(n));
	if (n < sizeof(n))
		return -EINVAL;
	memset((char *)theirs + sizeof(n), 0, n - sizeof(n));
	memcpy((char *)theirs + sizeof(n), (const char *)mine + sizeof(n),
	       (n < size ? n : size) - sizeof(n));
	return 0;
}

/* ------------------------------------------------------------------ on the wire */

/**
 * Version of the protocol messages; peers with another major do not connect. doc/wire.md,
 * "Versions", defines when a number is raised. test/unit/core/wire.c checks the layouts.
 */
#define WEFT_WIRE_MAJOR 3
#define WEFT_WIRE_MINOR 0

typedef struct {
	uint16_t v;
} __attribute__((packed)) weft_le16;
typedef struct {
	uint32_t v;
} __attribute__((packed)) weft_le32;
typedef struct {
	uint64_t v;
} __attribute__((packed)) weft_le64;

static inline uint16_t weft_get16(weft_le16 x)
{
	return le16toh(x.v);
}
static inline uint32_t weft_get32(weft_le32 x)
{
	return le32toh(x.v);
}
static inline uint64_t weft_get64(weft_le64 x)
{
	return le64toh(x.v);
}
static inline weft_le16 weft_put16(uint16_t x)
{
	return (weft_le16){htole16(x)};
}
static inline weft_le32 weft_put32(uint32_t x)
{
	return (weft_le32){htole32(x)};
}
static inline weft_le64 weft_put64(uint64_t x)
{
	return (weft_le64){htole64(x)};
}

/** The wire has IEEE 754 numbers of single precision. */
static inline float weft_get_single(weft_le32 x)
{
	uint32_t bits = weft_get32(x);
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}
static inline weft_le32 weft_put_single(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return weft_put32(bits);
}

/*
 * Bounds of rates, times and costs; a message or address with a number outside them is malformed.
 * Arithmetic within them cannot overflow. The maxima, but that of the growth, are ten times those
 * of WEFT_LANES. Rate 0 = unknown.
 */
#define WEFT_WIRE_RATE_MIN 1.0f /**< bytes/s */
#define WEFT_WIRE_RATE_MAX 1e14f
#define WEFT_WIRE_LATENCY_MAX 100.0f /**< s */
#define WEFT_WIRE_OVERHEAD_MAX 10.0f
#define WEFT_WIRE_REG_COST_MAX 100.0f
#define WEFT_WIRE_REG_GROWTH_MAX 1e-3f /**< s/byte */

/* @return false for NaN, too */
static inline bool weft_wire_time_ok(float x, float max)
{
	return x >= 0 && x <= max;
}
static inline bool weft_wire_rate_ok(float x)
{
	return x == 0 || (x >= WEFT_WIRE_RATE_MIN && x <= WEFT_WIRE_RATE_MAX);
}

#endif /* WEFT_BYTES_H */
