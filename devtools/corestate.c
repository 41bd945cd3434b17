/* SPDX-License-Identifier: BSD-3-Clause
 *
 * corestate measures the time of a cache line from one core to another.
 *
 * On rented machines the hypervisor moves virtual cores: two of them share a cache now and don't a
 * second later, which changes every figure by a factor of three to five. A benchmark runs this
 * right before and after each trial and compares near with near and far with far. Here two threads,
 * pinned, pass one word back and forth (bounce.h).
 */

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounce.h"

static struct bounce shared;

static void pin(int core)
{
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	err = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (err) {
		fprintf(stderr, "corestate: can't run on core %d: %s\n", core, strerror(err));
		atomic_store(&shared.failed, 1);
	}
}

static void *echo(void *arg)
{
	pin(*(int *)arg);
	bounce_echo(&shared);
	return NULL;
}

static int parse_cores(const char *arg, int cores[2])
{
	char tail;

	if (sscanf(arg, "%d,%d%c", &cores[0], &cores[1], &tail) != 2)
		return -EINVAL;
	if (cores[0] < 0 || cores[1] < 0 || cores[0] >= CPU_SETSIZE || cores[1] >= CPU_SETSIZE)
		return -EINVAL;
	return cores[0] == cores[1] ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"cores", required_argument, NULL, 'c'},
		{"limit", required_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int cores[2] = {0, 1}, opt;
	double limit = 90, t;
	pthread_t thread;
	char *end;

	while ((opt = getopt_long(argc, argv, "c:l:h", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			if (parse_cores(optarg, cores)) {
				fprintf(stderr,
					"corestate: '%s' is not two different cores, as in 0,1\n",
					optarg);
				return 2;
			}
			break;
		case 'l':
			limit = strtod(optarg, &end);
			if (*end || end == optarg || limit <= 0) {
				fprintf(stderr, "corestate: '%s' is not a time in ns\n", optarg);
				return 2;
			}
			break;
		case 'h':
			printf("Usage: corestate [-c A,B] [-l NS]\n"
			       "Prints the one-way time of a cache line between two cores in ns, "
			       "and near or far.\n"
			       "  -c, --cores A,B  the two cores (0,1)\n"
			       "  -l, --limit NS   the time above which cores are far (90)\n");
			return 0;
		default:
			return 2;
		}
	}
	if (pthread_create(&thread, NULL, echo, &cores[1])) {
		fprintf(stderr, "corestate: can't start a thread\n");
		return 1;
	}
	pin(cores[0]);
	t = bounce_time(&shared);
	pthread_join(thread, NULL);
	if (t < 0 || atomic_load(&shared.failed))
		return 1;
	printf("%.1f %s\n", t * 1e9, t * 1e9 <= limit ? "near" : "far");
	return 0;
}
