/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary messages of remote memory and active messages are received, with puts, gets,
 * atomics, fences and active messages going on beside them. The input is a row of commands; keys
 * and references that exist are patched in, or no input would get past them.
 *
 * Nothing may crash, hang, leak, or be written outside the registered memory.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "am/am.h"
#include "base/log.h"
#include "mem/mem.h"
#include "mock/pair.h"
#include "rma/rma.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUM 16
#define MEM 512

struct world {
	struct pair p;
	struct weft_request *req[NUM];
	struct weft_am_data *kept[NUM];
	uint8_t buf[NUM][4096];
	unsigned int next, num_kept;
	uint8_t *mem;
	struct weft_mem *m;
	struct weft_rkey *rkey;
};

static uint64_t dice = 1;

static int a_random(void *arg, void *buf, size_t len)
{
	(void)arg;
	while (len--)
		((uint8_t *)buf)[len] = (uint8_t)(pair_random(&dice) >> 16);
	return 0;
}

static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct world *w = arg;

	(void)worker;
	if (msg->desc && w->num_kept < NUM && (msg->id & 1)) {
		w->kept[w->num_kept++] = msg->desc;
		return WEFT_INPROGRESS;
	}
	return msg->id & 2 ? -ENOSPC : 0;
}

static void hold(struct world *w, int rc, struct weft_request *req)
{
	if (rc != WEFT_INPROGRESS)
		return;
	weft_request_free(w->req[w->next % NUM]);
	w->req[w->next++ % NUM] = req;
}

/* Flags that validation lets through three times of four: @p allowed, or one bit too many. */
static void tame(uint8_t *flags, unsigned int allowed)
{
	flags[0] &= (uint8_t)(flags[0] & 4 ? 3 : allowed);
	memset(flags + 1, 0, 3);
}

/* Keys, references and sequences in the places where messages have them. */
static void patch(struct world *w, uint8_t id, uint8_t *m, size_t len)
{
	static const uint8_t ref_at[32] = {[WEFT_WIRE_PUT] = 16,
					   [WEFT_WIRE_GET] = 32,
					   [WEFT_WIRE_AMO] = 32,
					   [WEFT_WIRE_AM_RTS] = 16};
	struct weft_request *req = w->req[(w->next + NUM - 1) % NUM];
	weft_le64 key = weft_put64(w->m ? w->m->key : 0);
	struct weft_wire_ref ref;

	if ((id == WEFT_WIRE_PUT || id == WEFT_WIRE_GET || id == WEFT_WIRE_AMO) &&
	    len >= sizeof(key) + 8) {
		memcpy(m, &key, sizeof(key));
		memset(m + 10, 0, 6); /* an offset near the memory */
	}
	if (id == WEFT_WIRE_PUT && len >= sizeof(struct weft_wire_put))
		tame(m + offsetof(struct weft_wire_put, flags),
		     WEFT_WIRE_RMA_ODD | WEFT_WIRE_PUT_SHARE);
	if (id == WEFT_WIRE_RMA_FLUSH && len >= sizeof(struct weft_wire_rma_flush))
		tame(m + offsetof(struct weft_wire_rma_flush, flags), WEFT_WIRE_RMA_ODD);
	if (id == WEFT_WIRE_AM || id == WEFT_WIRE_AM_RTS || id == WEFT_WIRE_AM_FRAG) {
		weft_le32 seq =
			weft_put32(w->p.ep[1].msg->rx_am_seq.next + (m[0] & 3) - (m[1] & 1));

		if (len >= sizeof(seq))
			memcpy(m, &seq, sizeof(seq));
	}
	if (id == WEFT_WIRE_AM_FRAG && len >= sizeof(struct weft_wire_am_frag)) {
		/* Small enough to be granted, often of one message. */
		memset(m + 10, 0, 6);
		memset(m + 17, 0, 7);
		m[9] &= 3;
	}
	if (!req || len < ref_at[id] + sizeof(ref) || id == WEFT_WIRE_AM || id == WEFT_WIRE_AM_FRAG)
		return;
	ref = weft_request_ref(req);
	memcpy(m + ref_at[id], &ref, sizeof(ref));
}

/* A piece of a put that notifies, or its end: of one of a few, and of a length that may be. */
static void patch_note(struct world *w, uint8_t *m, size_t len)
{
	struct weft_wire_ext *x = (void *)m;
	struct weft_wire_put_note *n = (void *)(x + 1);
	size_t left = len - sizeof(*x) - sizeof(*n);
	bool end = x->flags & 1 && left == 0;

	x->id = WEFT_WIRE_PUT;
	x->flags = end ? WEFT_EXT_F_END : WEFT_EXT_F_IMM;
	x->reserved = weft_put16(0);
	if (end)
		x->imm = weft_put64(0);
	patch(w, WEFT_WIRE_PUT, (uint8_t *)n, sizeof(*n));
	n->put.offset = weft_put64(weft_get64(n->put.offset) % MEM);
	n->total = weft_put64(left + (weft_get64(n->total) & 7) * 16);
	n->number = weft_put32(weft_get32(n->number) & 3);
}

static void put_handler(struct weft_worker *worker, const struct weft_put_event *e, void *arg)
{
	const struct world *w = arg;
	volatile uint8_t sum = 0;

	(void)worker;
	for (size_t i = 0; i < e->length && e->offset + i < MEM; i++)
		sum = (uint8_t)(sum + w->mem[e->offset + i]);
}

static size_t message(struct world *w, const uint8_t *d, size_t size)
{
	size_t len = d[1] * 2u;
	uint8_t id = d[0] & 31, *copy;

	d += 2;
	size -= 2;
	if (len > size)
		len = size;
	copy = malloc(len ? len : 1);
	memcpy(copy, d, len);
	if (id == WEFT_WIRE_EXT && len > 1 && d[len - 1] & 1 &&
	    len >= sizeof(struct weft_wire_ext) + sizeof(struct weft_wire_put_note))
		patch_note(w, copy, len);
	else if (len > 1 && d[len - 1] & 1)
		patch(w, id, copy, len);
	pair_receive(&w->p, 1, 0, id, copy, len);
	free(copy);
	return len + 2;
}

static void step(struct world *w, uint8_t op, uint8_t arg)
{
	struct weft_am_send_params a =
		WEFT_INIT(struct weft_am_send_params, .id = arg & 7, .flags = arg >> 6 & 2,
			  .header = w->buf[0], .header_length = arg & 31);
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .flags = arg & 1 ? WEFT_OP_F_DELIVERED : 0);
	struct weft_atomic_params at = WEFT_INIT(struct weft_atomic_params, .op = op % 6,
						 .width = 8, .result = arg & 1 ? w->buf[1] : NULL);
	struct weft_ep *ep = &w->p.ep[1];
	uint8_t *buf = w->buf[w->next % NUM];
	struct weft_request *req = NULL;

	switch (op % 10) {
	case 0:
		hold(w, weft_put(ep, buf, arg, w->rkey, 0, &p, &req), req);
		break;
	case 1:
		hold(w, weft_get(ep, buf, arg * 2u, w->rkey, 0, NULL, &req), req);
		break;
	case 2:
		hold(w, weft_atomic(ep, &at, w->rkey, arg & 0x78, NULL, &req), req);
		break;
	case 3:
		weft_ep_fence(ep);
		break;
	case 4:
		hold(w, weft_am_send(ep, &a, buf, arg * 8u, NULL, &req), req);
		break;
	case 5:
		if (w->num_kept)
			weft_am_data_release(&w->p.w[1], w->kept[--w->num_kept]);
		break;
	case 6:
		if (w->num_kept && (w->kept[w->num_kept - 1]->rndv || (arg & 1))) {
			struct weft_am_data *d = w->kept[--w->num_kept];

			if (d->rndv)
				hold(w,
				     weft_am_recv_data(&w->p.w[1], d, buf, arg * 16u, NULL, &req),
				     req);
			else
				weft_am_data_release(&w->p.w[1], d);
		}
		break;
	case 7:
		/* Dead at once; gone when nothing reads it. */
		if (arg == 77 && weft_mem_deregister(w->m) == 0)
			w->m = NULL;
		break;
	default:
		w->p.lane_ep[1][0].room = arg % 4 ? -1 : 0;
		weft_msg_progress(&w->p.w[1]);
	}
}

static void open_world(struct world *w)
{
	static const struct weft_platform platform = {.random = a_random};
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = 7);
	size_t length;
	void *blob;

	memset(w, 0, sizeof(*w));
	pair_defaults(&w->p);
	weft_log_level = -1;
	w->p.conf.seq_start = UINT32_MAX - 3;
	w->p.conf.eager_credit = 65536;
	w->p.ctx.features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA |
			    WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64;
	pair_open(&w->p, 1, NULL);
	w->p.ctx.platform = &platform;
	for (unsigned int i = 0; i < 8; i++)
		weft_worker_set_am_handler(&w->p.w[1], i, handler, w,
					   i & 4 ? WEFT_AM_HANDLER_F_PERSISTENT_DATA : 0);
	weft_worker_set_put_handler(&w->p.w[1], put_handler, w);
	w->mem = malloc(MEM); /* an allocation of its own: overruns are seen */
	memset(w->mem, 0, MEM);
	assert_int_equal(weft_mem_register(&w->p.ctx, w->mem, MEM, &mp, &w->m), 0);
	assert_int_equal(weft_rkey_pack(w->m, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(&w->p.ep[1], blob, length, &w->rkey), 0);
	weft_rkey_release_blob(blob);
}

static void close_world(struct world *w)
{
	struct weft_mem_table keys = w->p.ctx.keys; /* pair_close() forgets the context */

	weft_msg_progress(&w->p.w[1]);
	while (w->num_kept)
		weft_am_data_release(&w->p.w[1], w->kept[--w->num_kept]);
	for (int i = 0; i < NUM; i++)
		weft_request_free(w->req[i]);
	weft_rkey_destroy(w->rkey);
	pair_close(&w->p);
	assert_int_equal(weft_mem_deregister(w->m), 0);
	weft_mem_table_fini(&keys);
	free(w->mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct weft_rkey *rkey;

	open_world(&w);
	/* The blob's validation. */
	if (weft_rkey_unpack(&w.p.ep[1], data, size, &rkey) == 0)
		weft_rkey_destroy(rkey);
	while (size >= 3 && w.p.ep[1].msg && !w.p.ep[1].msg->failed) {
		size_t n = 2;

		if (data[0] & 1)
			n = 1 + message(&w, data + 1, size - 1);
		else
			step(&w, data[0] >> 1, data[1]);
		data += n;
		size -= n;
		while (w.p.num > 64)
			pair_deliver(&w.p, 0);
	}
	close_world(&w);
	return 0;
}
