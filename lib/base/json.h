/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/json.h
 * An answer in JSON, in the form of DPDK's telemetry: {"/command": value}. The value is a
 * dictionary or an array of texts and numbers, one text, or null. Members that do not fit are
 * counted, and the last member has their number.
 */
#ifndef WEFT_JSON_H
#define WEFT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft_json_kind {
	WEFT_JSON_DICT,
	WEFT_JSON_ARRAY,
	WEFT_JSON_TEXT, /**< one weft_json_text() without a name; without that call it is null */
};

struct weft_json {
	char *out;
	size_t size, len;
	enum weft_json_kind kind;
	unsigned int members, left_out;
};

/** @param size  at least 256 and the length of the command */
void weft_json_begin(struct weft_json *j, char *out, size_t size, const char *command,
		     size_t command_len, enum weft_json_kind kind);
/** @p name is NULL in arrays. Bytes that are not printable UTF-8 become '?'. */
void weft_json_text(struct weft_json *j, const char *name, const char *text);
void weft_json_number(struct weft_json *j, const char *name, uint64_t value);
/** @return length of the text in @p out, without its zero byte */
size_t weft_json_end(struct weft_json *j);

#endif /* WEFT_JSON_H */
