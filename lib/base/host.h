/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/host.h
 * The real machine: its clock and randomness, the copy rate of a CPU, the memory that this process
 * may use. Not installed: drivers get the platform when an interface is opened.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <stddef.h>

#include "base/platform.h"

/* ------------------------------------------------------------------ clock and randomness */

/**
 * now(): the CPU's counter if its rate is constant and known, else clock_gettime(). On x86 the rate
 * is known 10 ms after the first call. random(): getrandom(). host_id(): a hash of the kernel's
 * boot id; 0 = the id cannot be read.
 */
extern const struct weft_platform weft_platform_host;

/* ------------------------------------------------------------------ copy rate */

/*
 * Copy rate of a CPU of this machine, for the model (proto/model.h).
 */

/** Used where nothing can be measured: the simulator's clock does not advance during a copy. */
#define WEFT_BCOPY_BW_DEFAULT 7e9
/**
 * Lower bound of the measured rate. A lower result is taken as wrong: other load has disturbed the
 * whole measurement, or the CPU is emulated. The other costs of the model are fixed, so zero copy
 * would then seem worthwhile for a few bytes.
 */
#define WEFT_BCOPY_BW_LEAST 5e8

/**
 * Bytes per second of memcpy() between buffers that the nearest cache does not hold. The first call
 * of the process measures, for about 1 ms on an idle CPU. Later calls return the same number. The
 * fastest of several rounds counts, so preemption in some rounds does no harm.
 * @param platform one with another clock than weft_platform_host, or NULL, gets
 *   #WEFT_BCOPY_BW_DEFAULT
 */
double weft_bcopy_bw(const struct weft_platform *platform);

/**
 * The measurement itself, by any clock. @return bytes per second, at least #WEFT_BCOPY_BW_LEAST;
 * #WEFT_BCOPY_BW_DEFAULT when there is no memory, the clock does not advance, or the result is
 * above 1e13
 */
double weft_bcopy_bw_measure(const struct weft_platform *platform);

/* ------------------------------------------------------------------ memory limit */

/**
 * The least memory limit of the process's control group and of the groups above it, version 1 or 2.
 *
 * @param groups  the groups of the process: "/proc/self/cgroup"
 * @param mount   where control groups are mounted: "/sys/fs/cgroup"
 * @return bytes; SIZE_MAX = no limit, or none that can be read
 */
size_t weft_memory_group_limit(const char *groups, const char *mount);

/**
 * @return bytes: the host's memory, or the limit of the control group if that is less;
 *         0 = unknown
 */
size_t weft_memory_limit(void);

#endif /* WEFT_HOST_H */
