/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/option_list.h
 * Options of a lane: "name=value,name=value", as they stand behind the resource in an item of
 * WEFT_LANES. Each driver has a table of names and setters; complaints name the option as the user
 * wrote it and say what it takes.
 */
#ifndef WEFT_OPTLIST_H
#define WEFT_OPTLIST_H

#include <stddef.h>
#include <stdint.h>

/**
 * One "name=value" of the text, and where a complaint about it goes. Neither text is terminated.
 */
struct weft_opt {
	const char *key, *value;
	size_t key_len, value_len;
	char *why;
	size_t why_len;
};

/** A name that a driver knows. @p set returns 0, or what weft_opt_complain() returned. */
struct weft_opt_key {
	const char *key;
	int (*set)(void *opts, const struct weft_opt *opt);
};

/** "lane option 'mtu=abc'" in a complaint. */
#define WEFT_OPT_FMT "lane option '%.*s=%.*s'"
#define WEFT_OPT_ARG(o) (int)(o)->key_len, (o)->key, (int)(o)->value_len, (o)->value

/** Write the sentence. @return -EINVAL */
int weft_opt_complain(const struct weft_opt *opt, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** Decimal digits only, all of the text, within [min, max]. @return 0 or -EINVAL */
int weft_opt_digits(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *out);

/** The value as a number within [min, max]. @return 0, or -EINVAL with the complaint */
int weft_opt_number(const struct weft_opt *opt, uint32_t min, uint32_t max, uint32_t *out);

/**
 * Dotted quad without leading zeros (they mean octal to some, decimal to others); host byte order.
 * @return 0 or -EINVAL
 */
int weft_opt_ipv4(const char *text, size_t len, uint32_t *out);

/**
 * Go through the text and call setters; each option may be given once.
 *
 * @param text   NULL or "" = none
 * @param keys   at most 32
 * @param known  their names for complaints: "ip, gw, mtu"
 * @param opts   handed to the setters
 * @param why    on error one sentence
 * @return 0 or -EINVAL
 */
int weft_optlist_parse(const char *text, const struct weft_opt_key *keys, size_t num_keys,
		       const char *known, void *opts, char *why, size_t why_len);

#endif /* WEFT_OPTLIST_H */
