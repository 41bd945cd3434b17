/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
