/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/lane_losses.h
 * What was lost on each lane of a peer, as the programs' last line has it.
 */
#ifndef APP_LANE_LOSSES_H
#define APP_LANE_LOSSES_H

#include <stddef.h>

struct peer;

/**
 * "sent again: dpdk:0 12 frames, dpdk:1 0; dropped here: dpdk:0 3, dpdk:1 0". Frames sent again are
 * the endpoint's, dropped ones the interface's: received and of no use, but neither duplicates nor
 * other people's.
 */
void lane_losses(struct peer *p, char *buf, size_t size);

#endif /* APP_LANE_LOSSES_H */
