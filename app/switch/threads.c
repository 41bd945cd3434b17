/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "common/cli.h"
#include "switch/switch.h"
#include "switch/threads.h"

#define ACCEPTS 64 /* clients that are accepted at a time */

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

int sw_thread_start(const char *name, void *(*run)(void *arg), struct sw *s, pthread_t *thread)
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
 * Wakes sleeping clients by their eventfds. A client controls its eventfd, so a write to it may
 * block. So only the wake-up thread writes, never the forwarder. A client may fill its eventfd
 * between the check and the write. The control thread then interrupts the write. A full eventfd,
 * and a write that made the thread sleep, end the connection and ban the user.
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
 * Poll for POLLOUT alone first: at ULLONG_MAX poll() reports POLLERR. When other threads need the
 * core, a write takes long without a fault of the client, but the thread does not sleep in it.
 */
static enum outcome poke(int event)
{
	struct pollfd p = {.fd = event, .events = POLLOUT};
	uint64_t one = 1, begin;
	long before;
	ssize_t n;

	if (poll(&p, 1, 0) < 0)
		return WOKEN; /* interrupted by sw_wake_watch(), for the previous write */
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
	return sw_thread_start("switch-wake", wake_thread, s, &w->thread);
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

/* ---- control thread ------------------------------------------------------------------------- */

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

void sw_wake_watch(struct sw *s)
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
