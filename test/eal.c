/* SPDX-License-Identifier: BSD-3-Clause */

#include "eal.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

void test_eal_init(const char *mb)
{
	static bool done;
	static char arg[][32] = {"test",
				 "--no-huge",
				 "--no-pci",
				 "--no-telemetry",
				 "--no-shconf",
				 "--iova-mode=va",
				 "--log-level=lib.eal:error",
				 "--lcores",
				 "0",
				 "-m",
				 ""};
	char *argv[RTE_DIM(arg) + 1] = {NULL};
	cpu_set_t cpus;
	size_t i;

	if (done)
		return;
	done = true;
	snprintf(arg[RTE_DIM(arg) - 1], sizeof(arg[0]), "%s", mb);
	for (i = 0; i < RTE_DIM(arg); i++)
		argv[i] = arg[i];
	/* The EAL binds this thread to a core; tests that run side by side must not share one. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(RTE_DIM(arg), argv) < 0) {
		fprintf(stderr, "the EAL does not start: %s\n", rte_strerror(rte_errno));
		exit(1);
	}
	sched_setaffinity(0, sizeof(cpus), &cpus);
}
