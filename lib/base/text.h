/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/text.h
 * Text of a peer, a file or the environment that will be shown. Control sequences in it must not
 * reach a terminal.
 */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include <stddef.h>

/**
 * Replace by '?', in place, every byte of the first @p length ones that is not part of printable
 * UTF-8: control characters (C0, DEL, C1), malformed, overlong or truncated sequences, surrogates,
 * and the marks that change the direction of what follows. The length stays. No allocation, no
 * locale.
 */
void weft_text_printable(char *text, size_t length);

/**
 * Copy at most @p size - 1 of @p length bytes and make them printable, zero bytes too; @p dst is
 * terminated. @p size > 0
 */
void weft_text_copy(char *dst, size_t size, const void *src, size_t length);

/**
 * Why a connection or an interface failed, for the log and the error callback. An assignment copies
 * the whole text, so no length can be wrong. A longer text is truncated and terminated.
 */
struct weft_reason {
	char text[384];
};

void weft_reason_set(struct weft_reason *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/** Append. */
void weft_reason_add(struct weft_reason *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* WEFT_TEXT_H */
