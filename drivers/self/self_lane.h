/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file self/self_lane.h
 * Driver "self": a worker's lane to itself. Also the smallest complete lane driver, to be read
 * beside lane.h by whoever writes one.
 */
#ifndef WEFT_SELF_LANE_H
#define WEFT_SELF_LANE_H

#include "lane.h"

extern const struct weft_lane_driver weft_self_driver;

#endif /* WEFT_SELF_LANE_H */
