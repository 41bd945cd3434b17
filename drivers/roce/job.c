/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connecting a queue pair, or making an address handle, resolves the peer's Ethernet address inside the kernel, and the caller sleeps until
 * the peer has answered or a second and more has gone by. A worker must not sleep, so each device has one thread for such calls, from the
 * first of them on. Jobs are never taken back: who is not interested any more waits for the end.
 */

#include <errno.h>
#include <signal.h>

#include "roce.h"

static void *job_thread(void *arg)
{
	struct roce_dev *dev = arg;
	struct roce_job *job;

	pthread_mutex_lock(&dev->lock);
	for (;;) {
		job = STAILQ_FIRST(&dev->jobs);
		if (job == NULL) {
			if (dev->thread_ends)
				break;
			pthread_cond_wait(&dev->wake, &dev->lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&dev->jobs, link);
		pthread_mutex_unlock(&dev->lock);
		job->run(job);
		/* Its owner may free it from here on. */
		atomic_store_explicit(&job->done, true, memory_order_release);
		pthread_mutex_lock(&dev->lock);
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

/* Without signals: they are for the application's threads. Holds the device's lock. */
static int start_thread(struct roce_dev *dev)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&dev->thread, NULL, job_thread, dev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0) {
		dev->thread_runs = true;
		pthread_setname_np(dev->thread, "weft-roce");
	}
	return -err;
}

int roce_job_start(struct roce_dev *dev, struct roce_job *job)
{
	int rc = 0;

	atomic_store_explicit(&job->done, false, memory_order_relaxed);
	job->err = 0;
	pthread_mutex_lock(&dev->lock);
	if (!dev->thread_runs)
		rc = start_thread(dev);
	if (rc == 0) {
		STAILQ_INSERT_TAIL(&dev->jobs, job, link);
		pthread_cond_signal(&dev->wake);
	}
	pthread_mutex_unlock(&dev->lock);
	return rc;
}
