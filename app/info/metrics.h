/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/metrics.h
 * Counters of running processes in Prometheus' text format: names of totals end with `_total`,
 * times are in seconds, and counters exist from the start, with 0. Every sample has the labels
 * host, program, job (of the batch system, if any) and pid.
 */
#ifndef INFO_METRICS_H
#define INFO_METRICS_H

#include <stdio.h>

#include "info/query.h"

/** @param list  processes of query_find(), weft-switch included */
void info_metrics(FILE *out, struct query_process *list, unsigned int n);

#endif /* INFO_METRICS_H */
