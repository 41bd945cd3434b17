/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/list.h
 * Messages as lines of text, CSV or JSON: which of them are printed, the slowest, and those with
 * problems. The first lines of the report: faults with place, begin, share and remedy.
 */
#ifndef DUMP_LIST_H
#define DUMP_LIST_H

#include <stdio.h>

#include "dump/anomaly.h"
#include "dump/message.h"
#include "dump/report.h"

#define LIST_MAX 1000u

/** The messages of greatest value, at most `room`; the greatest first. */
struct list_top {
	struct list_one {
		uint64_t value;
		struct msg msg;
	} one[LIST_MAX];
	unsigned int num, room;
	uint64_t count; /**< messages with a value above 0, with those not kept */
};

struct dump_options;

struct list {
	const struct dump_options *o;
	struct report *r;
	struct list_top slowest;    /**< sorted by the time they took */
	struct list_top repaired;   /**< sorted by the time the repair took */
	struct list_top waited;     /**< sorted by the wait for a receive */
	struct list_top unfinished; /**< sorted by their age at the end */
};

/** @return NULL: no memory */
struct list *list_make(const struct dump_options *o, struct report *r);
/** Take a message from trace_follow.over(). @return whether the options select it */
bool list_take(struct list *l, const struct trace *t, const struct msg *m);

/** Print the line of a message in the form that was requested. */
void list_line(FILE *out, const struct list *l, const struct msg *m);
void list_csv_head(FILE *out);
/** Write a cell of CSV. */
void csv_text(FILE *out, const char *text);
struct json;
void list_json(struct json *j, const struct list *l, const char *name, const struct msg *m);

/**
 * Receives a sentence about a problem. @p m NULL: the sentence is about several messages, or about
 * none.
 */
typedef void (*list_sentence_cb)(void *arg, const struct msg *m, const char *text);
void list_sentences(const struct list *l, list_sentence_cb cb, void *arg);
/**
 * Reports what had no answer at the end of the captures: HELLO, ARP requests and neighbour
 * solicitations, one sentence for each pair of addresses; and lanes on which retransmitted frames
 * got no acknowledgement. dump/list.c has the limits.
 */
void list_unanswered(const struct list *l, list_sentence_cb cb, void *arg);

/** "tag 0x101", "am 3", "put", ... @return buf */
const char *list_what(const struct msg *m, char *buf, size_t size);

/* ---- first lines of the report */

/** Print the first lines, at most 26; all with --all. */
void verdict_text(FILE *out, const struct list *l);

/**
 * One end of a flow, with its file: "a.pcapng dpdk:0 10.0.0.1"; without a capture of this end only
 * its address, or "?". @return buf
 */
const char *verdict_end(const struct report *r, const struct trace_flow *f, bool to, char *buf,
			size_t size);
/**
 * Where a fault is: "a.pcapng dpdk:0 10.0.0.1 > b.pcapng ...", "host of a.pcapng", or of a capture
 * with gaps its file. @return buf
 */
const char *verdict_where(const struct report *r, const struct trace_anomaly *a, char *buf,
			  size_t size);
/** Pass sentences, each with a reason why something could not be judged. */
void verdict_not_judged(const struct report *r, void (*cb)(void *arg, const char *text), void *arg);

/** Pass a sentence for each port of a RoCE device whose counters of faults have grown. */
void verdict_devices(const struct report *r, void (*cb)(void *arg, const char *text), void *arg);

#endif /* DUMP_LIST_H */
