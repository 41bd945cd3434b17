/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/merge.h
 * Several captures, frame by frame, in the order of one clock; a part of them as one capture, for
 * Wireshark.
 */
#ifndef DUMP_MERGE_H
#define DUMP_MERGE_H

#include "dump/clock.h"
#include "dump/file.h"

struct dump_options;
struct msg_watch;

struct merge_reader {
	struct dump_file *file;
	struct dump_frame frame;
	uint64_t time; /**< time of the frame, common clock */
	bool has;
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
 * Find out what the captures are: this reads them once.
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

#endif /* DUMP_MERGE_H */
