/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads for kernel calls that sleep. Connecting a queue pair, or creating an address handle,
 * resolves the peer's Ethernet address in the kernel. The caller sleeps until the peer has
 * responded, or for a second and more. A worker must not sleep, so each device has threads for such
 * calls, as many as are needed, up to ROCE_THREADS: so dead hosts do not delay live ones. One host
 * occupies at most ROCE_THREADS_HOST of them, however many lanes it has. A job that has not begun
 * can be cancelled; otherwise its owner must wait for its end.
 */

#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "roce_dev.h"

static bool may_run(const struct roce_dev *dev, const struct roce_job *job)
{
	static const uint8_t no_host[sizeof(job->host)];
	unsigned int n = 0;

	if (memcmp(job->host, no_host, sizeof(no_host)) == 0)
		return true;
	for (unsigned int i = 0; i < ROCE_THREADS; i++)
		n += dev->running[i] &&
		     memcmp(dev->running[i]->host, job->host, sizeof(job->host)) == 0;
	return n < ROCE_THREADS_HOST;
}

/*
 * Dequeue the next job that may run, and put it at *@place; or return NULL. A job that had to wait
 * becomes runnable when a thread has finished a job of the same host. That thread calls this
 * function next, so no other thread needs a wake-up.
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
		 * From here on the owner may free the job. An owner that sees it done also sees
		 * that this thread is free for the next job.
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
	/* One thread is enough to execute all jobs, so a failure is not an error then. */
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
