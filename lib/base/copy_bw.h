/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/copy_bw.h
 * How fast a CPU of this machine copies, for the model (proto/model.h).
 */
#ifndef WEFT_BCOPY_BW_H
#define WEFT_BCOPY_BW_H

#include "base/platform.h"

/** Used where nothing can be measured: a clock that stands still (the simulator's). */
#define WEFT_BCOPY_BW_DEFAULT 7e9
/**
 * No figure that was measured is below: no CPU that runs DPDK is slower. Less means that measuring
 * was disturbed all the time, or that the CPU is emulated; the other costs of the model are stated
 * and do not grow with it, and then zero copy would seem worth its while for a few bytes.
 */
#define WEFT_BCOPY_BW_LEAST 5e8

/**
 * Bytes per second of memcpy() between buffers that the nearest cache does not hold. Measured once
 * per process, in about 1 ms; later calls return the same number. The best of several rounds
 * counts, so that being preempted in some of them does no harm.
 * @param platform  its clock is used; one that does not advance gives #WEFT_BCOPY_BW_DEFAULT
 */
double weft_bcopy_bw(const struct weft_platform *platform);

/**
 * The measurement itself, by any clock. @return bytes per second; #WEFT_BCOPY_BW_DEFAULT when there
 * is no memory or the clock stands still
 */
double weft_bcopy_bw_measure(const struct weft_platform *platform);

#endif /* WEFT_BCOPY_BW_H */
