/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath of tag_lat, tag_sync_lat, tag_bw and tag_bibw.
 *
 * Without -V all messages of a direction share one buffer, as ucx_perftest does it; with -V each
 * message in flight has its own, filled and compared. Receives are always posted ahead of the
 * messages, unless -U: then each message is probed for first, so that it is unexpected.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "perf.h"

enum { KIND_PING = 1, KIND_PONG, KIND_ACK_UP, KIND_ACK_DOWN };

struct flow;

/* A message in flight in one direction. */
struct slot {
	struct flow *flow;
	void *buffer;
	uint64_t index;
	bool busy;
	struct weft_op_params params;
};

struct flow {
	struct perf_side *side;
	struct peer *peer;
	const struct perf_run *run;
	bool validate, unexpected, sync;
	bool repost; /* post the next receive as soon as one is done */
	uint64_t tx_tag, rx_tag;
	uint64_t tx_posted, tx_out;
	uint64_t rx_posted, rx_done;
	uint64_t tx_total, rx_total;
	int error;
	struct slot *tx, *rx;
	unsigned int tx_slots, rx_slots;
	struct weft_completion completion;
	struct weft_mem *mem;
	void *memory;
	size_t memory_length;
};

/* ---- receiving */

static void received(struct slot *slot, int status, size_t length)
{
	struct flow *f = slot->flow;

	slot->busy = false;
	f->rx_done++;
	if (status && status != -EMSGSIZE)
		f->error = status;
	else if (status || length != f->run->size ||
		 (f->validate && !perf_check(slot->buffer, length, slot->index)))
		f->side->wrong++;
}

/* Post the next receive into @slot; and again, as long as its message is already there. */
static void post_recv(struct flow *f, struct slot *slot)
{
	int ret;

	while (f->rx_posted < f->rx_total && !f->error) {
		slot->index = f->rx_posted++;
		slot->busy = true;
		ret = weft_tag_recv(f->peer->worker, NULL, slot->buffer, f->run->size, f->rx_tag,
				    WEFT_TAG_MASK_FULL, &slot->params, NULL);
		if (ret == WEFT_INPROGRESS)
			return;
		if (ret < 0)
			f->error = ret;
		else
			received(slot, f->completion.status, f->completion.length);
		if (!f->repost)
			return;
	}
}

static void on_recv(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct slot *slot = arg;

	(void)req;
	received(slot, c->status, c->length);
	if (slot->flow->repost)
		post_recv(slot->flow, slot);
}

static void post_all(struct flow *f)
{
	for (unsigned int i = 0; i < f->rx_slots && !f->unexpected; i++)
		if (f->rx_posted < f->rx_total)
			post_recv(f, &f->rx[i]);
}

/* -U: take what has come, and only then receive it. */
static void probe_some(struct flow *f)
{
	struct weft_message *message;
	struct weft_completion c = {.size = sizeof(c)};
	int ret;

	while (f->rx_posted < f->rx_total && !f->error) {
		struct slot *slot = &f->rx[f->rx_posted % f->rx_slots];

		if (slot->busy || weft_tag_probe(f->peer->worker, NULL, f->rx_tag,
						 WEFT_TAG_MASK_FULL, &message, &c))
			return;
		slot->index = f->rx_posted++;
		slot->busy = true;
		ret = weft_tag_msg_recv(f->peer->worker, message, slot->buffer, f->run->size,
					&slot->params, NULL);
		if (ret < 0)
			f->error = ret;
		else if (ret == 0)
			received(slot, f->completion.status, f->completion.length);
	}
}

/* ---- sending */

static void on_sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct slot *slot = arg;

	(void)req;
	slot->busy = false;
	slot->flow->tx_out--;
	if (c->status)
		slot->flow->error = c->status;
}

static inline bool post_send(struct flow *f)
{
	struct slot *slot = &f->tx[f->validate ? f->tx_posted % f->tx_slots : 0];
	int ret;

	if (f->validate) {
		if (slot->busy)
			return false;
		perf_fill(slot->buffer, f->run->size, f->tx_posted);
	}
	if (f->sync)
		ret = weft_tag_send_sync(f->peer->ep, slot->buffer, f->run->size, f->tx_tag,
					 &slot->params, NULL);
	else
		ret = weft_tag_send(f->peer->ep, slot->buffer, f->run->size, f->tx_tag,
				    &slot->params, NULL);
	if (ret < 0) {
		f->error = ret;
		return false;
	}
	f->tx_posted++;
	if (ret == WEFT_INPROGRESS) {
		slot->busy = true;
		f->tx_out++;
	}
	return true;
}

/* Fill the window. @return messages posted */
static inline unsigned int send_some(struct flow *f)
{
	unsigned int count = 0;

	while (count < f->run->window && f->tx_posted < f->tx_total && f->tx_out < f->run->window &&
	       post_send(f))
		count++;
	return count;
}

/* ---- one look at everything. @return 0, or non-zero when the run is over */

static inline int turn(struct flow *f)
{
	if (peer_poll(f->peer))
		return -ECANCELED;
	if (f->unexpected)
		probe_some(f);
	return f->error;
}

/* ---- ping-pong */

static int wait_received(struct flow *f, uint64_t number)
{
	while (f->rx_done < number)
		if (turn(f))
			return -ECANCELED;
	return 0;
}

static int send_one(struct flow *f)
{
	while (f->tx_out)
		if (turn(f))
			return -ECANCELED;
	if (!post_send(f))
		return -ECANCELED;
	return 0;
}

/*
 * Two receives are posted at any time, and the next only after the send: so posting is off the
 * critical path, and no message is unexpected unless that was asked for.
 */
static int ping(struct flow *f)
{
	for (uint64_t i = 0; i < f->run->iters; i++) {
		if (send_one(f))
			return -ECANCELED;
		if (i && !f->unexpected)
			post_recv(f, &f->rx[(i + 1) % f->rx_slots]);
		if (wait_received(f, i + 1))
			return -ECANCELED;
		perf_count(f->side, 1);
	}
	return 0;
}

static int pong(struct flow *f)
{
	for (uint64_t i = 0; i < f->run->iters; i++) {
		if (wait_received(f, i + 1) || send_one(f))
			return -ECANCELED;
		if (!f->unexpected)
			post_recv(f, &f->rx[i % f->rx_slots]);
	}
	return 0;
}

/* ---- streams */

static int stream(struct flow *f)
{
	while (f->tx_posted < f->tx_total || f->tx_out || f->rx_done < f->rx_total) {
		unsigned int messages = send_some(f);

		if (turn(f))
			return -ECANCELED;
		perf_count(f->side, messages);
	}
	return 0;
}

/*
 * A last message each way that had something to receive: the sender's clock stops when the receiver
 * has got all.
 */
static int acknowledge(struct flow *f)
{
	uint64_t up = f->run->id << 8 | KIND_ACK_UP, down = f->run->id << 8 | KIND_ACK_DOWN;
	struct weft_request *recv = NULL, *send = NULL;
	uint64_t byte_in = 0, byte_out = 0;
	bool server = f->peer->server;
	int ret = 0, sret = 0;

	if (f->tx_total)
		ret = weft_tag_recv(f->peer->worker, NULL, &byte_in, sizeof(byte_in),
				    server ? up : down, WEFT_TAG_MASK_FULL, NULL, &recv);
	if (f->rx_total)
		sret = weft_tag_send(f->peer->ep, &byte_out, sizeof(byte_out), server ? down : up,
				     NULL, &send);
	if (ret < 0 || sret < 0)
		f->error = ret < 0 ? ret : sret;
	while (!f->error && ret == WEFT_INPROGRESS) {
		ret = weft_request_test(recv, NULL);
		if (ret < 0)
			f->error = ret;
		if (ret == WEFT_INPROGRESS && turn(f))
			break;
	}
	if (!f->error && f->side->meter)
		f->side->meter->last = rte_rdtsc();
	while (!f->error && sret == WEFT_INPROGRESS) {
		sret = weft_request_test(send, NULL);
		if (sret < 0)
			f->error = sret;
		if (sret == WEFT_INPROGRESS && turn(f))
			break;
	}
	weft_request_free(recv);
	weft_request_free(send);
	return f->error || f->peer->exit_code;
}

/* ---- set-up */

static int make_slots(struct flow *f, struct slot **slots, unsigned int count, weft_complete_cb cb)
{
	*slots = calloc(count, sizeof(**slots));
	if (!*slots)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++) {
		(*slots)[i].flow = f;
		(*slots)[i].params = WEFT_INIT(struct weft_op_params, .cb = cb,
					       .cb_arg = &(*slots)[i], .mem = f->mem,
					       .completion = cb == on_recv ? &f->completion : NULL);
	}
	return 0;
}

/* One buffer for all messages of a direction, or one for each in flight. */
static int make_memory(struct flow *f)
{
	uint64_t stride = (f->run->size + 4095) / 4096 * 4096 + 4096;
	uint64_t tx = f->validate ? f->tx_slots : 1, rx = f->validate ? f->rx_slots : 1;
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);
	int ret;

	f->memory_length = (tx + rx) * stride;
	if (posix_memalign(&f->memory, 4096, f->memory_length))
		return -ENOMEM;
	/* Page faults are not what is measured. */
	memset(f->memory, 0x5a, f->memory_length);
	if (f->run->flags & PERF_F_REGISTERED) {
		ret = weft_mem_register(f->peer->ctx, f->memory, f->memory_length, &params,
					&f->mem);
		if (ret)
			return ret;
	}
	for (uint64_t i = 0; i < f->tx_slots; i++) {
		f->tx[i].buffer = (char *)f->memory + (f->validate ? i : 0) * stride;
		f->tx[i].params.mem = f->mem;
	}
	for (uint64_t i = 0; i < f->rx_slots; i++) {
		f->rx[i].buffer = (char *)f->memory + (tx + (f->validate ? i : 0)) * stride;
		f->rx[i].params.mem = f->mem;
	}
	return 0;
}

static int set_up(struct flow *f, struct perf_side *side)
{
	const struct perf_run *run = side->run;
	bool latency = perf_is_latency(run->test), server = side->peer->server;
	int ret;

	memset(f, 0, sizeof(*f));
	f->side = side;
	f->peer = side->peer;
	f->run = run;
	f->validate = run->flags & PERF_F_VALIDATE;
	f->unexpected = run->flags & PERF_F_UNEXPECTED;
	f->completion.size = sizeof(f->completion);
	f->sync = run->test == PERF_TAG_SYNC_LAT;
	f->repost = !latency;
	f->tx_tag = run->id << 8 | (server ? KIND_PONG : KIND_PING);
	f->rx_tag = run->id << 8 | (server ? KIND_PING : KIND_PONG);
	f->tx_total = run->test == PERF_TAG_BW && server ? 0 : run->iters;
	f->rx_total = run->test == PERF_TAG_BW && !server ? 0 : run->iters;
	f->tx_slots = latency ? 1 : (unsigned int)run->window;
	f->rx_slots = latency ? 2 : (unsigned int)run->window;
	ret = make_slots(f, &f->tx, f->tx_slots, on_sent);
	if (!ret)
		ret = make_slots(f, &f->rx, f->rx_slots, on_recv);
	return ret ? ret : make_memory(f);
}

/* After a failure operations may still use the memory; the process ends soon, so they keep it. */
static void tear_down(struct flow *f)
{
	if (f->error || f->peer->exit_code)
		return;
	weft_mem_deregister(f->mem);
	free(f->memory);
	free(f->tx);
	free(f->rx);
}

int perf_tag(struct perf_side *side)
{
	struct peer *p = side->peer;
	struct flow *f = calloc(1, sizeof(*f));
	int ret = f ? set_up(f, side) : -ENOMEM;

	if (ret) {
		cli_error("no memory for messages of %llu bytes: %s",
			  (unsigned long long)side->run->size, weft_strerror(ret));
		return peer_fail(p, APP_FAIL);
	}
	post_all(f);
	if (peer_barrier(p))
		return p->exit_code;
	if (side->meter)
		perf_meter_start(side->meter);
	if (perf_is_latency(side->run->test))
		ret = p->server ? pong(f) : ping(f);
	else
		ret = stream(f) || acknowledge(f);
	while (!ret && f->tx_out)
		ret = turn(f);
	if (f->error)
		peer_fail_op(p, "a message failed", f->error);
	tear_down(f);
	if (!f->error && !p->exit_code)
		free(f);
	return p->exit_code;
}
