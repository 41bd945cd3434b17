/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/options.h
 * The options of weft-dump.
 */
#ifndef DUMP_OPTIONS_H
#define DUMP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/file.h"

struct dump_options {
	char *const *names; /**< names of captures */
	unsigned int num_names;
	bool frames, wrong, json, csv;
	bool messages;
	bool decrypt;     /**< sealed frames become plain ones in the slice */
	bool all;         /**< no limit for lanes and faults */
	uint64_t every;   /**< ns between reports while reading; 0 = none */
	uint64_t slowest; /**< number of the slowest messages to print */
	uint64_t message; /**< number of the message whose time line is shown; 0 = none */
	const char *graph, *html, *slice, *trace;
	const char *lane; /**< frames of the interface of this name only */
	/* Which messages are selected. */
	const char *peer;
	bool has_tag;
	uint64_t tag, size_from, size_to;
	uint64_t time_from, time_to; /**< ns since the first frame */
	uint64_t took;               /**< ns, at least */
	uint64_t number;             /**< number of frames that are read of each file; 0 = all */
	struct dump_filter *filter;
	struct dump_keylog *keylog; /**< NULL = none */
};

/** The next frame of a capture, up to --number. */
bool dump_options_next(const struct dump_options *o, struct dump_file *file,
		       struct dump_frame *frame);
/** Do the options select this frame? --lane is not among them: messages go over all lanes. */
bool dump_options_take(const struct dump_options *o, const struct dump_frame *frame);

/** @return APP_OK, an exit code after an error message, or -1: all is done, end with 0 */
int dump_options_read(struct dump_options *o, int argc, char **argv);
void dump_options_free(struct dump_options *o);

#endif /* DUMP_OPTIONS_H */
