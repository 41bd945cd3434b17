/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/option_list.h
 * Options of a lane: "name=value,name=value", behind the resource in an item of WEFT_LANES. Each
 * driver has a table of names and setters. Error messages contain the option as the user wrote it,
 * and the expected form.
 */
#ifndef WEFT_OPTLIST_H
#define WEFT_OPTLIST_H

#include <stddef.h>
#include <stdint.h>

/**
 * One "name=value" of the text, and the buffer for an error message. Neither text is terminated.
 */
struct weft_opt {
	const char *key, *value;
	size_t key_len, value_len;
	char *why;
	size_t why_len;
};

/** An option of a driver. @p set returns 0, or the result of weft_opt_complain(). */
struct weft_opt_key {
	const char *key;
	int (*set)(void *opts, const struct weft_opt *opt);
};

/** "lane option 'mtu=abc'" in an error message. */
#define WEFT_OPT_FMT "lane option '%.*s=%.*s'"
#define WEFT_OPT_ARG(o) (int)(o)->key_len, (o)->key, (int)(o)->value_len, (o)->value

/** Write the error message. @return -EINVAL */
int weft_opt_complain(const struct weft_opt *opt, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** Decimal digits only, all of the text, within [min, max]. @return 0 or -EINVAL */
int weft_opt_digits(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *out);

/** The value as a number within [min, max]. @return 0, or -EINVAL with the error message */
int weft_opt_number(const struct weft_opt *opt, uint32_t min, uint32_t max, uint32_t *out);

/**
 * Dotted quad without leading zeros (they mean octal to some, decimal to others); host byte order.
 * @return 0 or -EINVAL
 */
int weft_opt_ipv4(const char *text, size_t len, uint32_t *out);

/**
 * Parse the text and call the setters; each option may be given once.
 *
 * @param text   NULL or "" = none
 * @param keys   at most 32
 * @param known  their names for error messages: "ip, gw, mtu"
 * @param opts   passed to the setters
 * @param why    on error: the message
 * @return 0 or -EINVAL
 */
int weft_optlist_parse(const char *text, const struct weft_opt_key *keys, size_t num_keys,
		       const char *known, void *opts, char *why, size_t why_len);

#endif /* WEFT_OPTLIST_H */
