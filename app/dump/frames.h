/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/frames.h
 * Prints frames one by one, as text or as JSON (one object a line), and how many of each kind there
 * were.
 */
#ifndef DUMP_FRAMES_H
#define DUMP_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dump/decode.h"
#include "dump/json.h"

void dump_frame_text(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view);
void dump_frame_json(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view);

/** A time of day in UTC with ns: "2026-11-22 19:54:25.123456789". @return buf */
const char *dump_time_text(uint64_t ns, char *buf, size_t size);

struct dump_counts {
	uint64_t frames, records, wrong, arp, nd, other, cut, roce;
	uint64_t sealed;    /**< sealed frames that no key has opened */
	uint64_t type[256]; /**< valid lane frames, by type */
	uint64_t wireup[256], msg[256];
};

/** Count a frame and its messages. @return NULL, or what is wrong with one of them */
const char *dump_count(struct dump_counts *counts, const struct dump_view *view);
void dump_counts_text(FILE *out, const struct dump_counts *counts);
/** Write the counts as members of the object that is open. */
void dump_counts_json(struct json *j, const struct dump_counts *counts);

/**
 * The version of every object of JSON, and of every row of CSV (doc/formats.md). It changes when a
 * field gets another meaning, type or unit, or is removed.
 */
#define DUMP_FORMAT_VERSION 2

/* ---- the walk over a frame */

/*
 * A sink receives all fields of a lane frame in the order of its bytes, by the tables of
 * dump/shapes.h. The sinks of frames.c print text or JSON.
 */

struct dump_sink {
	/** An item begins; consecutive items with an equal list name form one list. */
	void (*begin)(struct dump_sink *sink, const char *list, const char *name);
	void (*end)(struct dump_sink *sink);
	void (*value)(struct dump_sink *sink, const struct dump_field *field, const uint8_t *at);
	/** @param text  printable */
	void (*text)(struct dump_sink *sink, const char *name, const char *text);
	void (*bytes)(struct dump_sink *sink, uint32_t n);
	/** The item that has begun contradicts the wire format. */
	void (*wrong)(struct dump_sink *sink, const char *why);
};

#endif /* DUMP_FRAMES_H */
