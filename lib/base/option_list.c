/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/option_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static int apply(const struct weft_opt *opt, const struct weft_opt_key *keys, size_t num_keys,
		 const char *known, void *opts, uint32_t *seen)
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
		return keys[i].set(opts, opt);
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
		rc = apply(&opt, keys, num_keys, known, opts, &seen);
		if (rc)
			return rc;
		if (*end && !end[1])
			return weft_opt_complain(&opt, "lane options end with a comma");
		text = *end ? end + 1 : end;
	}
	return 0;
}
