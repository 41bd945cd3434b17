/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread: sockets, grants, checks of clients' memory, limits, and output for users. It
 * may wait for the kernel or for a process; the forwarder continues in the meantime.
 */

#include "switch/switch.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/blocking.h"
#include "common/cli.h"

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
 * The wake-up may be of the previous connection, which has ended. The switch's own user is trusted,
 * so only this connection ends.
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
	/* relaxed: as above */
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
