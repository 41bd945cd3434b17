/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/running.h
 * weft-info --capture, --recorder, --metrics, --live and --show: processes that run.
 */
#ifndef INFO_RUNNING_H
#define INFO_RUNNING_H

#include <stdbool.h>

/** Is it one of these options? */
bool info_is_running(const char *option);
/** @param argv  begins with that option. @return APP_OK or an exit code */
int info_running(int argc, char **argv);

#endif /* INFO_RUNNING_H */
