/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/wireshark/lane.h
 * Frames of raw lanes, in Wireshark.
 */
#ifndef DUMP_WIRESHARK_LANE_H
#define DUMP_WIRESHARK_LANE_H

#include <epan/packet.h>

/** Dissect a lane frame, from the lane header on. @return the bytes dissected; 0: it is none */
int dissect_lane(tvbuff_t *tvb, packet_info *pinfo, proto_tree *root, void *data);

#endif /* DUMP_WIRESHARK_LANE_H */
