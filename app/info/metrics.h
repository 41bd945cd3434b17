/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/metrics.h
 * Counters of running processes in Prometheus' text format: names of totals end with `_total`,
 * times are in seconds, and counters exist from the start, with 0. Every sample has the label host.
 * Those of a process also have program, job (of the batch system, if any) and pid. weft-info
 * --metrics --listen serves them over HTTP, for a scraper.
 */
#ifndef INFO_METRICS_H
#define INFO_METRICS_H

#include <stdio.h>

#include "info/query.h"

/** @param list  processes of query_find(), weft-switch included */
void info_metrics(FILE *out, struct query_process *list, unsigned int n);

/**
 * Serve /metrics until a signal ends the program.
 * @param address  [HOST:]PORT, without HOST 127.0.0.1; IPv6 in brackets
 * @param pid      only this process; 0 = all, found again at each request
 * @return exit code
 */
int info_listen(const char *address, long pid);

#endif /* INFO_METRICS_H */
