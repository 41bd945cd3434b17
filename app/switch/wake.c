/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that sleep are woken by their eventfd. It is theirs: one that has filled its counter, and
 * has made it block, would hold up everybody. So a full one ends that client's connection. It may
 * be filled behind that look: a thread watches, and what lasts longer than its patience is
 * interrupted, ends the connection, and its user gets no port for some time.
 */

#include "switch/switch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "common/cli.h"

#define PATIENCE_NS 20000000

static pthread_t forwarder;
static atomic_uint writes; /* odd: one is going on */

static void interrupted(int sig)
{
	(void)sig;
}

static void *watch(void *arg)
{
	unsigned int before = 0, now;

	for (;;) {
		nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
		now = atomic_load_explicit(&writes, memory_order_relaxed);
		if (now % 2 && now == before)
			pthread_kill(forwarder, SIGUSR2);
		before = now;
	}
	return arg;
}

int sw_wake_start(void)
{
	struct sigaction sa = {.sa_handler = interrupted}; /* without SA_RESTART */
	int ret;

	forwarder = pthread_self();
	sigaction(SIGUSR2, &sa, NULL);
	ret = weft_thread_start("weft-sw-watch", watch, NULL, NULL, NULL);
	if (ret == 0)
		return APP_OK;
	cli_error("a thread can't be started: %s", strerror(-ret));
	return APP_FAIL;
}

static bool is_full(int event)
{
	struct pollfd p = {.fd = event, .events = POLLOUT};

	return poll(&p, 1, 0) == 0;
}

/* @return false: it blocks. The watch changes nothing but the errno of one that does. */
static bool poke(int event)
{
	uint64_t one = 1;
	ssize_t n;

	atomic_fetch_add_explicit(&writes, 1, memory_order_relaxed);
	n = write(event, &one, sizeof(one));
	atomic_fetch_add_explicit(&writes, 1, memory_order_relaxed);
	return n == (ssize_t)sizeof(one) || errno != EINTR;
}

void sw_wake(struct sw *s, uint64_t now)
{
	uint64_t up = s->plan.up;
	struct sw_port *p;
	unsigned int i;
	bool full;

	for (; up; up &= up - 1) {
		i = (unsigned int)__builtin_ctzll(up);
		p = &s->port[i];
		if (!p->wake)
			continue;
		p->wake = false;
		p->counters.wakes++;
		full = is_full(p->conn.tx.event);
		if (!full && poke(p->conn.tx.event))
			continue;
		if (!full)
			sw_ban(s, p->conn.uid, now);
		cli_error("port %u of process %d: its eventfd %s; its connection is ended", i,
			  (int)p->pid, full ? "is full" : "blocks");
		sw_conn_end(s, i);
	}
}
