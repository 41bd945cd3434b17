/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/header.h"

/* The message's sequence number, or the one that it would take with its first piece. */
static uint32_t seq_of(const struct weft_request *req)
{
	if (req->flags & WEFT_REQ_STARTED)
		return req->send.seq;
	return req->flags & WEFT_REQ_AM ? req->me->tx_am_seq : req->me->tx_seq;
}

static struct weft_wire_eager tagged_header(const struct weft_request *req)
{
	return (struct weft_wire_eager){weft_put32(seq_of(req)), weft_put64(req->tag)};
}

/* The common first fields of all headers of active messages. */
static struct weft_wire_am am_header(const struct weft_request *req)
{
	const struct weft_req_am *a = &req->send.am;

	return (struct weft_wire_am){weft_put32(seq_of(req)), weft_put16(a->id),
				     weft_put16(a->header_length)};
}

/* Append the user's header. */
static void add_user(const struct weft_request *req, struct weft_head *h)
{
	const struct weft_req_am *a = &req->send.am;

	if (a->header_length)
		memcpy(h->bytes + h->length, a->header, a->header_length);
	h->length = (uint16_t)(h->length + a->header_length);
}

/* @return by how many bytes the header has moved */
static size_t add_ext(const struct weft_request *req, struct weft_head *h)
{
	struct weft_wire_ext x;

	if (__builtin_expect(!req->ext.any, 1))
		return 0;
	x = weft_ext_to_wire(&req->ext, h->id);
	memmove(h->bytes + sizeof(x), h->bytes, h->length);
	memcpy(h->bytes, &x, sizeof(x));
	h->id = WEFT_WIRE_EXT;
	h->length = (uint16_t)(h->length + sizeof(x));
	return sizeof(x);
}

static void put_whole_header(const struct weft_request *req, struct weft_head *h)
{
	if (req->flags & WEFT_REQ_AM) {
		h->id = WEFT_WIRE_AM;
		h->length = sizeof(h->am);
		h->am = am_header(req);
		add_user(req, h);
		return;
	}
	h->id = WEFT_WIRE_EAGER;
	h->length = sizeof(h->eager.e);
	h->eager.e = tagged_header(req);
	if (req->flags & WEFT_REQ_SYNC) {
		h->id = WEFT_WIRE_EAGER_SYNC;
		h->length = sizeof(h->eager);
		h->eager.req = weft_request_ref(req);
	}
}

void weft_head_whole(const struct weft_request *req, struct weft_head *h)
{
	put_whole_header(req, h);
	add_ext(req, h);
}

static void put_fragment_header(const struct weft_request *req, struct weft_head *h)
{
	const weft_le64 total = weft_put64(req->length), offset = weft_put64(req->send.offset);

	if (req->flags & WEFT_REQ_AM) {
		h->id = WEFT_WIRE_AM_FRAG;
		h->length = sizeof(h->am_frag);
		h->am_frag = (struct weft_wire_am_frag){am_header(req), total, offset};
		if (req->send.offset == 0)
			add_user(req, h);
		return;
	}
	h->id = WEFT_WIRE_FRAG;
	h->length = sizeof(h->frag.f);
	h->frag.f = (struct weft_wire_frag){tagged_header(req), total, offset};
	if (req->flags & WEFT_REQ_SYNC) {
		h->id = WEFT_WIRE_FRAG_SYNC;
		h->length = sizeof(h->frag);
		h->frag.req = weft_request_ref(req);
	}
}

void weft_head_piece(const struct weft_request *req, struct weft_head *h)
{
	put_fragment_header(req, h);
	add_ext(req, h);
}

static weft_le32 *put_rts_header(const struct weft_request *req, struct weft_head *h)
{
	if (req->flags & WEFT_REQ_AM) {
		const struct weft_wire_am begin = am_header(req);

		h->id = WEFT_WIRE_AM_RTS;
		h->length = sizeof(h->am_rts);
		h->am_rts.seq = begin.seq;
		h->am_rts.id = begin.id;
		h->am_rts.header_length = begin.header_length;
		h->am_rts.total = weft_put64(req->length);
		h->am_rts.req = weft_request_ref(req);
		add_user(req, h);
		return &h->am_rts.flags;
	}
	h->id = WEFT_WIRE_RTS;
	h->length = sizeof(h->rts);
	h->rts.e = tagged_header(req);
	h->rts.total = weft_put64(req->length);
	h->rts.req = weft_request_ref(req);
	return &h->rts.flags;
}

weft_le32 *weft_head_rts(const struct weft_request *req, struct weft_head *h)
{
	uint8_t *flags = (uint8_t *)put_rts_header(req, h);

	return (weft_le32 *)(flags + add_ext(req, h));
}

size_t weft_head_whole_size(enum weft_op op)
{
	if (WEFT_OPS_AM >> op & 1)
		return sizeof(struct weft_wire_am);
	return op == WEFT_OP_TAG_SEND_SYNC ? sizeof(struct weft_wire_eager_sync)
					   : sizeof(struct weft_wire_eager);
}

size_t weft_head_piece_size(enum weft_op op)
{
	if (WEFT_OPS_AM >> op & 1)
		return sizeof(struct weft_wire_am_frag);
	return op == WEFT_OP_TAG_SEND_SYNC ? sizeof(struct weft_wire_frag_sync)
					   : sizeof(struct weft_wire_frag);
}
