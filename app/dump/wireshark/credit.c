/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/wireshark/credit.h"

#include <string.h>

#include "core/wire_conn_def.h"
#include "core/wire_def.h"
#include "dump/shapes.h"
#include "dump/wireshark/learn.h"

/* A longer message takes its bytes of the credit, others one of a number. */
#define FREE 256u

/* A direction of an endpoint. */
struct end {
	uint64_t from, to; /* workers */
	uint32_t conn_sn, interface;
};

struct credit {
	bool known;
	uint64_t bytes, used, largest;
	uint32_t small, sent, seq;
	wmem_map_t *pieces; /* the messages of which a piece was sent */
};

static wmem_map_t *conns;   /* connection and interface -> struct end */
static wmem_map_t *credits; /* struct end -> struct credit */

static struct end other_way(const struct end *e)
{
	return (struct end){e->to, e->from, e->conn_sn, e->interface};
}

static struct credit *credit_of(const struct end *e, bool make)
{
	return dissect_map_entry(credits, e, sizeof(*e), make ? sizeof(struct credit) : 0);
}

/* ---- grants --------------------------------------------------------------------------------- */

static void grant(struct credit *of, const struct weft_wire_credit *c)
{
	uint64_t bytes = weft_get64(c->bytes);
	uint32_t small = weft_get32(c->small);

	of->known = true;
	of->bytes = bytes > of->bytes ? bytes : of->bytes;
	of->small = small > of->small ? small : of->small;
	of->seq = weft_get32(c->seq);
}

/* A wire-up message: whose connection this is, and the credit in a REQ or REP. */
static void learn_endpoint(struct end *end, uint32_t interface, const uint8_t *data, uint32_t len)
{
	const struct weft_wire_wireup *w = (const void *)data;
	const struct weft_wire_record *r;
	struct end back;
	uint32_t at = sizeof(*w), size;

	*end = (struct end){weft_get64(w->src_worker), weft_get64(w->dst_worker),
			    weft_get32(w->conn_sn), interface};
	back = other_way(end);
	while (len - at >= sizeof(*r)) {
		r = (const void *)(data + at);
		size = weft_get16(r->length);
		at += sizeof(*r);
		if (size > len - at)
			return;
		if (weft_get16(r->type) == WEFT_RECORD_CREDIT &&
		    size >= sizeof(struct weft_wire_credit))
			grant(credit_of(&back, true), (const void *)(data + at));
		at += size;
	}
}

/* ---- use ------------------------------------------------------------------------------------ */

static void mark(packet_info *pinfo, bool spent)
{
	if (spent)
		dissect_note_make(pinfo)->spent = true;
}

/* A message takes @bytes, or one of the number. */
static void spend(packet_info *pinfo, struct credit *of, uint64_t bytes)
{
	if (bytes > FREE) {
		of->used += bytes;
		of->largest = bytes > of->largest ? bytes : of->largest;
		mark(pinfo, of->bytes <= of->used + FREE);
	} else {
		of->sent++;
		mark(pinfo, of->sent == of->small);
	}
}

static void take_seq(packet_info *pinfo, const struct credit *of, weft_le32 seq)
{
	mark(pinfo, weft_get32(seq) == of->seq - 1);
}

/* A message is announced that is no longer than one that was sent whole: the credit is used up. */
static void announce(packet_info *pinfo, struct credit *of, uint64_t total)
{
	spend(pinfo, of, 0);
	mark(pinfo, total > FREE && total <= of->largest && total + of->used > of->bytes);
}

/* Only the first piece of a message takes credit. @return whether this is it */
static bool is_first(struct credit *of, uint8_t id, const uint8_t *data, uint32_t len)
{
	uint8_t key[64] = {id};
	bool *known;

	memcpy(key + 1, data, len);
	if (!of->pieces)
		of->pieces = dissect_map_of_file();
	known = dissect_map_entry(of->pieces, key, 1 + len, sizeof(*known));
	if (*known)
		return false;
	*known = true;
	return true;
}

static void learn_piece(packet_info *pinfo, struct credit *of, uint8_t id, const uint8_t *data)
{
	const struct weft_wire_am_frag *am = (const void *)data;
	const struct weft_wire_frag *f = (const void *)data;

	if (id == WEFT_WIRE_AM_FRAG) {
		if (is_first(of, id, data, offsetof(struct weft_wire_am_frag, offset)))
			spend(pinfo, of, weft_get64(am->total));
	} else if (is_first(of, id, data, offsetof(struct weft_wire_frag, offset))) {
		spend(pinfo, of, weft_get64(f->total));
		take_seq(pinfo, of, f->e.seq);
	}
}

/* @data has all fields of the message. */
static void learn_message(packet_info *pinfo, struct credit *of, uint8_t id, const uint8_t *data,
			  uint32_t behind)
{
	const struct weft_wire_am_rts *am_rts = (const void *)data;
	const struct weft_wire_eager *eager = (const void *)data;
	const struct weft_wire_rts *rts = (const void *)data;
	const struct weft_wire_am *am = (const void *)data;
	uint16_t user;

	switch (id) {
	case WEFT_WIRE_EAGER:
	case WEFT_WIRE_EAGER_SYNC:
		spend(pinfo, of, behind);
		take_seq(pinfo, of, eager->seq);
		break;
	case WEFT_WIRE_AM:
		user = weft_get16(am->header_length);
		spend(pinfo, of, behind > user ? behind - user : 0);
		break;
	case WEFT_WIRE_RTS:
		announce(pinfo, of, weft_get64(rts->total));
		take_seq(pinfo, of, rts->e.seq);
		break;
	case WEFT_WIRE_AM_RTS:
		announce(pinfo, of, weft_get64(am_rts->total));
		break;
	case WEFT_WIRE_FRAG:
	case WEFT_WIRE_FRAG_SYNC:
	case WEFT_WIRE_AM_FRAG:
		learn_piece(pinfo, of, id, data);
		break;
	default:
		break;
	}
}

/* The message behind each EXT. */
static void learn_inner(packet_info *pinfo, struct credit *of, uint8_t id, const uint8_t *data,
			uint32_t len)
{
	const struct dump_shape *s = dump_shape_of_msg(id);

	while (id == WEFT_WIRE_EXT && len >= s->size) {
		id = data[offsetof(struct weft_wire_ext, id)];
		data += s->size;
		len -= s->size;
	}
	s = dump_shape_of_msg(id);
	if (s && len >= s->size)
		learn_message(pinfo, of, id, data, len - s->size);
}

static void learn_one(packet_info *pinfo, const uint32_t key[3], uint8_t id, const uint8_t *data,
		      uint32_t len)
{
	bool wireup = id == WEFT_WIRE_WIREUP && len >= sizeof(struct weft_wire_wireup);
	struct end end, *known = dissect_map_entry(conns, key, 3 * sizeof(*key),
						   wireup ? sizeof(*known) : 0);
	struct credit *of;

	if (!known)
		return;
	if (wireup) {
		learn_endpoint(known, key[0], data, len);
		return;
	}
	end = *known;
	if (id == WEFT_WIRE_CREDIT)
		end = other_way(&end);
	of = credit_of(&end, false);
	if (!of || !of->known)
		return;
	if (id != WEFT_WIRE_CREDIT)
		learn_inner(pinfo, of, id, data, len);
	else if (len >= sizeof(struct weft_wire_credit))
		grant(of, (const void *)data);
}

void dissect_learn_credit(packet_info *pinfo, uint32_t place, const struct weft_frame_hdr *hdr,
			  const uint8_t *body, uint32_t len)
{
	const uint32_t key[3] = {place / 16, weft_get32(hdr->dst_conn), weft_get32(hdr->token)};
	const struct weft_frame_msg *m;
	uint32_t at = 0, size;

	while (len - at >= sizeof(*m)) {
		m = (const void *)(body + at);
		size = weft_get16(m->length);
		at += sizeof(*m);
		if (size > len - at)
			return;
		learn_one(pinfo, key, m->am_id, body + at, size);
		at += size;
	}
}

void dissect_credit_register(void)
{
	conns = dissect_map();
	credits = dissect_map();
}
