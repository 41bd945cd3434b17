/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/json.h
 * JSON to a stream: commas and escapes. The caller closes each object and list that it has opened.
 */
#ifndef DUMP_JSON_H
#define DUMP_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool more; /**< the open object or list has a member: a comma comes next */
};

/**
 * Begin an object or a list.
 * @param name  of the member; NULL: an element of a list, or the outermost object
 * @param bracket  '{' or '['
 */
void json_begin(struct json *j, const char *name, char bracket);
/** End an object or a list. @param bracket  '}' or ']' */
void json_end(struct json *j, char bracket);
void json_number(struct json *j, const char *name, uint64_t value);
void json_real(struct json *j, const char *name, double value);
/** @param value  JSON text, which is written unchanged */
void json_raw(struct json *j, const char *name, const char *value);
/** @param text  any bytes; control characters become \\u00xx */
void json_text(struct json *j, const char *name, const char *text);

#endif /* DUMP_JSON_H */
