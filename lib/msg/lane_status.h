/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/lane_status.h
 * The status that an application receives for an operation that a lane could not carry out.
 */
#ifndef WEFT_MSG_LANE_STATUS_H
#define WEFT_MSG_LANE_STATUS_H

struct weft_msg_ep;

/**
 * The only place that translates the status that a driver passes to weft_lane_comp.done().
 *
 * @param me      the operation's endpoint
 * @param status  the driver's, 0 or a negative errno value
 * @return 0, or a status that weft.h defines
 */
int weft_lane_status(const struct weft_msg_ep *me, int status);

/** The same for a remote read, write or atomic operation that a lane executes. */
int weft_lane_key_status(const struct weft_msg_ep *me, int status);

#endif /* WEFT_MSG_LANE_STATUS_H */
