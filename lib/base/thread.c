/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
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
		return; /* SCHED_BATCH and SCHED_IDLE are inherited: the user lowers all threads */
	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &none);
}

/*
 * The kernel refuses the affinity mask if the cpuset has none of its cores, and a sandbox may
 * refuse it, too. The stack size is refused if thread-local storage needs more. The thread is then
 * started without them.
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

#define LOOK_PAUSES 8u     /* between two looks: each takes the line from the owner's cache */
#define SPIN_LOOKS 60u     /* before a waiting thread sleeps: about 15 us */
#define GIVE_WAY_LOOKS 24u /* a waiting thread may sleep, or have no core */
#define SLEEP_NS 1000000   /* at most: a release may miss that a thread goes to sleep */

_Thread_local uint32_t weft_lock_thread;

uint32_t weft_lock_number(void)
{
	static _Atomic uint32_t last;

	/* Relaxed: numbers have to be different, in any order. */
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
	/* Relaxed: a hint; weft_lock_take() orders. */
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, NULL, 0);
}

void weft_lock_wake(struct weft_lock *l)
{
	/* Relaxed: one call for all that sleep now; a thread that sleeps again sets it again. */
	if (atomic_exchange_explicit(&l->sleeps, 0, memory_order_relaxed))
		futex(&l->owner, FUTEX_WAKE, INT_MAX, NULL);
}

static void sleep_once(struct weft_lock *l)
{
	const struct timespec limit = {.tv_nsec = SLEEP_NS};
	uint32_t owner = load(&l->owner);

	if (owner == 0)
		return;
	/* Relaxed: the time limit covers a release that does not see it. */
	atomic_store_explicit(&l->sleeps, 1, memory_order_relaxed);
	futex(&l->owner, FUTEX_WAIT, owner, &limit);
}

static void wait_for(struct weft_lock *l, uint32_t self)
{
	unsigned int looks = 0;

	/* Relaxed: the owner gives way a little later. */
	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	while (load(&l->owner) != 0 || !weft_lock_take(l, self)) {
		if (++looks > SPIN_LOOKS)
			sleep_once(l);
		else
			pause_between_looks();
	}
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
}

/* The caller has the lock. */
static void count_streak(struct weft_lock *l, uint32_t self)
{
	bool again = l->last == self && load(&l->yields) != self;

	l->last = self;
	l->streak = again ? l->streak + 1 : 0;
	/* Relaxed: read by this thread alone for a decision. */
	atomic_store_explicit(&l->yields, l->streak >= WEFT_LOCK_STREAK ? self : 0,
			      memory_order_relaxed);
}

void weft_lock_contended(struct weft_lock *l, uint32_t self)
{
	/* A waiting thread that takes it clears `yields`. */
	for (unsigned int i = 0; i < GIVE_WAY_LOOKS && load(&l->waiting) != 0; i++) {
		if (load(&l->yields) != self)
			break;
		pause_between_looks();
	}
	if (!weft_lock_take(l, self))
		wait_for(l, self);
	count_streak(l, self);
}
