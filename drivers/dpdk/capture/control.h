/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/control.h
 * The commands /weft/capture and /weft/recorder (weft(7)) of DPDK's telemetry. The socket of a
 * process without raw lanes has the first one, too (lib/answer.h).
 */
#ifndef WEFT_CAPTURE_CONTROL_H
#define WEFT_CAPTURE_CONTROL_H

#include "lane_tap.h"

/** weft_lane_tap_ops.command. */
void weft_capture_command(const char *words, weft_lane_tap_answer_cb cb, void *arg);

/** Register the commands, once. Any thread. */
void weft_capture_control(void);

#endif /* WEFT_CAPTURE_CONTROL_H */
