/* SPDX-License-Identifier: BSD-3-Clause */
/* For weft_worker_counters(): does each counter say what it counts? */

#ifndef MOCK_COUNTER_HELP_H
#define MOCK_COUNTER_HELP_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "weft.h"

struct counter_help {
	unsigned int counters, levels, bad; /* bad: without a sentence */
};

static inline void counter_help_look(const char *name, uint64_t value, void *arg)
{
	struct counter_help *seen = arg;
	bool level;
	const char *help = weft_counter_help(name, &level);
	size_t len = help ? strlen(help) : 0;

	(void)value;
	/* One sentence, and short enough for a line of any tool. */
	if (len < 12 || len > 100 || help[len - 1] != '.' || strchr(help, '\n') ||
	    !(isupper((unsigned char)help[0]) || isdigit((unsigned char)help[0]) ||
	      !strncmp(help, "ns ", 3))) {
		fprintf(stderr, "%s: '%s'\n", name, help ? help : "nobody knows");
		seen->bad++;
	}
	if (level)
		seen->levels++;
	else
		seen->counters++;
}

#endif /* MOCK_COUNTER_HELP_H */
