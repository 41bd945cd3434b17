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
 * Does the launcher report that all ranks of the job are on this host? False for a single rank of
 * mpirun or Hydra, which may spawn others elsewhere. Of Slurm's srun: step and job have one node.
 */
bool wfi_job_on_one_host(void);

/** @return number of ranks on this host, this one included; 0: no launcher reports it */
long wfi_job_local_ranks(void);

/**
 * Has this host more ranks than CPUs for them? The CPUs are those of the launcher's affinity mask,
 * since a launcher binds each of its ranks to a part of its own CPUs; if this process cannot find
 * the launcher, all CPUs of the host that are online. There are at most those that Slurm reports.
 */
bool wfi_job_is_oversubscribed(void);

#endif /* WFI_JOB_H */
