/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/pick.h
 * WEFT_PORTS: which of a host's devices this process takes, before the EAL starts.
 *
 * Each pattern stands for one device that no other process has. It is claimed (port/claim_dev.h)
 * until the process ends or its EAL does not start, and of all that match the EAL is given this one
 * alone. So the processes of a host may have the same environment, and get a port each.
 *
 * Candidates are devices among the EAL's words (--vdev, -a); where no -a is among them, PCI network
 * devices, too, whose driver lets DPDK have them. Those that are near to the processors which the
 * process may run on come first. Processes of one job begin at different ones, by their local rank,
 * so that they do not all request the first.
 *
 * Needs libc only, so that programs can compile it in.
 */
#ifndef WEFT_PICK_H
#define WEFT_PICK_H

#include <stdbool.h>
#include <stddef.h>

#include "port/claim_dev.h"

/** What a launcher says; -1 = nothing. */
struct weft_local {
	long rank; /**< number of this process among those of the job on this host */
	long size; /**< how many these are */
};

/** From the variables of Open MPI, Hydra, MVAPICH, PALS, Flux and Slurm. */
void weft_local_find(struct weft_local *local);

struct weft_pick {
	const char *ports; /**< WEFT_PORTS: patterns as a shell has them, separated by ';' */
	const char *sys;   /**< "/sys" */
	struct weft_local local;
};

/**
 * Take devices, and name them to the EAL.
 *
 * @param count, words  of the EAL, without a program name
 * @param[out] out      words with these devices alone of those that match; one free() frees it
 * @param[out] note     what was taken, for the log
 * @param[out] why      on error one sentence
 * @return number of words; -ENODEV: nothing matches; -EBUSY: all that match have a process; -EINVAL
 * or -ENOMEM
 */
int weft_pick(const struct weft_pick *p, int count, char *const *words, char ***out, char *note,
	      size_t note_len, char *why, size_t why_len);

/** What was taken is nobody's again: the EAL did not start. */
void weft_pick_release(void);

/* ---- port/pick_find.c ----------------------------------------------------------------------- */

#define WEFT_PICK_MAX 512

struct weft_candidate {
	char name[64];
	const char *args; /**< of --vdev */
	bool vdev;
	bool near;
	bool matches;        /**< a pattern */
	bool taken;          /**< by us */
	int word, num_words; /**< where it stands among the EAL's; num_words 0 = nowhere */
};

/** @return how many, at most #WEFT_PICK_MAX, in an order that all processes find; or -ENOMEM */
int weft_candidates(const char *sys, int count, char *const *words, struct weft_candidate **list);

#endif /* WEFT_PICK_H */
