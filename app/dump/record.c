/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decodes message records into views like those of DATA frames with one message, so that the code
 * that follows lanes and messages handles both. The frame header is computed from fields that are
 * equal in the records of both ends. The connection is a hash of the workers, the number of the
 * endpoint and the lane. The sequence is a hash of the message's own header.
 */

#include "dump/record.h"

#include "dump/shape.h"

#define KEY_BYTES 44u /* the longest header that distinguishes a message from others */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash(uint64_t h, const uint8_t *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		h = mix(h, p[i]);
	return h;
}

/* A number for one direction of one lane between two workers. */
static uint64_t lane_number(uint64_t from, uint64_t to, const struct weft_record_head *r)
{
	return mix(mix(mix(0x77, from), to), (uint64_t)weft_get32(r->conn_sn) << 8 | r->lane);
}

static void make_header(struct dump_view *v, const struct weft_record_head *r)
{
	uint64_t from = weft_get64(r->from), to = weft_get64(r->to);
	uint64_t there = lane_number(from, to, r), back = lane_number(to, from, r), seq;

	seq = hash(weft_get32(r->length), (const uint8_t *)&r->kind, 2);
	seq = hash(seq, v->body, v->body_cap < KEY_BYTES ? v->body_cap : KEY_BYTES);
	v->made = (struct weft_frame_hdr){
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = WEFT_FRAME_DATA,
		.dst_conn = weft_put32((uint32_t)there),
		.token = weft_put32((uint32_t)(there >> 32)),
		.src_conn = weft_put16((uint16_t)back),
		.seq = weft_put32((uint32_t)seq),
		.ts = weft_put32((uint32_t)(seq >> 32)),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};
	v->hdr = &v->made;
}

static const char *wrong(const struct dump_frame *frame, const struct weft_record_head *r)
{
	uint32_t length = weft_get32(r->length), behind = frame->len - (uint32_t)sizeof(*r);

	if (weft_get16(r->magic) != WEFT_RECORD_MAGIC)
		return "another magic";
	if (r->version != WEFT_RECORD_VERSION)
		return "another version";
	if (r->kind == 0 || r->kind >= WEFT_RECORD_KINDS)
		return "an unknown kind";
	if (weft_get16(r->flags) & ~WEFT_RECORD_F_DONE)
		return "unknown flags";
	if (r->kind != WEFT_RECORD_MESSAGE)
		return behind == sizeof(struct weft_record_native) && !r->am_id
			       ? NULL
			       : "a native operation of another length";
	if (r->am_id == 0 || r->am_id >= 32)
		return "a message id";
	return behind == length && length ? NULL : "a message of another length";
}

void dump_record(const struct dump_frame *frame, struct dump_view *v)
{
	const struct weft_record_head *r = (const void *)frame->data;

	v->what = DUMP_WRONG;
	v->cut = frame->caplen < frame->len;
	if (frame->caplen < sizeof(*r)) {
		v->wrong = frame->len < sizeof(*r) ? "too short for a record"
						   : "the capture has cut its header";
		return;
	}
	v->wrong = wrong(frame, r);
	if (v->wrong)
		return;
	v->what = DUMP_RECORD;
	v->record = r;
	v->body = frame->data + sizeof(*r);
	v->body_len = frame->len - (uint32_t)sizeof(*r);
	v->body_cap = frame->caplen - (uint32_t)sizeof(*r);
	v->length = frame->len;
	make_header(v, r);
}

bool dump_record_message(const struct dump_view *v, uint32_t *at, struct dump_msg *msg)
{
	if (*at)
		return false;
	*msg = (struct dump_msg){
		.id = v->record->am_id, .len = v->body_len, .cap = v->body_cap, .data = v->body};
	*at = v->body_len;
	return true;
}

bool dump_record_is_unique(const struct dump_view *v)
{
	static const uint32_t with_sequence = 1u << WEFT_WIRE_EAGER | 1u << WEFT_WIRE_EAGER_SYNC |
					      1u << WEFT_WIRE_FRAG | 1u << WEFT_WIRE_FRAG_SYNC |
					      1u << WEFT_WIRE_RTS | 1u << WEFT_WIRE_AM |
					      1u << WEFT_WIRE_AM_RTS | 1u << WEFT_WIRE_AM_FRAG;

	return dump_is_message(v) && with_sequence >> v->record->am_id & 1;
}

static void fields(const struct dump_shape *shape, const uint8_t *p, uint32_t cap,
		   struct dump_sink *sink)
{
	unsigned int i;

	for (i = 0; i < shape->num_fields; i++)
		if ((uint32_t)shape->field[i].offset + shape->field[i].size <= cap)
			sink->value(sink, &shape->field[i], p + shape->field[i].offset);
}

void dump_record_walk(const struct dump_view *v, struct dump_sink *sink)
{
	sink->begin(sink, "body", dump_shape_record_head.name);
	fields(&dump_shape_record_head, (const uint8_t *)v->record, sizeof(*v->record), sink);
	sink->end(sink);
	if (v->record->kind == WEFT_RECORD_MESSAGE)
		return;
	sink->begin(sink, "body", dump_shape_record_native.name);
	fields(&dump_shape_record_native, v->body, v->body_cap, sink);
	sink->end(sink);
}
