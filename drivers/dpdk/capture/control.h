/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/control.h
 * /weft/capture and /weft/recorder on DPDK's telemetry socket (weft(7)).
 */
#ifndef WEFT_CAPTURE_CONTROL_H
#define WEFT_CAPTURE_CONTROL_H

/** Register the commands, once. Any thread. */
void weft_capture_control(void);

#endif /* WEFT_CAPTURE_CONTROL_H */
