/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/wireshark/fields.h"

#include <string.h>

struct dissect_ids dissect_ids = {
	.weft = -1,
	.record = -1,
	.tree = -1,
	.e_again = EI_INIT,
	.e_twice = EI_INIT,
	.e_reset = EI_INIT,
	.e_wrong = EI_INIT,
	.e_search = EI_INIT,
	.e_moved = EI_INIT,
	.e_missing = EI_INIT,
	.e_silent = EI_INIT,
	.e_credit = EI_INIT,
	.e_spent = EI_INIT,
};

const struct dump_shape dissect_unknown = {.name = "unknown", .rest = DUMP_BYTES};

/* Wireshark keeps pointers to all of these until it ends. */
static GArray *infos;        /* hf_register_info */
static GHashTable *by_name;  /* name of a field -> its number */
static GHashTable *by_shape; /* struct dump_shape -> struct dissect_shape */

/* Shapes of one name share their fields. */
static int *declare(const char *abbrev, const char *name, enum ftenum type, int display,
		    const void *strings, uint64_t mask)
{
	int *id = g_hash_table_lookup(by_name, abbrev);
	hf_register_info info = {
		.hfinfo = {name, abbrev, type, display, strings, mask, NULL, HFILL}};

	if (id)
		return id;
	id = g_new(int, 1);
	*id = -1;
	info.p_id = id;
	g_array_append_val(infos, info);
	g_hash_table_insert(by_name, (void *)(uintptr_t)abbrev, id);
	return id;
}

/* ---- fields of the tables ------------------------------------------------------------------- */

static const void *strings_of(const struct dump_field *f)
{
	GArray *all = g_array_new(TRUE, TRUE, sizeof(value_string));

	if (!f->words)
		return NULL;
	for (unsigned int i = 0; i < f->num_words; i++) {
		value_string one = {i, f->words[i]};

		if (f->words[i])
			g_array_append_val(all, one);
	}
	return g_array_free(all, FALSE);
}

static enum ftenum integer(unsigned int size)
{
	return size == 1 ? FT_UINT8 : size == 2 ? FT_UINT16 : size == 4 ? FT_UINT32 : FT_UINT64;
}

static int *declare_field(const char *prefix, const struct dump_field *f)
{
	const char *abbrev = g_strconcat(prefix, f->name, NULL);

	switch (f->kind) {
	case DUMP_SINGLE:
		return declare(abbrev, f->name, FT_FLOAT, BASE_NONE, NULL, 0);
	case DUMP_IP:
		return declare(abbrev, f->name, FT_IPv4, BASE_NONE, NULL, 0);
	case DUMP_MAC:
		return declare(abbrev, f->name, FT_ETHER, BASE_NONE, NULL, 0);
	default:
		return declare(abbrev, f->name, integer(f->size),
			       f->kind == DUMP_HEX ? BASE_HEX : BASE_DEC, strings_of(f), 0);
	}
}

/* Fields of the lane header have no name in front: weft.type. */
static void declare_shape(const struct dump_shape *s)
{
	const char *prefix =
		s == &dump_shape_frame_hdr ? "weft." : g_strconcat("weft.", s->name, ".", NULL);
	struct dissect_shape *all = g_new0(struct dissect_shape, 1);

	if (g_hash_table_lookup(by_shape, s)) {
		g_free(all);
		return;
	}
	all->shape = s;
	all->title = g_ascii_strup(s->name, -1);
	all->field = g_new0(int *, s->num_fields + 1u);
	for (unsigned int i = 0; i < s->num_fields; i++)
		all->field[i] = declare_field(prefix, &s->field[i]);
	if (s->rest)
		all->bytes = declare(g_strconcat(prefix, "bytes", NULL), "bytes", FT_UINT32,
				     BASE_DEC, NULL, 0);
	g_hash_table_insert(by_shape, (void *)(uintptr_t)s, all);
}

const struct dissect_shape *dissect_shape(const struct dump_shape *shape)
{
	return g_hash_table_lookup(by_shape, shape);
}

const char *dissect_word(const struct dump_shape *shape, size_t offset, uint64_t value)
{
	for (unsigned int i = 0; i < shape->num_fields; i++)
		if (shape->field[i].offset == offset)
			return dump_word(&shape->field[i], value);
	return NULL;
}

/* ---- other fields --------------------------------------------------------------------------- */

static void declare_flags(void)
{
	for (unsigned int i = 0; i < DUMP_FLAGS; i++) {
		const char *name = dump_frame_flags[i];
		char *lower = name ? g_ascii_strdown(name, -1) : NULL;

		if (!name)
			continue;
		dissect_ids.flag[i] = declare(g_strconcat("weft.flags.", lower, NULL), name,
					      FT_BOOLEAN, 16, NULL, (uint64_t)1 << i);
		g_free(lower);
	}
}

static int *frame_number(const char *abbrev, const char *name)
{
	return declare(abbrev, name, FT_FRAMENUM, BASE_NONE, NULL, 0);
}

static int *number(const char *abbrev, const char *name, int display)
{
	return declare(abbrev, name, FT_UINT32, display, NULL, 0);
}

static int *text(const char *abbrev, const char *name)
{
	return declare(abbrev, name, FT_STRING, BASE_NONE, NULL, 0);
}

static void declare_others(struct dissect_ids *ids)
{
	ids->text = text("weft.text.text", "text");
	ids->name = text("weft.address.text", "worker's name");
	ids->driver = text("weft.iface.driver", "driver");
	ids->word = declare("weft.sack.word", "word", FT_UINT64, BASE_HEX, NULL, 0);
	ids->crc = number("weft.crc", "CRC32C", BASE_HEX);
	ids->again = frame_number("weft.retransmission_of", "Retransmission of");
	ids->twice = frame_number("weft.duplicate_of", "Duplicate of");
	ids->first = frame_number("weft.message_first", "First frame of this message");
	ids->before = frame_number("weft.message_before", "Frame before of this message");
	ids->nth = number("weft.message_frame", "Frame of this message", BASE_DEC);
	ids->missing = number("weft.missing", "Frames of its path missing before it", BASE_DEC);
	ids->answer = frame_number("weft.answer_in", "Answer in");
	ids->question = frame_number("weft.answer_to", "Answer to");
	ids->response = declare("weft.response_time", "Time since the question", FT_RELATIVE_TIME,
				BASE_NONE, NULL, 0);
	ids->stream = number("weft.stream", "Connection (both ways)", BASE_DEC);
}

static ei_register_info experts[] = {
	{&dissect_ids.e_again,
	 {"weft.expert.retransmission", PI_SEQUENCE, PI_NOTE, "Retransmission", EXPFILL}},
	{&dissect_ids.e_twice,
	 {"weft.expert.duplicate", PI_SEQUENCE, PI_NOTE, "Duplicate", EXPFILL}},
	{&dissect_ids.e_reset,
	 {"weft.expert.reset", PI_SEQUENCE, PI_WARN, "Connection is refused or unknown", EXPFILL}},
	{&dissect_ids.e_wrong,
	 {"weft.expert.wrong", PI_MALFORMED, PI_ERROR, "Contradicts the wire format", EXPFILL}},
	{&dissect_ids.e_search,
	 {"weft.expert.parts", PI_SEQUENCE, PI_WARN, "Frame in parts: the path's MTU is smaller",
	  EXPFILL}},
	{&dissect_ids.e_moved,
	 {"weft.expert.challenge", PI_SEQUENCE, PI_WARN, "The peer may have another MAC", EXPFILL}},
	{&dissect_ids.e_missing,
	 {"weft.expert.missing", PI_SEQUENCE, PI_NOTE,
	  "Frames of this path were lost before, or not captured", EXPFILL}},
	{&dissect_ids.e_silent,
	 {"weft.expert.unanswered", PI_SEQUENCE, PI_WARN, "No answer to this PROBE is captured",
	  EXPFILL}},
	{&dissect_ids.e_credit,
	 {"weft.expert.credit", PI_SEQUENCE, PI_WARN,
	  "Less credit: messages wait at this sender without a receive", EXPFILL}},
	{&dissect_ids.e_spent,
	 {"weft.expert.credit_spent", PI_SEQUENCE, PI_WARN,
	  "The credit is used up: further messages wait or are announced until CREDIT", EXPFILL}},
};

void dissect_fields_register(void)
{
	static int *trees[] = {&dissect_ids.tree};
	struct dissect_ids *ids = &dissect_ids;

	infos = g_array_new(FALSE, TRUE, sizeof(hf_register_info));
	by_name = g_hash_table_new(g_str_hash, g_str_equal);
	by_shape = g_hash_table_new(g_direct_hash, g_direct_equal);
	ids->weft = proto_register_protocol("Weft", "WEFT", "weft");
	ids->record = proto_register_protocol("Weft message record", "WEFT_RECORD", "weft_record");
	declare_shape(&dissect_unknown);
	dump_shapes_each(declare_shape);
	declare_flags();
	declare_others(ids);
	proto_register_field_array(ids->weft, (hf_register_info *)(void *)infos->data,
				   (int)infos->len);
	proto_register_subtree_array(trees, G_N_ELEMENTS(trees));
	expert_register_field_array(expert_register_protocol(ids->weft), experts,
				    G_N_ELEMENTS(experts));
}
