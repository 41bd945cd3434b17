/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/wireshark/items.h"

#include <string.h>

#include "core/wire_conn_def.h"
#include "core/wire_def.h"
#include "core/wire_frame_def.h"
#include "dump/wireshark/fields.h"
#include "dump/wireshark/learn.h"

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
	const struct dissect_shape *d = tree ? dissect_shape(s) : NULL;

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

/* @return false: they do not fill what there is */
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
		dissect_items_number(tree, dissect_shape(s)->bytes, n);
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

/* @p p has all fields. @return false: its records do not fill it */
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
	return word ? word : dissect_shape(s)->title;
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
	item = dissect_items_add(tree, is_short ? &dissect_unknown : s, p, dissect_shape(s)->title);
	if (dissect_is_piece(id) && p.len >= s->size)
		links(item, p.pinfo, pieces);
}
