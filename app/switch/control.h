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

/** Telemetry's commands, and SIGUSR1. */
void sw_report_start(struct sw *s);

/** Print counters on standard output. By any thread but the forwarder at work. */
void sw_report_print(struct sw *s);

#endif /* APP_SWITCH_CONTROL_H */
