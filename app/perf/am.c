/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath of am_lat and am_bw: a handler at the target takes the messages. The data of short
 * ones are an argument of the handler. For a rendezvous the handler fetches the data, and the
 * message counts as received when they have arrived.
 *
 * Without -V all messages of a direction share one buffer. With -V each outstanding send, and each
 * message by rendezvous, has its own.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"

#define AM_ID 0x7766u

/* A message received by rendezvous. */
struct fetched {
	struct perf_slot slot; /* first */
	struct fetched *next_free, *next;
};

struct flow {
	struct perf_flow base; /* first; the slots are those of sends */
	struct weft_am_send_params am;
	bool sends, receives;
	uint64_t rx_seen, rx_done, rx_total, rx_rndv;
	struct fetched *rx, *rx_free; /* all, and those not in use */
	struct weft_completion completion;
	char *memory;    /* buffers of sends, then one buffer for received data */
	char *rx_buffer; /* in `memory` */
	struct weft_mem *mem;
};

static inline struct flow *flow_of(struct perf_flow *base)
{
	return (struct flow *)base;
}

/* ---- receiving */

static void received(struct flow *f, int status, const void *data, size_t length, uint64_t index)
{
	f->rx_done++;
	perf_flow_received(&f->base, status, data, length, index);
}

static void on_data(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct fetched *in = arg;
	struct flow *f = flow_of(in->slot.flow);

	(void)req;
	in->next_free = f->rx_free;
	f->rx_free = in;
	received(f, c->status, in->slot.buffer, c->length, in->slot.index);
}

/* A sender may see a message's end before the receiver, so more than its window may be open. */
static struct fetched *rx_slot(struct flow *f)
{
	struct fetched *in = f->rx_free;
	struct weft_mem *mem = f->base.validate ? NULL : f->mem;

	if (in) {
		f->rx_free = in->next_free;
		return in;
	}
	in = calloc(1, sizeof(*in));
	if (!in)
		return NULL;
	in->slot.flow = &f->base;
	in->slot.buffer = f->base.validate ? malloc(f->base.run->size + 1) : f->rx_buffer;
	if (!in->slot.buffer) {
		free(in);
		return NULL;
	}
	in->slot.params = WEFT_INIT(struct weft_op_params, .cb = on_data, .cb_arg = in, .mem = mem,
				    .completion = &f->completion);
	in->next = f->rx;
	f->rx = in;
	return in;
}

static int fetch(struct flow *f, struct weft_worker *worker, const struct weft_am_msg *msg)
{
	struct fetched *in = rx_slot(f);
	int ret;

	if (!in)
		return -ENOMEM;
	f->rx_rndv++;
	in->slot.index = f->rx_seen++;
	ret = weft_am_recv_data(worker, msg->desc, in->slot.buffer, f->base.run->size,
				&in->slot.params, NULL);
	if (ret == 0)
		on_data(NULL, &f->completion, in);
	return ret < 0 ? ret : 0;
}

static int on_message(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct flow *f = arg;
	const void *data = msg->data;
	int ret;

	if (f->rx_seen == f->rx_total) { /* more messages than agreed */
		f->base.side->wrong++;
		return 0;
	}
	if (msg->flags & WEFT_AM_F_RNDV) {
		ret = fetch(f, worker, msg);
		if (ret && !f->base.error)
			f->base.error = ret;
		return ret;
	}
	if (f->base.validate && msg->length && msg->length == f->base.run->size) {
		memcpy(f->rx_buffer, data, msg->length); /* the data are unaligned in the frame */
		data = f->rx_buffer;
	}
	received(f, 0, data, msg->length, f->rx_seen++);
	return 0;
}

/* ---- sending */

static inline bool post_send(struct perf_flow *b)
{
	struct perf_slot *slot = perf_flow_next_message(b);
	int ret;

	if (!slot)
		return false;
	ret = weft_am_send(perf_flow_ep(b), &flow_of(b)->am, slot->buffer, b->run->size,
			   &slot->params, NULL);
	return perf_flow_posted(b, slot, ret);
}

/* ---- ping-pong and stream */

static int wait_received(struct flow *f, uint64_t number)
{
	while (f->rx_done < number)
		if (perf_flow_turn(&f->base))
			return -ECANCELED;
	return 0;
}

/* While the run is open, messages may arrive before the announcement of their total. */
static void apply_limit(struct flow *f)
{
	const struct perf_side *side = f->base.side;

	if (f->sends)
		f->base.total = side->total;
	if (f->receives)
		f->rx_total = side->open ? UINT64_MAX : side->total;
}

static int ping(struct flow *f)
{
	int more;

	for (uint64_t i = 0; (more = perf_flow_more(&f->base, i)) > 0; i++) {
		apply_limit(f);
		if (perf_flow_one(&f->base, post_send) || wait_received(f, i + 1))
			return -ECANCELED;
		perf_count(f->base.side, 1);
	}
	return more;
}

static int pong(struct flow *f)
{
	int more;

	for (uint64_t i = 0; (more = perf_flow_more(&f->base, i)) > 0; i++) {
		apply_limit(f);
		if (wait_received(f, i + 1) || perf_flow_one(&f->base, post_send))
			return -ECANCELED;
	}
	return more;
}

static int look(struct flow *f)
{
	uint64_t done = f->sends ? f->base.posted : f->rx_done;

	if (likely(!perf_limit_near(f->base.side, done)))
		return 0;
	if (perf_limit_look(f->base.side, done))
		return -ECANCELED;
	apply_limit(f);
	return 0;
}

static int stream(struct flow *f)
{
	struct perf_side *side = f->base.side;
	struct perf_flow *b = &f->base;

	while (b->posted < b->total || f->rx_done < f->rx_total || side->open) {
		unsigned int messages = perf_flow_fill(b, b->total, post_send);
		uint64_t before = f->rx_done;

		if (perf_flow_turn(&f->base) || look(f))
			return -ECANCELED;
		if (f->receives && perf_limit_report(side, f->rx_done))
			return -ECANCELED;
		perf_count(side, f->sends ? messages : f->rx_done - before);
	}
	return 0;
}

/* ---- set-up */

static int set_up(struct flow *f, struct perf_side *side)
{
	const struct perf_run *run = side->run;
	bool server = side->peer->server, both = perf_is_latency(run->test);
	bool reverse = run->flags & PERF_F_REVERSE;
	uint64_t stride = perf_flow_stride(run), length;
	struct perf_flow *b = &f->base;
	int ret;

	perf_flow_init(b, side);
	f->am = WEFT_INIT(struct weft_am_send_params, .id = AM_ID);
	f->completion.size = sizeof(f->completion);
	f->sends = both || server == reverse;
	f->receives = both || server != reverse;
	/* As apply_limit(): perf_limit_begin() has not set the total yet. */
	if (f->sends)
		b->total = run->iters;
	if (f->receives)
		f->rx_total = run->limit_ns ? UINT64_MAX : run->iters;
	b->slots = b->validate && f->sends ? (unsigned int)run->window : 1;
	length = (b->slots + 1) * stride;
	f->memory = perf_flow_memory(length, 0x5a);
	if (!f->memory)
		return -ENOMEM;
	f->rx_buffer = f->memory + b->slots * stride;
	ret = perf_flow_register(b, f->memory, length, &f->mem);
	if (ret)
		return ret;
	b->slot = perf_flow_slots(b, b->slots, perf_flow_sent, f->memory, stride, f->mem);
	if (!b->slot)
		return -ENOMEM;
	return weft_worker_set_am_handler(b->peer->worker, AM_ID, on_message, f, 0);
}

/* After a failure operations may still use the memory: it is not freed, the process ends soon. */
static void tear_down(struct flow *f)
{
	struct fetched *in;

	weft_worker_set_am_handler(f->base.peer->worker, AM_ID, NULL, NULL, 0);
	if (f->base.error || f->base.peer->exit_code)
		return;
	while ((in = f->rx)) {
		f->rx = in->next;
		if (f->base.validate)
			free(in->slot.buffer);
		free(in);
	}
	weft_mem_deregister(f->mem);
	free(f->memory);
	free(f->base.slot);
	free(f);
}

int perf_am(struct perf_side *side, struct perf_remote *remote)
{
	struct peer *p = side->peer;
	struct flow *f = calloc(1, sizeof(*f));
	int ret = f ? set_up(f, side) : -ENOMEM;

	if (ret) {
		cli_error("cannot prepare for messages of %llu bytes: %s",
			  (unsigned long long)side->run->size, weft_strerror(ret));
		return peer_fail(p, APP_FAIL);
	}
	if (peer_barrier(p))
		return p->exit_code;
	if (side->meter)
		perf_meter_start(side->meter);
	perf_limit_begin(side);
	if (!perf_is_latency(side->run->test))
		ret = stream(f);
	else
		ret = p->server ? pong(f) : ping(f);
	if (!ret && f->sends) {
		ret = perf_flow_flush(&f->base);
		perf_flow_stop(&f->base);
	}
	while (!ret && f->base.out)
		ret = perf_flow_turn(&f->base);
	remote->am_rndv = f->rx_rndv;
	if (f->base.error)
		peer_fail_op(p, "an active message failed", f->base.error);
	tear_down(f);
	return p->exit_code;
}
