/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define RESERVE 64u   /* bytes for the last member and the end */
#define TEXT_MAX 1024 /* bytes of a text */

/* @return false: there is no room, and nothing was written */
static bool put(struct weft_json *j, const char *text, size_t len)
{
	if (j->len + len >= j->size)
		return false;
	memcpy(j->out + j->len, text, len);
	j->len += len;
	return true;
}

static bool put_text(struct weft_json *j, const char *text, size_t len)
{
	char clean[TEXT_MAX];
	bool ok = put(j, "\"", 1);

	if (len >= sizeof(clean))
		len = sizeof(clean) - 1;
	weft_text_copy(clean, sizeof(clean), text, len);
	for (const char *p = clean; ok && *p; p++)
		ok = ((*p != '"' && *p != '\\') || put(j, "\\", 1)) && put(j, p, 1);
	return ok && put(j, "\"", 1);
}

void weft_json_begin(struct weft_json *j, char *out, size_t size, const char *command,
		     size_t command_len, enum weft_json_kind kind)
{
	*j = (struct weft_json){.out = out, .size = size - RESERVE, .kind = kind};
	put(j, "{", 1);
	put_text(j, command, command_len);
	put(j, ":", 1);
	if (kind != WEFT_JSON_TEXT)
		put(j, kind == WEFT_JSON_DICT ? "{" : "[", 1);
}

/* Write a whole member, or count it as left out. */
static void member(struct weft_json *j, const char *name, const char *value, bool is_text)
{
	size_t before = j->len;
	bool ok = j->members == 0 || put(j, ",", 1);

	if (ok && name)
		ok = put_text(j, name, strlen(name)) && put(j, ":", 1);
	if (ok)
		ok = is_text ? put_text(j, value, strlen(value)) : put(j, value, strlen(value));
	if (ok) {
		j->members++;
		return;
	}
	j->len = before;
	j->left_out++;
}

void weft_json_text(struct weft_json *j, const char *name, const char *text)
{
	member(j, name, text, true);
}

void weft_json_number(struct weft_json *j, const char *name, uint64_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, value);
	member(j, name, number, false);
}

static void add_left_out(struct weft_json *j)
{
	char text[32];

	if (j->kind == WEFT_JSON_DICT) {
		weft_json_number(j, "left_out", j->left_out);
		return;
	}
	snprintf(text, sizeof(text), "%u left out", j->left_out);
	weft_json_text(j, NULL, text);
}

size_t weft_json_end(struct weft_json *j)
{
	j->size += RESERVE;
	if (j->left_out && j->kind != WEFT_JSON_TEXT)
		add_left_out(j);
	if (j->kind == WEFT_JSON_TEXT)
		put(j, "null", j->members ? 0 : 4);
	else
		put(j, j->kind == WEFT_JSON_DICT ? "}" : "]", 1);
	put(j, "}", 1);
	j->out[j->len] = '\0';
	return j->len;
}
