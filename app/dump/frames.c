/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "dump/decode.h"
#include "dump/frames.h"

/* ---- the walk over a frame ------------------------------------------------------------------ */

#define TEXT_MAX 256

/* Bytes that a shape describes: those captured, and the length in the frame. */
struct stretch {
	const uint8_t *p;
	uint32_t len, cap;
};

static void rest_of(const struct dump_shape *shape, struct stretch s, struct dump_sink *sink);

/* A field's value, of at most 8 bytes, little-endian. */
static uint64_t dump_value(const struct dump_field *field, const uint8_t *at)
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

static void record_part(const struct dump_shape *shape, const void *at, uint32_t cap,
			struct dump_sink *sink)
{
	struct stretch s = {at, cap, cap};

	sink->begin(sink, "body", shape->name);
	fields(shape, &s, sink);
	sink->end(sink);
}

static void record(const struct dump_view *v, struct dump_sink *sink)
{
	record_part(&dump_shape_record_head, v->record, sizeof(*v->record), sink);
	if (v->record->kind != WEFT_RECORD_MESSAGE)
		record_part(&dump_shape_record_native, v->body, v->body_cap, sink);
	messages(v, sink);
}

static void dump_walk(const struct dump_view *v, struct dump_sink *sink)
{
	struct stretch s = {(const uint8_t *)v->hdr, sizeof(*v->hdr), sizeof(*v->hdr)};
	const struct dump_shape *shape;
	unsigned int i;

	if (v->what == DUMP_RECORD) {
		record(v, sink);
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
	if (v->progress) {
		s = (struct stretch){(const uint8_t *)v->progress, sizeof(*v->progress),
				     sizeof(*v->progress)};
		item("blocks", &dump_shape_frame_progress, s, NULL, sink);
	}
	shape = dump_shape_of_frame(v->hdr->type);
	s = (struct stretch){v->body, v->body_len, v->body_cap};
	if (shape->rest == DUMP_MESSAGES)
		messages(v, sink);
	else if (shape->size)
		item("body", shape, s, NULL, sink);
}

/* ---- frames one by one ---------------------------------------------------------------------- */

#define DEPTH 8
#define NS 1000000000u

static const char *const way_names[] = {"?", "in", "out"};

const char *dump_time_text(uint64_t ns, char *buf, size_t size)
{
	time_t s = (time_t)(ns / NS);
	struct tm tm;
	size_t at;

	if (!gmtime_r(&s, &tm))
		memset(&tm, 0, sizeof(tm));
	at = strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(buf + at, size - at, ".%09u", (unsigned int)(ns % NS));
	return buf;
}

static void format(const struct dump_field *f, const uint8_t *at, char *buf, size_t size)
{
	uint64_t v = dump_value(f, at);
	float single;

	switch (f->kind) {
	case DUMP_SINGLE:
		memcpy(&single, at, sizeof(single));
		snprintf(buf, size, "%.9g", (double)single);
		break;
	case DUMP_IP:
		snprintf(buf, size, "%u.%u.%u.%u", at[3], at[2], at[1], at[0]);
		break;
	case DUMP_MAC:
		snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3],
			 at[4], at[5]);
		break;
	case DUMP_HEX:
		snprintf(buf, size, "0x%0*" PRIx64, 2 * f->size, v);
		break;
	default:
		snprintf(buf, size, "%" PRIu64, v);
	}
}

/* ---- text ----------------------------------------------------------------------------------- */

struct text_sink {
	struct dump_sink sink; /* first member: callbacks cast its pointer */
	FILE *out;
	unsigned int depth;
};

static void text_begin(struct dump_sink *sink, const char *list, const char *name)
{
	struct text_sink *t = (struct text_sink *)sink;

	fprintf(t->out, strcmp(list, "messages") ? " | %s" : "\n    %s", name);
	t->depth++;
}

static void text_end(struct dump_sink *sink)
{
	((struct text_sink *)sink)->depth--;
}

static void text_value(struct dump_sink *sink, const struct dump_field *f, const uint8_t *at)
{
	const char *word = dump_word(f, dump_value(f, at));
	FILE *out = ((struct text_sink *)sink)->out;
	char buf[40];

	if (!strcmp(f->name, "flags") && dump_value(f, at) == 0)
		return;
	if (!word)
		format(f, at, buf, sizeof(buf));
	fprintf(out, " %s %s", f->name, word ? word : buf);
}

static void text_text(struct dump_sink *sink, const char *name, const char *text)
{
	fprintf(((struct text_sink *)sink)->out, " %s \"%s\"", name, text);
}

static void text_bytes(struct dump_sink *sink, uint32_t n)
{
	if (n)
		fprintf(((struct text_sink *)sink)->out, " + %u bytes", n);
}

static void text_wrong(struct dump_sink *sink, const char *why)
{
	fprintf(((struct text_sink *)sink)->out, " WRONG: %s:", why);
}

static void flag_names(FILE *out, uint16_t flags, const char *before)
{
	unsigned int i;

	for (i = 0; i < DUMP_FLAGS; i++) {
		if (!(flags & 1u << i))
			continue;
		if (dump_frame_flags[i])
			fprintf(out, "%s%s", before, dump_frame_flags[i]);
		else
			fprintf(out, "%s0x%x", before, 1u << i);
		before = " ";
	}
}

static bool is_ip(const struct dump_address *a)
{
	return a->kind == ADDRESS_IP4 || a->kind == ADDRESS_IP6;
}

/* "10.0.0.1:9338", "[fd00::1]:9338", or without a port. */
static void end_text(FILE *out, const char *before, const struct dump_address *a, uint16_t port)
{
	char text[DUMP_ADDRESS_LEN];

	dump_address_text(a, text);
	if (!port || !is_ip(a))
		fprintf(out, "%s%s", before, text);
	else
		fprintf(out, a->kind == ADDRESS_IP6 ? "%s[%s]:%u" : "%s%s:%u", before, text, port);
}

static void addresses(FILE *out, const struct dump_view *v)
{
	if (v->src.kind == ADDRESS_NONE)
		return;
	end_text(out, " ", &v->src, v->src_port);
	end_text(out, " > ", &v->dst, v->dst_port);
}

static void neighbour_text(FILE *out, const struct dump_view *v)
{
	const struct dump_neighbour *n = &v->neighbour;
	const uint8_t *m = n->mac;

	end_text(out, n->answer ? " reply " : " request ", &n->from, 0);
	fprintf(out, " (%02x:%02x:%02x:%02x:%02x:%02x)", m[0], m[1], m[2], m[3], m[4], m[5]);
	end_text(out, " > ", &n->to, 0);
	if (v->vlan)
		fprintf(out, " VLAN %u", v->vlan);
}

static const char *const what_names[] = {
	[DUMP_OTHER] = "other", [DUMP_ARP] = "arp",    [DUMP_ND] = "nd",
	[DUMP_LANE] = "lane",   [DUMP_ROCE] = "roce",  [DUMP_RECORD] = "record",
	[DUMP_CUT] = "cut",     [DUMP_WRONG] = "wrong"};

static void roce_text(FILE *out, const struct rocev2_packet *p)
{
	const char *transport = rocev2_transport_name(p), *name = rocev2_opcode_name(p);

	if (p->bth && transport && name)
		fprintf(out, " %s%s%s", p->opcode == ROCEV2_CNP ? "" : transport,
			p->opcode == ROCEV2_CNP ? "" : " ", name);
	else if (p->bth)
		fprintf(out, " opcode 0x%02x", p->opcode);
	if (p->bth)
		fprintf(out, " QP 0x%x PSN %u", p->dst_qp, p->psn);
	if (p->has & ROCEV2_DETH)
		fprintf(out, " from QP 0x%x", p->src_qp);
	if (p->has & ROCEV2_RETH)
		fprintf(out, " length %u", p->length);
	if (p->has & ROCEV2_AETH)
		fprintf(out, " %s MSN %u", rocev2_answer_name(rocev2_answer(p)), p->msn);
	if (p->has & ROCEV2_AETH && rocev2_answer(p) == ROCEV2_RNR)
		fprintf(out, " timer %u us", rocev2_rnr_us(p));
	if (p->has & ROCEV2_IMM)
		fprintf(out, " immediate 0x%08x", p->imm);
	fprintf(out, "%s%s%s%s", p->solicited ? " solicited" : "",
		p->ack_request ? " ACK request" : "", p->fecn ? " FECN" : "",
		p->becn ? " BECN" : "");
	if (p->payload_len)
		fprintf(out, " + %u bytes", p->payload_len);
	if (p->wrong)
		fprintf(out, " malformed: %s", p->wrong);
	else if (p->cut)
		fprintf(out, ", the capture has cut its headers");
}

void dump_frame_text(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view)
{
	struct text_sink t = {.sink = {text_begin, text_end, text_value, text_text, text_bytes,
				       text_wrong},
			      .out = out};
	char when[40];

	fprintf(out, "%" PRIu64 ": %s %s %s %u bytes", frame->number,
		dump_time_text(frame->time, when, sizeof(when)), file->iface[frame->iface].name,
		way_names[frame->way], frame->len);
	addresses(out, view);
	if (view->what == DUMP_WRONG)
		fprintf(out, " WRONG: %s", view->wrong);
	else if (view->what != DUMP_LANE && view->what != DUMP_RECORD)
		fprintf(out, " %s", what_names[view->what]);
	if (dump_is_neighbour(view))
		neighbour_text(out, view);
	if (view->what == DUMP_ROCE)
		roce_text(out, &view->roce);
	dump_walk(view, &t.sink);
	if (view->hdr)
		flag_names(out, view->flags, " | ");
	fputc('\n', out);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

struct json_sink {
	struct dump_sink sink; /* first member: callbacks cast its pointer */
	struct json *j;
	const char *list[DEPTH]; /* list that is open in the object of this depth; NULL = none */
	unsigned int depth;
};

static void close_list(struct json_sink *s)
{
	if (s->list[s->depth])
		json_end(s->j, ']');
	s->list[s->depth] = NULL;
}

static void sink_begin(struct dump_sink *sink, const char *list, const char *name)
{
	struct json_sink *s = (struct json_sink *)sink;

	if (s->list[s->depth] && strcmp(s->list[s->depth], list))
		close_list(s);
	if (!s->list[s->depth]) {
		json_begin(s->j, list, '[');
		s->list[s->depth] = list;
	}
	json_begin(s->j, NULL, '{');
	json_text(s->j, "name", name);
	s->depth++;
	s->list[s->depth] = NULL;
}

static void sink_end(struct dump_sink *sink)
{
	struct json_sink *s = (struct json_sink *)sink;

	close_list(s);
	json_end(s->j, '}');
	s->depth--;
}

static void sink_value(struct dump_sink *sink, const struct dump_field *f, const uint8_t *at)
{
	const char *word = dump_word(f, dump_value(f, at));
	struct json *j = ((struct json_sink *)sink)->j;
	char buf[40], name[40];

	format(f, at, buf, sizeof(buf));
	if (f->kind == DUMP_DEC || (f->kind == DUMP_SINGLE && !strpbrk(buf, "ni")))
		json_raw(j, f->name, buf);
	else
		json_text(j, f->name, buf);
	if (!word)
		return;
	snprintf(name, sizeof(name), "%s_name", f->name);
	json_text(j, name, word);
}

static void sink_text(struct dump_sink *sink, const char *name, const char *text)
{
	json_text(((struct json_sink *)sink)->j, name, text);
}

static void sink_bytes(struct dump_sink *sink, uint32_t n)
{
	json_number(((struct json_sink *)sink)->j, "bytes", n);
}

static void sink_wrong(struct dump_sink *sink, const char *why)
{
	json_text(((struct json_sink *)sink)->j, "wrong", why);
}

static void roce_json(struct json *j, const struct rocev2_packet *p)
{
	const char *transport = rocev2_transport_name(p), *name = rocev2_opcode_name(p);

	json_begin(j, "roce", '{');
	if (p->wrong)
		json_text(j, "malformed", p->wrong);
	json_raw(j, "cut", p->cut ? "true" : "false");
	if (p->bth) {
		json_number(j, "opcode", p->opcode);
		if (transport)
			json_text(j, "transport", transport);
		if (name)
			json_text(j, "operation", name);
		json_number(j, "qp", p->dst_qp);
		json_number(j, "psn", p->psn);
		json_raw(j, "ack_request", p->ack_request ? "true" : "false");
		json_raw(j, "fecn", p->fecn ? "true" : "false");
		json_raw(j, "becn", p->becn ? "true" : "false");
		json_number(j, "payload", p->payload_len);
	}
	if (p->has & ROCEV2_DETH)
		json_number(j, "from_qp", p->src_qp);
	if (p->has & ROCEV2_RETH)
		json_number(j, "length", p->length);
	if (p->has & ROCEV2_AETH) {
		json_text(j, "answer", rocev2_answer_name(rocev2_answer(p)));
		json_number(j, "msn", p->msn);
	}
	if (p->has & ROCEV2_AETH && rocev2_answer(p) == ROCEV2_RNR)
		json_number(j, "timer_us", rocev2_rnr_us(p));
	if (p->has & ROCEV2_IMM)
		json_number(j, "immediate", p->imm);
	json_end(j, '}');
}

void dump_frame_json(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view)
{
	struct json j = {.out = out};
	struct json_sink s = {.sink = {sink_begin, sink_end, sink_value, sink_text, sink_bytes,
				       sink_wrong},
			      .j = &j};

	json_begin(&j, NULL, '{');
	json_number(&j, "version", DUMP_FORMAT_VERSION);
	json_text(&j, "file", file->name);
	json_number(&j, "number", frame->number);
	json_number(&j, "time", frame->time);
	json_text(&j, "interface", file->iface[frame->iface].name);
	json_text(&j, "direction", way_names[frame->way]);
	json_number(&j, "length", frame->len);
	if (frame->caplen < frame->len)
		json_number(&j, "captured", frame->caplen);
	json_text(&j, "kind", what_names[view->what]);
	if (view->what == DUMP_WRONG)
		json_text(&j, "wrong", view->wrong);
	if (view->what == DUMP_ROCE)
		roce_json(&j, &view->roce);
	if (view->hdr) {
		json_begin(&j, "weft", '{');
		dump_walk(view, &s.sink);
		close_list(&s);
		json_end(&j, '}');
	}
	json_end(&j, '}');
	fputc('\n', out);
}

/* ---- counts --------------------------------------------------------------------------------- */

const char *dump_count(struct dump_counts *c, const struct dump_view *v)
{
	const struct weft_wire_wireup *w;
	const char *wrong = NULL;
	struct dump_msg m;
	uint32_t at = 0;

	c->frames++;
	c->records += v->what == DUMP_RECORD;
	c->arp += v->what == DUMP_ARP;
	c->nd += v->what == DUMP_ND;
	c->other += v->what == DUMP_OTHER;
	c->roce += v->what == DUMP_ROCE;
	c->cut += v->cut;
	c->sealed += v->sealed;
	if (v->what == DUMP_LANE)
		c->type[v->hdr->type]++;
	while (dump_msg_next(v, &at, &m)) {
		w = (const void *)m.data;
		if (m.id == WEFT_WIRE_WIREUP && m.cap >= sizeof(*w))
			c->wireup[w->type]++;
		else
			c->msg[m.id]++;
		if (!wrong)
			wrong = dump_msg_wrong(&m);
	}
	if (v->what == DUMP_WRONG)
		wrong = v->wrong;
	c->wrong += wrong != NULL;
	return wrong;
}

/* Called for each kind whose count is not 0. */
typedef void (*count_cb)(void *arg, uint64_t count, const char *what, const char *name);

static void each_count(const struct dump_counts *c, count_cb cb, void *arg)
{
	const struct dump_field *type = &dump_shape_frame_hdr.field[1],
				*wireup = &dump_shape_of_msg(WEFT_WIRE_WIREUP)->field[0];
	const struct dump_shape *shape;
	const char *name;
	unsigned int i;

	for (i = 0; i < 256; i++)
		if (c->type[i])
			cb(arg, c->type[i], "frame", dump_word(type, i));
	for (i = 0; i < 256; i++) {
		name = dump_word(wireup, i);
		if (c->wireup[i])
			cb(arg, c->wireup[i], "wireup", name ? name : "?");
	}
	for (i = 0; i < 256; i++) {
		shape = dump_shape_of_msg((uint8_t)i);
		if (c->msg[i])
			cb(arg, c->msg[i], "message", shape ? shape->name : "unknown");
	}
}

static void print_count(void *arg, uint64_t count, const char *what, const char *name)
{
	fprintf(arg, "%10" PRIu64 " %s %s\n", count, what, name);
}

void dump_counts_text(FILE *out, const struct dump_counts *c)
{
	fprintf(out,
		"%10" PRIu64 " frames, of them %" PRIu64 " wrong, %" PRIu64 " ARP, %" PRIu64
		" others, %" PRIu64 " cut by the capture\n",
		c->frames, c->wrong, c->arp, c->other, c->cut);
	if (c->records)
		fprintf(out, "%10" PRIu64 " of them are message records of lanes without frames\n",
			c->records);
	if (c->nd)
		fprintf(out, "%10" PRIu64 " of them are neighbour discovery of IPv6\n", c->nd);
	if (c->roce)
		fprintf(out, "%10" PRIu64 " of them are packets of RoCE v2\n", c->roce);
	if (c->sealed)
		fprintf(out,
			"%10" PRIu64 " of them are sealed, and only their headers are known: "
			"--keylog takes the keys\n",
			c->sealed);
	each_count(c, print_count, out);
}

static void json_count(void *arg, uint64_t count, const char *what, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s %s", what, name);
	json_number(arg, key, count);
}

void dump_counts_json(struct json *j, const struct dump_counts *c)
{
	json_number(j, "frames", c->frames);
	json_number(j, "records", c->records);
	json_number(j, "wrong", c->wrong);
	json_number(j, "arp", c->arp);
	json_number(j, "nd", c->nd);
	json_number(j, "other", c->other);
	json_number(j, "roce", c->roce);
	json_number(j, "cut", c->cut);
	json_number(j, "sealed", c->sealed);
	json_begin(j, "counts", '{');
	each_count(c, json_count, j);
	json_end(j, '}');
}
