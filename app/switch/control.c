/* SPDX-License-Identifier: BSD-3-Clause */

#include "switch/control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include "base/thread.h"
#include "common/cli.h"
#include "common/eth_port.h"
#include "drivers/dpdk/compat.h"
#include "switch/client.h"
#include "switch/grant.h"
#include "switch/switch.h"
#include "weft.h"

#define ACCEPTS 64 /* maximum for one call of sw_accept() */

/* ---- output --------------------------------------------------------------------------------- */

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

static struct sw *reported; /* for callbacks, which have no argument */

static uint64_t counter_value(const struct sw_counters *c, size_t i)
{
	/* relaxed: see SW_COUNT() */
	return __atomic_load_n((const uint64_t *)((const char *)c + counters[i].offset),
			       __ATOMIC_RELAXED);
}

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

/* ---- start and wake-up ---------------------------------------------------------------------- */

uint64_t sw_tag(unsigned int kind, unsigned int index)
{
	return (uint64_t)kind << 32 | index;
}

int sw_watch(struct sw *s, int fd, uint64_t tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = tag};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) ? -1 : fd;
}

void sw_control_notify(struct sw *s)
{
	const uint64_t one = 1;

	/* The eventfd is non-blocking. A failed write is harmless: a full counter wakes, too. */
	if (write(s->control_event, &one, sizeof(one)) < 0)
		return;
}

/* The thread avoids the core of the caller, the forwarder, if that is pinned to one. */
static int thread_start(const char *name, void *(*run)(void *arg), struct sw *s, pthread_t *thread)
{
	cpu_set_t own;
	bool pinned = sched_getaffinity(0, sizeof(own), &own) == 0 && CPU_COUNT(&own) == 1;
	int rc = weft_thread_start(name, run, s, pinned ? &own : NULL, thread);

	if (rc == 0)
		return APP_OK;
	cli_error("the thread %s can't be started: %s; raise the limits on threads and memory",
		  name, strerror(-rc));
	return APP_FAIL;
}

/* ---- the wake-up thread --------------------------------------------------------------------- */

/*
 * A client controls its eventfd, so a write to it may block: only the wake-up thread writes, never
 * the forwarder. A client may fill its eventfd between the check and the write. The control thread
 * then interrupts the write. It also handles a full eventfd, and a write that made the wake-up
 * thread sleep: see end_bad_event().
 */

/* A shorter sleep may be for a mutex of the kernel, which is no attack. */
#define BLOCKED_NS 1000000ull

enum outcome { WOKEN, FULL, BLOCKED };

static void interrupted(int sig)
{
	(void)sig;
}

static long sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/*
 * For a full counter poll() reports POLLERR. If other threads need the core, a write takes long
 * without a fault of the client, but the thread does not sleep in it.
 */
static enum outcome poke(int event)
{
	struct pollfd p = {.fd = event, .events = POLLOUT};
	uint64_t one = 1, begin;
	long before;
	ssize_t n;

	if (poll(&p, 1, 0) < 0)
		return WOKEN; /* interrupted by wake_watch(), for the previous write */
	if (!(p.revents & POLLOUT))
		return FULL;
	before = sleeps();
	begin = sw_now();
	n = write(event, &one, sizeof(one));
	if (n != (ssize_t)sizeof(one))
		return errno == EINTR ? BLOCKED : WOKEN;
	return sw_now() - begin > BLOCKED_NS && sleeps() != before ? BLOCKED : WOKEN;
}

static void wake_port(struct sw *s, unsigned int port)
{
	struct sw_wakeups *w = &s->wakeups;
	enum outcome outcome = WOKEN;
	int event;

	atomic_fetch_add_explicit(&w->turn, 1, memory_order_relaxed);
	/* seq_cst, with sw_wake_forget(): it sees busy, or the event is -1 here */
	atomic_store(&w->busy, port + 1);
	event = atomic_load(&w->event[port]);
	if (event >= 0)
		outcome = poke(event);
	atomic_store(&w->busy, 0);
	if (outcome == WOKEN)
		return;
	/* relaxed: no other data goes with the bit */
	atomic_fetch_or_explicit(outcome == FULL ? &w->full : &w->blocked, 1ull << port,
				 memory_order_relaxed);
	sw_control_notify(s);
}

static void *wake_thread(void *arg)
{
	struct sw *s = arg;
	struct sw_wakeups *w = &s->wakeups;
	sigset_t usr2;
	uint64_t ports, rung;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &usr2, NULL);
	for (;;) {
		/* seq_cst, with sw_wake(): the forwarder sees asleep, or its ports are seen here */
		atomic_store(&w->asleep, true);
		ports = atomic_exchange(&w->wanted, 0);
		if (ports == 0 && read(w->doorbell, &rung, sizeof(rung)) < 0)
			continue; /* interrupted */
		atomic_store(&w->asleep, false);
		for (; ports; ports &= ports - 1)
			wake_port(s, (unsigned int)__builtin_ctzll(ports));
	}
	return NULL;
}

int sw_wake_start(struct sw *s)
{
	struct sigaction sa = {.sa_handler = interrupted}; /* without SA_RESTART */
	struct sw_wakeups *w = &s->wakeups;
	unsigned int i;

	for (i = 0; i < WEFT_SWITCH_PORTS; i++)
		atomic_init(&w->event[i], -1);
	w->doorbell = eventfd(0, EFD_CLOEXEC);
	if (w->doorbell < 0) {
		cli_error("the wake-up thread gets no eventfd: %s; raise the limit of open files",
			  strerror(errno));
		return APP_FAIL;
	}
	sigaction(SIGUSR2, &sa, NULL);
	return thread_start("switch-wake", wake_thread, s, &w->thread);
}

/* The doorbell is written once for each sleep of the thread, so its counter never fills. */
void sw_wake(struct sw *s, uint64_t ports)
{
	struct sw_wakeups *w = &s->wakeups;
	const uint64_t one = 1;

	if (ports == 0)
		return;
	atomic_fetch_or(&w->wanted, ports);
	if (atomic_exchange(&w->asleep, false) &&
	    write(w->doorbell, &one, sizeof(one)) != (ssize_t)sizeof(one))
		atomic_store(&w->asleep, true); /* the next frame writes the doorbell */
}

void sw_wake_set(struct sw *s, unsigned int port, int event)
{
	struct sw_wakeups *w = &s->wakeups;

	/* bits of the previous connection; relaxed: no other data goes with them */
	atomic_fetch_and_explicit(&w->full, ~(1ull << port), memory_order_relaxed);
	atomic_fetch_and_explicit(&w->blocked, ~(1ull << port), memory_order_relaxed);
	atomic_store(&w->event[port], event);
}

void sw_wake_forget(struct sw *s, unsigned int port)
{
	struct sw_wakeups *w = &s->wakeups;

	atomic_store(&w->event[port], -1);
	while (atomic_load(&w->busy) == port + 1) {
		pthread_kill(w->thread, SIGUSR2);
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

/* A write in progress since the last tick blocks. */
static void wake_watch(struct sw *s)
{
	struct sw_wakeups *w = &s->wakeups;
	unsigned int turn = atomic_load_explicit(&w->turn, memory_order_relaxed);

	if (atomic_load(&w->busy) != 0 && turn == w->seen_turn)
		pthread_kill(w->thread, SIGUSR2);
	w->seen_turn = turn;
}

/* ---- threads that close --------------------------------------------------------------------- */

/*
 * Threads of base/thread.h close descriptors that clients passed. A close may block: of a socket
 * that lingers, of a file that its owner serves (FUSE), of a connection with such descriptors in
 * its receive queue. A signal ends most of these waits; the control thread sends one after a tick.
 *
 * When many closes are pending, the control thread receives nothing more from clients
 * (weft_foreign_fd_has_room()).
 */

void sw_close_init(void)
{
	cpu_set_t own;
	bool pinned = sched_getaffinity(0, sizeof(own), &own) == 0 && CPU_COUNT(&own) == 1;

	weft_blocking_init(SIGUSR2, pinned ? &own : NULL);
}

void sw_close(int *fd)
{
	if (*fd >= 0)
		weft_foreign_fd_close(*fd);
	*fd = -1;
}

void sw_accept(struct sw *s, int listener, uint64_t now,
	       void (*take)(struct sw *s, int fd, uint64_t now))
{
	for (unsigned int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			s->no_files = errno != EAGAIN;
			return;
		}
		take(s, fd, now);
	}
}

void sw_hang_up(struct sw *s, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, *fd, NULL);
	shutdown(*fd, SHUT_RDWR);
	sw_close(fd);
}

/* ---- the control thread --------------------------------------------------------------------- */

/* This thread may wait for the kernel or a process; the forwarder continues in the meantime. */

#define EVENTS 64
#define TICK_MS 20 /* between two checks of time limits, and of writes to eventfds that block */

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
	wake_watch(s);
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
	return thread_start("switch-control", control_thread, s, NULL);
}
