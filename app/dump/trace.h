/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/trace.h
 * The analysis of several captures together: the directions of lanes (flows), the fate of each
 * frame, and silences of hosts. doc/capture.md, "Analysis", has the model and the bounds.
 *
 *  dump/clock.c    clocks of the captures relative to each other
 *	dump/merge.c    several captures in the order of one clock
 *  dump/flow.c     flows and lanes: which one a frame belongs to
 *	dump/fate.c     each frame at its sender and at its receiver
 *	dump/host.c     when hosts were silent
 *  dump/question.c unanswered requests
 *  dump/anomaly.c  which fault explains the observations
 *	dump/loss.c     kinds of loss
 *	dump/report.c   prints it
 *
 * dump/message.h has the messages in them.
 */
#ifndef DUMP_TRACE_H
#define DUMP_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dump/decode.h"
#include "dump/dump.h"
#include "dump/hist.h"

#define TRACE_FLOWS 4096
#define TRACE_SAMPLES 1024 /**< of each flow: frames that came, and frames that did not */
#define TRACE_PENDING (1u << 18)
#define TRACE_GAPS 1024
#define TRACE_NONE UINT32_MAX

/** A frame that arrived, or did not. */
struct trace_sample {
	uint64_t time; /**< of sending, common clock */
	int64_t delay; /**< ns; of a lost frame: that of the last arrived frame before it */
	uint32_t len;
	uint32_t load; /**< bytes that its flow had sent just before (TRACE_LOAD_NS) */
};

#define TRACE_WAIT_NS 1000000000u /**< a frame that takes longer is lost */

/** Time constant by which the load decays. */
#define TRACE_LOAD_NS 500000.0

/** Consecutive frames of a flow, none of which arrived. */
struct trace_run {
	uint64_t from, to; /**< when the first and the last were sent */
	uint64_t count;
};

/** Where frames were seen: an interface of a capture. */
struct trace_port {
	uint8_t file;
	uint16_t iface;
	bool known;
};

/** Counters of one path of a flow. */
struct trace_path {
	uint64_t frames, bytes, again, lost, late;
	int64_t min_delay;
};

/** Number of intervals of bytes over time: the intervals grow with the capture. */
#define TRACE_SERIES 256u
struct trace_series {
	uint64_t bytes[TRACE_SERIES], again[TRACE_SERIES];
};

/** One direction of a lane. */
struct trace_flow {
	uint32_t dst_conn, token;
	uint16_t src_conn;
	bool record; /**< a lane without frames, by message records */
	/** addresses: IPv4, or MAC with its top bit set; of records the workers */
	uint64_t src, dst;
	uint32_t other; /**< the other direction, or TRACE_NONE */
	struct trace_port out, in;
	uint8_t dst_mac[6];     /**< in the frames of its sender */
	uint64_t moved_at;      /**< time from which it differs; 0 = never */
	uint64_t first, last;   /**< times of frames */
	uint64_t frames, bytes; /**< at the sender, or at the receiver without a sender's capture */
	uint64_t judged, lost, twice, late, changed, again;
	uint64_t first_lost, first_twice, first_late, first_changed;
	uint64_t large_came_at;   /**< last arrival of a frame of lost_min bytes or more */
	uint32_t lost_min;        /**< length of the shortest lost frame */
	uint32_t came_max_before; /**< longest that arrived before the first loss */
	double load;
	uint64_t load_at;
	int64_t last_delay, min_delay;
	uint32_t max_order[WEFT_FRAME_PATHS_MAX];
	bool has_order[WEFT_FRAME_PATHS_MAX];
	struct trace_run run, longest;
	uint64_t runs;
	struct trace_sample *came, *gone;
	unsigned int num_came, num_gone, stride, skip;
	bool alone; /**< only one end has a capture: fates are not judged */
	uint64_t compared_from;
	struct trace_path path[WEFT_FRAME_PATHS_MAX];
	struct trace_series series;
	/* dump/stream.c */
	uint32_t parent;    /**< another lane of its endpoint, or itself */
	bool named;         /**< wire-up has named its endpoint */
	uint8_t lane;       /**< number, if named */
	uint64_t worker[2]; /**< sender, receiver */
	uint32_t conn_sn;
	uint64_t messages, message_bytes; /**< ended messages whose first frame was in this flow */
	/* dump/flight.c */
	bool has_una, acked;
	uint32_t una; /**< the lowest sequence that is not acknowledged */
	uint64_t flight_bytes, most_bytes;
	uint32_t flight_frames, most_frames;
	uint32_t open_frames; /**< not acknowledged when the captures end */
	uint64_t flight_at;
	double flight_area; /**< bytes in flight x ns */
	struct hist rtt;
	uint64_t acked_at,
		sacked_at; /**< times of the newest acknowledgement, of the newest SACK */
	uint32_t sack_ack, sack_words;
	uint64_t sack[WEFT_FRAME_SACK_WORDS];
	/* dump/native.c: operations that the sender has posted, by kind */
	uint64_t natives[WEFT_RECORD_KINDS], native_bytes[WEFT_RECORD_KINDS];
	uint32_t rx_frames; /**< capacity of the receiver's ring, from its HELLO; 0 = not seen */
};

/** A time in which a host captured nothing although frames were sent to it. */
struct trace_gap {
	uint64_t from, to;
	uint32_t frames;
};

struct trace_host {
	uint64_t first, last; /**< records of its capture */
	uint64_t since;       /**< frames sent to it since then */
	struct trace_gap gap[TRACE_GAPS];
	unsigned int num_gaps;
	bool seen;
};

/** ARP or HELLO, from one address to another. */
struct trace_question {
	bool hello;
	uint64_t from, to;
	uint64_t unanswered; /**< number since the last answer */
	uint64_t since;      /**< time of the first of these */
};
#define TRACE_QUESTIONS 256u

struct trace_pending;
struct trace_follow;
struct stream_name;

/** Values from a HELLO about its sender, for the flow towards that sender. */
struct trace_hello {
	uint32_t conn, token, rx_frames;
};
#define TRACE_HELLOS 1024u

struct trace {
	struct trace_flow *flow;
	unsigned int num_flows;
	uint64_t too_many; /**< frames of flows beyond the limit */
	uint32_t *table;   /**< of flows, by connection and token */
	struct trace_pending *pending;
	struct trace_host *host; /**< by file */
	unsigned int num_files;
	uint64_t now, begin; /**< time of the newest and of the first frame */
	uint64_t interval;   /**< of the series, ns */
	struct trace_follow *follow;
	struct stream_name *names;
	struct trace_hello hello[TRACE_HELLOS];
	struct trace_question question[TRACE_QUESTIONS];
	unsigned int num_questions;
};

/** @return NULL: no memory */
struct trace *trace_make(unsigned int num_files);
void trace_free(struct trace *t);

/** Take a frame, in the order of the common clock; @p time is of that clock. */
void trace_frame(struct trace *t, const struct dump_frame *frame, const struct dump_view *view,
		 uint64_t time);
/** No more frames. */
void trace_end(struct trace *t);

/* dump/flow.c */
/** IPv4, or MAC with the top bit set. */
uint64_t trace_address(uint32_t ip, const uint8_t mac[6]);
/** The other direction of its lane, or NULL. */
struct trace_flow *trace_other(const struct trace *t, const struct trace_flow *f);

/* dump/stream.c */
struct stream_name *stream_names_make(void);
/** The flow has found its other direction. */
void stream_paired(struct trace *t, uint32_t flow);

/* dump/fate.c */
struct trace_pending *trace_pending_make(void);
void trace_pending_free(struct trace_pending *p);
void trace_fate(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		const struct dump_view *view, uint64_t time);
/** A received frame that no sender could have sent: it was changed. */
void trace_fate_changed(struct trace *t, const struct dump_frame *frame, uint64_t time);
/** Judge frames that have waited long enough; with @p all, all frames. */
void trace_fate_judge(struct trace *t, bool all);

/* dump/question.c */
/** A frame of ARP, or a lane frame. */
void trace_question(struct trace *t, const struct dump_frame *frame, const struct dump_view *view,
		    uint64_t time);

/* dump/host.c */
void trace_host_record(struct trace *t, const struct dump_frame *frame, const struct trace_flow *f,
		       uint64_t time);
void trace_host_end(struct trace *t);

/* ---- clocks --------------------------------------------------------------------------------- */

struct trace_clock {
	bool known;     /**< frames connect it to the first capture's */
	int64_t offset; /**< ns to subtract, at @p at */
	uint64_t at;    /**< by this capture's clock */
	double drift;   /**< ns per ns */
};

/** Reads the captures once. @return APP_OK, or an exit code after an error message */
int trace_clocks(char *const *names, unsigned int num, struct trace_clock *clock);
uint64_t trace_time(const struct trace_clock *clock, uint64_t time);

/* ---- anomalies ------------------------------------------------------------------------------ */

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
	FAULT_COUNT,
};

const char *trace_fault_name(enum trace_fault fault);

struct trace_anomaly {
	enum trace_fault fault;
	uint32_t flow;  /**< of the lane; TRACE_NONE = of a host */
	uint8_t host;   /**< file of the host that is slow, stopped or down */
	uint64_t time;  /**< of the first evidence, common clock */
	int64_t weight; /**< of a delay: ns more than before */
	char text[240]; /**< the evidence */
};

#define TRACE_ANOMALIES 256

/** @return number of entries in @p a */
unsigned int trace_anomalies(struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES]);

/* dump/loss.c */
/** Classify losses that are neither a blackhole's nor an MTU's. */
enum trace_fault trace_kind_of_loss(const struct trace_flow *f);

#endif /* DUMP_TRACE_H */
