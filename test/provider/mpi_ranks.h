/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mpi_ranks.h
 * Parts of the MPI program mpi_ranks.
 */
#ifndef MPI_RANKS_H
#define MPI_RANKS_H

#define RANKS_MAX 16

extern int rank, ranks;

#define EXPECT(is, want) expect((long)(is), (long)(want), #is, __LINE__)

/** Any thread. */
void expect(long is, long want, const char *what, int line);

/** One-sided communication, every call of it (mpi_windows.c). */
void windows(void);

#endif /* MPI_RANKS_H */
