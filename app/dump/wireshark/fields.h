/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/wireshark/fields.h
 * The fields and the expert information that Wireshark's plugin registers. Most fields are those of
 * the tables of dump/shapes.h, and are named as in weft-dump's JSON.
 */
#ifndef DUMP_WIRESHARK_FIELDS_H
#define DUMP_WIRESHARK_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include <epan/expert.h>
#include <epan/packet.h>

#include "dump/shapes.h"

/** Numbers that Wireshark has given to what belongs to no shape. */
struct dissect_ids {
	int weft, record; /**< protocols */
	int tree;         /**< the state of trees: open or closed */
	int *text, *name, *driver, *word, *crc, *flag[DUMP_FLAGS];
	int *again, *twice, *first, *before, *nth, *missing, *answer, *question, *response, *stream;
	expert_field e_again, e_twice, e_reset, e_wrong, e_search, e_moved, e_missing, e_silent,
		e_credit, e_spent;
};

extern struct dissect_ids dissect_ids;

/** A shape, with Wireshark's numbers of its fields. */
struct dissect_shape {
	const struct dump_shape *shape;
	const char *title; /**< the name in capitals */
	int **field;       /**< one for each field of the shape */
	int *bytes;        /**< of a shape that something follows */
};

const struct dissect_shape *dissect_shape(const struct dump_shape *shape);

/** The name of the value of the shape's field at an offset, or NULL. */
const char *dissect_word(const struct dump_shape *shape, size_t offset, uint64_t value);

/** The shape of messages and records whose number is unknown. */
extern const struct dump_shape dissect_unknown;

/** Register protocols, fields and expert information: once, before any packet. */
void dissect_fields_register(void);

#endif /* DUMP_WIRESHARK_FIELDS_H */
