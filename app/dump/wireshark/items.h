/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/wireshark/items.h
 * Items of Wireshark's tree, and the fields and the expert information that the plugin registers.
 * Most are those of the tables of dump/shapes.h, and are named as in weft-dump's JSON.
 */
#ifndef DUMP_WIRESHARK_ITEMS_H
#define DUMP_WIRESHARK_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include <epan/expert.h>
#include <epan/packet.h>

#include "dump/shapes.h"

/** Bytes of a packet. The capture has all of them. */
struct dissect_part {
	packet_info *pinfo;
	tvbuff_t *tvb;
	const uint8_t *raw; /**< the bytes of @p tvb */
	uint32_t at, len;
};

/** Add the fields of a shape, as far as the bytes contain them. */
void dissect_items_fields(proto_tree *tree, const struct dump_shape *s, struct dissect_part p);

/**
 * Add a shape with everything that follows its fields, as a tree of its own.
 * @param text  label of the tree
 * @return the tree
 */
proto_tree *dissect_items_add(proto_tree *tree, const struct dump_shape *s, struct dissect_part p,
			      const char *text);

/**
 * Add a message to the tree.
 * @param p       bytes of the message after its head
 * @param len     length of the message, of which the capture may have less
 * @param pieces  number of pieces (dissect_is_piece()) in the frame up to this message
 */
void dissect_items_message(proto_tree *tree, uint8_t id, struct dissect_part p, uint32_t len,
			   uint32_t pieces);

/**
 * The name of a message. On the first pass over a packet, a piece of a message is learned.
 * @param conn  as in dissect_learn_piece()
 */
const char *dissect_items_read(uint8_t id, struct dissect_part p, uint64_t conn);

/** Add a number that is in no byte of the packet. */
void dissect_items_number(proto_tree *tree, const int *field, uint32_t number);

/* ---- fields --------------------------------------------------------------------------------- */

/** Ids that Wireshark has assigned to protocols, and to fields that belong to no shape. */
struct dissect_ids {
	int weft, record; /**< protocols */
	int tree;         /**< the state of trees: open or closed */
	int *text, *name, *driver, *word, *crc, *flag[DUMP_FLAGS];
	int *again, *twice, *first, *before, *nth, *missing, *answer, *question, *response, *stream;
	expert_field e_again, e_twice, e_reset, e_wrong, e_search, e_moved, e_missing, e_silent,
		e_credit, e_spent;
};

extern struct dissect_ids dissect_ids;

/** The name of the value of the shape's field at an offset, or NULL. */
const char *dissect_word(const struct dump_shape *shape, size_t offset, uint64_t value);

/** The shape of messages and records whose number is unknown. */
extern const struct dump_shape dissect_unknown;

/** Register protocols, fields and expert information: once, before any packet. */
void dissect_fields_register(void);

#endif /* DUMP_WIRESHARK_ITEMS_H */
