/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/copy.h
 * Copies of a few bytes are most of the cost of small messages. memcpy() with a length unknown to
 * the compiler is a call and several branches. Two overlapping moves copy any length between their
 * size and twice that.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif /* WEFT_COPY_H */
