/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ printable text */

/* @return length of a UTF-8 character by its first byte; 0 = none begins so */
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

static bool is_harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x061c ||
	       c == 0xfeff || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff;
}

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

const char *weft_text_without_name(const char *text, const char *name)
{
	size_t len = strlen(name);

	return strncmp(text, name, len) == 0 && strncmp(text + len, ": ", 2) == 0 ? text + len + 2
										  : text;
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

/* ------------------------------------------------------------------ texts of queries */

struct weft_text_node {
	struct weft_text_node *next;
	char text[];
};

const char *weft_texts_find(const struct weft_texts *texts, const char *text)
{
	if (text[0] == '\0')
		return "";
	for (const struct weft_text_node *n = texts->first; n; n = n->next)
		if (strcmp(n->text, text) == 0)
			return n->text;
	return NULL;
}

const char *weft_texts_add(struct weft_texts *texts, const char *text)
{
	const char *found = weft_texts_find(texts, text);
	size_t size = strlen(text) + 1;
	struct weft_text_node *n;

	if (found)
		return found;
	if (texts->num == WEFT_TEXTS_MAX)
		return "too many different texts were queried; the log has this one";
	n = malloc(sizeof(*n) + size);
	if (!n)
		return "no memory for this text";
	memcpy(n->text, text, size);
	n->next = texts->first;
	texts->first = n;
	texts->num++;
	return n->text;
}

void weft_texts_free(struct weft_texts *texts)
{
	struct weft_text_node *n;

	while ((n = texts->first)) {
		texts->first = n->next;
		free(n);
	}
	texts->num = 0;
}

/* ------------------------------------------------------------------ JSON */

#define JSON_RESERVE 64u /* bytes: number of members left out, and the end */
#define JSON_TEXT_MAX 1024

static bool put_json(struct weft_json *j, const char *text, size_t len)
{
	if (j->len + len >= j->size)
		return false;
	memcpy(j->out + j->len, text, len);
	j->len += len;
	return true;
}

static bool put_json_text(struct weft_json *j, const char *text, size_t len)
{
	char clean[JSON_TEXT_MAX];
	bool ok = put_json(j, "\"", 1);

	if (len >= sizeof(clean))
		len = sizeof(clean) - 1;
	weft_text_copy(clean, sizeof(clean), text, len);
	for (const char *p = clean; ok && *p; p++)
		ok = ((*p != '"' && *p != '\\') || put_json(j, "\\", 1)) && put_json(j, p, 1);
	return ok && put_json(j, "\"", 1);
}

void weft_json_begin(struct weft_json *j, char *out, size_t size, const char *command,
		     size_t command_len, enum weft_json_kind kind)
{
	*j = (struct weft_json){.out = out, .size = size - JSON_RESERVE, .kind = kind};
	put_json(j, "{", 1);
	put_json_text(j, command, command_len);
	put_json(j, ":", 1);
	if (kind != WEFT_JSON_TEXT)
		put_json(j, kind == WEFT_JSON_DICT ? "{" : "[", 1);
}

static void begin_member(struct weft_json *j, const char *name, const char *value, bool is_text)
{
	size_t before = j->len;
	bool ok = j->members == 0 || put_json(j, ",", 1);

	if (ok && name)
		ok = put_json_text(j, name, strlen(name)) && put_json(j, ":", 1);
	if (ok)
		ok = is_text ? put_json_text(j, value, strlen(value))
			     : put_json(j, value, strlen(value));
	if (ok) {
		j->members++;
		return;
	}
	j->len = before;
	j->left_out++;
}

void weft_json_text(struct weft_json *j, const char *name, const char *text)
{
	begin_member(j, name, text, true);
}

void weft_json_number(struct weft_json *j, const char *name, uint64_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, value);
	begin_member(j, name, number, false);
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
	j->size += JSON_RESERVE;
	if (j->left_out && j->kind != WEFT_JSON_TEXT)
		add_left_out(j);
	if (j->kind == WEFT_JSON_TEXT)
		put_json(j, "null", j->members ? 0 : 4);
	else
		put_json(j, j->kind == WEFT_JSON_DICT ? "}" : "]", 1);
	put_json(j, "}", 1);
	j->out[j->len] = '\0';
	return j->len;
}

/* ------------------------------------------------------------------ options of a lane */

int weft_opt_complain(const struct weft_opt *opt, const char *fmt, ...)
{
	va_list ap;

	if (opt->why && opt->why_len) {
		va_start(ap, fmt);
		vsnprintf(opt->why, opt->why_len, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

int weft_opt_digits(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t v = 0;
	size_t i;

	if (len == 0 || len > 9)
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	if (v < min || v > max)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

int weft_opt_number(const struct weft_opt *opt, uint32_t min, uint32_t max, uint32_t *out)
{
	if (weft_opt_digits(opt->value, opt->value_len, min, max, out) == 0)
		return 0;
	return weft_opt_complain(opt,
				 WEFT_OPT_FMT ": a number from %" PRIu32 " to %" PRIu32
					      " is wanted",
				 WEFT_OPT_ARG(opt), min, max);
}

int weft_opt_ipv4(const char *text, size_t len, uint32_t *out)
{
	const char *end = text + len, *dot;
	uint32_t part, ip = 0;
	int i;

	for (i = 0; i < 4; i++) {
		dot = i < 3 ? memchr(text, '.', (size_t)(end - text)) : end;
		if (!dot || weft_opt_digits(text, (size_t)(dot - text), 0, 255, &part))
			return -EINVAL;
		if (*text == '0' && dot - text > 1)
			return -EINVAL;
		ip = ip << 8 | part;
		text = dot + 1;
	}
	*out = ip;
	return 0;
}

static int set_number(const struct weft_opt_key *key, void *opts, const struct weft_opt *opt)
{
	uint32_t value = 0;
	uint16_t half;
	uint8_t byte;
	const void *from = &value;

	if (weft_opt_number(opt, key->min, key->max, &value))
		return -EINVAL;
	half = (uint16_t)value;
	byte = (uint8_t)value;
	if (key->size == sizeof(half))
		from = &half;
	else if (key->size == sizeof(byte))
		from = &byte;
	memcpy((char *)opts + key->at, from, key->size);
	return 0;
}

static int apply_option(const struct weft_opt *opt, const struct weft_opt_key *keys,
			size_t num_keys, const char *known, void *opts, uint32_t *seen)
{
	size_t i;

	for (i = 0; i < num_keys; i++) {
		if (strlen(keys[i].key) != opt->key_len ||
		    memcmp(opt->key, keys[i].key, opt->key_len) != 0)
			continue;
		if (*seen & 1u << i)
			return weft_opt_complain(opt, "lane option '%s' is given twice",
						 keys[i].key);
		*seen |= 1u << i;
		return keys[i].set ? keys[i].set(opts, opt) : set_number(&keys[i], opts, opt);
	}
	return weft_opt_complain(opt, "there is no lane option '%.*s'; there are %s",
				 (int)opt->key_len, opt->key, known);
}

int weft_optlist_parse(const char *text, const struct weft_opt_key *keys, size_t num_keys,
		       const char *known, void *opts, char *why, size_t why_len)
{
	struct weft_opt opt = {.why = why, .why_len = why_len};
	const char *end, *equal;
	uint32_t seen = 0;
	int rc;

	while (text && *text) {
		end = strchrnul(text, ',');
		equal = memchr(text, '=', (size_t)(end - text));
		opt.key = text;
		opt.key_len = (size_t)((equal ? equal : end) - text);
		if (!equal || opt.key_len == 0)
			return weft_opt_complain(&opt,
						 "lane option '%.*s' is not of the form "
						 "name=value; there are %s",
						 (int)(end - text), text, known);
		opt.value = equal + 1;
		opt.value_len = (size_t)(end - opt.value);
		rc = apply_option(&opt, keys, num_keys, known, opts, &seen);
		if (rc)
			return rc;
		if (*end && !end[1])
			return weft_opt_complain(&opt, "lane options end with a comma: remove it");
		text = *end ? end + 1 : end;
	}
	return 0;
}
