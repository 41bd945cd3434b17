/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on arrays of typed elements, by messages: AMOV with a few elements each, which the peer's
 * CPU processes one by one. Without a result they are counted like PUTs; with one, AMOV_REP returns
 * the old values, byte for byte as GET_DATA does.
 */

#include <errno.h>

#include "core/amo.h"
#include "core/context.h"
#include "rma/rma.h"

struct amov {
	struct weft_wire_amov head;
	uint8_t bytes[2 * WEFT_WIRE_AMOV_BYTES];
} __attribute__((packed));

/* Bytes of elements in the largest lane message. */
static size_t most_bytes(const struct weft_msg_ep *me, unsigned int op, size_t width)
{
	size_t max = 0, arrays = weft_amo_arrays(op), n;

	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];

		max = l->max_short > max ? l->max_short : max;
		max = l->max_bcopy > max ? l->max_bcopy : max;
	}
	/* The reply has to fit, too. */
	n = WEFT_WIRE_AMOV_BYTES;
	if (max < sizeof(struct weft_wire_amov) + arrays * n)
		n = max > sizeof(struct weft_wire_amov)
			    ? (max - sizeof(struct weft_wire_amov)) / (arrays ? arrays : 1)
			    : 0;
	else if (max < sizeof(struct weft_wire_data) + n)
		n = max - sizeof(struct weft_wire_data);
	return n / width ? n / width * width : width;
}

static size_t fill_elements(struct amov *a, const struct weft_request *req, size_t n)
{
	const struct weft_req_rma *r = weft_rma_req(req);
	const bool fetch = r->vec.results != NULL;
	size_t off = req->send.offset, length = 0;

	a->head = (struct weft_wire_amov){
		.key = weft_put64(r->rkey->key),
		.offset = weft_put64(r->remote + off),
		.ref = weft_request_ref(req),
		.local = weft_put64(off),
		.op = r->op,
		.type = r->type,
		.flags = weft_put16(fetch               ? WEFT_WIRE_AMO_FETCH
				    : req->me->rma->odd ? WEFT_WIRE_RMA_ODD
							: 0),
		.number = weft_put32(fetch ? 0 : req->send.op_sn & WEFT_WIRE_RMA_NUMBER),
		.count = weft_put32((uint32_t)(n / r->width)),
	};
	if (r->op != WEFT_ATOMIC_READ) {
		memcpy(a->bytes, r->vec.operands + off, n);
		length = n;
	}
	if (weft_amo_compares(r->op)) {
		memcpy(a->bytes + length, r->vec.compares + off, n);
		length += n;
	}
	return sizeof(a->head) + length;
}

/* All operations together: half of the replies that the peer stores. */
static bool has_room_for_replies(const struct weft_request *req, size_t max)
{
	const struct weft_req_rma *r = weft_rma_req(req);

	if (r->pieces == 0 && req->me->rma->open >= WEFT_RMA_OPEN)
		return false;
	return req->send.offset - r->count < 3 * max;
}

int weft_rma_vec_step(struct weft_request *req)
{
	struct weft_req_rma *r = weft_rma_req(req);
	struct weft_rma *rma = req->me->rma;
	const bool fetch = r->vec.results != NULL;
	size_t max = most_bytes(req->me, r->op, r->width), n, length;
	struct amov a;

	while (req->send.offset < req->length && req->status == WEFT_INPROGRESS) {
		n = req->length - req->send.offset < max ? req->length - req->send.offset : max;
		if (fetch && !has_room_for_replies(req, max))
			return -EAGAIN;
		length = fill_elements(&a, req, n);
		if (weft_tx_envelope_any(req->me, WEFT_WIRE_AMOV, &a, length))
			return -EAGAIN;
		req->send.offset += n;
		if (fetch)
			weft_rma_set_pieces(req, req->send.offset - r->count);
		else
			weft_rma_count(rma, rma->odd);
	}
	return 0;
}
