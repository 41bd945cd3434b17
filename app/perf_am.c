/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath of am_lat and am_bw: a handler at the target takes the messages. Short ones it has
 * in its hands; of those that come by rendezvous it fetches the data, and the message has come when
 * they are there.
 *
 * Without -V all messages of a direction share one buffer; with -V each has its own, filled and
 * compared.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define AM_ID 0x7766u

struct flow;

/* A message of ours under way, or one that comes by rendezvous. */
struct slot {
	struct flow *flow;
	struct slot *next_free, *next; /* receiving */
	void *buffer;
	uint64_t index;
	bool busy; /* sending */
	struct weft_op_params params;
};

struct flow {
	struct perf_side *side;
	struct peer *peer;
	const struct perf_run *run;
	bool validate;
	int error;
	struct weft_am_send am;
	uint64_t tx_posted, tx_out, tx_total;
	uint64_t rx_seen, rx_done, rx_total, rx_rndv;
	struct slot *tx;
	unsigned int tx_slots;
	struct slot *rx, *rx_free; /* all, and those without a message */
	struct weft_completion completion;
	char *memory; /* for sends, then one buffer for what comes */
	uint64_t stride, memory_length;
	struct weft_mem *mem;
};

/* ---- receiving */

static void received(struct flow *f, int status, const void *data, size_t length, uint64_t index)
{
	f->rx_done++;
	if (status && status != -EMSGSIZE)
		f->error = status;
	else if (status || length != f->run->size ||
		 (f->validate && !perf_check(data, length, index)))
		f->side->wrong++;
}

static void on_data(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct slot *slot = arg;
	struct flow *f = slot->flow;

	(void)req;
	slot->next_free = f->rx_free;
	f->rx_free = slot;
	received(f, c->status, slot->buffer, c->length, slot->index);
}

static char *rx_buffer(struct flow *f)
{
	return f->memory + f->tx_slots * f->stride;
}

/*
 * A sender may see the end of a message before its receiver does, so its window is no bound for
 * what is open here: there are as many slots as it takes.
 */
static struct slot *rx_slot(struct flow *f)
{
	struct slot *slot = f->rx_free;

	if (slot) {
		f->rx_free = slot->next_free;
		return slot;
	}
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->flow = f;
	slot->buffer = f->validate ? malloc(f->run->size + 1) : rx_buffer(f);
	if (!slot->buffer) {
		free(slot);
		return NULL;
	}
	slot->params = WEFT_INIT(struct weft_op_params, .cb = on_data, .cb_arg = slot,
				 .mem = f->validate ? NULL : f->mem, .completion = &f->completion);
	slot->next = f->rx;
	f->rx = slot;
	return slot;
}

static int fetch(struct flow *f, struct weft_worker *worker, const struct weft_am_msg *msg)
{
	struct slot *slot = rx_slot(f);
	int ret;

	if (!slot)
		return -ENOMEM;
	f->rx_rndv++;
	slot->index = f->rx_seen++;
	ret = weft_am_recv_data(worker, msg->desc, slot->buffer, f->run->size, &slot->params, NULL);
	if (ret == 0)
		on_data(NULL, &f->completion, slot);
	return ret < 0 ? ret : 0;
}

static int on_message(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct flow *f = arg;
	const void *data = msg->data;
	int ret;

	if (f->rx_seen == f->rx_total) { /* more than was agreed on */
		f->side->wrong++;
		return 0;
	}
	if (msg->flags & WEFT_AM_F_RNDV) {
		ret = fetch(f, worker, msg);
		if (ret && !f->error)
			f->error = ret;
		return ret;
	}
	if (f->validate && msg->length && msg->length == f->run->size) {
		memcpy(rx_buffer(f), data, msg->length); /* it is not aligned where it is */
		data = rx_buffer(f);
	}
	received(f, 0, data, msg->length, f->rx_seen++);
	return 0;
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
	ret = weft_am_send(f->peer->ep, &f->am, slot->buffer, f->run->size, &slot->params, NULL);
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

static inline int turn(struct flow *f)
{
	return peer_poll(f->peer) ? -ECANCELED : f->error;
}

/* ---- ping-pong and stream */

static int send_one(struct flow *f)
{
	while (f->tx_out)
		if (turn(f))
			return -ECANCELED;
	return post_send(f) ? 0 : -ECANCELED;
}

static int wait_received(struct flow *f, uint64_t number)
{
	while (f->rx_done < number)
		if (turn(f))
			return -ECANCELED;
	return 0;
}

static int ping(struct flow *f)
{
	for (uint64_t i = 0; i < f->run->iters; i++) {
		if (send_one(f) || wait_received(f, i + 1))
			return -ECANCELED;
		perf_count(f->side, 1);
	}
	return 0;
}

static int pong(struct flow *f)
{
	for (uint64_t i = 0; i < f->run->iters; i++)
		if (wait_received(f, i + 1) || send_one(f))
			return -ECANCELED;
	return 0;
}

static int stream(struct flow *f)
{
	while (f->tx_posted < f->tx_total || f->rx_done < f->rx_total) {
		unsigned int messages = send_some(f);

		if (turn(f))
			return -ECANCELED;
		perf_count(f->side, messages);
	}
	return 0;
}

/* All that was sent has arrived: there the clock of a stream stops. */
static int flush(struct flow *f)
{
	struct weft_request *req = NULL;
	int ret = weft_ep_flush(f->peer->ep, NULL, &req);

	while (ret == WEFT_INPROGRESS) {
		if (turn(f)) {
			weft_request_free(req);
			return -ECANCELED;
		}
		ret = weft_request_test(req, NULL);
	}
	weft_request_free(req);
	if (ret < 0)
		f->error = ret;
	if (f->side->meter && !perf_is_latency(f->run->test))
		f->side->meter->last = rte_rdtsc();
	return ret;
}

/* ---- set-up */

static int make_memory(struct flow *f)
{
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);

	f->stride = (f->run->size + 4095) / 4096 * 4096 + 4096;
	f->memory_length = (f->tx_slots + 1) * f->stride;
	if (posix_memalign((void **)&f->memory, 4096, f->memory_length))
		return -ENOMEM;
	/* Page faults are not what is measured. */
	memset(f->memory, 0x5a, f->memory_length);
	if (f->run->flags & PERF_F_REGISTERED)
		return weft_mem_register(f->peer->ctx, f->memory, f->memory_length, &params,
					 &f->mem);
	return 0;
}

static int set_up(struct flow *f, struct perf_side *side)
{
	const struct perf_run *run = side->run;
	bool server = side->peer->server, both = perf_is_latency(run->test);
	int ret;

	f->side = side;
	f->peer = side->peer;
	f->run = run;
	f->validate = run->flags & PERF_F_VALIDATE;
	f->am = WEFT_INIT(struct weft_am_send, .id = AM_ID);
	f->completion.size = sizeof(f->completion);
	f->tx_total = both || !server ? run->iters : 0;
	f->rx_total = both || server ? run->iters : 0;
	f->tx_slots = f->validate && f->tx_total ? (unsigned int)run->window : 1;
	f->tx = calloc(f->tx_slots, sizeof(*f->tx));
	ret = f->tx ? make_memory(f) : -ENOMEM;
	if (ret)
		return ret;
	for (unsigned int i = 0; i < f->tx_slots; i++) {
		f->tx[i].flow = f;
		f->tx[i].buffer = f->memory + i * f->stride;
		f->tx[i].params = WEFT_INIT(struct weft_op_params, .cb = on_sent,
					    .cb_arg = &f->tx[i], .mem = f->mem);
	}
	return weft_worker_set_am_handler(f->peer->worker, AM_ID, on_message, f, 0);
}

/* After a failure operations may still use the memory; the process ends soon, so they keep it. */
static void tear_down(struct flow *f)
{
	struct slot *slot;

	weft_worker_set_am_handler(f->peer->worker, AM_ID, NULL, NULL, 0);
	if (f->error || f->peer->exit_code)
		return;
	while ((slot = f->rx)) {
		f->rx = slot->next;
		if (f->validate)
			free(slot->buffer);
		free(slot);
	}
	weft_mem_deregister(f->mem);
	free(f->memory);
	free(f->tx);
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
	if (!perf_is_latency(side->run->test))
		ret = stream(f);
	else
		ret = p->server ? pong(f) : ping(f);
	if (!ret && f->tx_total)
		ret = flush(f);
	while (!ret && f->tx_out)
		ret = turn(f);
	remote->am_rndv = f->rx_rndv;
	if (f->error)
		peer_fail_op(p, "an active message failed", f->error);
	tear_down(f);
	return p->exit_code;
}
