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

struct dump_counts {
	uint64_t frames, wrong, arp, other, cut;
	unsigned int damaged; /**< files */
	uint64_t type[256];   /**< lane frames that are right */
	uint64_t wireup[256], msg[256];
};

/** @return NULL, or what is wrong with the frame or one of its messages */
const char *dump_count(struct dump_counts *counts, const struct dump_view *view);
void dump_counts_text(FILE *out, const struct dump_counts *counts);
void dump_counts_json(FILE *out, const struct dump_counts *counts);

#endif /* DUMP_FRAMES_H */
