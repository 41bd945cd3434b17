/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/fault.h
 * Names of faults, and what to do about them; faults of hosts, of captures, and those that frames
 * of other protocols show.
 */
#ifndef DUMP_FAULT_H
#define DUMP_FAULT_H

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
	FAULT_FULL_BUFFER,
	FAULT_PEER_GONE,
	FAULT_PEER_SILENT,
	FAULT_WRONG_VLAN,
	FAULT_TWO_ANSWERS,
	FAULT_TWO_ADVERTISEMENTS,
	FAULT_FIREWALL,
	FAULT_TTL,
	FAULT_UNREACHABLE,
	FAULT_CAPTURE_GAPS,
	FAULT_COUNT,
};

const char *trace_fault_name(enum trace_fault fault);

/** What to do about the fault: a sentence. */
const char *trace_fault_advice(enum trace_fault fault);

struct trace_anomaly {
	enum trace_fault fault;
	bool observation; /**< too small for a verdict, or a consequence of one */
	bool reported;    /**< slow receiver: its own frames report the pauses */
	bool of_path;     /**< no slow host explains the delay */
	bool past;        /**< stopped peer: the history of a flight recorder's file shows it */
	uint32_t flow;  /**< a flow of the lane; TRACE_NONE = the fault is of a host or a capture */
	uint8_t host;   /**< file of the host at fault; of a lane's fault that of the receiver */
	uint64_t time;  /**< time of the first evidence, common clock */
	double share;   /**< share of the frames or the time, 0 to 1; 0 = the fault has none */
	double weight;  /**< verdicts are sorted by it, the greatest first */
	char text[240]; /**< the evidence */
};

#define TRACE_ANOMALIES 256

/* ---- bounds of several faults */

#define FAULT_FRAME_SHARE 0.0002 /**< a smaller share of the frames is an observation */
#define FAULT_SEVERAL 4u         /**< fewer frames are an observation */
#define FAULT_BUSY_NS 20000000u  /**< an end that sent DATA this short time ago has more to send */
/**
 * ns. An end with DATA to send is down if it is silent for this time after the first lost frame to
 * it. If frames of a host are later than this after its capture's last record, only the capture has
 * ended.
 */
#define FAULT_DOWN_NS 1500000u
/** ns. Frames of this last time of a killed process may be missing from its capture. */
#define FAULT_UNWRITTEN_NS 200000000u

struct fault_list {
	struct trace_anomaly *a; /**< room for TRACE_ANOMALIES */
	unsigned int num;
};

/** @return the new entry, for further fields; beyond TRACE_ANOMALIES one that is in no list */
__attribute__((format(printf, 6, 7))) struct trace_anomaly *fault_add(struct fault_list *l,
								      enum trace_fault fault,
								      uint32_t flow, uint8_t host,
								      uint64_t time,
								      const char *fmt, ...);

static inline double fault_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static inline double fault_share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

/** Add the faults of hosts and captures, and those that frames of other protocols show. */
void fault_hosts(const struct trace *t, struct fault_list *l);

#endif /* DUMP_FAULT_H */
