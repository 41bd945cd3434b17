/* SPDX-License-Identifier: BSD-3-Clause */
/* Output for users and telemetry: links and counters. */

#include "wire/wire.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_telemetry.h>

#include "common/cli.h"
#include "common/eth_port.h"
#include "drivers/dpdk/compat.h"

static const char *const dir_name[] = {[WIRE_FORTH] = "forth", [WIRE_BACK] = "back"};

/* ---- counters ------------------------------------------------------------------------------- */

#define PORT(name, field)                                       \
	{                                                       \
		name, offsetof(struct wire_dir, counters.field) \
	}
#define LINK(name, field)                                          \
	{                                                          \
		name, offsetof(struct wire_dir, state.stats.field) \
	}

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	PORT("rx", rx_frames),
	PORT("tx", tx_frames),
	PORT("tx_bytes", tx_bytes),
	LINK("lost", lost),
	LINK("lost_in_bursts", burst_lost),
	LINK("blackout", blackholed),
	LINK("queue_full", tail_drops),
	LINK("policed", policed),
	LINK("flow_queue_full", flow_drops),
	LINK("beyond_mtu", too_long),
	LINK("marked", marked),
	LINK("duplicated", dupped),
	LINK("reordered", reordered),
	LINK("corrupted", corrupted),
	LINK("truncated", truncated),
	PORT("oversize", oversize),
	PORT("no_room", no_room),
	PORT("port_busy", port_busy),
};

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static uint64_t value(const struct wire_dir *d, size_t i)
{
	return *(const uint64_t *)((const char *)d + counters[i].offset);
}

/* ---- text ----------------------------------------------------------------------------------- */

static size_t head(const struct wire *w, unsigned int i, char *buf, size_t len)
{
	const struct wire_dir *d = &w->pair[i / 2].dir[i % 2];
	char from[RTE_ETH_NAME_MAX_LEN], to[RTE_ETH_NAME_MAX_LEN];
	int n = snprintf(buf, len, "%u %-5s %s -> %s:", i / 2, dir_name[i % 2],
			 eth_port_name(d->from, from), eth_port_name(d->to, to));

	return (size_t)n < len ? (size_t)n : len;
}

static size_t line_end(char *buf, size_t len, size_t at)
{
	if (at + 1 < len) {
		buf[at++] = '\n';
		buf[at] = '\0';
	}
	return at;
}

void wire_report_links(const struct wire *w, char *buf, size_t len)
{
	char text[1024];
	unsigned int i;
	size_t at = 0;

	for (i = 0; i < 2 * w->num_pairs; i++) {
		at += head(w, i, buf + at, len - at);
		sim_link_text(&w->pair[i / 2].dir[i % 2].link, text, sizeof(text));
		at += (size_t)snprintf(buf + at, len - at, " %s", text);
		if (at >= len)
			return;
		at = line_end(buf, len, at);
	}
}

void wire_report_counters(const struct wire *w, char *buf, size_t len)
{
	const struct wire_dir *d;
	unsigned int i;
	size_t at = 0, k;

	for (i = 0; i < 2 * w->num_pairs; i++) {
		d = &w->pair[i / 2].dir[i % 2];
		at += head(w, i, buf + at, len - at);
		for (k = 0; k < COUNTERS && at < len; k++)
			if (k < 2 || value(d, k))
				at += (size_t)snprintf(buf + at, len - at, " %s %" PRIu64,
						       counters[k].name, value(d, k));
		if (at >= len)
			return;
		at = line_end(buf, len, at);
	}
}

/* ---- telemetry ------------------------------------------------------------------------------ */

/* DPDK's callbacks have no argument, and its names no '-'. */
static struct wire *reported;

static int on_links(const char *cmd, const char *params, struct rte_tel_data *data)
{
	char text[1024], name[32];
	unsigned int i;

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(data);
	rte_ticketlock_lock(&reported->lock);
	for (i = 0; i < 2 * reported->num_pairs; i++) {
		snprintf(name, sizeof(name), "%u/%s", i / 2, dir_name[i % 2]);
		sim_link_text(&reported->pair[i / 2].dir[i % 2].link, text, sizeof(text));
		rte_tel_data_add_dict_string(data, name, text);
	}
	rte_ticketlock_unlock(&reported->lock);
	return 0;
}

static unsigned int pair_of(const char *params)
{
	unsigned int pair = 0;

	if (params && sscanf(params, "%u", &pair) == 1 && pair >= reported->num_pairs)
		return WIRE_PAIRS;
	return pair;
}

static int on_counters(const char *cmd, const char *params, struct rte_tel_data *data)
{
	unsigned int pair = pair_of(params), dir;
	char name[64];
	size_t k;

	(void)cmd;
	if (pair == WIRE_PAIRS)
		return -EINVAL;
	rte_tel_data_start_dict(data);
	rte_ticketlock_lock(&reported->lock);
	for (dir = 0; dir < 2; dir++) {
		for (k = 0; k < COUNTERS; k++) {
			snprintf(name, sizeof(name), "%s/%s", dir_name[dir], counters[k].name);
			rte_tel_data_add_dict_uint(data, name,
						   value(&reported->pair[pair].dir[dir], k));
		}
	}
	rte_ticketlock_unlock(&reported->lock);
	return 0;
}

static int do_command(const char *cmd, const char *params, struct rte_tel_data *data)
{
	char answer[512] = "";
	int ret;

	(void)cmd;
	rte_ticketlock_lock(&reported->lock);
	ret = wire_command(reported, params ? params : "", answer, sizeof(answer));
	rte_ticketlock_unlock(&reported->lock);
	rte_tel_data_start_dict(data);
	rte_tel_data_add_dict_string(data, ret ? "error" : "done",
				     ret || !params ? answer : params);
	return 0;
}

void wire_telemetry(struct wire *w)
{
	reported = w;
	/* Fails with --no-telemetry, which is no error. */
	rte_telemetry_register_cmd("/weft_wire/links", on_links, "Links of all pairs.");
	rte_telemetry_register_cmd("/weft_wire/counters", on_counters,
				   "Counters of a pair. Parameter: its number (0).");
	rte_telemetry_register_cmd("/weft_wire/set", do_command,
				   "Change links, as a command: [PAIR] [forth|back] LINK.");
}
