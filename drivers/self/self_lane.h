/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file self/self_lane.h
 * Driver "self": a worker's lane to itself. It is also the smallest complete lane driver, and an
 * example for authors of drivers, next to lane.h.
 */
#ifndef WEFT_SELF_LANE_H
#define WEFT_SELF_LANE_H

#include "lane.h"

extern const struct weft_lane_driver weft_self_driver;

#endif /* WEFT_SELF_LANE_H */
