/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/dump.h
 * weft-dump: a reader of captures, which doc/capture.md describes. The files:
 *
 *  dump/dump.c         options, several captures in the order of one clock, and what is printed
 *  dump/file.c         captures, frame by frame; filter expressions; how far a file has been read
 *  dump/decode.c       decodes a frame, or a record, into a view: its parts, and errors in it
 *  dump/shape.c        tables of the fields of frames, messages, records
 *  dump/frames.c       goes through a frame by these tables: text, JSON, counts
 *  dump/verdict.c      what was wrong: the first lines
 *  dump/list.c         which messages are selected; a line each; problems of messages
 *  dump/timeline.c     one message over its lanes as text, pictures, a report for others to read
 *
 * dump/trace.h has the analysis of several captures together.
 */
#ifndef DUMP_DUMP_H
#define DUMP_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/file.h"

#define DUMP_FILES 64

struct dump_filter;

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

#endif /* DUMP_DUMP_H */
