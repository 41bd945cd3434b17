/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/verdict.h
 * What was wrong, where, since when, how much, and what to do: the first lines of the report.
 */
#ifndef DUMP_VERDICT_H
#define DUMP_VERDICT_H

#include "dump/anomaly.h"
#include "dump/list.h"

/** Print the first lines, at most 24; all with --all. */
void verdict_text(FILE *out, const struct list *l);

/**
 * One end of a flow, with its file: "a.pcapng dpdk:0 10.0.0.1"; without a capture of this end only
 * its address, or "?". @return buf
 */
const char *verdict_end(const struct report *r, const struct trace_flow *f, bool to, char *buf,
			size_t size);
/** Where a fault is: "a.pcapng dpdk:0 10.0.0.1 > b.pcapng ...", or the file. @return buf */
const char *verdict_where(const struct report *r, const struct trace_anomaly *a, char *buf,
			  size_t size);
/** Pass sentences, each with a reason why something could not be judged. */
void verdict_not_judged(const struct report *r, void (*cb)(void *arg, const char *text), void *arg);

/** Pass a sentence for each port of a RoCE device whose counters of faults have grown. */
void verdict_devices(const struct report *r, void (*cb)(void *arg, const char *text), void *arg);

#endif /* DUMP_VERDICT_H */
