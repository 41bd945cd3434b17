/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two MPI ranks take, whatever carries them; for devtools/mpi-soak.sh. One line on standard
 * output: medians.
 *
 *	mpi_measure lat BYTES      half a round trip, us
 *	mpi_measure overlap BYTES  part of an MPI_Isend() that is hidden behind computing as long
 *	mpi_measure start 0        MPI_Init(), ms, and the memory of a rank, MB
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES_MAX 20000

static int rank;
static char *buf;
static double samples[SAMPLES_MAX];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(int n)
{
	qsort(samples, (size_t)n, sizeof(samples[0]), compare);
	return samples[n / 2];
}

static double latency(int length)
{
	int n = length > 65536 ? 200 : SAMPLES_MAX;

	for (int i = -n / 10; i < n; i++) {
		double start = now_us();

		if (rank == 0)
			MPI_Send(buf, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(buf, length, MPI_CHAR, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(buf, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		if (i >= 0)
			samples[i] = (now_us() - start) / 2;
	}
	return median(n);
}

/* Without a call of MPI's. */
static void compute(double us)
{
	double end = now_us() + us;

	while (now_us() < end)
		;
}

/* A send, with so much computing before it is waited for. The receiver waits all the time. */
static double send_and_compute(int length, double us)
{
	MPI_Request req;
	double start;
	char ack;

	for (int i = 0; i < 60; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		start = now_us();
		if (rank == 0) {
			MPI_Isend(buf, length, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &req);
			compute(us);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			MPI_Recv(&ack, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buf, length, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
		}
		samples[i] = now_us() - start;
	}
	return median(60);
}

static double overlap(int length)
{
	double alone = send_and_compute(length, 0);
	double computing = alone;
	double both;

	MPI_Bcast(&computing, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	both = send_and_compute(length, computing);
	return (alone + computing - both) / alone;
}

static long memory_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "lat";
	int length = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 8, ranks;
	double start = now_us(), init, value;

	MPI_Init(&argc, &argv);
	init = (now_us() - start) / 1000;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	buf = calloc(1, (size_t)length + 1);
	if (ranks != 2 || !buf) {
		fprintf(stderr, "mpi_measure needs two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (strcmp(what, "start") == 0) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0)
			printf("%.0f %.1f\n", init, (double)memory_kb() / 1024);
	} else {
		value = strcmp(what, "overlap") == 0 ? overlap(length) : latency(length);
		if (rank == 0)
			printf("%.2f\n", value);
	}
	MPI_Finalize();
	free(buf);
	return 0;
}
