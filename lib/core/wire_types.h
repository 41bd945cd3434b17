/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wire_types.h
 * Parts of the structures on the wire: little-endian integers without alignment, single-precision
 * numbers and their bounds, and the protocol version.
 */
#ifndef WEFT_WIRE_TYPES_H
#define WEFT_WIRE_TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <endian.h>

/**
 * Version of the protocol messages; peers with another major do not connect. doc/wire.md,
 * "Versions", defines when each number is raised. test/unit/core/wire.c has the layouts of this
 * version.
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

/** IEEE 754 numbers of single precision. */
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
 * Bounds of the figures of interfaces and lanes; a message or an address with other figures is
 * malformed. The largest ones are ten times those of WEFT_LANES, and arithmetic within them cannot
 * overflow. A rate of 0 is unknown.
 */
#define WEFT_WIRE_RATE_MIN 1.0f /**< bytes/s */
#define WEFT_WIRE_RATE_MAX 1e14f
#define WEFT_WIRE_LATENCY_MAX 100.0f /**< s */
#define WEFT_WIRE_OVERHEAD_MAX 10.0f
#define WEFT_WIRE_REG_COST_MAX 100.0f
#define WEFT_WIRE_REG_GROWTH_MAX 1e-3f /**< s/byte */

/* @return false for NaN, too: it compares as false */
static inline bool weft_wire_time_ok(float x, float max)
{
	return x >= 0 && x <= max;
}
static inline bool weft_wire_rate_ok(float x)
{
	return x == 0 || (x >= WEFT_WIRE_RATE_MIN && x <= WEFT_WIRE_RATE_MAX);
}

#endif /* WEFT_WIRE_TYPES_H */
