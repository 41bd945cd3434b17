/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool is_real_time(void)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* The kernel removes cores that are not in the process' cpuset. */
static void choose_cores(cpu_set_t *cores, bool real_time, const cpu_set_t *avoid)
{
	cpu_set_t own;

	CPU_ZERO(&own);
	if (real_time)
		sched_getaffinity(0, sizeof(own), &own);
	if (avoid)
		CPU_OR(&own, &own, avoid);
	memset(cores, 0xff, sizeof(*cores));
	CPU_XOR(cores, cores, &own);
}

static void init_attr(pthread_attr_t *attr, size_t stack, bool real_time, const cpu_set_t *cores)
{
	const struct sched_param none = {.sched_priority = 0};

	pthread_attr_init(attr);
	if (stack)
		pthread_attr_setstacksize(attr, stack);
	if (cores)
		pthread_attr_setaffinity_np(attr, sizeof(*cores), cores);
	if (!real_time)
		return; /* SCHED_BATCH or SCHED_IDLE, which a user chose for all, is inherited */
	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &none);
}

/*
 * The kernel refuses an affinity mask if the cpuset has none of its cores, and a sandbox may refuse
 * any. A stack size is refused if thread-local storage needs more. So further
 * attempts have all cores, then no mask, then no stack size.
 */
static int create(pthread_t *thread, void *(*run)(void *arg), void *arg, const cpu_set_t *avoid)
{
	bool real_time = is_real_time();
	cpu_set_t few, all;
	const struct {
		size_t stack;
		const cpu_set_t *cores;
	} attempts[] = {
		{WEFT_THREAD_STACK, &few},
		{WEFT_THREAD_STACK, &all},
		{WEFT_THREAD_STACK, NULL},
		{0, NULL},
	};
	pthread_attr_t attr;
	int rc = EAGAIN;

	choose_cores(&few, real_time, avoid);
	memset(&all, 0xff, sizeof(all));
	for (size_t i = 0; rc != 0 && i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		init_attr(&attr, attempts[i].stack, real_time, attempts[i].cores);
		rc = pthread_create(thread, &attr, run, arg);
		pthread_attr_destroy(&attr);
	}
	return -rc;
}

int weft_thread_start(const char *name, void *(*run)(void *arg), void *arg, const cpu_set_t *avoid,
		      pthread_t *thread)
{
	sigset_t all, before;
	pthread_t t;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = create(&t, run, arg, avoid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		return rc;
	pthread_setname_np(t, name);
	if (thread)
		*thread = t;
	else
		pthread_detach(t);
	return 0;
}

/* ------------------------------------------------------------------ a recursive lock */

/* between two reads of the lock, because a read takes the cache line from the owner */
#define LOOK_PAUSES 8u
#define SPIN_LOOKS 60u /* reads before a waiting thread sleeps: about 15 us */
/* maximum of reads while giving way: the next owner may have no core */
#define GIVE_WAY_LOOKS 24u
/* ns: a release may miss a thread that goes to sleep */
#define SLEEP_NS 1000000

_Thread_local uint32_t weft_lock_thread;

uint32_t weft_lock_number(void)
{
	static _Atomic uint32_t last;

	/* Relaxed: numbers only have to be different. */
	do
		weft_lock_thread = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
	while (weft_lock_thread == 0);
	return weft_lock_thread;
}

static inline void pause_once(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void pause_between_looks(void)
{
	for (unsigned int i = 0; i < LOOK_PAUSES; i++)
		pause_once();
}

static uint32_t load(const _Atomic uint32_t *word)
{
	/* Relaxed: only a hint; weft_lock_take() orders the accesses. */
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, NULL, 0);
}

void weft_lock_wake(struct weft_lock *l)
{
	/* Relaxed: one call wakes all. A thread that sleeps again sets `sleeps`. */
	if (atomic_exchange_explicit(&l->sleeps, 0, memory_order_relaxed))
		futex(&l->owner, FUTEX_WAKE, INT_MAX, NULL);
}

static void sleep_once(struct weft_lock *l)
{
	const struct timespec limit = {.tv_nsec = SLEEP_NS};
	uint32_t owner = load(&l->owner);

	if (owner == 0)
		return;
	/* Relaxed: a release that misses the flag costs at most the time limit. */
	atomic_store_explicit(&l->sleeps, 1, memory_order_relaxed);
	futex(&l->owner, FUTEX_WAIT, owner, &limit);
}

static void wait_for(struct weft_lock *l, uint32_t self)
{
	unsigned int looks = 0;

	/* Relaxed: an owner that reads the count late gives way a little later. */
	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	while (load(&l->owner) != 0 || !weft_lock_take(l, self)) {
		if (++looks > SPIN_LOOKS)
			sleep_once(l);
		else
			pause_between_looks();
	}
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
}

static void count_streak(struct weft_lock *l, uint32_t self)
{
	bool again = l->last == self && load(&l->yields) != self;

	l->last = self;
	l->streak = again ? l->streak + 1 : 0;
	/* Relaxed: a hint for weft_lock_contended(). */
	atomic_store_explicit(&l->yields, l->streak >= WEFT_LOCK_STREAK ? self : 0,
			      memory_order_relaxed);
}

void weft_lock_contended(struct weft_lock *l, uint32_t self)
{
	/* Give way until another thread has taken the lock, which clears `yields`. */
	for (unsigned int i = 0; i < GIVE_WAY_LOOKS && load(&l->waiting) != 0; i++) {
		if (load(&l->yields) != self)
			break;
		pause_between_looks();
	}
	if (!weft_lock_take(l, self))
		wait_for(l, self);
	count_streak(l, self);
}

/* ------------------------------------------------------------------ threads for blocking calls */

#define IDLE_S 1 /* until a thread without work ends */
#define LONG_THREADS (WEFT_BLOCKING_THREADS / 2)

struct job {
	void (*run)(void *arg);
	void *arg;
	bool is_long;
	STAILQ_ENTRY(job) next;
};

STAILQ_HEAD(jobs, job);

struct worker {
	pthread_t thread;
	unsigned int calls;
	unsigned int seen; /* `calls` at the last weft_blocking_interrupt() */
	bool busy;
	LIST_ENTRY(worker) entry;
};

/* Guards the state of all threads; not held during a call. */
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
	init_condition(); /* `work` still counts waiting threads of the parent */
	pthread_mutex_unlock(&lock);
}

static int atfork_error;

static void init_once(void)
{
	init_condition();
	atfork_error = -pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Requires the lock. @return a call that may begin now, or NULL */
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

/* Requires the lock. @return NULL after IDLE_S without a call */
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
	/* Relaxed: the number orders nothing. */
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

/*
 * Requires the lock. Starts a thread if more calls may begin than threads are idle.
 * @return 0; or an error: a thread could not be started, and there is no other one
 */
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

#define WITH_ONE_MESSAGE 253 /* the kernel's SCM_MAX_FD */
#define CLOSES_MAX 512u      /* pending calls from which no further descriptors are received */
#define CLOSE_TRIES 20

static void close_job(void *arg)
{
	close((int)(intptr_t)arg);
}

void weft_foreign_fd_close(int fd)
{
	/* If no thread can do it, an open descriptor is better than a close() that blocks. */
	(void)weft_blocking_run(close_job, (void *)(intptr_t)fd);
}

struct mapping {
	void *at;
	size_t len;
};

static void unmap_job(void *arg)
{
	struct mapping *m = arg;

	munmap(m->at, m->len);
	free(m);
}

void weft_foreign_unmap(void *at, size_t len)
{
	struct mapping *m = malloc(sizeof(*m));

	if (m) {
		*m = (struct mapping){.at = at, .len = len};
		if (weft_blocking_run(unmap_job, m) == 0)
			return;
		free(m);
	}
	munmap(at, len);
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
	/* All descriptors of a message fit: recvmsg() would close others, and could block. */
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
	if (n > 0 && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	for (unsigned int i = 0; i < num; i++) {
		if (fds[i] >= 0)
			weft_foreign_fd_close(fds[i]);
		fds[i] = -1;
	}
	/* An empty message looks like the end, and can have descriptors. */
	if (n == 0)
		return 0;
	return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : -EPROTO;
}

ssize_t weft_socket_send_fds(int sock, const void *buf, size_t len, const int *fds,
			     unsigned int num)
{
	union {
		char bytes[CMSG_SPACE(WITH_ONE_MESSAGE * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (num > WITH_ONE_MESSAGE)
		return -EINVAL;
	if (num > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(num * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num * sizeof(int));
	}
	n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
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
	/* Mostly the socket is closed, and its name free, when this call returns. */
	for (int i = 0; i < CLOSE_TRIES && weft_blocking_pending() > before; i++)
		nanosleep(&tick, NULL);
}
