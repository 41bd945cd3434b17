/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_lane.h
 * Driver "shm": lanes between processes of one user on one host, through shared memory.
 * doc/shm.md has the design.
 */
#ifndef WEFT_SHM_LANE_H
#define WEFT_SHM_LANE_H

#include "lane.h"

extern const struct weft_lane_driver weft_shm_driver;

#endif /* WEFT_SHM_LANE_H */
