/* SPDX-License-Identifier: BSD-3-Clause */
/* Help texts of counters, from the tables next to the code that counts. */

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/worker.h"
#include "msg/msg.h"
#include "roof.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_of(const char *name, const char *entry)
{
	for (; *entry; entry++) {
		if (*entry == '#') {
			if (!is_digit(*name))
				return false;
			while (is_digit(*name))
				name++;
		} else if (*name == *entry || (*name == '/' && *entry == '.')) {
			name++;
		} else {
			return false;
		}
	}
	return *name == '\0';
}

static const struct weft_lane_counter *find(const struct weft_lane_counter *table, const char *name)
{
	for (; table && table->name; table++)
		if (is_of(name, table->name))
			return table;
	return NULL;
}

/*
 * Counters of an interface: "dpdk:0000:00:05.0.rx.frames", "self.rx.messages". The interface's name
 * may contain dots.
 */
static const struct weft_lane_counter *find_in_driver(const char *name, size_t driver_len)
{
	const struct weft_lane_driver **drivers = weft_drivers_list();
	const struct weft_lane_counter *found = NULL;
	const char *p;

	for (unsigned int i = 0; drivers && drivers[i] && !found; i++) {
		if (strlen(drivers[i]->name) != driver_len ||
		    memcmp(drivers[i]->name, name, driver_len))
			continue;
		for (p = name + driver_len; *p && !found; p++)
			if (*p == '.' || *p == '/')
				found = find(drivers[i]->counters, p + 1);
	}
	free(drivers);
	return found;
}

static const struct weft_lane_counter *find_in_worker(const char *name)
{
	const struct weft_lane_counter *found = find(weft_worker_counter_help, name);

	if (!found)
		found = find(weft_msg_counter_help, name);
	for (const struct weft_module *const *m = weft_tables.modules; *m && !found; m++)
		found = find((*m)->counter_help, name);
	return found;
}

const char *weft_counter_help(const char *name, bool *level)
{
	const struct weft_lane_counter *found = NULL;

	if (name && !strchr(name, ':'))
		found = find_in_worker(name);
	if (name && !found)
		found = find_in_driver(name, strcspn(name, ":./"));
	if (level)
		*level = found && found->level;
	return found ? found->help : NULL;
}
