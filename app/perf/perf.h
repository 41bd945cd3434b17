/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/perf.h
 * The parts of weft-perf: options (perf/perf.c), the protocol between client and server
 * (perf/run.c), the datapaths (perf/tag.c, perf/am.c, perf/rma.c, which share perf/flow.h, and
 * perf/raw.c), figures (perf/flow.h), output (perf/print.c) and --sweep (perf/sweep_run.c, whose
 * evaluation is perf/sweep.c).
 *
 * A *run* is one measurement: one test, one size, a number of iterations. The client chooses them
 * and sends them to the server. Warm-up is a run whose figures are not printed.
 */
#ifndef APP_PERF_H
#define APP_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_cycles.h>

#include "common/cli.h"
#include "common/peer.h"

enum perf_test {
	PERF_END, /**< on the wire: no more runs */
	PERF_TAG_LAT,
	PERF_TAG_SYNC_LAT,
	PERF_TAG_BW,
	PERF_TAG_BIBW,
	PERF_TAG_FLOOD,
	PERF_RAW_LAT,
	PERF_RAW_BW,
	PERF_AM_LAT,
	PERF_AM_BW,
	PERF_PUT_LAT,
	PERF_PUT_BW,
	PERF_GET_LAT,
	PERF_GET_BW,
	PERF_FADD_LAT,
	PERF_CSWAP_LAT,
	PERF_TESTS
};

#define PERF_F_VALIDATE 1u
#define PERF_F_UNEXPECTED 2u
#define PERF_F_REGISTERED 4u
#define PERF_F_SLEEP 8u
#define PERF_F_REVERSE 16u /**< for a stream in one direction: the server sends */

/**
 * A run, as the client sends it to the server: little-endian u64 each on the wire, in this order.
 */
struct perf_run {
	uint64_t test; /**< enum perf_test */
	uint64_t id;   /**< part of the tags: late messages of one run never match in the next */
	uint64_t size;
	uint64_t iters;    /**< with a deadline: the first total (perf/flow.h) */
	uint64_t limit_ns; /**< deadline (perf/flow.h); 0 = none */
	uint64_t window;
	uint64_t flags;
	/** name of the protocol to use, first byte lowest; 0 = the library's choice */
	uint64_t proto[4];
};

#define PERF_PROTO_MAX 32u

#define PERF_MAX_LANES 16u

/**
 * Figures of the server about a run, for the client's output; on the wire as struct perf_run.
 */
struct perf_remote {
	uint64_t wrong; /**< messages received with other bytes or another length than sent */
	uint64_t idle_peak, peak, hugetlb;
	uint64_t flood_before,
		flood_peak;     /**< tag_flood: resident bytes before it, and their peak */
	uint64_t flood_late_ns; /**< tag_flood: time of the expected message */
	uint64_t am_rndv;       /**< am_*: messages that came by rendezvous */
	/** bytes received over each lane; bytes of native reads are counted only here */
	uint64_t rx_bytes[PERF_MAX_LANES];
};

/** Bytes (of atomics: messages) that each lane carried during a run. */
struct perf_lanes {
	unsigned int count;
	char name[PERF_MAX_LANES][64];
	uint64_t bytes[PERF_MAX_LANES];
	uint64_t retransmits;
};

struct perf_meter;

/** All figures of a run for output. */
struct perf_report {
	const struct perf_run *run;
	const struct perf_meter *meter;
	const char *protocol;
	const struct perf_lanes *lanes;
	const struct perf_remote *remote;
	uint64_t idle_peak;
	uint64_t wrong;
	double seconds;
};

struct perf_options {
	struct peer_options peer;
	enum perf_test tests[PERF_TESTS];
	unsigned int num_tests;
	struct cli_sizes sizes;
	uint64_t iters;  /**< 0 = as many as fit in `seconds` */
	uint64_t warmup; /**< UINT64_MAX = chosen */
	uint64_t window; /**< 0 = 1 for latencies, 32 for bandwidths */
	double seconds;
	bool seconds_given;
	uint32_t flags;
	bool sweep;        /**< all protocols at all sizes */
	bool test_given;   /**< -t */
	const char *graph; /**< --sweep: picture to draw; NULL = none */
	bool table;        /**< latency and bandwidth of a size in one line */
	bool final_only;
	bool csv;
	bool json;
	bool keep; /**< server: wait for the next client when one is done */
};

/** Names and kinds of tests. */
const char *perf_test_name(enum perf_test test);

/** Is an iteration a message to the peer and one back? */
static inline bool perf_is_ping_pong(uint64_t test)
{
	return test == PERF_TAG_LAT || test == PERF_TAG_SYNC_LAT || test == PERF_RAW_LAT ||
	       test == PERF_AM_LAT || test == PERF_PUT_LAT;
}

static inline bool perf_is_atomic(uint64_t test)
{
	return test == PERF_FADD_LAT || test == PERF_CSWAP_LAT;
}

/** Is one operation outstanding at a time: a ping-pong, or an operation on remote memory? */
static inline bool perf_is_latency(uint64_t test)
{
	return perf_is_ping_pong(test) || test == PERF_GET_LAT || perf_is_atomic(test);
}

static inline bool perf_is_am(uint64_t test)
{
	return test == PERF_AM_LAT || test == PERF_AM_BW;
}

/** Does --sleep apply: do messages end all of its waits, and is sleeping of use? */
static inline bool perf_can_sleep(uint64_t test)
{
	return perf_is_am(test) || (test >= PERF_TAG_LAT && test <= PERF_TAG_BIBW);
}

/** Is it a stream of messages in one direction? */
static inline bool perf_can_reverse(uint64_t test)
{
	return test == PERF_TAG_BW || test == PERF_AM_BW;
}

static inline bool perf_is_rma(uint64_t test)
{
	return test >= PERF_PUT_LAT && test <= PERF_CSWAP_LAT;
}

/** Can the test run with this size? An atomic has 4 or 8 bytes; put_lat polls on the last byte. */
static inline bool perf_size_fits(uint64_t test, uint64_t size)
{
	if (perf_is_atomic(test))
		return size == 4 || size == 8;
	return size || !perf_is_rma(test);
}

static inline bool perf_is_raw(uint64_t test)
{
	return test == PERF_RAW_LAT || test == PERF_RAW_BW;
}

#endif /* APP_PERF_H */
