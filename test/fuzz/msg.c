/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary messages are received, with sends, receives and probes going on beside them.
 * The input is a row of commands; a message is {length, id, bytes}. What references name is patched
 * in now and then, or no input would get past them.
 *
 * Nothing may crash, hang or leak. What arrives may be wrong: the peer is.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mock/pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUM 16

struct world {
	struct pair p;
	struct weft_request *req[NUM];
	struct weft_message *msg;
	uint8_t buf[NUM][4096];
	unsigned int next;
};

static void hold(struct world *w, int rc, struct weft_request *req)
{
	if (rc != WEFT_INPROGRESS)
		return;
	weft_request_free(w->req[w->next % NUM]);
	w->req[w->next++ % NUM] = req;
}

/* References in the places where messages have them. */
static void patch(struct world *w, uint8_t id, uint8_t *m, size_t len)
{
	struct weft_request *req = w->req[(w->next + NUM - 1) % NUM];
	struct weft_wire_ref ref;
	size_t at;

	if (!req)
		return;
	ref = weft_request_ref(req);
	at = id == WEFT_WIRE_RTS ? 20 : id == WEFT_WIRE_ABORT || id == WEFT_WIRE_WITHDRAW ? 12 : 0;
	if (id >= WEFT_WIRE_RTS && id != WEFT_WIRE_CREDIT && len >= at + sizeof(ref))
		memcpy(m + at, &ref, sizeof(ref));
}

static size_t message(struct world *w, const uint8_t *d, size_t size)
{
	size_t len = size > 1 ? d[1] * 2u : 0;
	uint8_t id = size > 0 ? d[0] & 15 : 0, *copy;

	if (size < 2)
		return size;
	d += 2;
	size -= 2;
	if (len > size)
		len = size;
	copy = malloc(len ? len : 1);
	memcpy(copy, d, len);
	if (len > 1 && d[len - 1] & 1)
		patch(w, id, copy, len);
	/* A sequence near the expected one, or hardly any would be of interest. */
	if (len >= 4 && (id <= WEFT_WIRE_RTS || id == WEFT_WIRE_WITHDRAW) && w->p.ep[1].msg) {
		weft_le32 seq =
			weft_put32(w->p.ep[1].msg->rx_seq.next + (copy[0] & 7) - (copy[1] & 1));

		memcpy(copy, &seq, sizeof(seq));
	}
	pair_receive(&w->p, 1, 0, id, copy, len);
	free(copy);
	return len + 2;
}

static void step(struct world *w, uint8_t op, uint8_t arg)
{
	struct weft_worker *worker = &w->p.w[1];
	struct weft_ep *ep = &w->p.ep[1];
	uint8_t *buf = w->buf[w->next % NUM];
	struct weft_request *req = NULL;

	switch (op % 8) {
	case 0:
		hold(w,
		     weft_tag_recv(worker, NULL, buf, arg * 16u, 0, arg & 1 ? 0 : UINT64_MAX, NULL,
				   &req),
		     req);
		break;
	case 1:
		hold(w, weft_tag_recv(worker, ep, buf, arg, arg & 3, UINT64_MAX, NULL, &req), req);
		break;
	case 2:
		hold(w, weft_tag_send_sync(ep, buf, arg, 1, NULL, &req), req);
		break;
	case 3:
		hold(w, weft_tag_send(ep, buf, arg * 16u, 1, NULL, &req), req);
		break;
	case 4:
		if (w->msg)
			weft_tag_msg_drop(worker, w->msg);
		w->msg = NULL;
		weft_tag_probe(worker, NULL, 0, 0, NULL, &w->msg, NULL);
		break;
	case 5:
		if (w->msg)
			hold(w, weft_tag_msg_recv(worker, w->msg, buf, arg, NULL, &req), req);
		w->msg = NULL;
		break;
	case 6:
		w->p.lane_ep[1][0].room = arg % 4 ? -1 : 0;
		weft_msg_progress(worker);
		break;
	default:
		if (w->req[arg % NUM])
			weft_request_cancel(w->req[arg % NUM]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;

	memset(&w, 0, sizeof(w));
	pair_defaults(&w.p);
	w.p.conf.seq_start = UINT32_MAX - 3;
	w.p.conf.multi_eager_limit = 2048;
	w.p.conf.eager_credit = 65536;
	pair_open(&w.p, 1, NULL);
	while (size >= 2 && w.p.ep[1].msg && !w.p.ep[1].msg->failed) {
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
	weft_msg_progress(&w.p.w[1]);
	for (int i = 0; i < NUM; i++)
		weft_request_free(w.req[i]);
	pair_close(&w.p);
	return 0;
}
