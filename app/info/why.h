/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/why.h
 * weft-info --why: what limits a running process, from its counters over one second, and from the
 * kernel's times of the thread that has used most CPU time.
 */
#ifndef INFO_WHY_H
#define INFO_WHY_H

#include "info/query.h"

/** @return APP_OK, or APP_FAIL after an error message: no worker has answered twice */
int info_why(struct query_process *list, unsigned int n);

#endif /* INFO_WHY_H */
