/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/report.h
 * The report on all captures together, as text or as JSON.
 */
#ifndef DUMP_REPORT_H
#define DUMP_REPORT_H

#include <stdio.h>

#include "dump/frames.h"
#include "dump/trace.h"

struct roce;

struct report {
	struct trace *trace;
	struct dump_file *const *file;
	const struct trace_clock *clock;
	const struct dump_counts *counts;
	const struct roce *roce; /**< connections of RoCE v2 */
};

struct list;
void report_text(FILE *out, const struct report *r, const struct list *l);
/** One object, on one line. */
void report_json(FILE *out, const struct report *r, const struct list *l);
/** Pass a sentence for each connection of RoCE v2 with a fault, the one with most faults first. */
void report_roce(const struct report *r, void (*cb)(void *arg, const char *text), void *arg);
/** Lanes, a line for each direction. */
void report_csv(FILE *out, const struct report *r);

/**
 * The lane name of a flow, as "dpdk:0": that of its sender's interface, or if the sender has no
 * capture, of its receiver's; "?" = neither has one.
 */
const char *report_lane_name(const struct report *r, const struct trace_flow *f);
/** The flow, if it is the one of its lane that was seen first; else NULL. */
const struct trace_flow *report_lane(const struct report *r, unsigned int flow);
/** One direction of an endpoint: the messages of all of its lanes. */
struct report_conversation {
	uint64_t messages, bytes;
	unsigned int lanes;
};
/** @return false: another flow represents the stream */
bool report_conversation(const struct report *r, unsigned int flow, struct report_conversation *c);
/** Average rate from the first frame to the last one, in 10^6 bytes a second. */
double report_rate(const struct trace_flow *f);
/** Bytes in flight on average, from the first frame until they changed last. */
double report_flight(const struct trace_flow *f);

#endif /* DUMP_REPORT_H */
