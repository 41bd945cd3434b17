/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connecting a queue pair, or making an address handle, resolves the peer's Ethernet address inside the kernel, and the caller sleeps until
 * the peer has answered or a second and more has gone by. A worker must not sleep, so each device has threads for such calls: as many as are needed at a time, up to
 * ROCE_THREADS, so that hosts that are dead do not keep those waiting that live. A job that has not begun can be taken back; else who is not interested
 * any more waits for the end.
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
			if (dev->threads_end)
				break;
			dev->threads_idle++;
			pthread_cond_wait(&dev->wake, &dev->lock);
			dev->threads_idle--;
			continue;
		}
		STAILQ_REMOVE_HEAD(&dev->jobs, link);
		dev->jobs_waiting--;
		job->waits = false;
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
	pthread_t *thread = &dev->threads[dev->num_threads];
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, job_thread, dev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0) {
		dev->num_threads++;
		pthread_setname_np(*thread, "weft-roce");
	}
	return -err;
}

int roce_job_start(struct roce_dev *dev, struct roce_job *job)
{
	int rc = 0;

	atomic_store_explicit(&job->done, false, memory_order_relaxed);
	job->err = 0;
	pthread_mutex_lock(&dev->lock);
	/* One that is idle may have been woken for another job already. */
	if (dev->threads_idle <= dev->jobs_waiting && dev->num_threads < ROCE_THREADS)
		rc = start_thread(dev);
	/* One thread is enough to come to an end. */
	if (dev->num_threads > 0)
		rc = 0;
	if (rc == 0) {
		job->waits = true;
		STAILQ_INSERT_TAIL(&dev->jobs, job, link);
		dev->jobs_waiting++;
		pthread_cond_signal(&dev->wake);
	}
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

void roce_job_cancel(struct roce_dev *dev, struct roce_job *job)
{
	pthread_mutex_lock(&dev->lock);
	if (job->waits) {
		STAILQ_REMOVE(&dev->jobs, job, roce_job, link);
		dev->jobs_waiting--;
		job->waits = false;
		job->err = ECANCELED;
		atomic_store_explicit(&job->done, true, memory_order_release);
	}
	pthread_mutex_unlock(&dev->lock);
}

void roce_jobs_end(struct roce_dev *dev)
{
	unsigned int i;

	pthread_mutex_lock(&dev->lock);
	dev->threads_end = true;
	pthread_cond_broadcast(&dev->wake);
	pthread_mutex_unlock(&dev->lock);
	for (i = 0; i < dev->num_threads; i++)
		pthread_join(dev->threads[i], NULL);
}
