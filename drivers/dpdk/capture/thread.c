/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/thread.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <rte_lcore.h>

/* Who starts it may be bound to one core, and poll there. */
static void choose_cores(pthread_t thread)
{
	long n = sysconf(_SC_NPROCESSORS_CONF), i;
	cpu_set_t all, lcore, others;
	unsigned int id;

	CPU_ZERO(&all);
	for (i = 0; i < n && i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	others = all;
	RTE_LCORE_FOREACH(id) {
		lcore = rte_lcore_cpuset(id);
		for (i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &lcore))
				CPU_CLR(i, &others);
	}
	/* The kernel leaves of it what the process may have; where that is nothing, all will do. */
	if (CPU_COUNT(&others) == 0 || pthread_setaffinity_np(thread, sizeof(others), &others))
		pthread_setaffinity_np(thread, sizeof(all), &all);
}

int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread)
{
	sigset_t all, before;
	pthread_t t;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&t, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return -rc;
	choose_cores(t);
	pthread_setname_np(t, name);
	if (thread)
		*thread = t;
	else
		pthread_detach(t);
	return 0;
}
