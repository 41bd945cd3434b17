/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connecting a queue pair, or making an address handle, resolves the peer's Ethernet address inside
 * the kernel, and the caller sleeps until the peer has answered or a second and more has gone by. A
 * worker must not sleep, so each device has threads for such calls: as many as are needed at a
 * time, up to ROCE_THREADS, so that hosts that are dead do not keep those waiting that live; one
 * host, with however many lanes, keeps ROCE_THREADS_HOST of them at most. A job that has not begun
 * can be taken back; else who is not interested any more waits for the end.
 */

#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "roce_dev.h"

static bool may_run(const struct roce_dev *dev, const struct roce_job *job)
{
	static const uint8_t nobody[sizeof(job->host)];
	unsigned int n = 0;

	if (memcmp(job->host, nobody, sizeof(nobody)) == 0)
		return true;
	for (unsigned int i = 0; i < ROCE_THREADS; i++)
		n += dev->running[i] &&
		     memcmp(dev->running[i]->host, job->host, sizeof(job->host)) == 0;
	return n < ROCE_THREADS_HOST;
}

/*
 * The next job that may run, taken out and put at *@place; or NULL. When one becomes possible that
 * was not, it is because a thread has ended a job of that host: this thread comes here next, and
 * nobody needs to be woken.
 */
static struct roce_job *next_job(struct roce_dev *dev, const struct roce_job ***place)
{
	struct roce_job *job;

	STAILQ_FOREACH(job, &dev->jobs, link) {
		if (may_run(dev, job))
			break;
	}
	if (!job)
		return NULL;
	STAILQ_REMOVE(&dev->jobs, job, roce_job, link);
	job->waits = false;
	*place = dev->running;
	while (**place)
		(*place)++;
	**place = job;
	return job;
}

static void *job_thread(void *arg)
{
	const struct roce_job **place;
	struct roce_dev *dev = arg;
	struct roce_job *job;

	pthread_mutex_lock(&dev->lock);
	for (;;) {
		job = next_job(dev, &place);
		if (!job) {
			if (dev->threads_end)
				break;
			pthread_cond_wait(&dev->wake, &dev->lock);
			continue;
		}
		pthread_mutex_unlock(&dev->lock);
		job->run(job);
		pthread_mutex_lock(&dev->lock);
		dev->jobs_open--;
		*place = NULL;
		/*
		 * Its owner may free it from here on; who sees it done sees this thread free for
		 * the next.
		 */
		atomic_store_explicit(&job->done, true, memory_order_release);
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

/* The device's lock is held. */
static int start_thread(struct roce_dev *dev)
{
	pthread_t *thread = &dev->threads[dev->num_threads];
	int rc = weft_thread_start("weft-roce", job_thread, dev, NULL, thread);

	if (rc == 0)
		dev->num_threads++;
	return rc;
}

int roce_job_start(struct roce_dev *dev, struct roce_job *job)
{
	int rc = 0;

	atomic_store_explicit(&job->done, false, memory_order_relaxed);
	job->err = 0;
	pthread_mutex_lock(&dev->lock);
	if (dev->jobs_open >= dev->num_threads && dev->num_threads < ROCE_THREADS)
		rc = start_thread(dev);
	/* One thread is enough to come to an end. */
	if (dev->num_threads > 0)
		rc = 0;
	if (rc == 0) {
		job->waits = true;
		STAILQ_INSERT_TAIL(&dev->jobs, job, link);
		dev->jobs_open++;
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
		dev->jobs_open--;
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
