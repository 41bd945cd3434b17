/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: on memory of MPI's and on our own, every kind of synchronisation and of operation, all
 * answers compared.
 */

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_ranks.h"

/* Of a rank's window, in ints: what is where. */
enum { COUNTER, CAS, EXCLUSIVE, SUMS = 16, DOUBLES = 64, ARRAY = 256, LONG = 100000 };
#define SIZE (ARRAY + LONG)
#define ROUNDS 25

static int left, right;

static int pattern(int from, int i)
{
	return from * 1000003 + i * 7 + 1;
}

/* Neighbours put, and get what they have put, of every length. */
static void fences(MPI_Win win, int *base)
{
	static const int lengths[] = {1, 3, 500, 20000, LONG};
	int *out = malloc(LONG * sizeof(int)), *in = malloc(LONG * sizeof(int));

	for (int k = 0; k < 5; k++) {
		int n = lengths[k];

		for (int i = 0; i < n; i++)
			out[i] = pattern(rank + k, i);
		MPI_Win_fence(0, win);
		MPI_Put(out, n, MPI_INT, right, ARRAY, n, MPI_INT, win);
		MPI_Win_fence(0, win);
		for (int i = 0; i < n; i++)
			EXPECT(base[ARRAY + i], pattern(left + k, i));
		memset(in, 0, (size_t)n * sizeof(int));
		MPI_Get(in, n, MPI_INT, right, ARRAY, n, MPI_INT, win);
		MPI_Win_fence(0, win);
		for (int i = 0; i < n; i++)
			EXPECT(in[i], pattern(rank + k, i));
	}
	free(out);
	free(in);
}

/* Of all ranks' factors. */
static int product(int i)
{
	int all = 1;

	for (int k = 0; k < ranks; k++)
		all *= k + i + 1;
	return all;
}

/*
 * Everyone on rank 0's arrays at once. No MPI_MAX on integers: Open MPI 4.1 offers its btl ofi more
 * operations than that knows, and aborts.
 */
static void accumulates(MPI_Win win, int *base)
{
	int ints[8], factors[8], old[8];
	double doubles[8], *all = (double *)&base[DOUBLES];

	for (int i = 0; i < 8; i++) {
		base[SUMS + i] = 0;
		base[SUMS + 8 + i] = 1;
		all[i] = 0.5;
		ints[i] = rank + i;
		factors[i] = rank + i + 1;
		doubles[i] = 0.25 * (rank + 1) + i;
	}
	MPI_Win_fence(0, win);
	MPI_Accumulate(ints, 8, MPI_INT, 0, SUMS, 8, MPI_INT, MPI_SUM, win);
	MPI_Accumulate(factors, 8, MPI_INT, 0, SUMS + 8, 8, MPI_INT, MPI_PROD, win);
	MPI_Accumulate(doubles, 8, MPI_DOUBLE, 0, DOUBLES, 8, MPI_DOUBLE, MPI_SUM, win);
	MPI_Win_fence(0, win);
	MPI_Get_accumulate(NULL, 0, MPI_INT, old, 8, MPI_INT, 0, SUMS + 8, 8, MPI_INT, MPI_NO_OP,
			   win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < 8; i++) {
		EXPECT(old[i], product(i));
		if (rank != 0)
			continue;
		EXPECT(base[SUMS + i], ranks * (ranks - 1) / 2 + ranks * i);
		EXPECT(all[i] * 8, 4 + ranks * (ranks + 1) + 8 * ranks * i);
	}
}

/* Counters of rank 0's that all change: nothing is lost, and no value is seen twice. */
static void locks(MPI_Win win, int *base)
{
	int one = 1, zero = 0, old = -1, last = -1, value, me = rank + 1;

	if (rank == 0)
		base[COUNTER] = base[CAS] = base[EXCLUSIVE] = 0;
	MPI_Win_fence(0, win);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Fetch_and_op(&one, &old, MPI_INT, 0, COUNTER, MPI_SUM, win);
		MPI_Win_unlock(0, win);
		EXPECT(old > last && old < ranks * ROUNDS, 1);
		last = old;
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&value, 1, MPI_INT, 0, EXCLUSIVE, 1, MPI_INT, win);
		MPI_Win_flush(0, win);
		value++;
		MPI_Put(&value, 1, MPI_INT, 0, EXCLUSIVE, 1, MPI_INT, win);
		MPI_Win_unlock(0, win);
	}
	if (rank > 0) { /* one of them wins */
		MPI_Win_lock_all(0, win);
		MPI_Compare_and_swap(&me, &zero, &old, MPI_INT, 0, CAS, win);
		MPI_Win_flush(0, win);
		MPI_Get(&value, 1, MPI_INT, 0, CAS, 1, MPI_INT, win);
		MPI_Win_unlock_all(win);
		EXPECT(value, old ? old : me);
	}
	MPI_Win_fence(0, win);
	if (rank == 0) {
		EXPECT(base[COUNTER], ranks * ROUNDS);
		EXPECT(base[EXCLUSIVE], ranks * ROUNDS);
		EXPECT(base[CAS] > 1 && base[CAS] <= ranks, 1);
	}
}

/* The left neighbour's access while this rank exposes, and its own to the right. */
static void post_start(MPI_Win win, int *base)
{
	MPI_Group all, from, to;
	int value = 77 + rank, got = -1;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &left, &from);
	MPI_Group_incl(all, 1, &right, &to);
	for (int i = 0; i < 5; i++) {
		MPI_Win_post(from, 0, win);
		MPI_Win_start(to, 0, win);
		MPI_Put(&value, 1, MPI_INT, right, ARRAY + i, 1, MPI_INT, win);
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		EXPECT(base[ARRAY + i], 77 + left);
	}
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Get(&got, 1, MPI_INT, right, ARRAY + 4, 1, MPI_INT, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	EXPECT(got, 77 + rank);
	MPI_Group_free(&from);
	MPI_Group_free(&to);
	MPI_Group_free(&all);
}

static void all_of_them(MPI_Win win, int *base)
{
	fences(win, base);
	accumulates(win, base);
	locks(win, base);
	post_start(win, base);
	MPI_Barrier(MPI_COMM_WORLD);
}

void windows(void)
{
	int *base, *own = calloc(SIZE, sizeof(int));
	MPI_Win win;

	right = (rank + 1) % ranks;
	left = (rank + ranks - 1) % ranks;
	MPI_Win_allocate(SIZE * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
			 &win);
	memset(base, 0, SIZE * sizeof(int));
	all_of_them(win, base);
	MPI_Win_free(&win);
	MPI_Win_create(own, SIZE * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	all_of_them(win, own);
	MPI_Win_free(&win);
	free(own);
}
