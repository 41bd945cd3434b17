/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/walk.h"

#include <string.h>

#include "base/text.h"
#include "dump/record.h"

#define TEXT_MAX 256

/* Bytes that a shape describes: those captured, and the length in the frame. */
struct stretch {
	const uint8_t *p;
	uint32_t len, cap;
};

static void rest_of(const struct dump_shape *shape, struct stretch s, struct dump_sink *sink);

uint64_t dump_value(const struct dump_field *field, const uint8_t *at)
{
	uint64_t v = 0;
	unsigned int i;

	for (i = field->size < 8 ? field->size : 8; i > 0; i--)
		v = v << 8 | at[i - 1];
	return v;
}

static struct stretch behind(struct stretch s, uint32_t n)
{
	if (n > s.len)
		n = s.len;
	s.p += n < s.cap ? n : s.cap;
	s.cap -= n < s.cap ? n : s.cap;
	s.len -= n;
	return s;
}

static struct stretch first(struct stretch s, uint32_t n)
{
	if (s.len > n)
		s.len = n;
	if (s.cap > n)
		s.cap = n;
	return s;
}

/* The fields that were captured. */
static void fields(const struct dump_shape *shape, const struct stretch *s, struct dump_sink *sink)
{
	const struct dump_field *f = shape->field;
	unsigned int i;

	for (i = 0; i < shape->num_fields; i++, f++)
		if ((uint32_t)f->offset + f->size <= s->cap)
			sink->value(sink, f, s->p + f->offset);
}

static void item(const char *list, const struct dump_shape *shape, struct stretch s,
		 const char *wrong, struct dump_sink *sink)
{
	sink->begin(sink, list, shape->name);
	if (wrong)
		sink->wrong(sink, wrong);
	fields(shape, &s, sink);
	if (!wrong)
		rest_of(shape, behind(s, shape->size), sink);
	sink->end(sink);
}

static void records(const struct dump_shape *shape, struct stretch s, struct dump_sink *sink)
{
	static const struct dump_shape unknown = {.name = "unknown", .rest = DUMP_BYTES};
	const struct weft_wire_record *r;
	const struct dump_shape *known;
	uint32_t len;

	while (s.cap >= sizeof(*r)) {
		r = (const void *)s.p;
		len = weft_get16(r->length);
		known = dump_shape_of_record(shape, weft_get16(r->type));
		s = behind(s, sizeof(*r));
		if (known && len < known->size)
			known = NULL;
		item("records", known ? known : &unknown, first(s, len), NULL, sink);
		s = behind(s, len);
	}
}

static void items(const struct dump_shape *shape, struct stretch s, struct dump_sink *sink)
{
	for (; s.cap >= shape->size; s = behind(s, shape->size))
		item("items", shape, first(s, shape->size), NULL, sink);
}

static void text(const char *name, struct stretch s, struct dump_sink *sink)
{
	char printable[TEXT_MAX];

	weft_text_copy(printable, sizeof(printable), s.p, s.cap);
	sink->text(sink, name, printable);
}

/* One interface of a worker address. @return the bytes after it */
static struct stretch iface(struct stretch s, struct dump_sink *sink)
{
	const struct weft_wire_iface *i = (const void *)s.p;
	struct stretch driver = first(behind(s, sizeof(*i)), i->driver_len),
		       addr = first(behind(s, (uint32_t)sizeof(*i) + i->driver_len), i->addr_len);

	sink->begin(sink, "items", dump_shape_wire_iface.name);
	fields(&dump_shape_wire_iface, &s, sink);
	text("driver", driver, sink);
	if (addr.cap >= dump_shape_frame_addr.size &&
	    ((driver.cap == 4 && !memcmp(driver.p, "dpdk", 4)) ||
	     (driver.cap == 3 && !memcmp(driver.p, "udp", 3))))
		fields(&dump_shape_frame_addr, &addr, sink);
	sink->end(sink);
	return behind(s, (uint32_t)sizeof(*i) + i->driver_len + i->addr_len);
}

/* The bytes after the head of a worker address; the head is in front of @p s. */
static void address(struct stretch s, struct dump_sink *sink)
{
	const struct weft_wire_address *a = (const void *)(s.p - sizeof(*a));
	unsigned int left = a->num_ifaces;

	text("text", first(s, a->name_len), sink);
	s = behind(s, a->name_len);
	while (left-- && s.cap >= sizeof(struct weft_wire_iface))
		s = iface(s, sink);
}

/* @p behind_head: the end of a struct weft_wire_am_rts. @return length of the user's header */
static uint32_t user_header(const uint8_t *behind_head)
{
	const struct weft_wire_am_rts *am = (const void *)(behind_head - sizeof(*am));

	return weft_get16(am->header_length);
}

/* The message after an EXT; the EXT is in front of @p s. */
static void inner(struct stretch s, struct dump_sink *sink)
{
	const struct weft_wire_ext *x = (const void *)(s.p - sizeof(*x));
	const struct dump_shape *shape = dump_shape_behind_ext(x->id);

	if (shape && shape->rest != DUMP_MESSAGE && s.len >= shape->size)
		item("inner", shape, s, NULL, sink);
}

static void rest_of(const struct dump_shape *shape, struct stretch s, struct dump_sink *sink)
{
	switch (shape->rest) {
	case DUMP_BYTES:
		sink->bytes(sink, s.len);
		break;
	case DUMP_TEXT:
		text("text", s, sink);
		break;
	case DUMP_ITEMS:
		items(shape->item, s, sink);
		break;
	case DUMP_RECORDS:
		records(shape, s, sink);
		break;
	case DUMP_AM_RECORDS:
		if (s.cap)
			records(shape, behind(s, user_header(s.p)), sink);
		break;
	case DUMP_MESSAGE:
		if (s.cap)
			inner(s, sink);
		break;
	case DUMP_ADDRESS:
		if (s.cap)
			address(s, sink);
		break;
	default:
		break;
	}
}

/* A fragment of a wire-up message has bytes of records, which can't be decoded alone. */
static bool is_piece(const struct dump_msg *m)
{
	const struct weft_wire_wireup *w = (const void *)m->data;

	return m->id == WEFT_WIRE_WIREUP && m->cap >= sizeof(*w) &&
	       weft_get16(w->total) != m->len - sizeof(*w);
}

static void messages(const struct dump_view *v, struct dump_sink *sink)
{
	static const struct dump_shape unknown = {.name = "unknown", .rest = DUMP_BYTES};
	const struct dump_shape *shape;
	struct dump_msg m;
	struct stretch s;
	uint32_t at = 0;

	while (dump_msg_next(v, &at, &m)) {
		s = (struct stretch){m.data, m.len, m.cap};
		shape = dump_shape_of_msg(m.id);
		if (!shape || m.len < shape->size) {
			item("messages", &unknown, s, dump_msg_wrong(&m), sink);
		} else if (is_piece(&m)) {
			sink->begin(sink, "messages", shape->name);
			fields(shape, &s, sink);
			sink->bytes(sink, m.len - shape->size);
			sink->end(sink);
		} else {
			item("messages", shape, s, dump_msg_wrong(&m), sink);
		}
	}
}

static void sack(const struct dump_view *v, struct dump_sink *sink)
{
	static const struct dump_field word = {.name = "word", .kind = DUMP_HEX, .size = 8};
	unsigned int i;

	for (i = 0; i < v->sack_words; i++) {
		sink->begin(sink, "blocks", "sack");
		sink->value(sink, &word, (const uint8_t *)&v->sack[i]);
		sink->end(sink);
	}
}

void dump_walk(const struct dump_view *v, struct dump_sink *sink)
{
	struct stretch s = {(const uint8_t *)v->hdr, sizeof(*v->hdr), sizeof(*v->hdr)};
	const struct dump_shape *shape;
	unsigned int i;

	if (v->what == DUMP_RECORD) {
		dump_record_walk(v, sink);
		messages(v, sink);
		return;
	}
	if (!v->hdr)
		return;
	fields(&dump_shape_frame_hdr, &s, sink);
	if (v->what != DUMP_LANE)
		return;
	sack(v, sink);
	for (i = 0; i < v->ecn_paths; i++) {
		s = (struct stretch){(const uint8_t *)&v->ecn_path[i],
				     dump_shape_frame_ecn_path.size,
				     dump_shape_frame_ecn_path.size};
		item("blocks", &dump_shape_frame_ecn_path, s, NULL, sink);
	}
	shape = dump_shape_of_frame(v->hdr->type);
	s = (struct stretch){v->body, v->body_len, v->body_cap};
	if (shape->rest == DUMP_MESSAGES)
		messages(v, sink);
	else if (shape->size)
		item("body", shape, s, NULL, sink);
}
