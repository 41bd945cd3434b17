/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/live.h
 * weft-info --live: rates of processes that run, each second.
 */
#ifndef INFO_LIVE_H
#define INFO_LIVE_H

#include <stdbool.h>

#include "info/query.h"

/** Print until no process responds. @param once  one second only, without clearing the screen */
void info_live(struct query_process *list, unsigned int n, bool once);

#endif /* INFO_LIVE_H */
