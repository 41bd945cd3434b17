/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/lane_losses.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/peer.h"

struct lanes {
	unsigned int count;
	struct {
		char name[64];
		uint64_t again, dropped;
	} lane[32];
};

/* Does it count frames that were received, and that the lane or its port had to drop? */
static bool is_drop(const char *counter)
{
	static const char *const port[] = {"rx_missed_errors", "rx_mbuf_allocation_errors"};
	/* Normal: frames for others on a shared interface, and duplicates of retransmissions. */
	static const char *const normal[] = {"drop.not_ours", "drop.duplicate"};
	size_t i;

	for (i = 0; i < sizeof(port) / sizeof(port[0]); i++)
		if (!strcmp(counter, port[i]))
			return true;
	for (i = 0; i < sizeof(normal) / sizeof(normal[0]); i++)
		if (!strcmp(counter, normal[i]))
			return false;
	return !strncmp(counter, "drop.", 5);
}

static void counted(const char *name, uint64_t value, void *arg)
{
	struct lanes *l = arg;
	size_t len;

	for (unsigned int i = 0; i < l->count; i++) {
		len = strlen(l->lane[i].name);
		if (!strncmp(name, l->lane[i].name, len) && name[len] == '.' &&
		    is_drop(name + len + 1))
			l->lane[i].dropped += value;
	}
}

/* Several lanes of an endpoint may share an interface. */
static void take_lane(struct lanes *l, const struct weft_lane_info *info)
{
	unsigned int i;

	for (i = 0; i < l->count && strcmp(l->lane[i].name, info->name); i++)
		;
	if (i == sizeof(l->lane) / sizeof(l->lane[0]))
		return;
	if (i == l->count)
		snprintf(l->lane[l->count++].name, sizeof(l->lane[i].name), "%s", info->name);
	l->lane[i].again += info->retransmits;
}

__attribute__((format(printf, 3, 4))) static void add(char *buf, size_t size, const char *fmt, ...)
{
	size_t at = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + at, size - at, fmt, ap);
	va_end(ap);
}

void lane_losses(struct peer *p, char *buf, size_t size)
{
	struct weft_lane_info info = {.size = sizeof(info)};
	struct lanes l = {0};

	for (unsigned int i = 0; p->ep && weft_ep_query_lane(p->ep, i, &info) == 0; i++)
		take_lane(&l, &info);
	weft_worker_counters(p->worker, counted, &l);
	snprintf(buf, size, "sent again:");
	for (unsigned int i = 0; i < l.count; i++) {
		if (!strncmp(l.lane[i].name, "roce:", 5))
			add(buf, size, "%s %s by its NIC", i ? "," : "", l.lane[i].name);
		else
			add(buf, size, "%s %s %" PRIu64 "%s", i ? "," : "", l.lane[i].name,
			    l.lane[i].again, i ? "" : " frames");
	}
	add(buf, size, "; dropped here:");
	for (unsigned int i = 0; i < l.count; i++)
		add(buf, size, "%s %s %" PRIu64, i ? "," : "", l.lane[i].name, l.lane[i].dropped);
}
