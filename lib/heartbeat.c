/* SPDX-License-Identifier: BSD-3-Clause */

#include "heartbeat.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/thread.h"
#include "core/config.h"
#include "core/worker.h"

/* A worker whose lock is taken is checked again after this part of its interval. */
#define AGAIN 4u

/*
 * Guards the list. The thread holds it while it calls beat(), so it never uses a worker that has
 * left the list.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Serialises starting and ending the thread; taken before `lock`. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* by the monotonic clock */
static LIST_HEAD(, weft_worker) workers = LIST_HEAD_INITIALIZER(workers);
static pthread_t thread;

/* @return ns until the worker is checked again */
static uint64_t beat(struct weft_worker *w)
{
	const struct weft_platform *platform = w->ctx->platform;
	uint64_t every = w->ctx->conf->heartbeat_ns, now, since;

	/* The owner is inside a call: it makes progress, or will soon. */
	if (!weft_lock_try(&w->lock))
		return every / AGAIN;
	now = platform->now(platform->arg);
	since = now > w->now ? now - w->now : 0;
	/*
	 * A thread that sleeps in weft_worker_wait() needs no heartbeat: frames of the peer wake
	 * it, and it answers them itself.
	 */
	if (since >= every && !w->armed && !w->destroying) {
		for (unsigned int i = 0; i < w->num_ifaces; i++)
			if (w->ifaces[i]->ops->beat)
				w->ifaces[i]->ops->beat(w->ifaces[i]);
		since = 0;
	}
	weft_lock_release(&w->lock);
	return since < every ? every - since : every;
}

static void add_ns(struct timespec *t, uint64_t ns)
{
	ns += (uint64_t)t->tv_nsec;
	t->tv_sec += (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
}

static void *run(void *arg)
{
	struct weft_worker *w;
	struct timespec until;
	uint64_t wait, next;

	(void)arg;
	pthread_mutex_lock(&lock);
	while (!LIST_EMPTY(&workers)) {
		wait = UINT64_MAX;
		LIST_FOREACH(w, &workers, heartbeat) {
			next = beat(w);
			wait = next < wait ? next : wait;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		add_ns(&until, wait);
		pthread_cond_timedwait(&changed, &lock, &until);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

int weft_heartbeat_add(struct weft_worker *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool first;
	int rc = 0;

	pthread_once(&once, init_changed);
	pthread_mutex_lock(&life);
	pthread_mutex_lock(&lock);
	first = LIST_EMPTY(&workers);
	LIST_INSERT_HEAD(&workers, w, heartbeat);
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	if (first)
		rc = weft_thread_start("weft-heartbeat", run, NULL, NULL, &thread);
	if (rc != 0)
		LIST_REMOVE(w, heartbeat); /* the list has no other worker, and no thread uses it */
	w->beats = rc == 0;
	pthread_mutex_unlock(&life);
	return rc;
}

void weft_heartbeat_remove(struct weft_worker *w)
{
	bool last;

	if (!w->beats)
		return;
	pthread_mutex_lock(&life);
	pthread_mutex_lock(&lock);
	LIST_REMOVE(w, heartbeat);
	w->beats = false;
	last = LIST_EMPTY(&workers);
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	if (last)
		pthread_join(thread, NULL);
	pthread_mutex_unlock(&life);
}
