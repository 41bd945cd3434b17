/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file job.h
 * What the launcher of a job reports in the environment: Open MPI's and PRRTE's mpirun, Hydra,
 * Slurm.
 */
#ifndef WFI_JOB_H
#define WFI_JOB_H

#include <stdbool.h>

/** Also of a process without a job. */
bool wfi_job_is_first_rank(void);

/** All ranks of the job are on this host, and it has several. */
bool wfi_job_on_one_host(void);

/** @return number of ranks on this host, this one included; 0: no launcher reports it */
long wfi_job_local_ranks(void);

/**
 * More ranks are on this host than CPUs are there for them: those of the launcher's affinity mask,
 * since a launcher binds each of its ranks to a part of its own CPUs.
 */
bool wfi_job_is_crowded(void);

#endif /* WFI_JOB_H */
