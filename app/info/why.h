/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/why.h
 * weft-info --why: what limits a running process, from its counters and the kernel's times of its
 * threads over one second.
 */
#ifndef INFO_WHY_H
#define INFO_WHY_H

#include "info/query.h"

/** @return APP_OK, or APP_FAIL after an error message: no worker has answered */
int info_why(struct query_process *list, unsigned int n);

#endif /* INFO_WHY_H */
