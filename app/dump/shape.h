/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/shape.h
 * The layout of frames, messages and records, as tables made from the library's own structs: names,
 * offsets, sizes and kinds of the fields. Printing uses these tables alone, so a new type takes one
 * entry (shape_frame.c, shape_msg.c), and one in weft.lua.
 */
#ifndef DUMP_SHAPE_H
#define DUMP_SHAPE_H

#include <stddef.h>
#include <stdint.h>

enum dump_kind { DUMP_DEC, DUMP_HEX, DUMP_SINGLE, DUMP_IP, DUMP_MAC };

struct dump_field {
	const char *name;
	uint8_t kind; /**< enum dump_kind */
	uint8_t size;
	uint16_t offset;
	/** names of its values, from 0 on; NULL = none */
	const char *const *words;
	unsigned int num_words;
};

/** What follows the fields. */
enum dump_rest {
	DUMP_NOTHING,
	DUMP_BYTES,      /**< payload: only its length is shown */
	DUMP_TEXT,       /**< of a peer */
	DUMP_ITEMS,      /**< @p item, repeated to the end */
	DUMP_RECORDS,    /**< type, length, bytes; @p records has the types */
	DUMP_AM_RECORDS, /**< as before, after the user's header of an active message */
	DUMP_MESSAGES,   /**< of a DATA frame */
	DUMP_MESSAGE,    /**< its first byte is the id */
	DUMP_ADDRESS,    /**< the name and the interfaces of a worker address */
};

struct dump_shape {
	const char *name;
	const struct dump_field *field;
	uint16_t num_fields;
	uint16_t size; /**< of the struct */
	uint8_t rest;  /**< enum dump_rest */
	const struct dump_shape *item;
	const struct dump_shape *(*record)(uint16_t type);
};

extern const struct dump_shape dump_shape_header; /**< struct weft_frame_hdr */
extern const struct dump_shape dump_shape_ecn_path;
extern const struct dump_shape dump_shape_iface;     /**< struct weft_wire_iface */
extern const struct dump_shape dump_shape_raw_iface; /**< address of a raw lane */

/** @return NULL: there is none */
const struct dump_shape *dump_shape_of_frame(uint8_t type);
const struct dump_shape *dump_shape_of_msg(uint8_t id);
/** The shape of a message that follows EXT. */
const struct dump_shape *dump_shape_behind_ext(uint8_t id);

/** The name of a value, or NULL. */
const char *dump_word(const struct dump_field *field, uint64_t value);

#define DUMP_FIELD_(n, k, type, m, ...)                                                            \
	{                                                                                          \
		.name = n, .kind = k, .size = sizeof(((type *)0)->m), .offset = offsetof(type, m), \
		__VA_ARGS__                                                                        \
	}
#define DUMP_DECIMAL(type, m) DUMP_FIELD_(#m, DUMP_DEC, type, m)
#define DUMP_HEXADECIMAL(type, m) DUMP_FIELD_(#m, DUMP_HEX, type, m)
#define DUMP_WORDS(type, m, names)                         \
	DUMP_FIELD_(#m, DUMP_DEC, type, m, .words = names, \
		    .num_words = sizeof(names) / sizeof((names)[0]))
/** A field within another struct, under a name of its own. */
#define DUMP_INNER(n, k, type, m) DUMP_FIELD_(n, k, type, m)
#define DUMP_REF(n, type, m) \
	DUMP_FIELD_(n, DUMP_DEC, type, m.index), DUMP_FIELD_(n "_gen", DUMP_DEC, type, m.generation)
#define DUMP_SHAPE(n, f, type, r, ...)                                           \
	{                                                                        \
		.name = n, .field = f, .num_fields = sizeof(f) / sizeof((f)[0]), \
		.size = sizeof(type), .rest = r, __VA_ARGS__                     \
	}

#endif /* DUMP_SHAPE_H */
