/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/anomaly.h
 * Which faults explain the observations; names of faults, and what to do about them.
 */
#ifndef DUMP_ANOMALY_H
#define DUMP_ANOMALY_H

#include "dump/trace.h"

enum trace_fault {
	FAULT_NONE,
	FAULT_RANDOM_LOSS,
	FAULT_BURST_LOSS,
	FAULT_QUEUE_LOSS,
	FAULT_DUPLICATION,
	FAULT_REORDERING,
	FAULT_CORRUPTION,
	FAULT_DELAY,
	FAULT_BLACKHOLE_ONE_WAY,
	FAULT_BLACKHOLE_BOTH_WAYS,
	FAULT_LANE_DOWN,
	FAULT_PATH_MTU,
	FAULT_MOVED_MAC,
	FAULT_STOPPED_PEER,
	FAULT_SLOW_RECEIVER,
	FAULT_PEER_GONE,
	FAULT_PEER_SILENT,
	FAULT_WRONG_VLAN,
	FAULT_TWO_ANSWERS,
	FAULT_FIREWALL,
	FAULT_TTL,
	FAULT_UNREACHABLE,
	FAULT_CAPTURE_GAPS,
	FAULT_COUNT,
};

const char *trace_fault_name(enum trace_fault fault);

/** What to do about it: a sentence. */
const char *trace_fault_advice(enum trace_fault fault);

struct trace_anomaly {
	enum trace_fault fault;
	bool observation; /**< too small for a verdict, or a consequence of one */
	bool reported;    /**< slow receiver: its own frames report the pauses */
	bool of_path;     /**< no host explains it */
	uint32_t flow;  /**< a flow of the lane; TRACE_NONE = the fault is of a host or a capture */
	uint8_t host;   /**< file of the host that is slow, stopped or down */
	uint64_t time;  /**< time of the first evidence, common clock */
	double share;   /**< share of the frames or the time, 0 to 1; 0 = the fault has none */
	double weight;  /**< the strongest is named first */
	char text[240]; /**< the evidence */
};

#define TRACE_ANOMALIES 256

/** @return number of entries in @p a: verdicts, the strongest first, then observations */
unsigned int trace_anomalies(struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES]);

/** @return number of verdicts among @p num entries */
unsigned int trace_verdicts(const struct trace_anomaly *a, unsigned int num);

#endif /* DUMP_ANOMALY_H */
