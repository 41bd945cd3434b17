/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK timers for the PMDs that rely on them (net_ena's watchdog). rte_timer_manage() runs only the
 * timers of the calling lcore, which may include those of the application. It aborts in a thread
 * that is no lcore, as most threads of Weft's users are. So one thread of Weft becomes an lcore,
 * starts such ports, which makes it the owner of their timers, and runs them. The thread is not on
 * the path of messages, and the watchdog also works while the application computes.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>
#include <rte_timer.h>

#include "base/thread.h"
#include "port/priv.h"

/* Drivers of DPDK 22.11 to 24.11 that use rte_timer for a port's health. */
static const char *const need_timers[] = {"net_ena"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
	pthread_t thread;
	unsigned int ports; /* the thread runs while there are any */
	bool starting;      /* port_id is to be started */
	bool lcore;         /* the thread is an lcore */
	bool known;         /* `lcore` is valid */
	uint16_t port_id;
	int rc;
} timers;

bool weft_port_needs_timers(const struct weft_port_dev *d)
{
	size_t i;

	for (i = 0; i < RTE_DIM(need_timers); i++)
		if (d->info.driver_name && !strcmp(d->info.driver_name, need_timers[i]))
			return true;
	return false;
}

/* The lock is held. */
static void start_port(void)
{
	uint16_t id = timers.port_id;
	int rc;

	pthread_mutex_unlock(&lock);
	rc = rte_eth_dev_start(id);
	pthread_mutex_lock(&lock);
	timers.rc = rc;
	timers.starting = false;
	pthread_cond_broadcast(&changed);
}

static void *timer_thread(void *arg)
{
	bool lcore = rte_thread_register() == 0;
	struct timespec next;

	RTE_SET_USED(arg);
	pthread_mutex_lock(&lock);
	timers.lcore = lcore;
	timers.known = true;
	pthread_cond_broadcast(&changed);
	while (timers.ports > 0) {
		if (timers.starting) {
			start_port();
			continue;
		}
		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_sec++;
		if (pthread_cond_timedwait(&changed, &lock, &next) != ETIMEDOUT || !lcore)
			continue;
		pthread_mutex_unlock(&lock);
		rte_timer_manage();
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	if (lcore)
		rte_thread_unregister();
	return NULL;
}

static int make_thread(void)
{
	timers.known = timers.lcore = timers.starting = false;
	return weft_thread_start("weft-nic-timers", timer_thread, NULL, NULL, &timers.thread);
}

int weft_port_timers_start(struct weft_port_dev *d)
{
	int rc;

	pthread_mutex_lock(&lock);
	timers.ports++;
	if (timers.ports == 1 && make_thread()) {
		timers.ports--;
		pthread_mutex_unlock(&lock);
		d->warning =
			"its PMD's watchdog does not run, since no thread can be made for it: a "
			"NIC that hangs is found by WEFT_PEER_TIMEOUT only";
		return rte_eth_dev_start(d->port_id);
	}
	d->timers = true;
	while (!timers.known)
		pthread_cond_wait(&changed, &lock);
	if (!timers.lcore)
		d->warning =
			"its PMD's watchdog does not run, since DPDK has no lcore left for it or "
			"secondary processes are attached: a NIC that hangs is found by "
			"WEFT_PEER_TIMEOUT only";
	timers.port_id = d->port_id;
	timers.starting = true;
	pthread_cond_broadcast(&changed);
	while (timers.starting)
		pthread_cond_wait(&changed, &lock);
	rc = timers.rc;
	pthread_mutex_unlock(&lock);
	return rc;
}

void weft_port_timers_stop(struct weft_port_dev *d)
{
	bool last;

	if (!d->timers)
		return;
	d->timers = false;
	pthread_mutex_lock(&lock);
	last = --timers.ports == 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (last)
		pthread_join(timers.thread, NULL);
}
