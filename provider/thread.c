/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/thread.h"
#include "provider/process.h"
#include "provider/provider.h"
#include "provider/wait.h"

/* Number of progress calls before other threads may take the lock. */
#define ROUNDS 64
/* The worker's descriptor wakes the thread; this is a safety timeout. */
#define SLEEP_MS 1000

/*
 * Guards starting and stopping. Taken before the lock of the process, which the thread needs to
 * end.
 */
static pthread_mutex_t lifetime = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static unsigned int users;
static struct wfi_wait idle = WFI_WAIT_CLOSED;
/* Read without the lock: it takes effect within one interval. */
static atomic_bool stop;
static struct timespec interval;

/* Locked. @return has the application made a call since the last check? */
static bool is_polled(void)
{
	static unsigned int seen;
	bool called = seen != wfi.progress_calls;

	seen = wfi.progress_calls;
	return called;
}

/*
 * Locked. Completions wake sleepers of the application; other sleepers are armed again together
 * with this thread, since the descriptor is the same. @return is there nothing to do?
 */
static bool work(void)
{
	unsigned int more = wfi.worker ? 1 : 0;

	for (int i = 0; i < ROUNDS && more > 0; i++)
		more = weft_worker_progress(wfi.worker);
	return more == 0;
}

static void *run(void *arg)
{
	int rc;

	(void)arg;
	idle.shy = true;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		wfi_lock_any();
		if (is_polled()) {
			wfi_unlock_armed();
			nanosleep(&interval, NULL);
			continue;
		}
		rc = work() ? wfi_wait_sleep(&idle, SLEEP_MS) : 0;
		wfi_unlock();
		if (rc < 0)
			nanosleep(&interval, NULL);
	}
	return NULL;
}

/* @return 0, or a negative error: it does not run */
static int first_user(unsigned int interval_us)
{
	int rc;

	interval.tv_sec = interval_us / 1000000;
	interval.tv_nsec = (long)(interval_us % 1000000) * 1000;
	atomic_store(&stop, false);
	rc = wfi_wait_open(&idle);
	if (rc == 0) {
		rc = weft_thread_start("weft-progress", run, NULL, NULL, &thread);
		if (rc < 0)
			wfi_wait_close(&idle);
	}
	return rc;
}

int wfi_thread_start(unsigned int interval_us)
{
	int rc;

	pthread_mutex_lock(&lifetime);
	rc = users == 0 ? first_user(interval_us) : 0;
	users += rc == 0;
	pthread_mutex_unlock(&lifetime);
	return rc;
}

void wfi_thread_stop(void)
{
	pthread_mutex_lock(&lifetime);
	if (--users == 0) {
		atomic_store(&stop, true);
		wfi_wait_signal(&idle);
		pthread_join(thread, NULL);
		wfi_lock_any();
		wfi_wait_close(&idle);
		wfi_unlock();
	}
	pthread_mutex_unlock(&lifetime);
}

void wfi_thread_forked(void)
{
	pthread_mutex_init(&lifetime, NULL);
	users = 0;
	idle = (struct wfi_wait)WFI_WAIT_CLOSED;
}
