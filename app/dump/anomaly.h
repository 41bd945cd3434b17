/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/anomaly.h
 * Which faults explain the observations: all of them, the strongest first.
 */
#ifndef DUMP_ANOMALY_H
#define DUMP_ANOMALY_H

#include "dump/fault.h"

/** @return number of entries in @p a: verdicts, the strongest first, then observations */
unsigned int trace_anomalies(const struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES]);

/** @return number of verdicts among @p num entries */
unsigned int trace_verdicts(const struct trace_anomaly *a, unsigned int num);

#endif /* DUMP_ANOMALY_H */
