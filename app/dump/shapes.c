/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/shapes.h"

#include <stddef.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define DUMP_WORDS(table) .words = (table), .num_words = COUNT(table)
#define DUMP_FIELDS(table) .field = (table), .num_fields = COUNT(table)
#define DUMP_KNOWN(table) .record = (table), .num_records = COUNT(table)

#include "wire_shapes.h"

static const struct dump_shape *named(const struct dump_shape *table, size_t count, unsigned int i)
{
	return i < count && table[i].name ? &table[i] : NULL;
}

const struct dump_shape *dump_shape_of_frame(uint8_t type)
{
	return named(frames, COUNT(frames), type);
}

const struct dump_shape *dump_shape_of_msg(uint8_t id)
{
	return named(messages, COUNT(messages), id);
}

const struct dump_shape *dump_shape_behind_ext(uint8_t id)
{
	const struct dump_shape *other = named(behind_ext, COUNT(behind_ext), id);

	return other ? other : dump_shape_of_msg(id);
}

const struct dump_shape *dump_shape_of_record(const struct dump_shape *shape, uint16_t type)
{
	return named(shape->record, shape->num_records, type);
}

const char *dump_word(const struct dump_field *field, uint64_t value)
{
	return value < field->num_words ? field->words[value] : NULL;
}

/* Call @p each for the shapes of a table, and for those of their items. */
static void each_of(const struct dump_shape *table, size_t count,
		    void (*each)(const struct dump_shape *shape))
{
	for (size_t i = 0; i < count; i++) {
		if (!table[i].name)
			continue;
		each(&table[i]);
		if (table[i].item)
			each(table[i].item);
	}
}

void dump_shapes_each(void (*each)(const struct dump_shape *shape))
{
	static const struct dump_shape *const alone[] = {
		&dump_shape_frame_hdr,     &dump_shape_frame_ecn_path, &dump_shape_frame_progress,
		&dump_shape_frame_addr,    &dump_shape_wire_iface,     &dump_shape_record_head,
		&dump_shape_record_native,
	};

	for (size_t i = 0; i < COUNT(alone); i++)
		each(alone[i]);
	each_of(records_msg, COUNT(records_msg), each);
	each_of(records_wireup, COUNT(records_wireup), each);
	each_of(messages, COUNT(messages), each);
	each_of(behind_ext, COUNT(behind_ext), each);
	each_of(frames, COUNT(frames), each);
}
