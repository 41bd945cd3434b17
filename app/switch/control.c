/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include "base/thread.h"
#include "common/cli.h"
#include "common/eth_port.h"
#include "drivers/dpdk/compat.h"
#include "switch/client.h"
#include "switch/control.h"
#include "switch/grant.h"
#include "switch/switch.h"
#include "switch/threads.h"
#include "weft.h"

/* ---- output --------------------------------------------------------------------------------- */

/* Output for users and telemetry: the process of each port, and counters. */

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
	FIELD("farewells", farewells),
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

static uint64_t counter_value(const struct sw_counters *c, size_t i)
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
		if (counter_value(&s->lane[port].counters, i))
			return true;
	return p->grant >= 0 || p->conn.fd >= 0;
}

static size_t counters_line(const char *head, const struct sw_counters *c, char *buf, size_t len)
{
	size_t at = (size_t)snprintf(buf, len, "%s", head), k;

	for (k = 0; k < RTE_DIM(counters) && at < len; k++)
		if (k < 4 || counter_value(c, k))
			at += (size_t)snprintf(buf + at, len - at, " %s %" PRIu64, counters[k].name,
					       counter_value(c, k));
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
		at = counters_line(head, &s->uplink.counters, buf, len);
	}
	for (i = 0; i < s->plan.ports; i++) {
		const struct sw_port *p = &s->port[i];

		if (!is_of_interest(s, i))
			continue;
		snprintf(head, sizeof(head), "port %u process %d %s:", i, (int)p->pid,
			 p->conn.up ? "up" : "down");
		at += counters_line(head, &s->lane[i].counters, buf + at, len - at);
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

/* By the control thread: print counters if SIGUSR1 has come. */
static void sw_report_wanted(struct sw *s)
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
		rte_tel_data_add_dict_uint(data, name, counter_value(c, k));
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
	/* With --no-telemetry the commands are registered, but no socket serves them. */
	rte_telemetry_register_cmd("/weft_switch/process", on_process,
				   "Version of Weft. Takes no parameters.");
	rte_telemetry_register_cmd("/weft_switch/ports", on_ports,
				   "Ports in use, and the processes that have them.");
	rte_telemetry_register_cmd("/weft_switch/counters", on_counters,
				   "Counters of the uplink, or of a port. Parameter: its number.");
}

/* ---- the control thread --------------------------------------------------------------------- */

/*
 * The control thread: sockets, grants, checks of clients' memory, limits, and output for users. It
 * may wait for the kernel or for a process; the forwarder continues in the meantime.
 */

#define EVENTS 64
/* Interval of the checks of time limits, and of writes to eventfds that block. */
#define TICK_MS 20

/* ---- errors that the other threads have found ----------------------------------------------- */

static void end_broken(struct sw *s)
{
	/* relaxed: no other data goes with the bits */
	uint64_t ports = atomic_exchange_explicit(&s->handover.broken, 0, memory_order_relaxed);

	for (; ports; ports &= ports - 1)
		sw_conn_end(s, (unsigned int)__builtin_ctzll(ports));
}

static void end_all_of(struct sw *s, uid_t user)
{
	unsigned int i;

	for (i = 0; i < s->plan.ports; i++)
		if (s->port[i].conn.up && s->port[i].conn.user == user)
			sw_conn_end(s, i);
}

/*
 * The eventfd of a port did not take a wake-up: end its connection, ban the user, and end the
 * user's other connections. The switch's own user is trusted: only this connection ends. If the
 * port has no connection now, the wake-up was of an earlier one.
 */
static void end_bad_event(struct sw *s, unsigned int port, const char *what, uint64_t now)
{
	struct sw_port *p = &s->port[port];
	uid_t user = p->conn.user;

	if (!p->conn.up)
		return;
	sw_report(s, user,
		  "port %u of process %d, user %u: its eventfd %s; the connection is ended", port,
		  (int)p->pid, (unsigned int)user, what);
	sw_conn_end(s, port);
	if (user == geteuid())
		return;
	sw_user_ban(s, user, now);
	end_all_of(s, user);
}

static void end_bad_events(struct sw *s, uint64_t now)
{
	/* relaxed: no other data goes with the bits */
	uint64_t full = atomic_exchange_explicit(&s->wakeups.full, 0, memory_order_relaxed);
	uint64_t blocked = atomic_exchange_explicit(&s->wakeups.blocked, 0, memory_order_relaxed);

	for (; full; full &= full - 1)
		end_bad_event(s, (unsigned int)__builtin_ctzll(full), "is full", now);
	for (; blocked; blocked &= blocked - 1)
		end_bad_event(s, (unsigned int)__builtin_ctzll(blocked), "blocks", now);
}

/* ---- events --------------------------------------------------------------------------------- */

static void one_event(struct sw *s, uint64_t tag, uint64_t now)
{
	unsigned int index = (uint32_t)tag;
	uint64_t notes;

	switch (tag >> 32) {
	case SW_TAG_NOTIFY:
		if (read(s->control_event, &notes, sizeof(notes)) < 0)
			return;
		break;
	case SW_TAG_LISTEN:
		sw_grant_accept(s, now);
		break;
	case SW_TAG_MEMIF:
		sw_conn_accept(s, now);
		break;
	case SW_TAG_GRANT:
		if (s->port[index].grant >= 0)
			sw_grant_end(s, index);
		break;
	case SW_TAG_HALF:
		sw_half_event(s, index, now);
		break;
	default:
		if (s->port[index].conn.fd >= 0)
			sw_conn_event(s, index);
	}
}

/* Grant no port before clients of the predecessor have had their time to reconnect. */
static void grant_from_now(struct sw *s, uint64_t now)
{
	if (s->granting || now < s->grants_from)
		return;
	s->granting = true;
	if (sw_watch(s, s->grant_fd, sw_tag(SW_TAG_LISTEN, 0)) < 0)
		cli_error("no port can be granted: %s", strerror(errno));
}

static void serve(struct sw *s, const struct epoll_event *ev, int n)
{
	uint64_t now = sw_now();
	int i;

	grant_from_now(s, now);
	for (i = 0; i < n && weft_foreign_fd_has_room(); i++)
		one_event(s, ev[i].data.u64, now);
	end_broken(s);
	end_bad_events(s, now);
	sw_half_expire(s, now);
	if (now - s->ticked < TICK_MS * 1000000ull)
		return;
	s->ticked = now;
	sw_wake_watch(s);
	weft_blocking_interrupt();
}

static void *control_thread(void *arg)
{
	struct sw *s = arg;
	struct epoll_event ev[EVENTS];
	int n;

	for (;;) {
		n = epoll_wait(s->epoll, ev, EVENTS, TICK_MS);
		/* Events that can't be handled now remain, so epoll_wait() would return at once. */
		if (!weft_foreign_fd_has_room() || s->no_files)
			nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000l}, NULL);
		s->no_files = false;
		pthread_mutex_lock(&s->lock);
		serve(s, ev, n);
		pthread_mutex_unlock(&s->lock);
		sw_report_wanted(s);
	}
	return NULL;
}

int sw_control_start(struct sw *s)
{
	s->control_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->control_event < 0 || sw_watch(s, s->control_event, sw_tag(SW_TAG_NOTIFY, 0)) < 0) {
		cli_error("the control thread gets no eventfd: %s; raise the limit of open files",
			  strerror(errno));
		return APP_FAIL;
	}
	return sw_thread_start("switch-control", control_thread, s, NULL);
}
