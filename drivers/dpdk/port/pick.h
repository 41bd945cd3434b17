/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/pick.h
 * Devices among the words of the EAL, before it starts: those that this process takes
 * (WEFT_PORTS), and memif servers.
 *
 * Each pattern selects one device that no other process has. The device is claimed (port/claim.h)
 * until the process ends or its EAL fails to start. Of all devices that match, the EAL gets only
 * this one. So the processes of a host may have the same environment, and get a port each.
 *
 * Candidates are the devices among the EAL's words (--vdev, -a). Without -a and --no-pci, PCI
 * network devices with a driver that DPDK can use are candidates, too. Devices near the processors
 * on which the process may run come first. Processes of one job begin at different devices, by
 * their local rank, so that they do not all request the first.
 *
 * Needs libc only, so that programs can compile it in.
 */
#ifndef WEFT_PICK_H
#define WEFT_PICK_H

#include <stdbool.h>
#include <stddef.h>

#include "port/claim.h"

/** Values from the launcher; -1 = unknown. */
struct weft_local {
	long rank; /**< number of this process among those of the job on this host */
	long size; /**< number of the job's processes on this host */
};

/** Read the environment variables of Open MPI, Hydra, MVAPICH, PALS, Flux and Slurm. */
void weft_local_find(struct weft_local *local);

struct weft_pick {
	const char *ports; /**< WEFT_PORTS: shell patterns, separated by ';' */
	const char *sys;   /**< "/sys" */
	struct weft_local local;
};

/**
 * Take devices, and name them in the EAL's words.
 * @param count, words  of the EAL, without a program name
 * @param[out] out      the words with only the taken devices of those that match; for one free()
 * @param[out] note     the devices taken, for the log
 * @param[out] why      a sentence on error
 * @return number of words; -ENODEV: nothing matches, or a device that matches is gone; -EBUSY: all
 *   that match have a process; -EINVAL: too many patterns; -ENOMEM
 */
int weft_pick(const struct weft_pick *p, int count, char *const *words, char ***out, char *note,
	      size_t note_len, char *why, size_t why_len);

void weft_pick_release(void);

/* ---- memif among the words ------------------------------------------------------------------- */

/* A killed memif server leaves a file that blocks the path. */

/**
 * Before the EAL starts: its words, with `socket-abstract=no` in each `--vdev=net_memif...` without
 * that key. With the PMD's default, an abstract name, each user of the network namespace can be the
 * peer, and the PMD trusts the offsets that a peer writes.
 * @return one block for free(); NULL: out of memory
 */
char **weft_memif_private_words(int count, char *const *words);

/**
 * Before the EAL starts: for each `--vdev=net_memif...,role=server,...,socket-abstract=no`, remove
 * the socket file if no process listens there any more. Two servers that start at the very same
 * time on one path can still conflict.
 * @return 0; -EADDRINUSE: a process listens there, or the file is no socket; a sentence in @p why
 */
int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len);

#endif /* WEFT_PICK_H */
