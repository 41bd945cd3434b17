/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/control.h
 * The control thread, and output for users and telemetry.
 */
#ifndef APP_SWITCH_CONTROL_H
#define APP_SWITCH_CONTROL_H

#include "switch/switch.h"

/** Start the control thread. @return APP_OK or an exit code after an error message */
int sw_control_start(struct sw *s);

/** Register telemetry's commands, and let the control thread print counters after SIGUSR1. */
void sw_report_start(struct sw *s);

/**
 * Print counters on standard output. Takes the control thread's lock, so a forwarder that still
 * forwards must not call it.
 */
void sw_report_print(struct sw *s);

#endif /* APP_SWITCH_CONTROL_H */
