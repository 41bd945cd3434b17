/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The least time of shared memory on this machine: a ping-pong of 8 bytes between two processes,
 * in each direction through a ring of lines with one writer. Number, header and data share a line,
 * and either end copies them in and out. CSV as weft-perf -v prints it.
 *
 *	shm_floor CORE CORE ITERATIONS
 */

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES 512u
#define BYTES 16 /* a header and 8 bytes */

struct line {
	_Alignas(64) _Atomic uint64_t number;
	uint8_t data[56];
};

static void put(struct line *ring, uint64_t n, const void *data)
{
	struct line *line = &ring[n % LINES];

	memcpy(line->data, data, BYTES);
	/* Release: the data are visible before the number. */
	atomic_store_explicit(&line->number, n, memory_order_release);
}

static void take(struct line *ring, uint64_t n, void *data)
{
	struct line *line = &ring[n % LINES];

	/* Acquire: the data are read after the number. */
	while (atomic_load_explicit(&line->number, memory_order_acquire) != n)
		;
	memcpy(data, line->data, BYTES);
}

static void pin(const char *core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)atoi(core), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		perror("sched_setaffinity");
}

static void echo(struct line *rings, uint64_t num)
{
	uint8_t data[BYTES];

	for (uint64_t n = 1; n <= num; n++) {
		take(rings, n, data);
		put(rings + LINES, n, data);
	}
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* As weft-perf does, a clock read for each round trip. */
static void measure(struct line *rings, uint64_t num, double *us)
{
	double begin = now_us(), before = begin, after;
	uint8_t data[BYTES] = {1};

	for (uint64_t n = 1; n <= num; n++) {
		put(rings, n, data);
		take(rings + LINES, n, data);
		after = now_us();
		us[n - 1] = (after - before) / 2;
		before = after;
	}
	qsort(us, num, sizeof(*us), compare);
	printf("p50_lat,overall_lat\n%.4f,%.4f\n", us[num / 2], (before - begin) / 2 / (double)num);
}

int main(int argc, char **argv)
{
	uint64_t num = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	double *us = num > 0 ? calloc(num, sizeof(*us)) : NULL;
	struct line *rings;
	pid_t pid;

	if (!us) {
		fprintf(stderr, "usage: shm_floor CORE CORE ITERATIONS\n");
		return 2;
	}
	rings = mmap(NULL, 2 * LINES * sizeof(*rings), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rings == MAP_FAILED)
		return 1;
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(argv[1]);
		echo(rings, num);
		_exit(0);
	}
	pin(argv[2]);
	measure(rings, num, us);
	waitpid(pid, NULL, 0);
	free(us);
	return 0;
}
