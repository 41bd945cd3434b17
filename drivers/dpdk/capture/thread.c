/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/thread.h"

#include <sched.h>
#include <stddef.h>

#include <rte_lcore.h>

#include "base/thread.h"

int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread)
{
	cpu_set_t lcores, lcore;
	unsigned int id;

	CPU_ZERO(&lcores);
	RTE_LCORE_FOREACH(id) {
		lcore = rte_lcore_cpuset(id);
		CPU_OR(&lcores, &lcores, &lcore);
	}
	return weft_thread_start(name, run, arg, &lcores, thread);
}
