/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/copy_bw.h
 * Copy rate of a CPU of this machine, for the model (proto/model.h).
 */
#ifndef WEFT_BCOPY_BW_H
#define WEFT_BCOPY_BW_H

#include "base/platform.h"

/** Used when nothing can be measured, because the clock does not advance (the simulator's). */
#define WEFT_BCOPY_BW_DEFAULT 7e9
/**
 * Lower bound of the measured rate: no CPU that runs DPDK is slower. A lower result means that the
 * measurement was disturbed throughout, or that the CPU is emulated. The other costs of the model
 * are fixed, so zero copy would then seem worthwhile for a few bytes.
 */
#define WEFT_BCOPY_BW_LEAST 5e8

/**
 * Bytes per second of memcpy() between buffers that the nearest cache does not hold. Measured once
 * per process, in about 1 ms; later calls return the same number. The fastest of several rounds
 * counts, so preemption in some rounds does no harm.
 * @param platform  its clock is used; one that does not advance gives #WEFT_BCOPY_BW_DEFAULT
 */
double weft_bcopy_bw(const struct weft_platform *platform);

/**
 * The measurement itself, by any clock. @return bytes per second; #WEFT_BCOPY_BW_DEFAULT when there
 * is no memory or the clock does not advance
 */
double weft_bcopy_bw_measure(const struct weft_platform *platform);

#endif /* WEFT_BCOPY_BW_H */
