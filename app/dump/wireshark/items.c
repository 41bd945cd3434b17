/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/wireshark/items.h"

#include <string.h>

#include "core/wire_conn_def.h"
#include "core/wire_def.h"
#include "core/wire_frame_def.h"
#include "dump/wireshark/learn.h"

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

/* A shape with Wireshark's numbers of its fields. */
struct shape {
	const struct dump_shape *shape;
	const char *title; /* the name in capitals */
	int **field;       /* one for each field of the shape */
	int *bytes;        /* field for the number of bytes behind the shape; NULL: none follow */
};

/* Wireshark keeps pointers to all of these until it ends. */
static GArray *infos;        /* hf_register_info */
static GHashTable *by_name;  /* name of a field -> its number */
static GHashTable *by_shape; /* struct dump_shape -> struct shape */

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
	struct shape *all = g_new0(struct shape, 1);

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

static const struct shape *shape_of(const struct dump_shape *shape)
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

/* ---- items ---------------------------------------------------------------------------------- */

static struct dissect_part behind(struct dissect_part p, uint32_t n)
{
	p.at += n;
	p.len -= n;
	return p;
}

static struct dissect_part first(struct dissect_part p, uint32_t n)
{
	p.len = n < p.len ? n : p.len;
	return p;
}

static const void *bytes_of(const struct dissect_part *p)
{
	return p->raw + p->at;
}

void dissect_items_number(proto_tree *tree, const int *field, uint32_t number)
{
	proto_item_set_generated(proto_tree_add_uint(tree, *field, NULL, 0, 0, number));
}

void dissect_items_fields(proto_tree *tree, const struct dump_shape *s, struct dissect_part p)
{
	const struct shape *d = tree ? shape_of(s) : NULL;

	for (unsigned int i = 0; d && i < s->num_fields; i++) {
		const struct dump_field *f = &s->field[i];

		if (f->offset + f->size <= p.len)
			proto_tree_add_item(tree, *d->field[i], p.tvb, (int)(p.at + f->offset),
					    f->size,
					    f->kind == DUMP_MAC ? ENC_NA : ENC_LITTLE_ENDIAN);
	}
}

static proto_tree *subtree(proto_tree *tree, struct dissect_part p, const char *text)
{
	proto_item *item =
		proto_tree_add_item(tree, dissect_ids.weft, p.tvb, (int)p.at, (int)p.len, ENC_NA);

	proto_item_set_text(item, "%s", text);
	return proto_item_add_subtree(item, dissect_ids.tree);
}

/* ---- records -------------------------------------------------------------------------------- */

static void record(proto_tree *tree, const struct dump_shape *known, uint16_t type,
		   struct dissect_part p)
{
	const struct dump_shape *credit = dump_shape_of_msg(WEFT_WIRE_CREDIT);
	const struct dump_shape *s = dump_shape_of_record(known, type);
	proto_tree *item;

	if (!s || p.len < s->size)
		s = &dissect_unknown;
	item = dissect_items_add(tree, s, p, s->name);
	if (s == dump_shape_of_record(credit, WEFT_MSG_RECORD_WINDOW))
		expert_add_info(p.pinfo, item, &dissect_ids.e_credit);
}

/* @return false: the records do not fill the bytes of @p p */
static bool records(proto_tree *tree, const struct dump_shape *known, struct dissect_part p)
{
	const struct weft_wire_record *r;
	const struct dump_shape *s;
	uint32_t len;

	while (p.len >= sizeof(*r)) {
		r = bytes_of(&p);
		len = weft_get16(r->length);
		s = dump_shape_of_record(known, weft_get16(r->type));
		if (len > p.len - sizeof(*r))
			return false;
		if (len > 0)
			record(tree, known, weft_get16(r->type), first(behind(p, sizeof(*r)), len));
		else
			subtree(tree, first(p, sizeof(*r)),
				s && s->size == 0 ? s->name : dissect_unknown.name);
		p = behind(p, (uint32_t)sizeof(*r) + len);
	}
	return p.len == 0;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static bool is_raw(const uint8_t *driver, uint32_t len)
{
	return (len == 4 && !memcmp(driver, "dpdk", 4)) || (len == 3 && !memcmp(driver, "udp", 3));
}

/* An interface of exactly these bytes. */
static void iface(proto_tree *tree, struct dissect_part p)
{
	const struct weft_wire_iface *i = bytes_of(&p);
	struct dissect_part driver = first(behind(p, sizeof(*i)), i->driver_len);
	struct dissect_part addr = behind(p, (uint32_t)sizeof(*i) + i->driver_len);
	proto_tree *item = subtree(tree, p, dump_shape_wire_iface.name);

	dissect_items_fields(item, &dump_shape_wire_iface, p);
	proto_tree_add_item(item, *dissect_ids.driver, p.tvb, (int)driver.at, (int)driver.len,
			    ENC_ASCII);
	if (addr.len >= dump_shape_frame_addr.size && is_raw(bytes_of(&driver), driver.len))
		dissect_items_fields(item, &dump_shape_frame_addr, addr);
}

/* The name and the interfaces of a worker address. */
static void worker_address(proto_tree *tree, struct dissect_part p)
{
	const struct weft_wire_address *a = bytes_of(&p);
	unsigned int left = a->num_ifaces;
	const struct weft_wire_iface *i;
	proto_item *none;
	uint32_t all;

	p = behind(p, sizeof(*a));
	if (a->name_len > 0 && a->name_len <= p.len) {
		proto_tree_add_item(tree, *dissect_ids.name, p.tvb, (int)p.at, a->name_len,
				    ENC_ASCII);
	} else {
		none = proto_tree_add_string(tree, *dissect_ids.name, NULL, 0, 0, "");
		proto_item_set_generated(none);
	}
	if (a->name_len > p.len)
		return;
	p = behind(p, a->name_len);
	while (left-- && p.len >= sizeof(*i)) {
		i = bytes_of(&p);
		all = (uint32_t)sizeof(*i) + i->driver_len + i->addr_len;
		if (all > p.len)
			return;
		iface(tree, first(p, all));
		p = behind(p, all);
	}
}

/* ---- what follows the fields ---------------------------------------------------------------- */

static void byte_count(proto_tree *tree, const struct dump_shape *s, uint32_t n)
{
	if (tree)
		dissect_items_number(tree, shape_of(s)->bytes, n);
}

/* The message behind an EXT. */
static void inner(proto_tree *tree, const struct weft_wire_ext *x, struct dissect_part p)
{
	const struct dump_shape *s = dump_shape_behind_ext(x->id);

	if (s && s->rest != DUMP_MESSAGE && p.len >= s->size)
		dissect_items_add(tree, s, p, s->name);
}

static bool is_fragment(const struct dump_shape *s, const struct weft_wire_wireup *w, uint32_t left)
{
	return s == dump_shape_of_msg(WEFT_WIRE_WIREUP) && weft_get16(w->total) != left;
}

/* @param p  has all fields of the shape. @return false: the records do not fill @p p */
static bool rest_of(proto_tree *tree, const struct dump_shape *s, struct dissect_part p)
{
	const struct weft_wire_am_rts *am = bytes_of(&p);
	struct dissect_part rest = behind(p, s->size);
	uint16_t user;

	if (s->rest == DUMP_BYTES || (s->rest && is_fragment(s, bytes_of(&p), rest.len))) {
		byte_count(tree, s, rest.len);
	} else if (s->rest == DUMP_TEXT) {
		proto_tree_add_item(tree, *dissect_ids.text, p.tvb, (int)p.at, (int)p.len,
				    ENC_ASCII);
	} else if (s->rest == DUMP_ADDRESS) {
		worker_address(tree, p);
	} else if (rest.len == 0) {
		return true;
	} else if (s->rest == DUMP_MESSAGE) {
		inner(tree, bytes_of(&p), rest);
	} else if (s->rest == DUMP_ITEMS) {
		for (; rest.len >= s->item->size; rest = behind(rest, s->item->size))
			dissect_items_add(tree, s->item, first(rest, s->item->size), s->item->name);
	} else if (s->rest == DUMP_RECORDS) {
		return records(tree, s, rest);
	} else if (s->rest == DUMP_AM_RECORDS) {
		user = weft_get16(am->header_length);
		return user >= rest.len || records(tree, s, behind(rest, user));
	}
	return true;
}

proto_tree *dissect_items_add(proto_tree *tree, const struct dump_shape *s, struct dissect_part p,
			      const char *text)
{
	proto_tree *item = subtree(tree, p, text);

	dissect_items_fields(item, s, p);
	if (p.len >= s->size && !rest_of(item, s, p))
		expert_add_info_format(p.pinfo, item, &dissect_ids.e_wrong,
				       "Records that do not fill their message");
	return item;
}

/* ---- messages ------------------------------------------------------------------------------- */

const char *dissect_items_read(uint8_t id, struct dissect_part p, uint64_t conn)
{
	const struct dump_shape *s = dump_shape_of_msg(id);
	const uint8_t *data = bytes_of(&p);
	const char *word = NULL;

	if (!s)
		return "UNKNOWN";
	if (dissect_is_piece(id) && p.len >= s->size && !p.pinfo->fd->visited)
		dissect_learn_piece(p.pinfo, id, data, conn);
	if (id == WEFT_WIRE_WIREUP && p.len > 0)
		word = dissect_word(s, offsetof(struct weft_wire_wireup, type), data[0]);
	return word ? word : shape_of(s)->title;
}

static void links(proto_tree *item, packet_info *pinfo, uint32_t pieces)
{
	const struct dissect_note *note = dissect_note(pinfo);
	const struct dissect_piece *p;

	if (!note || !note->pieces || pieces > wmem_array_get_count(note->pieces))
		return;
	p = wmem_array_index(note->pieces, pieces - 1);
	dissect_items_number(item, dissect_ids.first, p->first);
	dissect_items_number(item, dissect_ids.nth, p->nth);
	if (p->nth > 1)
		dissect_items_number(item, dissect_ids.before, p->before);
}

void dissect_items_message(proto_tree *tree, uint8_t id, struct dissect_part p, uint32_t len,
			   uint32_t pieces)
{
	const struct dump_shape *s = dump_shape_of_msg(id);
	const bool is_short = s && p.len < s->size && len < s->size;
	proto_tree *item;

	if (!s) {
		item = dissect_items_add(tree, &dissect_unknown, p,
					 wmem_strdup_printf(p.pinfo->pool, "message %u", id));
		expert_add_info_format(p.pinfo, item, &dissect_ids.e_wrong, "Message id %u", id);
		return;
	}
	item = dissect_items_add(tree, is_short ? &dissect_unknown : s, p, shape_of(s)->title);
	if (dissect_is_piece(id) && p.len >= s->size)
		links(item, p.pinfo, pieces);
}
