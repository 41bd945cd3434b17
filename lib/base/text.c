/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A character's bytes, from its first one; 0 = no first byte of UTF-8 */
static size_t bytes_of(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/*
 * Controls, surrogates, what is beyond Unicode, and marks that turn the direction of text (bidi).
 */
static bool is_harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x061c ||
	       c == 0xfeff || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff;
}

/* @return bytes of the printable character at @p s, 0 = there is none */
static size_t printable(const uint8_t *s, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	static const uint8_t mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	size_t n = bytes_of(s[0]);
	uint32_t c;

	if (n == 0 || n > left)
		return 0;
	c = s[0] & mask[n];
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c < least[n] || is_harmful(c) ? 0 : n;
}

void weft_text_printable(char *text, size_t length)
{
	for (size_t i = 0, n; i < length; i += n) {
		n = printable((const uint8_t *)text + i, length - i);
		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
	}
}

void weft_text_copy(char *dst, size_t size, const void *src, size_t length)
{
	if (length > size - 1)
		length = size - 1;
	memcpy(dst, src, length);
	dst[length] = '\0';
	weft_text_printable(dst, length);
}

void weft_reason_set(struct weft_reason *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

void weft_reason_add(struct weft_reason *r, const char *fmt, ...)
{
	size_t used = strlen(r->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->text + used, sizeof(r->text) - used, fmt, ap);
	va_end(ap);
}
