/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/copy.h
 * Copies: a few bytes fast, and the parameter structs of callers of other versions.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ------------------------------------------------------------------ a few bytes */

/*
 * Copies of a few bytes are most of the cost of small messages. memcpy() with a length unknown to
 * the compiler is a call and several branches. Two overlapping moves copy any length between their
 * size and twice that.
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

/*
 * Parameter structs of calls. Their first member `size` identifies the version that the caller was
 * compiled with.
 */

/**
 * Copy a caller's parameter struct (its first member is `size`) into ours of @p size bytes. Fields
 * that the caller's version lacks become zero. NULL = all zero. @return 0, or -EINVAL when `size`
 * is less than sizeof(size_t), as when it is not set
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
 * Fill a caller's struct, whose `size` must be set, from ours. Fields that our version lacks become
 * zero. @return 0, or -EINVAL: NULL, or as in weft_struct_in()
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

#endif /* WEFT_COPY_H */
