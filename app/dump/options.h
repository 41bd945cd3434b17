/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/options.h
 * The options of weft-dump. The reader of several captures, frame by frame, in the order of one
 * clock. The writer of a slice: selected frames of all captures as one capture, for Wireshark.
 */
#ifndef DUMP_OPTIONS_H
#define DUMP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/clock.h"
#include "dump/file.h"

struct dump_options {
	char *const *names; /**< names of captures */
	unsigned int num_names;
	bool frames, wrong, json, csv;
	bool messages;
	bool decrypt;     /**< sealed frames become plain ones in the slice */
	bool all;         /**< lanes and faults are printed without a limit */
	uint64_t every;   /**< ns between reports while reading; 0 = none */
	uint64_t slowest; /**< number of the slowest messages to print */
	uint64_t message; /**< number of the message whose time line is shown; 0 = none */
	const char *graph, *html, *points, *slice, *trace;
	const char *lane; /**< with slice: only frames of the lane of this name */
	/* Which messages are selected. */
	const char *peer;
	bool has_tag;
	uint64_t tag, size_from, size_to;
	uint64_t time_from, time_to; /**< ns since the first frame */
	uint64_t took;               /**< least duration of a message, ns */
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

/* ---- reading */

struct msg_watch;

struct merge_reader {
	struct dump_file *file;
	struct dump_frame frame;
	uint64_t time; /**< time of the frame, common clock, ns */
	bool has;      /**< `frame` is valid: the capture has not ended */
};

struct merge {
	const struct dump_options *o;
	struct merge_reader reader[DUMP_FILES], *last;
	struct dump_file *file[DUMP_FILES];
	struct trace_clock clock[DUMP_FILES];
	struct survey survey;
	struct dump_progress progress;
	unsigned int num;
	bool begun;
};

/**
 * Read the captures once, to find out what they are.
 * @return APP_OK, or an exit code after an error message
 */
int merge_survey(struct merge *m, const struct dump_options *o);

/** Open the captures. They can be opened again after merge_close(). @return as merge_survey() */
int merge_open(struct merge *m);

/** The next frame of all captures, valid until the next call. @return NULL: there is none */
struct merge_reader *merge_next(struct merge *m);

void merge_close(struct merge *m);
void merge_free(struct merge *m);

/** Print the errors of a file that has been read. @return whether it is damaged */
bool merge_complain(const struct dump_file *file);

/**
 * Write the selected frames of all captures to the file of the options.
 * @param w  only frames of this message and their acknowledgements; NULL = all frames
 * @return APP_OK or an exit code after an error message
 */
int slice_write(struct merge *m, const struct msg_watch *w);

#endif /* DUMP_OPTIONS_H */
