/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/frames.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <rte_arp.h>

#include "dump/json.h"
#include "dump/walk.h"

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
	struct dump_sink sink; /* first */
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
	static const char *const names[] = {"ACK_REQ", "SACK", "CRC32C", "RETX", "ECN"};
	unsigned int i;

	for (i = 0; i < 16; i++) {
		if (!(flags & 1u << i))
			continue;
		if (i < sizeof(names) / sizeof(names[0]))
			fprintf(out, "%s%s", before, names[i]);
		else
			fprintf(out, "%s0x%x", before, 1u << i);
		before = " ";
	}
}

static void addresses(FILE *out, const struct dump_view *v)
{
	const uint8_t *s = v->src_mac, *d = v->dst_mac;

	if (v->src_ip || v->dst_ip)
		fprintf(out, " %u.%u.%u.%u:%u > %u.%u.%u.%u:%u", v->src_ip >> 24,
			v->src_ip >> 16 & 255, v->src_ip >> 8 & 255, v->src_ip & 255, v->src_port,
			v->dst_ip >> 24, v->dst_ip >> 16 & 255, v->dst_ip >> 8 & 255,
			v->dst_ip & 255, v->dst_port);
	else if (s)
		fprintf(out, " %02x:%02x:%02x:%02x:%02x:%02x > %02x:%02x:%02x:%02x:%02x:%02x", s[0],
			s[1], s[2], s[3], s[4], s[5], d[0], d[1], d[2], d[3], d[4], d[5]);
}

static void arp_text(FILE *out, const struct dump_view *v)
{
	const struct rte_arp_ipv4 *a = &v->arp->arp_data;
	const uint8_t *m = a->arp_sha.addr_bytes;
	uint32_t from = weft_be32(a->arp_sip), to = weft_be32(a->arp_tip);

	fprintf(out, v->arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY) ? " reply" : " request");
	fprintf(out, " %u.%u.%u.%u (%02x:%02x:%02x:%02x:%02x:%02x) > %u.%u.%u.%u", from >> 24,
		from >> 16 & 255, from >> 8 & 255, from & 255, m[0], m[1], m[2], m[3], m[4], m[5],
		to >> 24, to >> 16 & 255, to >> 8 & 255, to & 255);
	if (v->vlan)
		fprintf(out, " VLAN %u", v->vlan);
}

static const char *const what_names[] = {
	[DUMP_OTHER] = "other",   [DUMP_ARP] = "arp", [DUMP_LANE] = "lane",
	[DUMP_RECORD] = "record", [DUMP_CUT] = "cut", [DUMP_WRONG] = "wrong"};

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
	if (view->arp)
		arp_text(out, view);
	dump_walk(view, &t.sink);
	if (view->hdr)
		flag_names(out, view->flags, " | ");
	fputc('\n', out);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

struct json_sink {
	struct dump_sink sink; /* first */
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

void dump_frame_json(FILE *out, const struct dump_file *file, const struct dump_frame *frame,
		     const struct dump_view *view)
{
	struct json j = {.out = out};
	struct json_sink s = {.sink = {sink_begin, sink_end, sink_value, sink_text, sink_bytes,
				       sink_wrong},
			      .j = &j};

	json_begin(&j, NULL, '{');
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
	c->other += v->what == DUMP_OTHER;
	c->cut += v->cut;
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
	json_number(j, "other", c->other);
	json_number(j, "cut", c->cut);
	json_begin(j, "counts", '{');
	each_count(c, json_count, j);
	json_end(j, '}');
}
