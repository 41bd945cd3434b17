/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of peers on memory here. Every message contains the memory's key, so revoking a key
 * stops the rest of an operation, too. Memory is accessed only after key, rights and bounds are
 * validated. Refusals are counted, and reported to the initiator.
 *
 * The keys belong to the context: any of its workers serves any of its memory.
 */

#include <errno.h>
#include <stdio.h>

#include "core/wire.h"
#include "core/worker.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "rma/rma.h"
#include "rma/target.h"

/* ------------------------------------------------------------------ validation */

/* Enter the memory for [offset, offset + length). @return 0: leave it by weft_mem_key_leave() */
static int rma_enter(struct weft_msg_ep *me, uint64_t key, uint64_t offset, uint64_t length,
		     unsigned int right, struct weft_mem_slot **out)
{
	struct weft_mem_slot *slot = weft_mem_key_enter(&me->mw->worker->ctx->keys, key);
	const struct weft_mem *mem;
	int rc = 0;

	if (!slot) {
		me->mw->rma->bad_key++;
		return -EKEYREJECTED;
	}
	mem = slot->mem;
	if (!(mem->rights & right)) {
		me->mw->rma->bad_rights++;
		rc = -EACCES;
	} else if (offset > mem->length || length > mem->length - offset) {
		me->mw->rma->bad_range++;
		rc = -ERANGE;
	}
	if (rc)
		weft_mem_key_leave(slot);
	else
		*out = slot;
	return rc;
}

/* ------------------------------------------------------------------ replies */

static const struct weft_request_ops answer_ops;

static struct weft_request *new_answer(struct weft_msg_ep *me, enum weft_rma_kind kind)
{
	struct weft_rma *rma = me->rma;
	struct weft_request *req;

	if (rma->answers_open >= WEFT_WIRE_ANSWERS) {
		me->mw->rma->too_many++;
		weft_msg_fail(me, -EPROTO, "the peer requests more than %u answers at a time",
			      WEFT_WIRE_ANSWERS);
		return NULL;
	}
	req = weft_request_alloc(me->mw, &answer_ops, NULL, false);
	if (!req) {
		weft_msg_fail(me, -ENOMEM, "no memory for an answer to the peer");
		return NULL;
	}
	req->me = me;
	req->tag = 0;
	req->length = 0;
	req->send.proto = NULL;
	req->send.mem = NULL;
	req->send.inject = NULL;
	req->send.zcopies = 0;
	req->send.offset = 0;
	*weft_rma_req(req) = (struct weft_req_rma){.kind = (uint8_t)kind};
	/* A local flush, and a close, wait for replies, too. */
	req->send.op_sn = me->op_sn++;
	TAILQ_INSERT_TAIL(&me->ops, req, send.ops_link);
	rma->answers_open++;
	return req;
}

static void answer_check(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if ((req->flags & WEFT_REQ_PENDING) || req->send.zcopies)
		return;
	TAILQ_REMOVE(&me->ops, req, send.ops_link);
	if (!me->failed)
		me->rma->answers_open--;
	weft_msg_ep_hold(me);
	weft_request_complete(req, 0);
	weft_flush_check(me);
	weft_msg_ep_release(me);
}

static int answer_describe(const struct weft_request *req, char *buf, size_t size)
{
	return snprintf(buf, size, "answer to a peer's operation on memory");
}

static const struct weft_request_ops answer_ops = {
	.release = weft_send_release,
	.describe = answer_describe,
	.check = answer_check,
};

static void queue_answer(struct weft_msg_ep *me, struct weft_request *req)
{
	req->flags |= WEFT_REQ_PENDING;
	TAILQ_INSERT_TAIL(&me->rma->answers, req, link);
	weft_tx_kick(me);
}

static void send_answer(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length)
{
	struct weft_request *req;

	if (weft_tx_envelope_any(me, id, data, length) == 0)
		return;
	req = new_answer(me, WEFT_RMA_SMALL);
	if (!req)
		return;
	weft_rma_req(req)->small.id = id;
	weft_rma_req(req)->small.length = (uint8_t)length;
	memcpy(weft_rma_req(req)->small.data, data, length);
	queue_answer(me, req);
}

/*
 * @param flags  0: for an operation with a reply; or WEFT_WIRE_RMA_COUNTED and the half of the
 * refused message
 */
static void rma_refuse(struct weft_msg_ep *me, struct weft_wire_ref ref, uint64_t length,
		       int status, unsigned int flags)
{
	struct weft_wire_rma_nak nak = {
		.ref = ref,
		.length = weft_put64(length),
		.status = weft_put16((uint16_t)-status),
		.flags = weft_put16((uint16_t)flags),
	};

	send_answer(me, WEFT_WIRE_RMA_NAK, &nak, sizeof(nak));
}

/* ------------------------------------------------------------------ counted messages */

static void answer_flush(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;
	struct weft_wire_rma_flushed f = {
		.count = weft_put64(rma->peer_flush_count),
		.naks = weft_put64(rma->naks_sent[rma->peer_flush_odd]),
		.errors = weft_put64(rma->refused),
		.status = weft_put32((uint32_t)-rma->refused_status),
		.first = weft_put32(rma->refused_first),
		.last = weft_put32(rma->refused_last),
	};

	if (!weft_rma_peer_flush_done(rma))
		return;
	if (weft_tx_envelope_any(me, WEFT_WIRE_RMA_FLUSHED, &f, sizeof(f))) {
		weft_tx_kick(me);
		return;
	}
	rma->peer_flush = false;
	rma->refused_reported = true;
}

static bool number_before(uint32_t a, uint32_t b)
{
	return ((a - b) & WEFT_WIRE_RMA_NUMBER) > WEFT_WIRE_RMA_NUMBER / 2;
}

/* The next RMA_FLUSHED contains the range of the numbers of operations refused without a NAK. */
static void put_refused(struct weft_rma *rma, uint32_t number, int status)
{
	bool first = rma->refused == 0 || rma->refused_reported;

	if (first || number_before(number, rma->refused_first))
		rma->refused_first = number;
	if (first || number_before(rma->refused_last, number))
		rma->refused_last = number;
	rma->refused_reported = false;
	rma->refused++;
	rma->refused_status = status;
}

/*
 * A PUT that was split: all parts together count as one. A flush requests all messages of a half,
 * so the sum reaches the requested count only when no part is missing.
 */
static void add_share(struct weft_rma *rma, bool odd, unsigned int halvings)
{
	uint32_t part = 1u << (32 - halvings);

	rma->done_part[odd] += part;
	rma->done[odd] += rma->done_part[odd] < part;
}

void weft_rma_counted(struct weft_msg_ep *me, struct weft_wire_ref ref, uint32_t flags,
		      uint32_t number, int status)
{
	unsigned int halvings = (flags & WEFT_WIRE_PUT_SHARE) / WEFT_WIRE_PUT_HALF;
	bool odd = flags & WEFT_WIRE_RMA_ODD;
	struct weft_rma *rma = me->rma;

	if (__builtin_expect(halvings > 0, 0))
		add_share(rma, odd, halvings);
	else
		rma->done[odd]++;
	/* A peer that continues with a revoked key must not fill the queue of NAKs. */
	if (status && (ref.generation.v == 0 || rma->answers_open >= WEFT_WIRE_ANSWERS / 2)) {
		put_refused(rma, number, status);
	} else if (status && memcmp(&ref, &rma->last_nak, sizeof(ref)) != 0) {
		rma->last_nak = ref;
		rma->naks_sent[odd]++;
		rma_refuse(me, ref, number, status,
			   WEFT_WIRE_RMA_COUNTED | (odd ? WEFT_WIRE_RMA_ODD : 0));
	}
	if (rma->peer_flush && !me->failed)
		answer_flush(me);
}

int weft_rma_write(struct weft_msg_ep *me, const struct weft_wire_put *put, const void *bytes,
		   size_t length)
{
	uint64_t offset = weft_get64(put->offset);
	struct weft_mem_slot *slot;
	int rc =
		rma_enter(me, weft_get64(put->key), offset, length, WEFT_MEM_F_REMOTE_WRITE, &slot);

	if (rc)
		return rc;
	memcpy((uint8_t *)slot->mem->address + offset, bytes, length);
	weft_mem_key_leave(slot);
	me->mw->rma->puts++;
	me->mw->rma->put_bytes += length;
	return 0;
}

void weft_rma_recv_put_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				size_t length)
{
	const struct weft_wire_put *put = header;
	int rc;

	if (!weft_rma_ready(me))
		return;
	rc = weft_rma_write(me, put, payload, length);
	weft_rma_counted(me, put->ref, weft_get32(put->flags),
			 weft_get32(put->flags) >> WEFT_WIRE_RMA_SHIFT, rc);
}

void weft_rma_recv_put(struct weft_msg_ep *me, const void *data, size_t length)
{
	weft_rma_recv_put_in_place(me, data, (const struct weft_wire_put *)data + 1, length);
}

void weft_rma_recv_flush(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_rma_flush *flush = data;
	struct weft_rma *rma;

	if (!weft_rma_ready(me))
		return;
	/* An initiator has one RMA_FLUSH outstanding at a time. */
	rma = me->rma;
	rma->peer_flush = true;
	rma->peer_flush_odd = weft_get32(flush->flags) & WEFT_WIRE_RMA_ODD;
	rma->peer_flush_count = weft_get64(flush->count);
	answer_flush(me);
}

/* ------------------------------------------------------------------ atomics */

/*
 * On a naturally aligned word these are instructions of the processor: atomic among all threads of
 * this process that use such instructions, including other workers. The instructions are
 * sequentially consistent, as programs that build locks from them expect.
 */
#define DO_AMO(type)                                                                     \
	static type do_amo_##type(type *word, uint8_t op, type operand, type compare)    \
	{                                                                                \
		switch (op) {                                                            \
		case WEFT_WIRE_AMO_ADD:                                                  \
			return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);      \
		case WEFT_WIRE_AMO_AND:                                                  \
			return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);      \
		case WEFT_WIRE_AMO_OR:                                                   \
			return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);       \
		case WEFT_WIRE_AMO_XOR:                                                  \
			return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);      \
		case WEFT_WIRE_AMO_SWAP:                                                 \
			return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);     \
		default: /* validated before: CSWAP */                                   \
			__atomic_compare_exchange_n(word, &compare, operand, false,      \
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
			return compare; /* the old value, whether stored or not */       \
		}                                                                        \
	}

DO_AMO(uint32_t)
DO_AMO(uint64_t)

static int amo(struct weft_msg_ep *me, const struct weft_wire_amo *a, uint64_t *old)
{
	uint64_t offset = weft_get64(a->offset), operand = weft_get64(a->operand);
	uint64_t compare = weft_get64(a->compare);
	struct weft_mem_slot *slot;
	uint8_t *word;
	int rc = rma_enter(me, weft_get64(a->key), offset, a->width, WEFT_MEM_F_REMOTE_ATOMIC,
			   &slot);

	if (rc)
		return rc;
	word = (uint8_t *)slot->mem->address + offset;
	if ((uintptr_t)word % a->width) {
		me->mw->rma->misaligned++;
		rc = -EINVAL;
	} else if (a->width == 8) {
		*old = do_amo_uint64_t((void *)word, a->op, operand, compare);
	} else {
		*old = do_amo_uint32_t((void *)word, a->op, (uint32_t)operand, (uint32_t)compare);
	}
	weft_mem_key_leave(slot);
	me->mw->rma->amos += rc == 0;
	return rc;
}

void weft_rma_recv_amo(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_amo *a = data;
	uint16_t flags = weft_get16(a->flags);
	uint64_t old = 0;
	int rc;

	if (!weft_rma_ready(me))
		return;
	rc = amo(me, a, &old);
	if (!(flags & WEFT_WIRE_AMO_FETCH)) {
		weft_rma_counted(me, a->ref, flags, weft_get32(a->number), rc);
	} else if (rc) {
		rma_refuse(me, a->ref, 0, rc, 0);
	} else {
		struct weft_wire_amo_rep rep = {a->ref, weft_put64(old)};

		send_answer(me, WEFT_WIRE_AMO_REP, &rep, sizeof(rep));
	}
}

/* ------------------------------------------------------------------ gets */

/* Send a piece of the data directly from the registered memory, until its key is revoked. */
static ssize_t get_data_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	struct weft_msg_ep *me = req->me;
	struct weft_wire_data hdr = {req->send.peer, weft_put64(weft_rma_req(req)->remote + off)};
	size_t len = weft_tx_piece_max(req, lane, sizeof(hdr));

	if (atomic_load(&req->send.mem->revoked)) {
		me->mw->rma->bad_key++;
		req->length = off;
		rma_refuse(me, req->send.peer, rest, -EKEYREJECTED, 0);
		return 0;
	}
	if (len == 0)
		return -EAGAIN;
	len = weft_tx_cut(me, off, rest, len, me->lanes[lane].align);
	/* Contiguous memory: the only possible error is that the lane has no room. */
	if (weft_tx_piece(req, lane, WEFT_WIRE_GET_DATA, &hdr, sizeof(hdr), off, len))
		return -EAGAIN;
	me->mw->rma->get_bytes += len;
	return (ssize_t)len;
}

/* Hand over as much as lanes accept. @return 0: all of it, or the key was revoked; -EAGAIN */
static int get_data_step(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	return weft_stripe(req, me->rndv_lanes | 1u << me->am_lane, WEFT_DIR_TX, req->length,
			   get_data_piece);
}

void weft_rma_recv_get(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_get *get = data;
	uint64_t offset = weft_get64(get->offset), length = weft_get64(get->length);
	struct weft_mem_slot *slot;
	struct weft_request *req;
	int rc;

	if (!weft_rma_ready(me))
		return;
	rc = rma_enter(me, weft_get64(get->key), offset, length, WEFT_MEM_F_REMOTE_READ, &slot);
	if (rc) {
		rma_refuse(me, get->ref, length, rc, 0);
		return;
	}
	req = new_answer(me, WEFT_RMA_ANSWER);
	if (req) {
		/* From here on the reference keeps the memory, and `revoked` indicates its end. */
		req->send.mem = slot->mem;
		slot->mem->refs++;
		req->dt.buf = (uint8_t *)slot->mem->address + offset;
		req->dt.length = req->length = length;
		req->send.peer = get->ref;
		weft_rma_req(req)->remote = weft_get64(get->local);
	}
	weft_mem_key_leave(slot);
	if (!req)
		return;
	me->mw->rma->gets_served++;
	if (!me->up || !TAILQ_EMPTY(&me->rma->answers) || get_data_step(req))
		queue_answer(me, req);
	else if (!me->failed)
		answer_check(req);
}

/* ------------------------------------------------------------------ service */

static int answer_step(struct weft_request *req)
{
	const struct weft_req_rma *r = weft_rma_req(req);

	if (r->kind == WEFT_RMA_ANSWER)
		return get_data_step(req);
	return weft_tx_envelope_any(req->me, r->small.id, r->small.data, r->small.length);
}

unsigned int weft_rma_serve_answers(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;
	struct weft_request *req;
	unsigned int n = 0;

	answer_flush(me);
	while (n < WEFT_TX_BURST && me->up && (req = TAILQ_FIRST(&rma->answers))) {
		if (answer_step(req))
			break;
		n++;
		if (me->failed)
			break; /* there was no memory for a NAK */
		TAILQ_REMOVE(&rma->answers, req, link);
		req->flags &= ~WEFT_REQ_PENDING;
		answer_check(req);
	}
	return n;
}

/* ------------------------------------------------------------------ atomics on arrays */

/* AMOV: rma/initiator.c describes the messages. */

static int amov_execute(struct weft_msg_ep *me, const struct weft_wire_amov *a, size_t bytes,
			uint8_t *old)
{
	const size_t width = weft_amo_width(a->type);
	const uint8_t *operand = (const uint8_t *)(a + 1);
	const uint8_t *compare = operand + (a->op == WEFT_ATOMIC_READ ? 0 : bytes);
	struct weft_mem_slot *slot;
	uint8_t *word;
	int rc = rma_enter(me, weft_get64(a->key), weft_get64(a->offset), bytes,
			   WEFT_MEM_F_REMOTE_ATOMIC, &slot);

	if (rc)
		return rc;
	word = (uint8_t *)slot->mem->address + weft_get64(a->offset);
	if ((uintptr_t)word % width) {
		me->mw->rma->misaligned++;
		rc = -EINVAL;
	}
	for (size_t i = 0; rc == 0 && i < bytes; i += width)
		weft_amo_do(a->op, a->type, word + i,
			    a->op == WEFT_ATOMIC_READ ? NULL : operand + i,
			    weft_amo_compares(a->op) ? compare + i : NULL, old + i);
	weft_mem_key_leave(slot);
	me->mw->rma->amos += rc ? 0 : bytes / width;
	return rc;
}

void weft_rma_recv_amov(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_amov *a = data;
	uint16_t flags = weft_get16(a->flags);
	size_t bytes = (size_t)weft_get32(a->count) * weft_amo_width(a->type);
	struct {
		struct weft_wire_data head;
		uint8_t old[WEFT_WIRE_AMOV_BYTES];
	} __attribute__((packed)) rep = {.head = {a->ref, a->local}};
	int rc;

	if (!weft_rma_ready(me))
		return;
	/* Replies that cannot be sent occupy memory. */
	if ((flags & WEFT_WIRE_AMO_FETCH) && me->num_ctl >= 2 * WEFT_WIRE_ANSWERS) {
		me->mw->rma->too_many++;
		weft_msg_fail(me, -EPROTO, "the peer requests more than %u answers at a time",
			      2 * WEFT_WIRE_ANSWERS);
		return;
	}
	rc = amov_execute(me, a, bytes, rep.old);
	if (!(flags & WEFT_WIRE_AMO_FETCH))
		weft_rma_counted(me, a->ref, flags, weft_get32(a->number), rc);
	else if (rc)
		rma_refuse(me, a->ref, bytes, rc, 0);
	else
		weft_tx_ctl(me, WEFT_WIRE_AMOV_REP, &rep, sizeof(rep.head) + bytes);
}
