/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/text.h
 * Printable text, texts of queries, answers in JSON, the options of a lane.
 */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ printable text */

/**
 * Replace by '?' every byte that is not part of printable UTF-8: control characters (C0, DEL, C1),
 * malformed, overlong or truncated sequences, surrogates, numbers beyond Unicode, separators of
 * lines and paragraphs, the byte order mark, and marks that change the direction of text. The
 * length stays, and the locale does not matter.
 */
void weft_text_printable(char *text, size_t length);

/** Copy at most @p size - 1 bytes, make them printable, and terminate. @p size > 0 */
void weft_text_copy(char *dst, size_t size, const void *src, size_t length);

/** @return @p text without a leading "@p name: ", since the caller prints it */
const char *weft_text_without_name(const char *text, const char *name);

/**
 * Why a connection or an interface failed. An assignment copies the whole text, so no length can be
 * wrong. A longer text is truncated.
 */
struct weft_reason {
	char text[384];
};

void weft_reason_set(struct weft_reason *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void weft_reason_add(struct weft_reason *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------ texts of queries */

/*
 * A text that a query has returned stays until the object ends, so that a caller needs no copy.
 * Equal texts are stored once.
 */

/** Maximum of texts of an object, because there can be many with measured numbers. */
#define WEFT_TEXTS_MAX 256u

struct weft_texts {
	struct weft_text_node *first;
	unsigned int num;
};

/** @return a copy that lives as long as @p texts; if there is no room, a text that explains */
const char *weft_texts_add(struct weft_texts *texts, const char *text);
/** @return the result of weft_texts_add(); NULL = it is not there */
const char *weft_texts_find(const struct weft_texts *texts, const char *text);
void weft_texts_free(struct weft_texts *texts);

/* ------------------------------------------------------------------ JSON */

/*
 * The form is that of DPDK's telemetry: {"/command": value}. The value is a dictionary or an array
 * of texts and numbers, one text, or null. The last member has the number of members that do not
 * fit.
 */

enum weft_json_kind {
	WEFT_JSON_DICT,
	WEFT_JSON_ARRAY,
	WEFT_JSON_TEXT, /**< one weft_json_text() without a name; null without that */
};

struct weft_json {
	char *out;
	size_t size, len;
	enum weft_json_kind kind;
	unsigned int members, left_out;
};

/** @param size  at least 256 + @p command_len */
void weft_json_begin(struct weft_json *j, char *out, size_t size, const char *command,
		     size_t command_len, enum weft_json_kind kind);
/** @p name is NULL in arrays. @p text is made printable, and cut after 1023 bytes. */
void weft_json_text(struct weft_json *j, const char *name, const char *text);
void weft_json_number(struct weft_json *j, const char *name, uint64_t value);
/** @return length of @p out without its zero byte */
size_t weft_json_end(struct weft_json *j);

/* ------------------------------------------------------------------ options of a lane */

/*
 * "name=value,name=value" behind the resource in an item of WEFT_LANES. Each driver has a table of
 * names and setters. Error messages have the option as the user wrote it, and the expected form.
 */

/** One "name=value", without zero bytes, and the buffer for an error message. */
struct weft_opt {
	const char *key, *value;
	size_t key_len, value_len;
	char *why;
	size_t why_len;
};

struct weft_opt_key {
	const char *key;
	/** @return 0, or the result of weft_opt_complain() */
	int (*set)(void *opts, const struct weft_opt *opt);
	/* used without a setter */
	size_t at, size;   /**< of the field in opts; 1, 2 or 4 bytes */
	uint32_t min, max; /**< the field can hold both */
};

/** The number, from @p least to @p most, goes into @p field of @p type. */
#define WEFT_OPT_NUMBER(name, type, field, least, most)                                          \
	{                                                                                        \
		.key = name, .at = offsetof(type, field), .size = sizeof(((type *)NULL)->field), \
		.min = least, .max = most                                                        \
	}

/** For example "lane option 'mtu=abc'". */
#define WEFT_OPT_FMT "lane option '%.*s=%.*s'"
#define WEFT_OPT_ARG(o) (int)(o)->key_len, (o)->key, (int)(o)->value_len, (o)->value

/** Writes opt->why. @return -EINVAL */
int weft_opt_complain(const struct weft_opt *opt, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** The text has one to nine digits, and nothing else. @return 0 or -EINVAL */
int weft_opt_digits(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *out);

/** @return 0, or -EINVAL with the error message */
int weft_opt_number(const struct weft_opt *opt, uint32_t min, uint32_t max, uint32_t *out);

/**
 * @p out has host byte order. Leading zeros are errors, because some programs read octal ones.
 * @return 0 or -EINVAL
 */
int weft_opt_ipv4(const char *text, size_t len, uint32_t *out);

/**
 * Each option may be given once.
 * @param text   NULL or "" = none
 * @param keys   at most 32
 * @param known  the names of all keys for error messages: "ip, gw, mtu"
 * @param opts   has the fields; passed to the setters
 * @param why    on error: the message
 * @return 0 or -EINVAL
 */
int weft_optlist_parse(const char *text, const struct weft_opt_key *keys, size_t num_keys,
		       const char *known, void *opts, char *why, size_t why_len);

#endif /* WEFT_TEXT_H */
