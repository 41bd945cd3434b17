/* SPDX-License-Identifier: BSD-3-Clause */
/* Which messages the command line selects. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "dump/dump.h"

#define YEAR_S (366.0 * 86400)

int dump_option_tag(struct dump_options *o, const char *value)
{
	char *end;

	errno = 0;
	o->tag = strtoull(value, &end, 0);
	o->has_tag = true;
	if (*value && *value != '-' && !*end && !errno)
		return 0;
	cli_error("--tag takes a number, not '%s'", value);
	return -EINVAL;
}

/* "FROM-TO", "FROM-", "-TO", or one value. @return 0, or -EINVAL: too long */
static int halves(const char *option, const char *value, char from[40], char to[40])
{
	const char *dash = strchr(value, '-');
	size_t first = dash ? (size_t)(dash - value) : strlen(value);

	if (!*value || first >= 40 || strlen(dash ? dash + 1 : value) >= 40) {
		cli_error("%s takes a range FROM-TO, not '%s'", option, value);
		return -EINVAL;
	}
	memcpy(from, value, first);
	from[first] = '\0';
	snprintf(to, 40, "%s", dash ? dash + 1 : value);
	return 0;
}

int dump_option_size(struct dump_options *o, const char *value)
{
	char from[40], to[40];

	if (halves("--size", value, from, to) ||
	    (from[0] && cli_size("--size", from, &o->size_from)) ||
	    (to[0] && cli_size("--size", to, &o->size_to)))
		return -EINVAL;
	return 0;
}

static int time_of(const char *option, const char *text, uint64_t *ns)
{
	double seconds;

	if (!text[0])
		return 0;
	if (cli_seconds(option, text, 0, YEAR_S, &seconds))
		return -EINVAL;
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

int dump_option_time(struct dump_options *o, const char *value)
{
	char from[40], to[40];

	if (halves("--time", value, from, to) || time_of("--time", from, &o->time_from))
		return -EINVAL;
	return strchr(value, '-') ? time_of("--time", to, &o->time_to) : 0;
}

int dump_option_took(struct dump_options *o, const char *value)
{
	return time_of("--took", value, &o->took);
}
