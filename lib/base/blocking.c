/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/blocking.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

/* ------------------------------------------------------------------ threads for blocking calls */

#define IDLE_S 1                                 /* a thread without work ends after this time */
#define LONG_THREADS (WEFT_BLOCKING_THREADS / 2) /* threads with calls that wait for the network */

struct job {
	void (*run)(void *arg);
	void *arg;
	bool is_long;
	STAILQ_ENTRY(job) next;
};

STAILQ_HEAD(jobs, job);

/* A thread; the record is on its stack. */
struct worker {
	pthread_t thread;
	unsigned int calls; /* begun */
	unsigned int seen;  /* calls at the last interrupt */
	bool busy;
	LIST_ENTRY(worker) entry;
};

/* Of the process; the lock is never held during a call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work;
static struct jobs queue = STAILQ_HEAD_INITIALIZER(queue);
static struct jobs long_queue = STAILQ_HEAD_INITIALIZER(long_queue);
static LIST_HEAD(, worker) workers = LIST_HEAD_INITIALIZER(workers);
static unsigned int queued, long_queued, long_running, idle, threads;
static atomic_uint pending;
static int interrupt_signal;
static cpu_set_t avoided;
static bool avoids;

static void init_condition(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&work, &attr);
	pthread_condattr_destroy(&attr);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	STAILQ_INIT(&queue);
	STAILQ_INIT(&long_queue);
	LIST_INIT(&workers);
	queued = long_queued = long_running = idle = threads = 0;
	/* Relaxed: the child has one thread. */
	atomic_store_explicit(&pending, 0, memory_order_relaxed);
	init_condition(); /* threads of the parent waited on it */
	pthread_mutex_unlock(&lock);
}

static int atfork_error;

static void init_once(void)
{
	init_condition();
	atfork_error = -pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* With the lock. @return a call that may begin now, or NULL */
static struct job *take_job(void)
{
	struct job *job = STAILQ_FIRST(&queue);

	if (job) {
		STAILQ_REMOVE_HEAD(&queue, next);
		queued--;
		return job;
	}
	job = long_running < LONG_THREADS ? STAILQ_FIRST(&long_queue) : NULL;
	if (job) {
		STAILQ_REMOVE_HEAD(&long_queue, next);
		long_queued--;
		long_running++;
	}
	return job;
}

/* With the lock. @return the next call, or NULL after IDLE_S without one */
static struct job *next_job(void)
{
	struct timespec until;
	struct job *job;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_S;
	idle++;
	while (!(job = take_job()) && rc == 0)
		rc = pthread_cond_timedwait(&work, &lock, &until);
	idle--;
	return job;
}

static void call(struct worker *w, struct job *job)
{
	bool is_long = job->is_long;

	w->busy = true;
	w->calls++;
	pthread_mutex_unlock(&lock);
	job->run(job->arg);
	free(job);
	/* Relaxed: the number is a bound and orders nothing. */
	if (!is_long)
		atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	long_running -= is_long;
	w->busy = false;
}

static void *run_worker(void *arg)
{
	struct worker w = {.thread = pthread_self()};
	struct job *job;
	sigset_t set;

	pthread_mutex_lock(&lock);
	if (interrupt_signal) {
		sigemptyset(&set);
		sigaddset(&set, interrupt_signal);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	LIST_INSERT_HEAD(&workers, &w, entry);
	while ((job = next_job()))
		call(&w, job);
	LIST_REMOVE(&w, entry);
	threads--;
	pthread_mutex_unlock(&lock);
	return arg;
}

/* With the lock: a thread waits for each call that may begin, or the bound is reached. */
static int start_threads(void)
{
	unsigned int room = LONG_THREADS - long_running;
	unsigned int begin = queued + (long_queued < room ? long_queued : room);
	int rc = 0;

	if (begin > idle && threads < WEFT_BLOCKING_THREADS) {
		rc = weft_thread_start("weft-blocking", run_worker, NULL, avoids ? &avoided : NULL,
				       NULL);
		threads += rc == 0;
	}
	return threads > 0 ? 0 : rc;
}

void weft_blocking_init(int signo, const cpu_set_t *avoid)
{
	pthread_mutex_lock(&lock);
	interrupt_signal = signo;
	avoids = avoid != NULL;
	if (avoid)
		avoided = *avoid;
	pthread_mutex_unlock(&lock);
}

static int add(void (*run)(void *arg), void *arg, bool is_long)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct jobs *jobs = is_long ? &long_queue : &queue;
	unsigned int *count = is_long ? &long_queued : &queued;
	struct job *job;
	int rc;

	pthread_once(&once, init_once);
	if (atfork_error < 0)
		return atfork_error;
	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = (struct job){.run = run, .arg = arg, .is_long = is_long};
	pthread_mutex_lock(&lock);
	STAILQ_INSERT_TAIL(jobs, job, next);
	++*count;
	rc = start_threads();
	if (rc < 0) {
		STAILQ_REMOVE(jobs, job, job, next);
		--*count;
		free(job);
	} else {
		if (!is_long)
			atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
		pthread_cond_signal(&work);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int weft_blocking_run(void (*run)(void *arg), void *arg)
{
	return add(run, arg, false);
}

int weft_blocking_run_long(void (*run)(void *arg), void *arg)
{
	return add(run, arg, true);
}

unsigned int weft_blocking_pending(void)
{
	return atomic_load_explicit(&pending, memory_order_relaxed);
}

void weft_blocking_interrupt(void)
{
	struct worker *w;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(w, &workers, entry) {
		if (interrupt_signal && w->busy && w->seen == w->calls)
			pthread_kill(w->thread, interrupt_signal);
		w->seen = w->calls;
	}
	pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ others' descriptors */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define WITH_ONE_MESSAGE 253 /* descriptors: the kernel's SCM_MAX_FD */
#define CLOSES_MAX 512u      /* pending, while further descriptors are received */
#define CLOSE_TRIES 20

static void close_job(void *arg)
{
	close((int)(intptr_t)arg);
}

void weft_foreign_fd_close(int fd)
{
	/*
	 * If no thread can be started, the descriptor stays open: that costs a number, while a
	 * close() here could block the caller.
	 */
	(void)weft_blocking_run(close_job, (void *)(intptr_t)fd);
}

bool weft_foreign_fd_has_room(void)
{
	return weft_blocking_pending() < CLOSES_MAX;
}

static void take_fds(struct msghdr *msg, int *fds, unsigned int num)
{
	unsigned int had = 0;
	struct cmsghdr *c;
	size_t i, here;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < here; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (had < num)
				fds[had++] = fd;
			else
				weft_foreign_fd_close(fd);
		}
	}
}

ssize_t weft_foreign_fd_recv(int sock, void *buf, size_t len, int *fds, unsigned int num)
{
	/*
	 * The kernel passes as many descriptors as there is room for, and closes the others in this
	 * thread.
	 */
	union {
		char bytes[CMSG_SPACE(WITH_ONE_MESSAGE * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	for (unsigned int i = 0; i < num; i++)
		fds[i] = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	take_fds(&msg, fds, num);
	if (!(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	for (unsigned int i = 0; i < num; i++) {
		if (fds[i] >= 0)
			weft_foreign_fd_close(fds[i]);
		fds[i] = -1;
	}
	return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : -EPROTO;
}

bool weft_socket_refuse_fds(int sock)
{
	const int off = 0;

	return setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

void weft_socket_close_public(int sock)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	unsigned int before;

	if (weft_socket_refuse_fds(sock)) {
		close(sock);
		return;
	}
	before = weft_blocking_pending();
	weft_foreign_fd_close(sock);
	/* Mostly the socket is closed at once, and its name is free when this call returns. */
	for (int i = 0; i < CLOSE_TRIES && weft_blocking_pending() > before; i++)
		nanosleep(&tick, NULL);
}
