/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/walk.h
 * Walks over all fields of a lane frame in the order of its bytes, by the tables of dump/shape.h,
 * and calls a sink for each: that of dump/frames.c prints text or JSON.
 */
#ifndef DUMP_WALK_H
#define DUMP_WALK_H

#include "dump/decode.h"
#include "dump/shape.h"

struct dump_sink {
	/** An item begins; consecutive items with an equal list name form one list. */
	void (*begin)(struct dump_sink *sink, const char *list, const char *name);
	void (*end)(struct dump_sink *sink);
	void (*value)(struct dump_sink *sink, const struct dump_field *field, const uint8_t *at);
	/** @param text  printable */
	void (*text)(struct dump_sink *sink, const char *name, const char *text);
	void (*bytes)(struct dump_sink *sink, uint32_t n);
	/** The error in the item that has begun. */
	void (*wrong)(struct dump_sink *sink, const char *why);
};

void dump_walk(const struct dump_view *view, struct dump_sink *sink);

/** A field's value, of at most 8 bytes, little-endian. */
uint64_t dump_value(const struct dump_field *field, const uint8_t *at);

#endif /* DUMP_WALK_H */
