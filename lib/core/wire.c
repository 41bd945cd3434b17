/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/wire.h"
#include "lane.h"

/* Least length of each id; sets of ids, a bit each. */
#define LEAST(id, type, more, records, ext) \
	[WEFT_WIRE_##id] = sizeof(struct weft_wire_##type) + (more),
#define RECORDS(id, type, more, records, ext) | (uint32_t)(records) << WEFT_WIRE_##id
#define EXT(id, type, more, records, ext) | (uint32_t)(ext) << WEFT_WIRE_##id

static const uint8_t least[WEFT_WIRE_ID_END] = {WEFT_WIRE_MESSAGES(LEAST)};
static const uint32_t with_records = 0 WEFT_WIRE_MESSAGES(RECORDS);
static const uint32_t behind_ext = 0 WEFT_WIRE_MESSAGES(EXT);
static_assert(WEFT_WIRE_ID_END <= 32, "a set of ids is a word");

/* The piece has @p payload bytes at @p offset of a message of @p total bytes. */
static int check_piece(uint64_t total, uint64_t offset, size_t payload)
{
	if (payload == 0 || total > PTRDIFF_MAX)
		return -EBADMSG;
	if (offset > total || payload > total - offset)
		return -EBADMSG;
	return 0;
}

static int check_frag(const struct weft_wire_frag *f, size_t payload)
{
	return check_piece(weft_get64(f->total), weft_get64(f->offset), payload);
}

static int check_range(weft_le64 first, weft_le64 bytes)
{
	uint64_t offset = weft_get64(first), length = weft_get64(bytes);

	return length == 0 || length > PTRDIFF_MAX || offset > PTRDIFF_MAX - length ? -EBADMSG : 0;
}

static int check_data(const struct weft_wire_data *hdr, size_t payload)
{
	uint64_t offset = weft_get64(hdr->offset);

	return payload == 0 || offset > PTRDIFF_MAX || payload > PTRDIFF_MAX - offset ? -EBADMSG
										      : 0;
}

/* A record has each lane at most once. */
static int check_keys(const struct weft_wire_keys *keys, size_t length)
{
	const struct weft_wire_lane_key *key = (const void *)(keys + 1);
	uint32_t seen = 0;

	if (length < sizeof(*keys) || (length - sizeof(*keys)) % sizeof(*key) ||
	    weft_get64(keys->offset) > PTRDIFF_MAX)
		return -EBADMSG;
	for (size_t n = (length - sizeof(*keys)) / sizeof(*key); n; n--, key++) {
		if (key->lane >= 32 || (seen & 1u << key->lane))
			return -EBADMSG;
		seen |= 1u << key->lane;
	}
	return 0;
}

/* Unknown records are skipped, unless bit 15 of the type is set. */
static int check_records(uint8_t id, const uint8_t *p, size_t left)
{
	bool keys = id == WEFT_WIRE_RTS || id == WEFT_WIRE_RTR || id == WEFT_WIRE_AM_RTS;

	while (left) {
		const struct weft_wire_record *r = (const void *)p;
		size_t size;

		if (left < sizeof(*r) || (weft_get16(r->type) & 0x8000))
			return -EBADMSG;
		size = sizeof(*r) + weft_get16(r->length);
		if (size > left)
			return -EBADMSG;
		if (keys && weft_get16(r->type) == WEFT_MSG_RECORD_KEYS &&
		    check_keys((const void *)(r + 1), weft_get16(r->length)))
			return -EBADMSG;
		p += size;
		left -= size;
	}
	return 0;
}

static int check_status(weft_le32 status)
{
	return weft_get32(status) < 4096 ? 0 : -EBADMSG;
}

static int check_abort(const struct weft_wire_abort *a)
{
	if (weft_get32(a->status) == 0 || weft_get64(a->total) > PTRDIFF_MAX ||
	    (weft_get32(a->flags) & ~WEFT_ABORT_F_AM))
		return -EBADMSG;
	return check_status(a->status);
}

static int check_put(const struct weft_wire_put *p, size_t payload)
{
	uint64_t offset = weft_get64(p->offset);

	if (offset > PTRDIFF_MAX || payload > PTRDIFF_MAX - offset ||
	    (weft_get32(p->flags) & ((1u << WEFT_WIRE_RMA_SHIFT) - 1) &
	     ~(WEFT_WIRE_RMA_ODD | WEFT_WIRE_PUT_SHARE)))
		return -EBADMSG;
	return 0;
}

/* An END has no bytes. Another piece has at least one, unless the put is empty. */
static int check_put_note(const struct weft_wire_ext *x, size_t length)
{
	const struct weft_wire_put_note *n = (const void *)(x + 1);
	bool end = x->flags == WEFT_EXT_F_END;
	uint64_t total;

	if (length < sizeof(*n) || (!end && x->flags != WEFT_EXT_F_IMM))
		return -EBADMSG;
	length -= sizeof(*n);
	total = weft_get64(n->total);
	if (total > PTRDIFF_MAX || length > total || (length == 0) != (end || total == 0) ||
	    (end && total == 0))
		return -EBADMSG;
	return check_put(&n->put, length);
}

static int check_get(const struct weft_wire_get *g)
{
	uint64_t offset = weft_get64(g->offset), length = weft_get64(g->length);
	uint64_t local = weft_get64(g->local);

	if (length == 0 || length > WEFT_WIRE_GET_MAX || offset > PTRDIFF_MAX - length ||
	    local > PTRDIFF_MAX - length)
		return -EBADMSG;
	return 0;
}

static int check_amo(const struct weft_wire_amo *a)
{
	uint16_t flags = weft_get16(a->flags);

	/* An AMO with a reply is not counted, so it is in neither half. */
	if ((flags != WEFT_WIRE_AMO_FETCH && (flags & ~WEFT_WIRE_RMA_ODD)) ||
	    weft_get32(a->number) > WEFT_WIRE_RMA_NUMBER || a->op > WEFT_WIRE_AMO_CSWAP ||
	    (a->width != 4 && a->width != 8) ||
	    weft_get64(a->offset) > (uint64_t)PTRDIFF_MAX - a->width)
		return -EBADMSG;
	return 0;
}

static int check_nak(const struct weft_wire_rma_nak *n)
{
	uint16_t status = weft_get16(n->status), flags = weft_get16(n->flags);

	if (status == 0 || status >= 4096 || (!flags && weft_get64(n->length) > WEFT_WIRE_GET_MAX))
		return -EBADMSG;
	/* A GET, as all operations with a reply of their own, is in neither half. */
	if ((flags & ~(WEFT_WIRE_RMA_COUNTED | WEFT_WIRE_RMA_ODD)) || flags == WEFT_WIRE_RMA_ODD ||
	    (flags && weft_get64(n->length) > WEFT_WIRE_RMA_NUMBER))
		return -EBADMSG;
	return 0;
}

static int check_flush(const struct weft_wire_rma_flush *f)
{
	return weft_get32(f->flags) & ~WEFT_WIRE_RMA_ODD ? -EBADMSG : 0;
}

static int check_flushed(const struct weft_wire_rma_flushed *f)
{
	if (weft_get32(f->first) > WEFT_WIRE_RMA_NUMBER ||
	    weft_get32(f->last) > WEFT_WIRE_RMA_NUMBER)
		return -EBADMSG;
	return check_status(f->status);
}

static int check_fields(uint8_t id, const void *data)
{
	const struct weft_wire_put_done *done = data;
	const struct weft_wire_pull *pull = data;
	const struct weft_wire_rtr *rtr = data;
	const struct weft_wire_rts *rts = data;
	const struct weft_wire_ats *ats = data;

	switch (id) {
	case WEFT_WIRE_RTS:
		return weft_get64(rts->total) > PTRDIFF_MAX ? -EBADMSG : 0;
	case WEFT_WIRE_RTR:
		return check_range(rtr->offset, rtr->length);
	case WEFT_WIRE_PULL:
		return check_range(pull->offset, pull->length);
	case WEFT_WIRE_PUT_DONE:
		return check_range(done->offset, done->length);
	case WEFT_WIRE_ATS:
	case WEFT_WIRE_SYNC_ACK:
		return check_status(ats->status);
	case WEFT_WIRE_ABORT:
		return check_abort(data);
	case WEFT_WIRE_GET:
		return check_get(data);
	case WEFT_WIRE_AMO:
		return check_amo(data);
	case WEFT_WIRE_RMA_NAK:
		return check_nak(data);
	case WEFT_WIRE_RMA_FLUSH:
		return check_flush(data);
	case WEFT_WIRE_RMA_FLUSHED:
		return check_flushed(data);
	default:
		return 0;
	}
}

static int check_control(uint8_t id, const void *data, size_t length)
{
	size_t size = least[id];

	if (check_fields(id, data))
		return -EBADMSG;
	return length == size ? 0 : check_records(id, (const uint8_t *)data + size, length - size);
}

static int check_am(uint8_t id, const void *data, size_t length)
{
	const struct weft_wire_am_rts *rts = data;
	const struct weft_wire_am *am = data;
	size_t size = id == WEFT_WIRE_AM ? sizeof(*am) : sizeof(*rts);

	if (weft_get16(am->header_length) > WEFT_WIRE_AM_HEADER ||
	    length - size < weft_get16(am->header_length))
		return -EBADMSG;
	if (id == WEFT_WIRE_AM)
		return 0;
	if (weft_get64(rts->total) > PTRDIFF_MAX)
		return -EBADMSG;
	size += weft_get16(am->header_length);
	return check_records(id, (const uint8_t *)data + size, length - size);
}

/* Only the piece at offset 0 has the user's header. */
static int check_am_frag(const struct weft_wire_am_frag *f, size_t length)
{
	size_t header;

	if (weft_get16(f->am.header_length) > WEFT_WIRE_AM_HEADER)
		return -EBADMSG;
	length -= sizeof(*f);
	header = weft_get64(f->offset) ? 0 : weft_get16(f->am.header_length);
	if (length < header)
		return -EBADMSG;
	return check_piece(weft_get64(f->total), weft_get64(f->offset), length - header);
}

static int check_ext(const struct weft_wire_ext *x, size_t length)
{
	if (x->id >= WEFT_WIRE_ID_END || !(behind_ext >> x->id & 1) || weft_get16(x->reserved) ||
	    (!(x->flags & WEFT_EXT_F_IMM) && weft_get64(x->imm)))
		return -EBADMSG;
	if (x->id == WEFT_WIRE_PUT)
		return check_put_note(x, length - sizeof(*x));
	if (x->flags & ~WEFT_EXT_F_IMM)
		return -EBADMSG;
	return weft_wire_check(x->id, x + 1, length - sizeof(*x));
}

static int check_key(const struct weft_wire_key *k, size_t length)
{
	if (k->num_domains > WEFT_RKEY_DOMAINS || k->low > 7 ||
	    length != sizeof(*k) + k->num_domains * sizeof(struct weft_wire_rkey_domain) ||
	    weft_get64(k->size) == 0 || weft_get64(k->size) > PTRDIFF_MAX)
		return -EBADMSG;
	return 0;
}

static int check_amov(const struct weft_wire_amov *a, size_t length)
{
	uint16_t flags;
	size_t bytes;

	if (!weft_amo_known(a->op, a->type))
		return -EBADMSG;
	flags = weft_get16(a->flags);
	bytes = (size_t)weft_get32(a->count) * weft_amo_width(a->type);
	if (bytes == 0 || bytes > WEFT_WIRE_AMOV_BYTES ||
	    (flags != WEFT_WIRE_AMO_FETCH && (flags & ~WEFT_WIRE_RMA_ODD)) ||
	    weft_get32(a->number) > WEFT_WIRE_RMA_NUMBER ||
	    weft_get64(a->offset) > (uint64_t)PTRDIFF_MAX - bytes ||
	    weft_get64(a->local) > (uint64_t)PTRDIFF_MAX - bytes ||
	    length - sizeof(*a) != bytes * weft_amo_arrays(a->op))
		return -EBADMSG;
	return 0;
}

int weft_wire_check(uint8_t id, const void *data, size_t length)
{
	/* Short messages are the most frequent ones. */
	if (id == WEFT_WIRE_EAGER)
		return length < sizeof(struct weft_wire_eager) ? -EBADMSG : 0;
	if (id >= WEFT_WIRE_ID_END || length < least[id])
		return -EBADMSG;
	switch (id) {
	case WEFT_WIRE_EAGER_SYNC:
		return 0;
	case WEFT_WIRE_FRAG:
		return check_frag(data, length - sizeof(struct weft_wire_frag));
	case WEFT_WIRE_FRAG_SYNC:
		return check_frag(data, length - sizeof(struct weft_wire_frag_sync));
	case WEFT_WIRE_DATA:
	case WEFT_WIRE_GET_DATA:
	case WEFT_WIRE_AMOV_REP:
		return check_data(data, length - sizeof(struct weft_wire_data));
	case WEFT_WIRE_AM:
	case WEFT_WIRE_AM_RTS:
		return check_am(id, data, length);
	case WEFT_WIRE_AM_FRAG:
		return check_am_frag(data, length);
	case WEFT_WIRE_EXT:
		return check_ext(data, length);
	case WEFT_WIRE_PUT:
		return check_put(data, length - sizeof(struct weft_wire_put));
	case WEFT_WIRE_KEY_REQ:
		return length != sizeof(struct weft_wire_key_req) ? -EBADMSG : 0;
	case WEFT_WIRE_KEY:
		return check_key(data, length);
	case WEFT_WIRE_AMOV:
		return check_amov(data, length);
	default:
		return with_records >> id & 1 ? check_control(id, data, length) : -EBADMSG;
	}
}

/* ------------------------------------------------------------------ headers of split messages */

/* A message that carries a range of bytes can be split. A whole message becomes a piece first. */

#define EXT_LENGTH sizeof(struct weft_wire_ext)

static_assert(EXT_LENGTH + sizeof(struct weft_wire_frag_sync) <= WEFT_LANE_PIECE_ROOM, "room");
static_assert(sizeof(struct weft_wire_data) <= WEFT_LANE_PIECE_ROOM, "room");

/* Put EXT in front of a header of @p n bytes, which ends at @p piece. */
static size_t repeat_ext(const void *msg, size_t n, void *piece)
{
	if (piece && n)
		memcpy((uint8_t *)piece - n - EXT_LENGTH, msg, EXT_LENGTH);
	return n ? EXT_LENGTH + n : 0;
}

/* The message is not validated yet. Any other id behind EXT is invalid, or cannot be split. */
static size_t split_ext(const struct weft_wire_ext *x, size_t had, void *piece)
{
	if (x->id != WEFT_WIRE_FRAG && x->id != WEFT_WIRE_FRAG_SYNC)
		return 0;
	return repeat_ext(x, weft_msg_split(x->id, x + 1, had ? had - EXT_LENGTH : 0, piece),
			  piece);
}

/* The receiver validates and counts each part as a message. */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece)
{
	struct weft_wire_frag_sync *fs;
	struct weft_wire_data *data;
	struct weft_wire_frag *frag;

	switch (id) {
	case WEFT_WIRE_FRAG:
		frag = piece ? (struct weft_wire_frag *)piece - 1 : NULL;
		if (frag) {
			memcpy(frag, msg, sizeof(*frag));
			frag->offset = weft_put64(weft_get64(frag->offset) + had - sizeof(*frag));
		}
		return sizeof(*frag);
	case WEFT_WIRE_FRAG_SYNC:
		fs = piece ? (struct weft_wire_frag_sync *)piece - 1 : NULL;
		if (fs) {
			memcpy(fs, msg, sizeof(*fs));
			fs->f.offset = weft_put64(weft_get64(fs->f.offset) + had - sizeof(*fs));
		}
		return sizeof(*fs);
	case WEFT_WIRE_DATA:
	case WEFT_WIRE_GET_DATA:
		data = piece ? (struct weft_wire_data *)piece - 1 : NULL;
		if (data) {
			memcpy(data, msg, sizeof(*data));
			data->offset = weft_put64(weft_get64(data->offset) + had - sizeof(*data));
		}
		return sizeof(*data);
	case WEFT_WIRE_EXT:
		return split_ext(msg, had, piece);
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------ for a lane that takes less */

static_assert(sizeof(struct weft_wire_frag) - sizeof(struct weft_wire_eager) == WEFT_RECAST_ROOM,
	      "room");
static_assert(sizeof(struct weft_wire_frag_sync) - sizeof(struct weft_wire_eager_sync) ==
		      WEFT_RECAST_ROOM,
	      "room");
static_assert(sizeof(struct weft_wire_am_frag) - sizeof(struct weft_wire_am) == WEFT_RECAST_ROOM,
	      "room");

static_assert(sizeof(struct weft_wire_ext) == WEFT_RECAST_ROOM, "room");

static size_t am_head(const struct weft_wire_am_frag *f)
{
	return sizeof(*f) + (weft_get64(f->offset) ? 0 : weft_get16(f->am.header_length));
}

/* The piece begins in EXT's place, so EXT moves in front of it. */
static uint8_t recast_ext(struct weft_wire_ext *at, size_t length)
{
	struct weft_wire_ext x = *at;

	x.id = weft_msg_recast(x.id, at + 1, length - sizeof(x));
	if (!x.id)
		return 0;
	memcpy((uint8_t *)at - WEFT_RECAST_ROOM, &x, sizeof(x));
	return WEFT_WIRE_EXT;
}

uint8_t weft_msg_recast(uint8_t id, void *msg, size_t length)
{
	uint8_t *at = (uint8_t *)msg - WEFT_RECAST_ROOM;
	struct weft_wire_frag_sync *fs = (void *)at;
	struct weft_wire_am_frag *af = (void *)at;
	struct weft_wire_frag *f = (void *)at;
	struct weft_wire_eager_sync es;
	struct weft_wire_eager e;
	struct weft_wire_am am;

	switch (id) {
	case WEFT_WIRE_EAGER:
		memcpy(&e, msg, sizeof(e));
		*f = (struct weft_wire_frag){e, weft_put64(length - sizeof(e)), weft_put64(0)};
		return WEFT_WIRE_FRAG;
	case WEFT_WIRE_EAGER_SYNC:
		memcpy(&es, msg, sizeof(es));
		fs->f = (struct weft_wire_frag){es.e, weft_put64(length - sizeof(es)),
						weft_put64(0)};
		fs->req = es.req;
		return WEFT_WIRE_FRAG_SYNC;
	case WEFT_WIRE_AM:
		memcpy(&am, msg, sizeof(am));
		length -= sizeof(am) + weft_get16(am.header_length);
		*af = (struct weft_wire_am_frag){am, weft_put64(length), weft_put64(0)};
		return WEFT_WIRE_AM_FRAG;
	case WEFT_WIRE_EXT:
		return recast_ext(msg, length);
	default:
		return 0;
	}
}

size_t weft_msg_part(uint8_t id, const void *msg, size_t had, void *piece)
{
	const struct weft_wire_ext *x = msg;
	struct weft_wire_am_frag *f;

	if (id == WEFT_WIRE_EXT)
		return repeat_ext(x, weft_msg_part(x->id, x + 1, had ? had - EXT_LENGTH : 0, piece),
				  piece);
	if (id != WEFT_WIRE_AM_FRAG)
		return weft_msg_split(id, msg, had, piece);
	if (had == 0)
		return am_head(msg);
	f = piece ? (struct weft_wire_am_frag *)piece - 1 : NULL;
	if (f) {
		memcpy(f, msg, sizeof(*f));
		f->offset = weft_put64(weft_get64(f->offset) + had - am_head(msg));
	}
	return sizeof(*f);
}

/* @return 0: no PUT */
static size_t put_head(uint8_t id, const struct weft_wire_ext *x)
{
	if (id == WEFT_WIRE_PUT)
		return sizeof(struct weft_wire_put);
	return id == WEFT_WIRE_EXT && x->id == WEFT_WIRE_PUT
		       ? EXT_LENGTH + sizeof(struct weft_wire_put_note)
		       : 0;
}

bool weft_msg_is_put(uint8_t id, const void *msg)
{
	return put_head(id, msg) > 0;
}

size_t weft_put_halve(uint8_t id, void *msg, size_t length, void *second, size_t *rest)
{
	size_t head = put_head(id, msg), skip = id == WEFT_WIRE_EXT ? EXT_LENGTH : 0, keep;
	struct weft_wire_put *first = (void *)((uint8_t *)msg + skip);
	struct weft_wire_put *p = (void *)((uint8_t *)second + skip);
	uint32_t flags = weft_get32(first->flags);

	if (length < head + 2 || (flags & WEFT_WIRE_PUT_SHARE) == WEFT_WIRE_PUT_SHARE)
		return 0;
	keep = head + (length - head) / 2;
	first->flags = weft_put32(flags + WEFT_WIRE_PUT_HALF);
	memcpy(second, msg, head);
	p->offset = weft_put64(weft_get64(p->offset) + keep - head);
	memcpy((uint8_t *)second + head, (const uint8_t *)msg + keep, length - keep);
	*rest = head + length - keep;
	return keep;
}

/* ------------------------------------------------------------------ atomics */

/*
 * Elements change by compare-and-swap of their bits. So floating-point operations, too, are atomic
 * among all operations of this file, and among CPU atomics of the same width.
 */

static const uint8_t widths[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

size_t weft_amo_width(unsigned int type)
{
	return type < sizeof(widths) ? widths[type] : 0;
}

bool weft_amo_compares(unsigned int op)
{
	return op == WEFT_ATOMIC_CSWAP || (op >= WEFT_ATOMIC_CSWAP_NE && op <= WEFT_ATOMIC_MSWAP);
}

bool weft_amo_known(unsigned int op, unsigned int type)
{
	const bool bits = op == WEFT_ATOMIC_AND || op == WEFT_ATOMIC_OR || op == WEFT_ATOMIC_XOR ||
			  op == WEFT_ATOMIC_MSWAP;

	if (op > WEFT_ATOMIC_MSWAP || weft_amo_width(type) == 0)
		return false;
	return !(bits && type >= WEFT_ATOMIC_FLOAT);
}

/* A sum or product of integers wraps. */
#define CASES(type, wide)                            \
	case WEFT_ATOMIC_ADD:                        \
		return (type)((wide)v + (wide)a);    \
	case WEFT_ATOMIC_PROD:                       \
		return (type)((wide)v * (wide)a);    \
	case WEFT_ATOMIC_MIN:                        \
		return a < v ? a : v;                \
	case WEFT_ATOMIC_MAX:                        \
		return a > v ? a : v;                \
	case WEFT_ATOMIC_LAND:                       \
		return (type)(v != 0 && a != 0);     \
	case WEFT_ATOMIC_LOR:                        \
		return (type)(v != 0 || a != 0);     \
	case WEFT_ATOMIC_LXOR:                       \
		return (type)((v != 0) != (a != 0)); \
	case WEFT_ATOMIC_READ:                       \
		return v;                            \
	case WEFT_ATOMIC_CSWAP_NE:                   \
		return c < v || c > v ? a : v;       \
	case WEFT_ATOMIC_CSWAP_LE:                   \
		return c <= v ? a : v;               \
	case WEFT_ATOMIC_CSWAP_LT:                   \
		return c < v ? a : v;                \
	case WEFT_ATOMIC_CSWAP_GE:                   \
		return c >= v ? a : v;               \
	case WEFT_ATOMIC_CSWAP_GT:                   \
		return c > v ? a : v

#define INTEGER(name, type)                                       \
	static type name(unsigned int op, type v, type a, type c) \
	{                                                         \
		switch (op) {                                     \
			CASES(type, uint64_t);                    \
		case WEFT_ATOMIC_AND:                             \
			return (type)(v & a);                     \
		case WEFT_ATOMIC_OR:                              \
			return (type)(v | a);                     \
		case WEFT_ATOMIC_XOR:                             \
			return (type)(v ^ a);                     \
		case WEFT_ATOMIC_MSWAP:                           \
			return (type)((a & c) | (v & (type)~c));  \
		case WEFT_ATOMIC_CSWAP:                           \
			return v == c ? a : v;                    \
		default:                                          \
			return a;                                 \
		}                                                 \
	}

#define FLOATING(name, type)                                                \
	static type name(unsigned int op, type v, type a, type c)           \
	{                                                                   \
		switch (op) {                                               \
			CASES(type, type);                                  \
		case WEFT_ATOMIC_CSWAP: /* bits are compared, as CPUs do */ \
			return memcmp(&v, &c, sizeof(v)) == 0 ? a : v;      \
		default:                                                    \
			return a;                                           \
		}                                                           \
	}

INTEGER(do_int8, int8_t)
INTEGER(do_uint8, uint8_t)
INTEGER(do_int16, int16_t)
INTEGER(do_uint16, uint16_t)
INTEGER(do_int32, int32_t)
INTEGER(do_uint32, uint32_t)
INTEGER(do_int64, int64_t)
INTEGER(do_uint64, uint64_t)
FLOATING(do_float, float)
FLOATING(do_double, double)

/* Sequentially consistent, as the instructions for AMO on words are (rma/target.c). */
#define ELEMENT(fn, type, bits)                                                             \
	do {                                                                                \
		bits was = __atomic_load_n((bits *)word, __ATOMIC_SEQ_CST), now;            \
		type v, a = 0, c = 0;                                                       \
                                                                                            \
		if (operand)                                                                \
			memcpy(&a, operand, sizeof(a));                                     \
		if (compare)                                                                \
			memcpy(&c, compare, sizeof(c));                                     \
		do {                                                                        \
			memcpy(&v, &was, sizeof(v));                                        \
			v = fn(op, v, a, c);                                                \
			memcpy(&now, &v, sizeof(now));                                      \
		} while (!__atomic_compare_exchange_n((bits *)word, &was, now, false,       \
						      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
		memcpy(old, &was, sizeof(was));                                             \
	} while (0)

void weft_amo_do(unsigned int op, unsigned int type, void *word, const void *operand,
		 const void *compare, void *old)
{
	switch (type) {
	case WEFT_ATOMIC_INT8:
		ELEMENT(do_int8, int8_t, uint8_t);
		break;
	case WEFT_ATOMIC_UINT8:
		ELEMENT(do_uint8, uint8_t, uint8_t);
		break;
	case WEFT_ATOMIC_INT16:
		ELEMENT(do_int16, int16_t, uint16_t);
		break;
	case WEFT_ATOMIC_UINT16:
		ELEMENT(do_uint16, uint16_t, uint16_t);
		break;
	case WEFT_ATOMIC_INT32:
		ELEMENT(do_int32, int32_t, uint32_t);
		break;
	case WEFT_ATOMIC_UINT32:
		ELEMENT(do_uint32, uint32_t, uint32_t);
		break;
	case WEFT_ATOMIC_INT64:
		ELEMENT(do_int64, int64_t, uint64_t);
		break;
	case WEFT_ATOMIC_UINT64:
		ELEMENT(do_uint64, uint64_t, uint64_t);
		break;
	case WEFT_ATOMIC_FLOAT:
		ELEMENT(do_float, float, uint32_t);
		break;
	default:
		ELEMENT(do_double, double, uint64_t);
	}
}
