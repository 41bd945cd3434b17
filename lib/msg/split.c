/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message that carries a range of bytes can be split: this file makes the header of each part. A
 * whole message is first converted to a piece with all of its bytes.
 */

#include <assert.h>
#include <string.h>

#include "msg/layer.h"
#include "core/wire.h"

#define EXT sizeof(struct weft_wire_ext)

static_assert(EXT + sizeof(struct weft_wire_frag_sync) <= WEFT_LANE_PIECE_ROOM, "room");
static_assert(sizeof(struct weft_wire_data) <= WEFT_LANE_PIECE_ROOM, "room");

/* Put EXT in front of a header of @p n bytes that ends at @p piece. */
static size_t repeat_ext(const void *msg, size_t n, void *piece)
{
	if (piece && n)
		memcpy((uint8_t *)piece - n - EXT, msg, EXT);
	return n ? EXT + n : 0;
}

/* Nothing is validated yet: any other id behind EXT is no valid message, or cannot be split. */
static size_t split_ext(const struct weft_wire_ext *x, size_t had, void *piece)
{
	if (x->id != WEFT_WIRE_FRAG && x->id != WEFT_WIRE_FRAG_SYNC)
		return 0;
	return repeat_ext(x, weft_msg_split(x->id, x + 1, had ? had - EXT : 0, piece), piece);
}

/* The receiver validates and counts each part as if it had been sent as a message. */
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

/* Only the piece at offset 0 contains the user's header. */
static size_t am_head(const struct weft_wire_am_frag *f)
{
	return sizeof(*f) + (weft_get64(f->offset) ? 0 : weft_get16(f->am.header_length));
}

/* The message behind EXT then begins where EXT was, and EXT begins in the room. */
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
		return repeat_ext(x, weft_msg_part(x->id, x + 1, had ? had - EXT : 0, piece),
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

/* The length of a PUT's header; 0: it is no PUT. */
static size_t put_head(uint8_t id, const struct weft_wire_ext *x)
{
	if (id == WEFT_WIRE_PUT)
		return sizeof(struct weft_wire_put);
	return id == WEFT_WIRE_EXT && x->id == WEFT_WIRE_PUT
		       ? EXT + sizeof(struct weft_wire_put_note)
		       : 0;
}

bool weft_msg_is_put(uint8_t id, const void *msg)
{
	return put_head(id, msg) > 0;
}

size_t weft_put_halve(uint8_t id, void *msg, size_t length, void *second, size_t *rest)
{
	size_t head = put_head(id, msg), skip = id == WEFT_WIRE_EXT ? EXT : 0, keep;
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
