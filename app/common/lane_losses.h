/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/lane_losses.h
 * Losses on each lane of a peer, for the last line that the programs print.
 */
#ifndef APP_LANE_LOSSES_H
#define APP_LANE_LOSSES_H

#include <stddef.h>

struct peer;

/**
 * "sent again: dpdk:0 12 frames, dpdk:1 0; dropped here: dpdk:0 3, dpdk:1 0". The endpoint counts
 * frames sent again, the interface counts dropped ones. Duplicates and frames for other hosts are
 * not among the dropped ones.
 */
void lane_losses(struct peer *p, char *buf, size_t size);

#endif /* APP_LANE_LOSSES_H */
