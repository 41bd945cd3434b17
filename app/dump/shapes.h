/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/shapes.h
 * Frames, messages and records as tables: names, offsets, sizes and kinds of the fields. The tables
 * are made from lib/core/wire.def. weft-dump and Wireshark's plugin print by these tables alone, so
 * a new message needs no change of their code.
 */
#ifndef DUMP_SHAPES_H
#define DUMP_SHAPES_H

#include <stdint.h>

enum dump_kind { DUMP_DEC, DUMP_HEX, DUMP_SINGLE, DUMP_IP, DUMP_MAC };

struct dump_field {
	const char *name;
	uint8_t kind; /**< enum dump_kind */
	uint8_t size;
	uint16_t offset;
	/** names of the field's values, by value from 0 on; NULL = its values have no names */
	const char *const *words;
	unsigned int num_words;
};

/** What follows the fields of a shape. */
enum dump_rest {
	DUMP_NOTHING,
	DUMP_BYTES,      /**< payload: only its length is shown */
	DUMP_TEXT,       /**< text of a peer, to the end */
	DUMP_ITEMS,      /**< the shape in `item`, repeated to the end */
	DUMP_RECORDS,    /**< records of type, length and bytes; `record` has their shapes */
	DUMP_AM_RECORDS, /**< DUMP_RECORDS after the user's header of an active message */
	DUMP_MESSAGES,   /**< the messages of a DATA frame */
	DUMP_MESSAGE,    /**< one message, whose first byte is the id */
	DUMP_ADDRESS,    /**< the name and the interfaces of a worker address */
};

struct dump_shape {
	const char *name;
	const struct dump_field *field;
	uint16_t num_fields;
	uint16_t size; /**< bytes of the struct */
	uint8_t rest;  /**< enum dump_rest */
	const struct dump_shape *item;
	/** the records by type; an entry without a name = there is none of this type */
	const struct dump_shape *record;
	uint16_t num_records;
};

extern const struct dump_shape dump_shape_frame_hdr;
extern const struct dump_shape dump_shape_frame_ecn_path;
extern const struct dump_shape dump_shape_frame_progress;
extern const struct dump_shape dump_shape_frame_addr; /**< address of a raw lane */
extern const struct dump_shape dump_shape_wire_iface;
extern const struct dump_shape dump_shape_record_head;
extern const struct dump_shape dump_shape_record_native;

/** Names of the bits of the lane header's flags; NULL = an unknown bit. */
#define DUMP_FLAGS 16u
extern const char *const dump_frame_flags[DUMP_FLAGS];

/** @return NULL: the wire format has no such frame, message or record */
const struct dump_shape *dump_shape_of_frame(uint8_t type);
const struct dump_shape *dump_shape_of_msg(uint8_t id);
/** The shape of a message that follows EXT. */
const struct dump_shape *dump_shape_behind_ext(uint8_t id);
const struct dump_shape *dump_shape_of_record(const struct dump_shape *shape, uint16_t type);

/** Call @p each for each shape, for some shapes more than once. */
void dump_shapes_each(void (*each)(const struct dump_shape *shape));

/** The name of a value of the field, or NULL: the value has no name. */
const char *dump_word(const struct dump_field *field, uint64_t value);

#endif /* DUMP_SHAPES_H */
