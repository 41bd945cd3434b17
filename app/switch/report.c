/* SPDX-License-Identifier: BSD-3-Clause */
/* Output for users and telemetry: the process of each port, and counters. */

#include "switch/switch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_telemetry.h>

#include "common/eth_port.h"
#include "drivers/dpdk/compat.h"
#include "weft.h"

#define FIELD(name, field)                                \
	{                                                 \
		name, offsetof(struct sw_counters, field) \
	}

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	FIELD("rx", rx_frames),
	FIELD("rx_bytes", rx_bytes),
	FIELD("tx", tx_frames),
	FIELD("tx_bytes", tx_bytes),
	FIELD("wakes", wakes),
	FIELD("drop.short", drop[SW_DROP_SHORT]),
	FIELD("drop.source", drop[SW_DROP_SOURCE]),
	FIELD("drop.kind", drop[SW_DROP_KIND]),
	FIELD("drop.vlan", drop[SW_DROP_VLAN]),
	FIELD("drop.unknown", drop[SW_DROP_UNKNOWN]),
	FIELD("drop.full", drop[SW_DROP_FULL]),
	FIELD("drop.bad", drop[SW_DROP_BAD]),
	FIELD("drop.long", drop[SW_DROP_LONG]),
};

/* Callbacks of DPDK and signal handlers have no argument. */
static struct sw *reported;

static uint64_t value(const struct sw_counters *c, size_t i)
{
	/* relaxed: see SW_COUNT() */
	return __atomic_load_n((const uint64_t *)((const char *)c + counters[i].offset),
			       __ATOMIC_RELAXED);
}

/* Ports that were never used are left out. */
static bool is_of_interest(const struct sw *s, unsigned int port)
{
	const struct sw_port *p = &s->port[port];
	size_t i;

	for (i = 0; i < RTE_DIM(counters); i++)
		if (value(&s->lane[port].counters, i))
			return true;
	return p->grant >= 0 || p->conn.fd >= 0;
}

static size_t line(const char *head, const struct sw_counters *c, char *buf, size_t len)
{
	size_t at = (size_t)snprintf(buf, len, "%s", head), k;

	for (k = 0; k < RTE_DIM(counters) && at < len; k++)
		if (k < 4 || value(c, k))
			at += (size_t)snprintf(buf + at, len - at, " %s %" PRIu64, counters[k].name,
					       value(c, k));
	if (at < len)
		at += (size_t)snprintf(buf + at, len - at, "\n");
	return RTE_MIN(at, len);
}

static void report_text(struct sw *s, char *buf, size_t len)
{
	char head[64 + RTE_ETH_NAME_MAX_LEN], name[RTE_ETH_NAME_MAX_LEN];
	size_t at = 0;
	unsigned int i;

	buf[0] = '\0';
	pthread_mutex_lock(&s->lock);
	if (s->uplink.id != SW_NO_UPLINK) {
		snprintf(head, sizeof(head), "uplink %s:", eth_port_name(s->uplink.id, name));
		at = line(head, &s->uplink.counters, buf, len);
	}
	for (i = 0; i < s->plan.ports; i++) {
		const struct sw_port *p = &s->port[i];

		if (!is_of_interest(s, i))
			continue;
		snprintf(head, sizeof(head), "port %u process %d %s:", i, (int)p->pid,
			 p->conn.up ? "up" : "down");
		at += line(head, &s->lane[i].counters, buf + at, len - at);
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- SIGUSR1 -------------------------------------------------------------------------------- */

static volatile sig_atomic_t report_now;

static void on_usr1(int sig)
{
	int err = errno;

	(void)sig;
	report_now = 1;
	sw_control_notify(reported);
	errno = err;
}

void sw_report_wanted(struct sw *s)
{
	if (!report_now)
		return;
	report_now = 0;
	sw_report_print(s);
}

void sw_report_print(struct sw *s)
{
	char text[32768];

	report_text(s, text, sizeof(text));
	fputs(text, stdout);
	fflush(stdout);
}

/* ---- telemetry ------------------------------------------------------------------------------ */

static int on_ports(const char *cmd, const char *params, struct rte_tel_data *data)
{
	unsigned int i;
	char name[16];

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(data);
	pthread_mutex_lock(&reported->lock);
	for (i = 0; i < reported->plan.ports; i++) {
		if (!is_of_interest(reported, i))
			continue;
		snprintf(name, sizeof(name), "%u", i);
		rte_tel_data_add_dict_int(data, name, reported->port[i].pid);
	}
	pthread_mutex_unlock(&reported->lock);
	return 0;
}

static int on_counters(const char *cmd, const char *params, struct rte_tel_data *data)
{
	const struct sw_counters *c = &reported->uplink.counters;
	unsigned int port;
	char name[32];
	size_t k;

	(void)cmd;
	if (params && sscanf(params, "%u", &port) == 1) {
		if (port >= reported->plan.ports)
			return -EINVAL;
		c = &reported->lane[port].counters;
	}
	rte_tel_data_start_dict(data);
	for (k = 0; k < RTE_DIM(counters); k++) {
		snprintf(name, sizeof(name), "%s", counters[k].name);
		/* DPDK leaves out names with other characters than letters, digits, '_' and '/'. */
		if (strchr(name, '.'))
			*strchr(name, '.') = '/';
		rte_tel_data_add_dict_uint(data, name, value(c, k));
	}
	return 0;
}

static int on_process(const char *cmd, const char *params, struct rte_tel_data *data)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(data);
	snprintf(text, sizeof(text), "%s", weft_version_string());
	rte_tel_data_add_dict_string(data, "version", text);
	rte_tel_data_add_dict_string(data, "program", "weft-switch");
	return 0;
}

void sw_report_start(struct sw *s)
{
	reported = s;
	signal(SIGUSR1, on_usr1);
	/* Fails with --no-telemetry, which is no error. */
	rte_telemetry_register_cmd("/weft_switch/process", on_process,
				   "Version of Weft. Takes no parameters.");
	rte_telemetry_register_cmd("/weft_switch/ports", on_ports,
				   "Ports in use, and the processes that have them.");
	rte_telemetry_register_cmd("/weft_switch/counters", on_counters,
				   "Counters of the uplink, or of a port. Parameter: its number.");
}
