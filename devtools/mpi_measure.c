/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures MPI ranks over any transport; for devtools/bench_mpi.py.
 *
 *	mpi_measure WHAT[:BYTES]...
 *
 *	lat:N      half a round trip between two ranks, us
 *	bw:N       a stream from one to the other, 64 messages at a time (8 of 1 MiB or more), MiB/s
 *	bibw:N     two such streams at once, in opposite directions, MiB/s of both
 *	rate:N     the first stream, millions of messages a second
 *	allreduce:N  one MPI_Allreduce() of N bytes, us: two ranks send to each other at once
 *	alltoall:N  one MPI_Alltoall() of N bytes for each rank, us
 *	overlap:N  part of an MPI_Isend() that a computation of the same duration hides
 *	rss, pss, private  KiB of a rank that has exchanged 8 bytes with every other; the mean
 *	init, finalize     ms; of MPI_Init() the mean, of MPI_Finalize() the first rank's
 *
 * Prints a line for each, a median of samples: the figure, and the time of a cache line between the
 * two ranks' cores right before and right after, ns (bounce.h).
 */

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bounce.h"

#define SAMPLES_MAX 20000
#define BUDGET_US 100000 /* time for the samples of one figure */
#define WINDOW 64

static int rank, ranks;
static char *buf;
static struct bounce *shared; /* memory of the first two ranks, NULL if they have none */
static double samples[SAMPLES_MAX];

static double now_us(void)
{
	return bounce_seconds() * 1e6;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* ---- one sample; of the first two ranks ---- */

/* Sixteen short messages per sample: reading the clock takes a part of a round trip. */
static double lat(int length)
{
	int n = length > 4096 ? 1 : 16;
	double start = now_us();

	for (int i = 0; i < n; i++) {
		if (rank == 0)
			MPI_Send(buf, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(buf, length, MPI_CHAR, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(buf, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	}
	return (now_us() - start) / n / 2;
}

static double rate(int length)
{
	MPI_Request req[WINDOW];
	int n = length < 1 << 20 ? WINDOW : 8;
	double start = now_us();
	char ack = 0;

	for (int i = 0; i < n; i++)
		if (rank == 0)
			MPI_Isend(buf, length, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Irecv(buf, length, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &req[i]);
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	if (rank == 1)
		MPI_Send(&ack, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
	else
		MPI_Recv(&ack, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return n / (now_us() - start);
}

static double bw(int length)
{
	return rate(length) * 1e6 * length / (1 << 20);
}

static double bibw(int length)
{
	MPI_Request req[2 * WINDOW];
	int n = length < 1 << 20 ? WINDOW : 8;
	double start = now_us();
	char ack = 0;

	for (int i = 0; i < n; i++)
		MPI_Irecv(buf + length, length, MPI_CHAR, !rank, 2, MPI_COMM_WORLD, &req[i]);
	for (int i = 0; i < n; i++)
		MPI_Isend(buf, length, MPI_CHAR, !rank, 2, MPI_COMM_WORLD, &req[n + i]);
	MPI_Waitall(2 * n, req, MPI_STATUSES_IGNORE);
	/* The peer has all of this rank's messages, too. */
	MPI_Sendrecv_replace(&ack, 1, MPI_CHAR, !rank, 3, !rank, 3, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	return 2.0 * n * length / (now_us() - start) * 1e6 / (1 << 20);
}

/* Sums doubles, with a barrier before each call: without one, a fast rank overlaps two calls. */
static double allreduce(int length)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = now_us();
	MPI_Allreduce(MPI_IN_PLACE, buf, length / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return now_us() - start;
}

static double alltoall(int length)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = now_us();
	MPI_Alltoall(buf, length, MPI_CHAR, buf + 2 * (size_t)length, length, MPI_CHAR,
		     MPI_COMM_WORLD);
	return now_us() - start;
}

/* Compute for a time, without a call of MPI's. */
static void compute(double us)
{
	double end = now_us() + us;

	while (now_us() < end)
		;
}

/* A send, with `computing` microseconds before the wait for it. The receiver always waits. */
static double computing;
static double send_and_compute(int length)
{
	MPI_Request req;
	char ack = 0;
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = now_us();
	if (rank == 0) {
		MPI_Isend(buf, length, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &req);
		compute(computing);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Recv(&ack, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buf, length, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&ack, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
	}
	return now_us() - start;
}

/* ---- figures ---- */

/* The median of as many samples as the time allows. */
static double median(double (*sample)(int), int length)
{
	double start = 0;
	int n;

	for (int i = 0; i < 6; i++) {
		if (i == 1) /* the first one may connect */
			start = now_us();
		sample(length);
	}
	n = (int)(BUDGET_US / ((now_us() - start) / 5 + 1));
	n = n < 5 ? 5 : n > SAMPLES_MAX ? SAMPLES_MAX : n;
	MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		samples[i] = sample(length);
	qsort(samples, (size_t)n, sizeof(samples[0]), compare);
	return samples[n / 2];
}

static double overlap(int length)
{
	double alone, both;

	computing = 0;
	alone = computing = median(send_and_compute, length);
	MPI_Bcast(&computing, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	both = median(send_and_compute, length);
	return (alone + computing - both) / alone;
}

/* The sum of the lines of /proc/self/smaps_rollup that begin with @p field, KiB. */
static double memory_kb(const char *field)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	double kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			kb += strtod(strchr(line, ':') + 1, NULL);
	if (f)
		fclose(f);
	return kb;
}

static double mean(double value)
{
	double sum = 0;

	MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum / ranks;
}

static void meet_all(void)
{
	for (int i = 1; i < ranks; i++)
		MPI_Sendrecv(buf, 8, MPI_CHAR, (rank + i) % ranks, 4, buf + 8, 8, MPI_CHAR,
			     (rank + ranks - i) % ranks, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- the state of the cores ---- */

/* The first rank makes the memory, the second one opens it, which fails on another host. */
static void share(void)
{
	int where[2] = {(int)getpid(), memfd_create("mpi_measure", MFD_CLOEXEC)}, fd = where[1];
	char path[64];
	void *p = MAP_FAILED;
	int ok;

	MPI_Bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", where[0], where[1]);
	if (rank == 1)
		fd = open(path, O_RDWR | O_CLOEXEC);
	if (rank < 2 && fd >= 0 && ftruncate(fd, sizeof(*shared)) == 0)
		p = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ok = rank >= 2 || p != MAP_FAILED;
	MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	shared = ok && rank < 2 ? p : NULL;
}

static double line_ns(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!shared)
		return 0;
	return rank ? bounce_echo(shared) : bounce_time(shared) * 1e9;
}

/* ---- what is measured ---- */

static const struct {
	const char *name;
	double (*sample)(int);
	double (*figure)(int);
} kinds[] = {
	{"lat", lat, NULL},         {"bw", bw, NULL},
	{"rate", rate, NULL},       {"allreduce", allreduce, NULL},
	{"bibw", bibw, NULL},       {"alltoall", alltoall, NULL},
	{"overlap", NULL, overlap},
};

static int measure(const char *what, int length, double *value)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(what, kinds[i].name) != 0)
			continue;
		if (ranks != 2 || length < 1)
			return -1;
		*value =
			kinds[i].sample ? median(kinds[i].sample, length) : kinds[i].figure(length);
		return 0;
	}
	return -1;
}

static int memory(const char *what, double *value)
{
	static const struct {
		const char *name, *field;
	} fields[] = {{"rss", "Rss:"}, {"pss", "Pss:"}, {"private", "Private_"}};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strcmp(what, fields[i].name) == 0) {
			meet_all();
			*value = mean(memory_kb(fields[i].field));
			return 0;
		}
	}
	return -1;
}

static void print(const char *what, double value, double before, double after)
{
	if (rank == 0)
		printf("%s,%.4f,%.1f,%.1f\n", what, value, before, after);
}

static void one(const char *arg)
{
	const char *colon = strchr(arg, ':');
	int length = colon ? (int)strtol(colon + 1, NULL, 10) : 8;
	double before, value = 0;
	char what[16];
	size_t size;

	snprintf(what, sizeof(what), "%.*s", colon ? (int)(colon - arg) : 15, arg);
	if (memory(what, &value) == 0) {
		print(arg, value, 0, 0);
		return;
	}
	/* Sent and received, by two ranks to both. */
	size = 4 * (size_t)(length > 16 ? length : 16);
	buf = realloc(buf, size);
	if (!buf)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(buf, 1, size);
	before = line_ns();
	if (measure(what, length, &value)) {
		fprintf(stderr, "mpi_measure: '%s' with %d ranks is not understood\n", arg, ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	print(arg, value, before, line_ns());
}

int main(int argc, char **argv)
{
	double start = now_us();

	MPI_Init(&argc, &argv);
	start = now_us() - start;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 0)
		puts("what,value,before,after");
	print("init", mean(start / 1000), 0, 0);
	buf = calloc(1, 16);
	if (!buf)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (ranks > 1)
		share();
	for (int i = 1; i < argc; i++)
		one(argv[i]);
	start = now_us();
	MPI_Finalize();
	print("finalize", (now_us() - start) / 1000, 0, 0);
	free(buf);
	return 0;
}
