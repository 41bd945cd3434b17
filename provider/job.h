/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/job.h
 * Properties of the job that the launcher reports in the environment: Open MPI's and PRRTE's
 * mpirun, Hydra, Slurm.
 */
#ifndef WFI_JOB_H
#define WFI_JOB_H

#include <stdbool.h>

/** Is this process the first rank of its job? True also for a process without a job. */
bool wfi_job_is_first_rank(void);

/**
 * Are all ranks of the job on this host? False for a single rank, which may spawn others elsewhere,
 * unless Slurm gave the job one node.
 */
bool wfi_job_on_one_host(void);

/** @return number of ranks on this host, this one included; 0: no launcher reports it */
long wfi_job_local_ranks(void);

/**
 * Has this host more ranks than CPUs for them? The CPUs are those of the launcher's affinity mask,
 * since a launcher binds each of its ranks to a part of its own CPUs; at most those that Slurm
 * reports.
 */
bool wfi_job_is_oversubscribed(void);

#endif /* WFI_JOB_H */
