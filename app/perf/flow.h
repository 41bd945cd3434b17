/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/flow.h
 * What the parts of weft-perf share: a run and its figures; and for the datapaths on the library
 * (perf/tag.c, perf/am.c, perf/rma.c) its length, contents of messages, and a window of outstanding
 * operations.
 *
 * A *run* is one measurement: one test, one size, a number of iterations or a deadline. The client
 * chooses them and sends them to the server. Warm-up is a run whose figures are not printed.
 */
#ifndef APP_PERF_FLOW_H
#define APP_PERF_FLOW_H

#include <errno.h>
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

/** A run as the client sends it to the server: on the wire little-endian u64, in this order. */
struct perf_run {
	uint64_t test; /**< enum perf_test */
	uint64_t id;   /**< part of the tags: late messages of one run never match in the next */
	uint64_t size;
	uint64_t iters;    /**< iterations; with a deadline: the first total */
	uint64_t limit_ns; /**< duration, ns; 0 = the run ends after `iters` iterations */
	uint64_t window;   /**< operations that may be outstanding */
	uint64_t flags;    /**< PERF_F_* */
	/** name of the protocol to use, first byte lowest; 0 = the library's choice */
	uint64_t proto[4];
};

/** The version in each object of JSON and each row of CSV (doc/formats.md). */
#define PERF_FORMAT_VERSION 1

#define PERF_PROTO_MAX 32u

#define PERF_MAX_LANES 16u

/** Figures of the server about a run, for the client's output; on the wire as struct perf_run. */
struct perf_remote {
	uint64_t wrong; /**< messages received with wrong bytes or length, or more than agreed */
	uint64_t idle_peak, peak, hugetlb; /**< bytes of memory; see struct sys_memory */
	uint64_t flood_before,
		flood_peak; /**< tag_flood: resident bytes before it, and their peak */
	/** tag_flood, measured by the client: time from its expected message to the reply */
	uint64_t flood_late_ns;
	uint64_t am_rndv; /**< am_*: messages that came by rendezvous */
	/** bytes received over each lane; those of native reads only the reader counts */
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
	uint64_t warmup; /**< iterations; UINT64_MAX = the program chooses */
	uint64_t window; /**< outstanding operations; 0 = 32. Latency tests always have 1 */
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

const char *perf_test_name(enum perf_test test);
/** @return PERF_END: there is none of this name */
enum perf_test perf_test_named(const char *name);

static inline bool perf_is_ping_pong(uint64_t test)
{
	return test == PERF_TAG_LAT || test == PERF_TAG_SYNC_LAT || test == PERF_RAW_LAT ||
	       test == PERF_AM_LAT || test == PERF_PUT_LAT;
}

static inline bool perf_is_atomic(uint64_t test)
{
	return test == PERF_FADD_LAT || test == PERF_CSWAP_LAT;
}

/** In these tests one operation is outstanding at a time. */
static inline bool perf_is_latency(uint64_t test)
{
	return perf_is_ping_pong(test) || test == PERF_GET_LAT || perf_is_atomic(test);
}

static inline bool perf_is_am(uint64_t test)
{
	return test == PERF_AM_LAT || test == PERF_AM_BW;
}

/** --sleep applies to tests in which messages end all waits. */
static inline bool perf_can_sleep(uint64_t test)
{
	return perf_is_am(test) || (test >= PERF_TAG_LAT && test <= PERF_TAG_BIBW);
}

static inline bool perf_can_reverse(uint64_t test)
{
	return test == PERF_TAG_BW || test == PERF_AM_BW;
}

static inline bool perf_is_rma(uint64_t test)
{
	return test >= PERF_PUT_LAT && test <= PERF_CSWAP_LAT;
}

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

/* ---- figures */

/*
 * Times of iterations by the TSC, their distribution, and rates. They have the meaning of those of
 * ucx_perftest, so that they can be compared: "average" is since the last report, "overall" since
 * the start, and the recent median is that of the last 2048 times. p50, p99 and p99.9 are of all
 * times, from a histogram with buckets of a relative width of at most 1/64.
 */

#define PERF_RECENT 2048u
#define PERF_HIST_BITS 6u
#define PERF_HIST_SIZE ((64u - PERF_HIST_BITS + 1) << PERF_HIST_BITS)

struct perf_meter {
	uint64_t start, last; /* TSC at the begin, and after the last iterations */
	uint64_t iters;
	uint64_t report_time, report_iters; /* TSC and iterations of the last report */
	uint64_t next_tick;                 /* TSC at which a line of progress is due */
	uint32_t recent_at;
	uint64_t recent[PERF_RECENT];
	uint64_t hist[PERF_HIST_SIZE];
};

void perf_meter_start(struct perf_meter *m);

static inline unsigned int perf_hist_index(uint64_t v)
{
	unsigned int shift;

	if (v < 1u << PERF_HIST_BITS)
		return (unsigned int)v;
	shift = 63u - (unsigned int)__builtin_clzll(v) - PERF_HIST_BITS;
	return ((shift + 1) << PERF_HIST_BITS) +
	       (unsigned int)((v >> shift) & ((1u << PERF_HIST_BITS) - 1));
}

/** @p count iterations have ended at @p now. @return non-zero when a line of progress is due */
static inline int perf_meter_add(struct perf_meter *m, uint64_t now, uint64_t count)
{
	uint64_t each = (now - m->last) / count;

	m->last = now;
	m->iters += count;
	m->recent[m->recent_at++ & (PERF_RECENT - 1)] = each;
	m->hist[perf_hist_index(each)] += count;
	return now >= m->next_tick;
}

/** Times are in seconds for an iteration, which is a round trip in a ping-pong. */
struct perf_figures {
	uint64_t iters;
	double recent_median;
	double average, overall;
	double p50, p99, p999;
};

void perf_meter_read(const struct perf_meter *m, struct perf_figures *f);

/** Begin the next "average". */
void perf_meter_mark(struct perf_meter *m);

/* ---- one side of a run */

/** Prints progress of a long run about once a second, not of warm-up. */
typedef void (*perf_tick_cb)(const struct perf_meter *meter, void *arg);

struct perf_side {
	struct peer *peer;
	const struct perf_run *run;
	struct perf_meter *meter; /**< NULL on the server */
	perf_tick_cb tick;        /**< NULL = silent */
	void *tick_arg;
	uint64_t wrong; /**< out: messages received wrong */

	/* the length of the run */
	bool open;                /**< the total may still rise */
	bool fixed;               /**< each rise is that of perf_limit_rounds() */
	uint64_t total;           /**< iterations that will be executed */
	uint64_t margin;          /**< iterations before the total: perf_limit_look() is due */
	uint64_t rise;            /**< iterations of the last rise */
	uint64_t seen;            /**< client: messages of a stream that the server has received */
	uint64_t begin, deadline; /**< TSC at the begin of the run, and at its deadline */
	uint64_t next_report, turns;
};

static inline void perf_count(struct perf_side *side, uint64_t iters)
{
	if (side->meter && iters && perf_meter_add(side->meter, rte_rdtsc(), iters) && side->tick)
		side->tick(side->meter, side->tick_arg);
}

/** Bytes of message @p index of a run: fill them, and compare them. */
void perf_fill(void *buffer, uint64_t size, uint64_t index);
bool perf_check(const void *buffer, uint64_t size, uint64_t index);

/* ---- the length of a run: a number of iterations, or a deadline */

/*
 * With a deadline, both ends have a *total* of iterations that will be executed. While the run is
 * open, the client raises the total before it is reached, by about 10 ms of work at a time, and
 * sends it to the server (OOB_MORE). At the deadline the client closes the run: both ends execute
 * the announced iterations and no more. So the run ends within about 10 ms of work after the
 * deadline, at the rate that it had before, and both ends have posted their receives in time.
 *
 * The server of a stream reports the number of received messages twelve times a second (OOB_SEEN).
 * The client prints this number in the line of each second.
 */

/** Both ends call it before the first iteration, when the clock starts. */
void perf_limit_begin(struct perf_side *side);

/** With a deadline, for runs in rounds: each rise is @p length iterations. */
void perf_limit_rounds(struct perf_side *side, uint64_t length);

/**
 * Client: raise a total that is near. Server: take an announced total without waiting.
 * @param done  iterations begun here (at a receiver: received)
 * @return 0, or -ECANCELED: the run has failed, and side->peer->exit_code is set
 */
int perf_limit_look(struct perf_side *side, uint64_t done);

/** Server: report received messages, if a report is due. @return as perf_limit_look() */
int perf_limit_report(struct perf_side *side, uint64_t received);

/** Client: take reports of the server, into side->seen. @return as perf_limit_look() */
int perf_limit_seen(struct perf_side *side);

static inline bool perf_limit_near(const struct perf_side *side, uint64_t done)
{
	return side->open && done + side->margin >= side->total;
}

/* ---- a window of outstanding operations, each in a slot with its buffer */

/*
 * The state of a datapath begins with a struct perf_flow. Functions that it passes are constants to
 * the inline functions here, so no message costs an indirect call.
 */

struct perf_flow;

struct perf_slot {
	struct perf_flow *flow;
	void *buffer;
	uint64_t index; /**< number of the message or operation in the run */
	bool busy;
	struct weft_op_params params;
};

struct perf_flow {
	struct perf_side *side;
	struct peer *peer;
	const struct perf_run *run;
	bool validate;
	int error; /**< negative: a failure, which ends the run */
	uint64_t posted, out,
		total; /**< operations of this end: posted, outstanding, all to be posted */
	struct perf_slot *slot; /**< without -V only the first is used */
	unsigned int slots;
};

/** Bytes from one buffer to the next: no two buffers share a page. */
static inline uint64_t perf_flow_stride(const struct perf_run *run)
{
	return (run->size + 4095) / 4096 * 4096 + 4096;
}

void perf_flow_init(struct perf_flow *f, struct perf_side *side);

/**
 * The operations of the slots have @p cb as callback with the slot as argument, and buffers
 * @p stride bytes apart from @p buffers on (0 = all the same).
 * @return NULL when there is no memory
 */
struct perf_slot *perf_flow_slots(struct perf_flow *f, unsigned int count, weft_complete_cb cb,
				  void *buffers, uint64_t stride, struct weft_mem *mem);

void *perf_flow_memory(uint64_t length, int value);

/** Register memory if the run has -z; else @p mem stays as it is. @return 0 or a negative error */
int perf_flow_register(const struct perf_flow *f, void *memory, uint64_t length,
		       struct weft_mem **mem);

/** @param ret  of the operation's call. @return 0, or -ECANCELED: f->error or exit code is set */
int perf_flow_finish(struct perf_flow *f, int ret, struct weft_request *req);

/** Wait until all sent messages have arrived. @return as perf_flow_finish() */
int perf_flow_flush(struct perf_flow *f);

/** Stop the clock, of a stream only. */
void perf_flow_stop(struct perf_flow *f);

/** Callback of operations whose end needs no action but to free the slot. */
void perf_flow_sent(struct weft_request *req, const struct weft_completion *c, void *arg);

int perf_flow_wait_more(struct perf_flow *f, uint64_t done);

/** @return 0, or a negative error: the run has failed */
static inline int perf_flow_turn(struct perf_flow *f)
{
	return peer_poll(f->peer) ? -ECANCELED : f->error;
}

/** At the total the server waits for a new one. @return 1; 0: the end; -ECANCELED: a failed run */
static inline int perf_flow_more(struct perf_flow *f, uint64_t done)
{
	if (unlikely(perf_limit_near(f->side, done)))
		return perf_flow_wait_more(f, done);
	return done < f->side->total;
}

/** @return NULL when the slot is still in use */
static inline struct perf_slot *perf_flow_next(struct perf_flow *f)
{
	struct perf_slot *slot = &f->slot[f->validate ? f->posted % f->slots : 0];

	return f->validate && slot->busy ? NULL : slot;
}

static inline struct perf_slot *perf_flow_next_message(struct perf_flow *f)
{
	struct perf_slot *slot = perf_flow_next(f);

	if (slot && f->validate)
		perf_fill(slot->buffer, f->run->size, f->posted);
	return slot;
}

static inline bool perf_flow_posted(struct perf_flow *f, struct perf_slot *slot, int ret)
{
	if (ret < 0) {
		f->error = ret;
		return false;
	}
	f->posted++;
	if (ret == WEFT_INPROGRESS) {
		slot->busy = true;
		f->out++;
	}
	return true;
}

static inline void perf_flow_received(struct perf_flow *f, int status, const void *data,
				      size_t length, uint64_t index)
{
	if (status && status != -EMSGSIZE)
		f->error = status;
	else if (status || length != f->run->size ||
		 (f->validate && !perf_check(data, length, index)))
		f->side->wrong++;
}

/** The endpoint of the next message: with -P, endpoints in rotation. */
static inline struct weft_ep *perf_flow_ep(const struct perf_flow *f)
{
	const struct peer *p = f->peer;
	uint64_t i;

	if (likely(!p->num_more))
		return p->ep;
	i = f->posted % (p->num_more + 1);
	return i ? p->more[i - 1] : p->ep;
}

/** Post one operation. @return false when there is no slot, or with f->error */
typedef bool (*perf_flow_post_fn)(struct perf_flow *f);

/** Fill the window, up to number @p total. @return operations posted */
static inline __attribute__((always_inline)) unsigned int perf_flow_fill(struct perf_flow *f,
									 uint64_t total,
									 perf_flow_post_fn post)
{
	unsigned int count = 0;

	while (count < f->run->window && f->posted < total && f->out < f->run->window && post(f))
		count++;
	f->peer->posting = count > 0;
	return count;
}

/** Post an operation when the previous one has ended. @return 0, or -ECANCELED: a failed run */
static inline __attribute__((always_inline)) int perf_flow_one(struct perf_flow *f,
							       perf_flow_post_fn post)
{
	while (f->out)
		if (perf_flow_turn(f))
			return -ECANCELED;
	return post(f) ? 0 : -ECANCELED;
}

/* ---- the datapaths: perf/tag.c, perf/am.c, perf/rma.c, perf/raw.c */

/* @return APP_OK or an exit code after an error message */

/** Run tag_lat, tag_sync_lat, tag_bw or tag_bibw. */
int perf_tag(struct perf_side *side);

/** Run tag_flood. @param remote  gets flood_late_ns at the client, else the other flood_* */
int perf_flood(struct perf_side *side, struct perf_remote *remote);

/** Run am_lat or am_bw. @param remote  gets am_rndv */
int perf_am(struct perf_side *side, struct perf_remote *remote);

int perf_rma(struct perf_side *side);

/*
 * raw_lat and raw_bw: the performance of a lane's port without the lane's protocol. Port code,
 * frame sizes and header bytes are those of a lane; frames are sent in bursts. The sender copies
 * each payload into frames once (or passes external buffers to the port, where a lane would). The
 * receiver copies it once into a user buffer. There are no windows and no acknowledgements: raw_bw
 * counts received bytes, and raw_lat repeats a message that gets no reply.
 */
struct perf_raw;

/** Open the first raw-DPDK lane's port of the configuration. */
int perf_raw_open(struct peer *p, struct perf_raw **raw);
/** Agree with the peer on frames, and wait for both links, each for 10 s at most. */
int perf_raw_connect(struct perf_raw *raw);
/** NULL is allowed. */
void perf_raw_close(struct perf_raw *raw);

int perf_raw_run(struct perf_raw *raw, struct perf_side *side);

#endif /* APP_PERF_FLOW_H */
