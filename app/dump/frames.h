/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/frames.h
 * Prints frames one by one, as text or as JSON (one object a line), and how many of each kind there
 * were.
 */
#ifndef DUMP_FRAMES_H
#define DUMP_FRAMES_H

#include <stdio.h>

#include "dump/decode.h"

void dump_frame_text(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view);
void dump_frame_json(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view);

/** A time of day in UTC with ns: "2026-11-22 19:54:25.123456789". @return buf */
const char *dump_time_text(uint64_t ns, char *buf, size_t size);

struct dump_counts {
	uint64_t frames, records, wrong, arp, other, cut;
	uint64_t type[256]; /**< lane frames that are right */
	uint64_t wireup[256], msg[256];
};

/** Count a frame and its messages. @return NULL, or what is wrong with one of them */
const char *dump_count(struct dump_counts *counts, const struct dump_view *view);
void dump_counts_text(FILE *out, const struct dump_counts *counts);
struct json;
/** Members of the object that is open. */
void dump_counts_json(struct json *j, const struct dump_counts *counts);

#endif /* DUMP_FRAMES_H */
