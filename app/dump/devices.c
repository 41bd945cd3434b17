/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define HEAD "hw_counters "
#define TEXT_MAX 4096u

static struct dump_device_counter *counter_of(struct dump_devices *d, const char *device,
					      const char *port, const char *name, uint64_t value)
{
	struct dump_device_counter *c;

	for (c = d->of; c < d->of + d->num; c++)
		if (!strcmp(c->name, name) && !strcmp(c->port, port) && !strcmp(c->device, device))
			return c;
	if (d->num == DUMP_DEVICE_COUNTERS)
		return NULL;
	d->num++;
	*c = (struct dump_device_counter){.first = value, .last = value};
	snprintf(c->device, sizeof(c->device), "%s", device);
	snprintf(c->port, sizeof(c->port), "%s", port);
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

bool dump_devices_read(struct dump_devices *d, const void *text, size_t len, uint64_t time)
{
	char copy[TEXT_MAX], device[32], port[8], name[40], *word, *rest;
	struct dump_device_counter *c;
	uint64_t value;

	if (len <= strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		return false;
	weft_text_copy(copy, sizeof(copy), text, len);
	word = strtok_r(copy + strlen(HEAD), " ", &rest);
	snprintf(device, sizeof(device), "%.31s", word ? word : "?");
	while ((word = strtok_r(NULL, " ", &rest))) {
		if (sscanf(word, "%7[^/]/%39[^=]=%" SCNu64, port, name, &value) != 3)
			continue;
		c = counter_of(d, device, port, name, value);
		if (!c)
			return true;
		/* A device that was reset begins again. */
		if (value < c->last)
			c->first = value;
		if (value > c->last && !c->since)
			c->since = time;
		c->last = value;
	}
	return true;
}
