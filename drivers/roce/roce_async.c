/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "roce_async.h"
#include "roce_dev.h"
#include "roce_text.h"

/* ------------------------------------------------------------------ events */

/*
 * Workers share a device. The first worker that polls reads all events and gives each iface a copy
 * of those that may concern it.
 */

void roce_watch_add(struct roce_dev *dev, struct roce_watch *watch, unsigned int port)
{
	STAILQ_INIT(&watch->events);
	watch->port = port;
	atomic_init(&watch->pending, false);
	pthread_mutex_lock(&dev->lock);
	LIST_INSERT_HEAD(&dev->watches, watch, link);
	pthread_mutex_unlock(&dev->lock);
}

void roce_watch_remove(struct roce_dev *dev, struct roce_watch *watch)
{
	struct roce_event *e;

	pthread_mutex_lock(&dev->lock);
	LIST_REMOVE(watch, link);
	while ((e = STAILQ_FIRST(&watch->events))) {
		STAILQ_REMOVE_HEAD(&watch->events, link);
		free(e);
	}
	pthread_mutex_unlock(&dev->lock);
}

bool roce_is_qp_event(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR;
}

static bool is_port_event(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_GID_CHANGE;
}

static void hand_out(struct roce_dev *dev, const struct ibv_async_event *event)
{
	struct roce_watch *w;
	struct roce_event *e;

	LIST_FOREACH(w, &dev->watches, link) {
		if (is_port_event(event->event_type) &&
		    (unsigned int)event->element.port_num != w->port)
			continue;
		e = calloc(1, sizeof(*e));
		if (!e)
			continue;
		e->type = event->event_type;
		if (roce_is_qp_event(event->event_type) ||
		    event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
			e->qpn = event->element.qp->qp_num;
		else if (event->event_type == IBV_EVENT_CQ_ERR)
			e->queue = event->element.cq;
		else if (event->event_type == IBV_EVENT_SRQ_ERR)
			e->queue = event->element.srq;
		STAILQ_INSERT_TAIL(&w->events, e, link);
		atomic_store_explicit(&w->pending, true, memory_order_release);
	}
}

void roce_watch_poll(struct roce_dev *dev)
{
	struct ibv_async_event event;

	if (pthread_mutex_trylock(&dev->lock) != 0)
		return; /* mostly another worker reads the events now */
	while (ibv_get_async_event(dev->ctx, &event) == 0) {
		hand_out(dev, &event);
		/* Until the acknowledgement, the event's queue pair can't be destroyed. */
		ibv_ack_async_event(&event);
	}
	pthread_mutex_unlock(&dev->lock);
}

bool roce_watch_next(struct roce_dev *dev, struct roce_watch *watch, struct roce_event *event)
{
	struct roce_event *e;

	if (!atomic_load_explicit(&watch->pending, memory_order_acquire))
		return false;
	pthread_mutex_lock(&dev->lock);
	e = STAILQ_FIRST(&watch->events);
	if (e)
		STAILQ_REMOVE_HEAD(&watch->events, link);
	else
		atomic_store_explicit(&watch->pending, false, memory_order_relaxed);
	pthread_mutex_unlock(&dev->lock);
	if (!e)
		return false;
	*event = *e;
	free(e);
	return true;
}

/* ------------------------------------------------------------------ ports and addresses */

bool roce_gid_changed(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid,
		      bool *gone, char *what, size_t len)
{
	uint8_t before = gid->index;
	char text[48];

	*gone = !roce_dev_gid_find(dev, port, gid);
	if (*gone) {
		roce_gid_gone_text(gid, what, len);
		return true;
	}
	if (gid->index == before)
		return false;
	weft_roce_gid_print(gid->gid, text, sizeof(text));
	snprintf(what, len, "its address %s was given again to the network device (GID %u, was %u)",
		 text, gid->index, before);
	return true;
}

bool roce_port_gone(const struct roce_port_watch *p, unsigned int port, uint64_t now,
		    uint64_t give_up_ns, char *what, size_t len)
{
	uint64_t timeout = give_up_ns > 1000000000 ? give_up_ns : 1000000000;

	if (p->up || p->down_since == 0 || now - p->down_since < timeout)
		return false;
	snprintf(what, len, "port %u has been down for %.1f s ('ip link' shows the link)", port,
		 (double)(now - p->down_since) * 1e-9);
	return true;
}

void roce_port_event(struct roce_port_watch *p, enum ibv_event_type type, uint64_t now)
{
	if (type == IBV_EVENT_PORT_ACTIVE) {
		p->up = true;
	} else if (type == IBV_EVENT_PORT_ERR) {
		p->up = false;
		p->down_since = now;
	}
}

/* ------------------------------------------------------------------ the threads of a device */

/*
 * Connecting a queue pair, or creating an address handle, resolves the peer's Ethernet address in
 * the kernel. The caller sleeps until the peer has responded, or for a second and more. A worker
 * must not sleep, so each device has threads for such calls, as many as are needed, up to
 * ROCE_THREADS. One host occupies at most ROCE_THREADS_HOST of them, so dead hosts do not delay
 * live ones.
 */

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
 * A job that had to wait becomes runnable when a thread has finished a job of the same host. That
 * thread calls this function next, so no other thread needs a wake-up.
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
	/* One thread is enough to execute all jobs: a failure to start another is no error. */
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
