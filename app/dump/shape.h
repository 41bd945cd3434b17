/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/shape.h
 * The layout of frames, messages and records, as tables: names, offsets, sizes and kinds of the
 * fields. The tables are made from lib/core/wire.def, as those of the dissector are, and printing
 * uses these tables alone. A new message needs no change here.
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
	DUMP_RECORDS,    /**< type, length, bytes; @p record has the types */
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
	/** by type, without a name where there is none */
	const struct dump_shape *record;
	uint16_t num_records;
};

extern const struct dump_shape dump_shape_frame_hdr;
extern const struct dump_shape dump_shape_frame_ecn_path;
extern const struct dump_shape dump_shape_frame_addr; /**< address of a raw lane */
extern const struct dump_shape dump_shape_wire_iface;
extern const struct dump_shape dump_shape_record_head;
extern const struct dump_shape dump_shape_record_native;

/** @return NULL: there is none */
const struct dump_shape *dump_shape_of_frame(uint8_t type);
const struct dump_shape *dump_shape_of_msg(uint8_t id);
/** The shape of a message that follows EXT. */
const struct dump_shape *dump_shape_behind_ext(uint8_t id);
const struct dump_shape *dump_shape_of_record(const struct dump_shape *shape, uint16_t type);

/** The name of a value, or NULL. */
const char *dump_word(const struct dump_field *field, uint64_t value);

#endif /* DUMP_SHAPE_H */
