/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/running.h
 * weft-info --capture, --recorder, --metrics, --live, --why and --show: processes that run.
 */
#ifndef INFO_RUNNING_H
#define INFO_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

/** Options of weft-info about processes that run. */
struct info_running {
	bool capture, recorder, metrics, live, why;
	bool once;          /**< with live: one second only */
	const char *show;   /**< what to print of their workers; NULL = nothing */
	const char *listen; /**< with metrics: [HOST:]PORT */
	uint64_t pid;       /**< 0 = all */
};

/** Are these options about processes that run? */
bool info_is_running(const struct info_running *o);
/** Check the value of --show. @return APP_OK, or APP_USAGE after an error message */
int info_show_check(const char *option, const char *value);
/**
 * Do what the options request.
 * @param words  arguments of --capture; "" = none
 * @return APP_OK or an exit code
 */
int info_running(const struct info_running *o, const char *words);

#endif /* INFO_RUNNING_H */
