/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program of 2 to 16 ranks, each kind of communication with its answers compared: mpi_ranks
 * coll|p2p|threads|rma|compute|leave|die|die-early|unexpectedN|exchangeSECONDS. "N errors" is its
 * last line; rank 0 prints it.
 */

#include <link.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi_ranks.h"

#define LONG (1 << 20)

int rank, ranks;
static int errors;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void expect(long is, long want, const char *what, int line)
{
	if (is == want)
		return;
	pthread_mutex_lock(&lock);
	if (errors++ < 10)
		fprintf(stderr, "rank %d, line %d: %s is %ld, not %ld\n", rank, line, what, is,
			want);
	pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ collectives */

static void one_to_all(int count)
{
	int *buf = malloc(sizeof(int) * (size_t)count * RANKS_MAX);
	int *part = malloc(sizeof(int) * (size_t)count);

	for (int root = 0; root < ranks; root++) {
		for (int i = 0; i < count; i++)
			buf[i] = rank == root ? root * 1000 + i : -1;
		MPI_Bcast(buf, count, MPI_INT, root, MPI_COMM_WORLD);
		EXPECT(buf[0], root * 1000);
		EXPECT(buf[count - 1], root * 1000 + count - 1);
		for (int i = 0; i < count * ranks; i++)
			buf[i] = i;
		MPI_Scatter(buf, count, MPI_INT, part, count, MPI_INT, root, MPI_COMM_WORLD);
		EXPECT(part[0], rank * count);
		EXPECT(part[count - 1], rank * count + count - 1);
		memset(buf, 0, sizeof(int) * (size_t)(count * ranks));
		MPI_Gather(part, count, MPI_INT, buf, count, MPI_INT, root, MPI_COMM_WORLD);
		for (int i = 0; rank == root && i < count * ranks; i++)
			EXPECT(buf[i], i);
	}
	free(buf);
	free(part);
}

static void all_to_all(int count)
{
	int *out = malloc(sizeof(int) * (size_t)count * RANKS_MAX);
	int *in = malloc(sizeof(int) * (size_t)count * RANKS_MAX);
	int counts[RANKS_MAX], places[RANKS_MAX];

	for (int i = 0; i < ranks; i++) {
		counts[i] = count;
		places[i] = i * count;
		for (int k = 0; k < count; k++)
			out[i * count + k] = rank * 100 + i;
	}
	MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks * count; i++)
		EXPECT(in[i], i / count * 100 + rank);
	memset(in, 0, sizeof(int) * (size_t)(ranks * count));
	MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks * count; i++)
		EXPECT(in[i], i / count * 100 + rank);
	MPI_Allgather(&out[rank * count], count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks * count; i++)
		EXPECT(in[i], i / count * 101);
	memset(in, 0, sizeof(int) * (size_t)(ranks * count));
	MPI_Allgatherv(&out[rank * count], count, MPI_INT, in, counts, places, MPI_INT,
		       MPI_COMM_WORLD);
	for (int i = 0; i < ranks * count; i++)
		EXPECT(in[i], i / count * 101);
	free(out);
	free(in);
}

static void reductions(void)
{
	int counts[RANKS_MAX], in[RANKS_MAX], out = -1, sum = ranks * (ranks - 1) / 2;
	double d = rank + 0.5, all = 0;
	MPI_Request req;

	MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(out, sum);
	MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	EXPECT(out, ranks - 1);
	MPI_Reduce(&d, &all, 1, MPI_DOUBLE, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
	if (rank == ranks - 1)
		EXPECT(all * 2, 2 * sum + ranks);
	MPI_Scan(&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(out, rank * (rank + 1) / 2);
	MPI_Exscan(&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank > 0)
		EXPECT(out, rank * (rank - 1) / 2);
	for (int i = 0; i < ranks; i++) {
		counts[i] = 1;
		in[i] = rank + i;
	}
	MPI_Reduce_scatter(in, &out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(out, sum + ranks * rank);
	MPI_Iallreduce(&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	EXPECT(out, sum);
	MPI_Ibarrier(MPI_COMM_WORLD, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void collectives(void)
{
	static const int counts[] = {1, 100, 5000};
	MPI_Comm half;
	int out;

	for (int i = 0; i < 3; i++) {
		one_to_all(counts[i]);
		all_to_all(counts[i]);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	reductions();
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_MIN, half);
	EXPECT(out, rank % 2);
	MPI_Comm_free(&half);
}

/* Byte k of what one rank has for another: it differs between places, and between pairs. */
static unsigned char byte_for(int from, int to, int k, int round)
{
	return (unsigned char)((unsigned)(k + 1) * 2654435761u >> 24 ^
			       (unsigned)(from * RANKS_MAX + to + round * 7));
}

/* Each rank has a block for each other one, from a byte to several frames. All are compared. */
static void blocks_to_all(void)
{
	static const int lengths[] = {1, 8, 1000, 8192, 65537};
	size_t most = (size_t)ranks * 65537;
	unsigned char *out = malloc(most), *in = malloc(most);
	int wrong;

	for (int round = 0; round < 15; round++) {
		int length = lengths[round % 5];

		for (int i = 0; i < ranks * length; i++)
			out[i] = byte_for(rank, i / length, i % length, round);
		memset(in, 0xee, most);
		MPI_Alltoall(out, length, MPI_BYTE, in, length, MPI_BYTE, MPI_COMM_WORLD);
		wrong = 0;
		for (int i = 0; i < ranks * length; i++)
			wrong += in[i] != byte_for(i / length, rank, i % length, round);
		EXPECT(wrong, 0);
	}
	free(out);
	free(in);
}

/* ------------------------------------------------------------------ from one to another */

static void ring(int length)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	char *out = malloc((size_t)length + 1), *in = malloc((size_t)length + 1);
	MPI_Request req[2];

	memset(out, rank + 1, (size_t)length + 1);
	memset(in, 0, (size_t)length + 1);
	MPI_Irecv(in, length, MPI_CHAR, left, 5, MPI_COMM_WORLD, &req[0]);
	MPI_Issend(out, length, MPI_CHAR, right, 5, MPI_COMM_WORLD, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < length; i++)
		if (in[i] != left + 1)
			EXPECT(in[i], left + 1);
	EXPECT(in[length], 0);
	MPI_Sendrecv(out, length, MPI_CHAR, left, 6, in, length, MPI_CHAR, right, 6, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (int i = 0; i < length; i++)
		if (in[i] != right + 1)
			EXPECT(in[i], right + 1);
	free(out);
	free(in);
}

/* A synchronous send ends when its receive is there, long or short, from one source or any. */
static void synchronous(void)
{
	char *buf = calloc(1, LONG);
	MPI_Status status;

	for (int i = 0; i < 6; i++) {
		int length = i % 2 ? LONG : 8, tag = 20 + i;

		if (rank == 0) {
			for (int peer = 1; peer < ranks; peer++) {
				MPI_Recv(buf, length, MPI_CHAR, i < 3 ? MPI_ANY_SOURCE : peer, tag,
					 MPI_COMM_WORLD, &status);
				EXPECT(buf[length - 1], status.MPI_SOURCE);
			}
		} else {
			buf[length - 1] = (char)rank;
			MPI_Ssend(buf, length, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	free(buf);
}

static void probes(void)
{
	int buf[4] = {rank, 1, 2, 3}, count;
	MPI_Message message;
	MPI_Status status;

	if (rank > 0) {
		MPI_Send(buf, 4, MPI_INT, 0, 30 + rank, MPI_COMM_WORLD);
		MPI_Send(buf, 3, MPI_INT, 0, 50, MPI_COMM_WORLD);
		return;
	}
	for (int i = 1; i < ranks; i++) {
		MPI_Probe(i, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		EXPECT(status.MPI_TAG, 30 + i);
		MPI_Get_count(&status, MPI_INT, &count);
		EXPECT(count, 4);
		MPI_Recv(buf, 4, MPI_INT, i, 30 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT(buf[0], i);
	}
	for (int i = 1; i < ranks; i++) {
		MPI_Mprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &message, &status);
		MPI_Mrecv(buf, 3, MPI_INT, &message, MPI_STATUS_IGNORE);
		EXPECT(buf[0], status.MPI_SOURCE);
	}
}

/* A receive that nothing will come for; one that is too short. */
static void receives_that_fail(void)
{
	int flag = 0, buf[8] = {0}, class = 0, rc;
	MPI_Request req;
	MPI_Status status;

	MPI_Irecv(buf, 8, MPI_INT, 0, 999, MPI_COMM_WORLD, &req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &status);
	MPI_Test_cancelled(&status, &flag);
	EXPECT(flag, 1);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank == 0) {
		MPI_Send(buf, 8, MPI_INT, 1, 60, MPI_COMM_WORLD);
	} else if (rank == 1) {
		rc = MPI_Recv(buf, 4, MPI_INT, 0, 60, MPI_COMM_WORLD, &status);
		MPI_Error_class(rc, &class);
		EXPECT(class, MPI_ERR_TRUNCATE);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void from_many(void)
{
	enum { EACH = 500 };
	int value, seen[RANKS_MAX] = {0};
	MPI_Status status;

	if (rank > 0) {
		for (int i = 0; i < EACH; i++)
			MPI_Send(&i, 1, MPI_INT, 0, 70, MPI_COMM_WORLD);
		return;
	}
	for (int i = 0; i < EACH * (ranks - 1); i++) {
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 70, MPI_COMM_WORLD, &status);
		EXPECT(value, seen[status.MPI_SOURCE]++);
	}
}

/*
 * All ranks but the last start n sends that the last does not receive yet, and one that it does:
 * that one completes, by the rule of progress. Short messages and long ones in turn.
 */
static void unexpected(int n)
{
	MPI_Request *request = malloc(sizeof(*request) * (size_t)(n + 1));
	static int big[20000], in[20000];
	int *value = malloc(sizeof(*value) * (size_t)n);

	for (int i = 0; i < n && rank != ranks - 1; i++) {
		value[i] = i;
		MPI_Isend(i % 100 ? &value[i] : big, i % 100 ? 1 : 20000, MPI_INT, ranks - 1, 1,
			  MPI_COMM_WORLD, &request[i]);
	}
	if (rank != ranks - 1) {
		MPI_Isend(&rank, 1, MPI_INT, ranks - 1, 2, MPI_COMM_WORLD, &request[n]);
		MPI_Waitall(n + 1, request, MPI_STATUSES_IGNORE);
	}
	for (int from = 0; from < ranks - 1 && rank == ranks - 1; from++) {
		MPI_Recv(in, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT(in[0], from);
	}
	for (int from = 0; from < ranks - 1 && rank == ranks - 1; from++) {
		for (int i = 0; i < n; i++) {
			MPI_Recv(in, 20000, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			EXPECT(in[0], i % 100 ? i : 0);
		}
	}
	free(request);
	free(value);
}

static void point_to_point(void)
{
	static const int lengths[] = {0, 1, 64, 1000, 5000, 40000, LONG};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		ring(lengths[i]);
	synchronous();
	probes();
	receives_that_fail();
	from_many();
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ------------------------------------------------------------------ threads */

static void *thread_main(void *arg)
{
	int me = *(int *)arg, right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	int *out = malloc(sizeof(int) * 20000), *in = malloc(sizeof(int) * 20000), length;
	MPI_Request req;

	for (int i = 0; i < 100; i++) {
		length = i % 10 == 9 ? 20000 : i + 1;
		out[0] = out[length - 1] = rank * 1000 + i;
		MPI_Irecv(in, length, MPI_INT, left, 100 + me, MPI_COMM_WORLD, &req);
		MPI_Send(out, length, MPI_INT, right, 100 + me, MPI_COMM_WORLD);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		EXPECT(in[0], left * 1000 + i);
		EXPECT(in[length - 1], left * 1000 + i);
	}
	free(out);
	free(in);
	return NULL;
}

static void threads(int provided)
{
	pthread_t thread[3];
	int number[3];

	EXPECT(provided, MPI_THREAD_MULTIPLE);
	for (int i = 0; i < 3; i++) {
		number[i] = i;
		pthread_create(&thread[i], NULL, thread_main, &number[i]);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ------------------------------------------------------------------ ranks that compute or die */

static void compute(void)
{
	time_t end = time(NULL) + 4;
	volatile double x = 1;
	int value = 0;

	if (rank == 1)
		while (time(NULL) < end)
			x = x * 1.0000001;
	MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	EXPECT(value, ranks - 1);
	ring(LONG);
}

/*
 * A rank that sends a burst and then calls nothing of MPI: the other half of the ranks, on another
 * host, has the messages long before the rank's next call, also where frames are lost.
 */
static void leave(void)
{
	enum { BURST = 40, REST = 4 };
	int other = (rank + ranks / 2) % ranks;
	double start;
	long value = 0;

	ring(8); /* connected */
	MPI_Sendrecv(&value, 1, MPI_LONG, other, 1, &value, 1, MPI_LONG, other, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (long i = 0; i < BURST; i++) {
		if (rank < other) {
			MPI_Send(&i, 1, MPI_LONG, other, 2, MPI_COMM_WORLD);
			continue;
		}
		MPI_Recv(&value, 1, MPI_LONG, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT(value, i);
	}
	if (rank > other)
		EXPECT(MPI_Wtime() - start < REST / 2, 1);
	else
		sleep(REST);
	MPI_Barrier(MPI_COMM_WORLD);
}

/*
 * Messages of all lengths between all neighbours until the time is over, for faults from outside.
 * Rank 0 decides when it is over, and reports the first round.
 */
static void exchange(int seconds)
{
	static const int lengths[] = {8, 3000, 40000, LONG, 200};
	time_t end = time(NULL) + seconds;
	int more = 1, round = 0;

	while (more) {
		ring(lengths[round % 5]);
		all_to_all(round % 2 ? 3 : 2000);
		more = time(NULL) < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (rank == 0 && round == 0) {
			printf("the first round is over\n");
			fflush(stdout);
		}
		round++;
	}
	if (rank == 0)
		printf("%d rounds\n", round);
}

static void die(void)
{
	char c;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == ranks - 1) {
		raise(SIGKILL);
	}
	MPI_Recv(&c, 1, MPI_CHAR, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int see_provider(struct dl_phdr_info *info, size_t size, void *arg)
{
	return strstr(info->dlpi_name, "/libweft-fi.so") != NULL;
}

/* Ends the process inside MPI_Init(), when libfabric has loaded the provider. */
static void *kill_early(void *arg)
{
	while (!dl_iterate_phdr(see_provider, NULL))
		usleep(1000);
	raise(SIGKILL);
	return NULL;
}

static void die_early(void)
{
	const char *number = getenv("OMPI_COMM_WORLD_RANK");
	pthread_t thread;

	if (number && strcmp(number, "1") == 0)
		pthread_create(&thread, NULL, kill_early, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "p2p";
	int wanted, provided, all = 0;

	wanted = strcmp(what, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
	if (strcmp(what, "die-early") == 0)
		die_early();
	MPI_Init_thread(&argc, &argv, wanted, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (strncmp(what, "unexpected", 10) == 0)
		unexpected(atoi(what + 10));
	else if (strncmp(what, "exchange", 8) == 0)
		exchange(atoi(what + 8));
	else if (strcmp(what, "coll") == 0)
		collectives();
	else if (strcmp(what, "alltoall") == 0)
		blocks_to_all();
	else if (strcmp(what, "threads") == 0)
		threads(provided);
	else if (strcmp(what, "rma") == 0)
		windows();
	else if (strcmp(what, "compute") == 0)
		compute();
	else if (strcmp(what, "leave") == 0)
		leave();
	else if (strcmp(what, "die") == 0)
		die();
	else
		point_to_point();
	MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0)
		printf("%s: %d ranks, %d errors\n", what, ranks, all);
	return all != 0;
}
