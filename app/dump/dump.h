/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/dump.h
 * weft-dump: a reader of captures, which doc/capture.md describes. The files:
 *
 *	dump/dump.c         options, and what is printed in which order
 *	dump/file.c         captures, frame by frame
 *	dump/pcapng.c       blocks of pcapng
 *	dump/filter.c       tcpdump's filter expressions
 *	dump/progress.c     how far a large file has been read
 *  dump/decode.c       decodes a frame into a view: its parts, and errors in it
 *  dump/record.c       decodes a message record into a view
 *	dump/shape.c        tables of the fields of frames, messages, records
 *	dump/walk.c         goes through a frame by these tables
 *	dump/frames.c       frames as text and as JSON, counts
 *	dump/json.c         commas and escapes
 *  dump/verdict.c      what was wrong: the first lines
 *  dump/options.c      which messages are selected
 *  dump/list.c         messages, a line each; problems of messages
 *	dump/timeline.c     one message over its lanes, as text
 *	dump/svg.c          pictures: a message, the lanes
 *	dump/html.c         a report for others to read
 *	dump/merge.c        several captures, in the order of one clock
 *
 * dump/trace.h has the analysis of several captures together.
 */
#ifndef DUMP_DUMP_H
#define DUMP_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/file.h"

#define DUMP_FILES 64

struct dump_options {
	bool frames, wrong, json, csv;
	bool messages;
	bool all;         /**< no limit for lanes and faults */
	uint64_t slowest; /**< number of the slowest messages to print */
	uint64_t message; /**< its time line; 0 = none */
	const char *graph, *html;
	/* Which messages are selected. */
	const char *peer;
	bool has_tag;
	uint64_t tag, size_from, size_to;
	uint64_t time_from, time_to; /**< ns since the first frame */
	uint64_t took;               /**< ns, at least */
	uint64_t number;             /**< of frames of each file; 0 = all */
	struct dump_filter *filter;
	char *const *names;
	unsigned int num_names;
};

/** Reads all captures and reports. @return APP_OK or an exit code (dump/merge.c) */
int dump_analyse(const struct dump_options *o);
/** Print the errors of a file that has been read. @return whether it is damaged */
bool dump_file_complain(const struct dump_file *file);

/* dump/options.c: values of options. @return 0, or -EINVAL after an error message */
int dump_option_tag(struct dump_options *o, const char *value);
int dump_option_size(struct dump_options *o, const char *value);
int dump_option_time(struct dump_options *o, const char *value);
int dump_option_took(struct dump_options *o, const char *value);

/* dump/filter.c */
struct dump_filter;
/** @return NULL: @p why names the error in the expression */
struct dump_filter *dump_filter_make(const char *expression, char *why, size_t why_len);
bool dump_filter_takes(const struct dump_filter *filter, const struct dump_frame *frame);
void dump_filter_free(struct dump_filter *filter);

/* dump/progress.c: on standard error, if that is a terminal. */
struct dump_progress {
	uint64_t size; /**< of the file; 0 = not known */
	uint64_t next; /**< bytes at which the next line is printed */
	bool shown;
};

void dump_progress_begin(struct dump_progress *p, const struct dump_file *file);
void dump_progress(struct dump_progress *p, const struct dump_file *file);
void dump_progress_end(struct dump_progress *p);

#endif /* DUMP_DUMP_H */
