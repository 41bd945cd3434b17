/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/wireshark/learn.h"

#include <string.h>

#include <epan/proto_data.h>
#include <epan/to_str.h>
#include <wiretap/wtap.h>

#include "core/wire_conn_def.h"
#include "core/wire_def.h"
#include "dump/shapes.h"
#include "dump/wireshark/items.h"

#define KEY_MAX 128u /* bytes: two IPv6 addresses as text, and numbers */
#define NEW 0x80000000u

/* ---- maps ----------------------------------------------------------------------------------- */

struct key {
	uint32_t len;
	uint8_t bytes[KEY_MAX];
};

static unsigned int key_hash(const void *key)
{
	const struct key *k = key;

	return wmem_strong_hash(k->bytes, k->len);
}

static gboolean key_equal(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	return x->len == y->len && !memcmp(x->bytes, y->bytes, x->len);
}

/* A map by bytes, which is emptied with each capture. */
static wmem_map_t *map_new(void)
{
	return wmem_map_new_autoreset(wmem_epan_scope(), wmem_file_scope(), key_hash, key_equal);
}

/* A map by bytes that ends with the capture. */
static wmem_map_t *map_of_file(void)
{
	return wmem_map_new(wmem_file_scope(), key_hash, key_equal);
}

/* @param size  of an entry that is made of zeros; 0: none is made */
static void *map_entry(wmem_map_t *map, const void *bytes, uint32_t len, size_t size)
{
	struct key key = {.len = len < KEY_MAX ? len : KEY_MAX}, *keep;
	void *entry;

	memcpy(key.bytes, bytes, key.len);
	entry = wmem_map_lookup(map, &key);
	if (entry || size == 0)
		return entry;
	keep = wmem_alloc(wmem_file_scope(), offsetof(struct key, bytes) + key.len);
	memcpy(keep, &key, offsetof(struct key, bytes) + key.len);
	entry = wmem_alloc0(wmem_file_scope(), size);
	wmem_map_insert(map, keep, entry);
	return entry;
}

/* ---- notes ---------------------------------------------------------------------------------- */

struct dissect_note *dissect_note(packet_info *pinfo)
{
	return p_get_proto_data(wmem_file_scope(), pinfo, dissect_ids.weft, 0);
}

static struct dissect_note *note_make(packet_info *pinfo)
{
	struct dissect_note *note = dissect_note(pinfo);

	if (note)
		return note;
	note = wmem_new0(wmem_file_scope(), struct dissect_note);
	p_add_proto_data(wmem_file_scope(), pinfo, dissect_ids.weft, 0, note);
	return note;
}

/* ---- places and connections ----------------------------------------------------------------- */

static wmem_map_t *flows;   /* src_conn, dst_conn and token -> number of the connection */
static wmem_map_t *streams; /* both ends as text -> 1 + number of the connection */
static uint32_t num_streams;

static void reset(void)
{
	num_streams = 0;
}

uint32_t dissect_place(packet_info *pinfo)
{
	uint32_t flags = 0, interface = 0, direction = 0;

	if (pinfo->rec->presence_flags & WTAP_HAS_INTERFACE_ID)
		interface = pinfo->rec->rec_header.packet_header.interface_id + 1;
	if (pinfo->rec->block &&
	    wtap_block_get_uint32_option_value(pinfo->rec->block, OPT_PKT_FLAGS, &flags) ==
		    WTAP_OPTTYPE_SUCCESS)
		direction = PACK_FLAGS_DIRECTION(flags) + 1;
	return interface * 16 + direction;
}

static uint32_t stream_number(const char *name)
{
	uint32_t *number = map_entry(streams, name, (uint32_t)strlen(name), sizeof(*number));

	if (*number == 0)
		*number = ++num_streams;
	return *number - 1;
}

static uint32_t stream_between(packet_info *pinfo, const char *from, const char *to)
{
	bool first = strcmp(from, to) < 0;
	char *name = wmem_strdup_printf(pinfo->pool, "%s %s", first ? from : to, first ? to : from);

	return stream_number(name);
}

/* A token is random, and 0 before there is one, so it identifies a flow without addresses. */
uint32_t dissect_stream(packet_info *pinfo, const struct weft_frame_hdr *hdr)
{
	uint16_t src_conn = weft_get16(hdr->src_conn);
	uint32_t dst_conn = weft_get32(hdr->dst_conn), token = weft_get32(hdr->token);
	const uint32_t flow[3] = {src_conn, dst_conn, token};
	const uint32_t *known = token ? map_entry(flows, flow, sizeof(flow), 0) : NULL;
	uint32_t stream, *keep;

	if (known)
		return *known;
	stream = stream_between(
		pinfo,
		wmem_strdup_printf(pinfo->pool, "%s %u", address_to_str(pinfo->pool, &pinfo->src),
				   src_conn),
		wmem_strdup_printf(pinfo->pool, "%s %u", address_to_str(pinfo->pool, &pinfo->dst),
				   dst_conn & 0xffff));
	if (token) {
		keep = map_entry(flows, flow, sizeof(flow), sizeof(*keep));
		*keep = stream;
	}
	return stream;
}

uint32_t dissect_record_stream(uint64_t from, uint64_t to, uint32_t conn_sn, uint8_t lane)
{
	char name[KEY_MAX];
	bool first = from < to;

	g_snprintf(name, sizeof(name), "%" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER "x %u %u",
		   first ? from : to, first ? to : from, conn_sn, lane);
	return stream_number(name);
}

/* ---- DATA frames ---------------------------------------------------------------------------- */

/* One transmission of a sequence. */
struct transmission {
	uint32_t number;
	uint64_t mark; /* order and path, which differ in each transmission */
};

/* One direction of a connection, as captured in one place. */
struct flow {
	wmem_map_t *sent; /* sequence -> struct transmission */
	struct {
		bool known;
		uint32_t order; /* order of the frame that is expected next */
	} path[UINT8_MAX + 1];
};

static wmem_map_t *seen; /* place, connection and token -> struct flow */

static struct flow *flow_of(uint32_t place, const struct weft_frame_hdr *hdr)
{
	const uint32_t key[3] = {place, weft_get32(hdr->dst_conn), weft_get32(hdr->token)};
	struct flow *f = map_entry(seen, key, sizeof(key), sizeof(*f));

	if (!f->sent)
		f->sent = wmem_map_new(wmem_file_scope(), g_direct_hash, g_direct_equal);
	return f;
}

/* A frame that is older than the expected one comes late. */
static void learn_order(packet_info *pinfo, struct flow *f, uint8_t path, uint32_t order)
{
	uint32_t missing = f->path[path].known ? order - f->path[path].order : 0;

	if (missing >= NEW)
		return;
	f->path[path].known = true;
	f->path[path].order = order + 1;
	if (missing)
		note_make(pinfo)->missing = missing;
}

void dissect_learn_data(packet_info *pinfo, uint32_t place, const struct weft_frame_hdr *hdr)
{
	struct flow *f = flow_of(place, hdr);
	uint32_t order = weft_get32(hdr->order);
	void *seq = GUINT_TO_POINTER(weft_get32(hdr->seq));
	struct transmission *before = wmem_map_lookup(f->sent, seq);
	uint64_t mark = (uint64_t)order << 8 | hdr->path;

	learn_order(pinfo, f, hdr->path, order);
	if (!before) {
		before = wmem_new(wmem_file_scope(), struct transmission);
		*before = (struct transmission){.number = pinfo->num, .mark = mark};
		wmem_map_insert(f->sent, seq, before);
	} else if (before->mark == mark) {
		note_make(pinfo)->twice = before->number;
	} else {
		note_make(pinfo)->again = before->number;
		before->mark = mark;
	}
}

/* ---- probes --------------------------------------------------------------------------------- */

struct probe {
	uint32_t number;
	nstime_t time;
	struct dissect_note *note;
};

static wmem_map_t *probes; /* connection and PROBE -> struct probe */

void dissect_learn_probe(packet_info *pinfo, uint8_t type, uint32_t stream,
			 const struct weft_frame_probe *probe)
{
	struct {
		uint32_t stream;
		struct weft_frame_probe probe;
	} key = {stream, *probe};
	bool is_probe = type == WEFT_FRAME_PROBE;
	struct probe *q = map_entry(probes, &key, sizeof(key), is_probe ? sizeof(*q) : 0);
	struct dissect_note *note;

	if (!q)
		return;
	note = note_make(pinfo);
	if (is_probe) {
		*q = (struct probe){pinfo->num, pinfo->rel_ts, note};
		return;
	}
	q->note->answer = pinfo->num;
	note->answer = q->number;
	note->timed = true;
	nstime_delta(&note->response, &pinfo->rel_ts, &q->time);
}

/* ---- pieces of messages --------------------------------------------------------------------- */

/* The pieces of one message, over all lanes. */
struct message {
	uint32_t first, last, pieces;
};

static wmem_map_t *messages; /* what the pieces have in common -> struct message */

bool dissect_is_piece(uint8_t id)
{
	return id == WEFT_WIRE_FRAG || id == WEFT_WIRE_FRAG_SYNC || id == WEFT_WIRE_DATA ||
	       id == WEFT_WIRE_AM_FRAG;
}

void dissect_learn_piece(packet_info *pinfo, uint8_t id, const uint8_t *data, uint64_t conn)
{
	struct {
		uint64_t kind, conn;
		uint8_t data[24];
	} key = {.kind = id};
	struct dissect_note *note = note_make(pinfo);
	struct dissect_piece piece;
	struct message *m;

	if (id == WEFT_WIRE_DATA) {
		key.conn = conn;
		memcpy(key.data, data, offsetof(struct weft_wire_data, offset));
	} else if (id == WEFT_WIRE_AM_FRAG) {
		memcpy(key.data, data, offsetof(struct weft_wire_am_frag, offset));
	} else {
		key.kind = WEFT_WIRE_FRAG;
		memcpy(key.data, data, offsetof(struct weft_wire_frag, offset));
	}
	m = map_entry(messages, &key, sizeof(key), sizeof(*m));
	if (m->pieces++ == 0)
		m->first = m->last = pinfo->num;
	piece = (struct dissect_piece){m->first, m->last, m->pieces};
	m->last = pinfo->num;
	if (!note->pieces)
		note->pieces = wmem_array_new(wmem_file_scope(), sizeof(piece));
	wmem_array_append(note->pieces, &piece, 1);
}

/* ---- credit --------------------------------------------------------------------------------- */

/* Bytes: a longer message uses up bytes of the credit, any other one a message of the credit. */
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
	return map_entry(credits, e, sizeof(*e), make ? sizeof(struct credit) : 0);
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
		note_make(pinfo)->spent = true;
}

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

/* The credit is used up if it is too small for @p total, and as long a message was sent whole. */
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
		of->pieces = map_of_file();
	known = map_entry(of->pieces, key, 1 + len, sizeof(*known));
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
	struct end end,
		*known = map_entry(conns, key, 3 * sizeof(*key), wireup ? sizeof(*known) : 0);
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

void dissect_learn_register(void)
{
	flows = map_new();
	streams = map_new();
	seen = map_new();
	probes = map_new();
	messages = map_new();
	conns = map_new();
	credits = map_new();
	register_init_routine(reset);
}
