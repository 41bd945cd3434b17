/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath of tag_lat, tag_sync_lat, tag_bw and tag_bibw.
 *
 * Without -V all messages of a direction share one buffer, as in ucx_perftest. With -V each message
 * in flight has its own buffer, which is filled and compared. Receives are posted in advance, up to
 * the number of messages known so far. With -U a message is received only after a probe has found
 * it, so each message is unexpected.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"

enum { KIND_PING = 1, KIND_PONG, KIND_ACK_UP, KIND_ACK_DOWN };

struct flow {
	struct perf_flow base; /* first; the slots are those of sends */
	bool unexpected, sync, sends, receives;
	bool repost; /* post the next receive as soon as one is done */
	uint64_t tx_tag, rx_tag;
	uint64_t rx_posted, rx_done, rx_total;
	struct perf_slot *rx;
	unsigned int rx_slots;
	struct weft_completion completion;
	struct weft_mem *mem;
	void *memory;
};

static inline struct flow *flow_of(struct perf_flow *base)
{
	return (struct flow *)base;
}

/* ---- receiving */

static void received(struct perf_slot *slot, int status, size_t length)
{
	struct flow *f = flow_of(slot->flow);

	slot->busy = false;
	f->rx_done++;
	perf_flow_received(&f->base, status, slot->buffer, length, slot->index);
}

static void apply_limit(struct flow *f)
{
	if (f->sends)
		f->base.total = f->base.side->total;
	if (f->receives)
		f->rx_total = f->base.side->total;
}

/* With repost, repeat while the message of the receive has already arrived. */
static void post_recv(struct flow *f, struct perf_slot *slot)
{
	int ret;

	while (f->rx_posted < f->rx_total && !f->base.error) {
		slot->index = f->rx_posted++;
		slot->busy = true;
		ret = weft_tag_recv(f->base.peer->worker, NULL, slot->buffer, f->base.run->size,
				    f->rx_tag, WEFT_TAG_MASK_FULL, &slot->params, NULL);
		if (ret == WEFT_INPROGRESS)
			return;
		if (ret < 0)
			f->base.error = ret;
		else
			received(slot, f->completion.status, f->completion.length);
		if (!f->repost)
			return;
	}
}

static void on_recv(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct perf_slot *slot = arg;

	(void)req;
	received(slot, c->status, c->length);
	if (flow_of(slot->flow)->repost)
		post_recv(flow_of(slot->flow), slot);
}

/* Slots may be free since the previous total was reached. */
static void post_all(struct flow *f)
{
	for (unsigned int i = 0; i < f->rx_slots && !f->unexpected; i++)
		if (f->rx_posted < f->rx_total && !f->rx[i].busy)
			post_recv(f, &f->rx[i]);
}

/* In a ping-pong the receives use the slots in turn. */
static inline void post_next(struct flow *f)
{
	while (f->rx_posted < f->rx_total && !f->unexpected && !f->base.error &&
	       !f->rx[f->rx_posted % f->rx_slots].busy)
		post_recv(f, &f->rx[f->rx_posted % f->rx_slots]);
}

static void probe_some(struct flow *f)
{
	struct weft_message *message;
	struct weft_completion c = {.size = sizeof(c)};
	int ret;

	while (f->rx_posted < f->rx_total && !f->base.error) {
		struct perf_slot *slot = &f->rx[f->rx_posted % f->rx_slots];

		if (slot->busy || weft_tag_probe(f->base.peer->worker, NULL, f->rx_tag,
						 WEFT_TAG_MASK_FULL, NULL, &message, &c))
			return;
		slot->index = f->rx_posted++;
		slot->busy = true;
		ret = weft_tag_msg_recv(f->base.peer->worker, message, slot->buffer,
					f->base.run->size, &slot->params, NULL);
		if (ret < 0)
			f->base.error = ret;
		else if (ret == 0)
			received(slot, f->completion.status, f->completion.length);
	}
}

/* ---- sending */

static inline bool post_send(struct perf_flow *b)
{
	struct perf_slot *slot = perf_flow_next_message(b);
	struct flow *f = flow_of(b);
	int ret;

	if (!slot)
		return false;
	if (f->sync)
		ret = weft_tag_send_sync(perf_flow_ep(b), slot->buffer, b->run->size, f->tx_tag,
					 &slot->params, NULL);
	else
		ret = weft_tag_send(perf_flow_ep(b), slot->buffer, b->run->size, f->tx_tag,
				    &slot->params, NULL);
	return perf_flow_posted(b, slot, ret);
}

static inline int flow_turn(struct flow *f)
{
	if (peer_poll(f->base.peer))
		return -ECANCELED;
	if (f->unexpected)
		probe_some(f);
	return f->base.error;
}

/* ---- ping-pong */

static int wait_received(struct flow *f, uint64_t number)
{
	while (f->rx_done < number)
		if (flow_turn(f))
			return -ECANCELED;
	return 0;
}

/*
 * Two receives are posted in advance, and the next one only after the send. So posting is off the
 * critical path, and no message is unexpected except with -U.
 */
static int ping(struct flow *f)
{
	int more;

	for (uint64_t i = 0; (more = perf_flow_more(&f->base, i)) > 0; i++) {
		f->rx_total = f->base.side->total;
		if (perf_flow_one(&f->base, post_send))
			return -ECANCELED;
		post_next(f);
		if (wait_received(f, i + 1))
			return -ECANCELED;
		perf_count(f->base.side, 1);
	}
	return more;
}

static int pong(struct flow *f)
{
	int more;

	for (uint64_t i = 0; (more = perf_flow_more(&f->base, i)) > 0; i++) {
		f->rx_total = f->base.side->total;
		/* All posted receives may have completed before the total rose. */
		post_next(f);
		if (wait_received(f, i + 1) || perf_flow_one(&f->base, post_send))
			return -ECANCELED;
		post_next(f);
	}
	return more;
}

/* ---- streams */

static int look(struct flow *f)
{
	uint64_t done = f->sends ? f->base.posted : f->rx_posted;

	if (likely(!perf_limit_near(f->base.side, done)))
		return 0;
	if (perf_limit_look(f->base.side, done))
		return -ECANCELED;
	apply_limit(f);
	post_all(f);
	return 0;
}

static int stream(struct flow *f)
{
	struct perf_side *side = f->base.side;
	struct perf_flow *b = &f->base;

	while (side->open || b->posted < b->total || b->out || f->rx_done < f->rx_total) {
		unsigned int messages = perf_flow_fill(b, b->total, post_send);
		uint64_t before = f->rx_done;

		if (flow_turn(f) || look(f))
			return -ECANCELED;
		if (f->receives && perf_limit_report(side, f->rx_done))
			return -ECANCELED;
		perf_count(side, f->sends ? messages : f->rx_done - before);
	}
	return 0;
}

/* The sender's clock stops at the receiver's last message, which follows all received ones. */
static int acknowledge(struct flow *f)
{
	uint64_t id = f->base.run->id, up = id << 8 | KIND_ACK_UP, down = id << 8 | KIND_ACK_DOWN;
	struct weft_request *recv = NULL, *send = NULL;
	/* Static: after a failure the library may still use them. */
	static uint64_t byte_in, byte_out;
	struct peer *p = f->base.peer;
	int ret = 0, sret = 0;

	if (f->sends)
		ret = weft_tag_recv(p->worker, NULL, &byte_in, sizeof(byte_in),
				    p->server ? up : down, WEFT_TAG_MASK_FULL, NULL, &recv);
	if (f->receives)
		sret = weft_tag_send(p->ep, &byte_out, sizeof(byte_out), p->server ? down : up,
				     NULL, &send);
	ret = perf_flow_finish(&f->base, ret, recv);
	if (!ret)
		perf_flow_stop(&f->base);
	sret = perf_flow_finish(&f->base, sret, send);
	return ret ? ret : sret;
}

/* ---- set-up */

static int make_slots(struct flow *f)
{
	uint64_t stride = perf_flow_stride(f->base.run), apart = f->base.validate ? stride : 0;
	uint64_t tx = f->base.validate ? f->base.slots : 1, rx = f->base.validate ? f->rx_slots : 1;
	int ret;

	f->memory = perf_flow_memory((tx + rx) * stride, 0x5a);
	if (!f->memory)
		return -ENOMEM;
	ret = perf_flow_register(&f->base, f->memory, (tx + rx) * stride, &f->mem);
	if (ret)
		return ret;
	f->base.slot =
		perf_flow_slots(&f->base, f->base.slots, perf_flow_sent, f->memory, apart, f->mem);
	f->rx = perf_flow_slots(&f->base, f->rx_slots, on_recv, (char *)f->memory + tx * stride,
				apart, f->mem);
	if (!f->base.slot || !f->rx)
		return -ENOMEM;
	for (unsigned int i = 0; i < f->rx_slots; i++)
		f->rx[i].params.completion = &f->completion;
	return 0;
}

static int set_up(struct flow *f, struct perf_side *side)
{
	const struct perf_run *run = side->run;
	bool latency = perf_is_latency(run->test), server = side->peer->server;
	bool reverse = run->flags & PERF_F_REVERSE;

	perf_flow_init(&f->base, side);
	f->unexpected = run->flags & PERF_F_UNEXPECTED;
	f->completion.size = sizeof(f->completion);
	f->sync = run->test == PERF_TAG_SYNC_LAT;
	f->repost = !latency;
	f->tx_tag = run->id << 8 | (server ? KIND_PONG : KIND_PING);
	f->rx_tag = run->id << 8 | (server ? KIND_PING : KIND_PONG);
	f->sends = run->test != PERF_TAG_BW || server == reverse;
	f->receives = run->test != PERF_TAG_BW || server != reverse;
	apply_limit(f);
	f->base.slots = latency ? 1 : (unsigned int)run->window;
	f->rx_slots = latency ? 2 : (unsigned int)run->window;
	return make_slots(f);
}

/* After a failure operations may still use the memory: it is not freed, the process ends soon. */
static void tear_down(struct flow *f)
{
	if (f->base.error || f->base.peer->exit_code)
		return;
	weft_mem_deregister(f->mem);
	free(f->memory);
	free(f->base.slot);
	free(f->rx);
	free(f);
}

int perf_tag(struct perf_side *side)
{
	struct peer *p = side->peer;
	struct flow *f = calloc(1, sizeof(*f));
	int ret;

	side->total = side->run->iters;
	ret = f ? set_up(f, side) : -ENOMEM;

	if (ret) {
		cli_error("the buffers for messages of %llu bytes cannot be set up: %s",
			  (unsigned long long)side->run->size, weft_strerror(ret));
		return peer_fail(p, APP_FAIL);
	}
	post_all(f);
	if (peer_barrier(p))
		return p->exit_code;
	if (side->meter)
		perf_meter_start(side->meter);
	perf_limit_begin(side);
	if (perf_is_latency(side->run->test))
		ret = p->server ? pong(f) : ping(f);
	else
		ret = stream(f) || acknowledge(f);
	while (!ret && f->base.out)
		ret = flow_turn(f);
	if (f->base.error)
		peer_fail_op(p, "a message failed", f->base.error);
	tear_down(f);
	return p->exit_code;
}

/* ---- tag_flood ------------------------------------------------------------------------------ */

/*
 * tag_flood: N messages without a posted receive, then one message with a receive, then receives
 * for the N in reverse order of their tags. It tests whether all arrive and whether the expected
 * message is delayed, and measures the memory of the receiver.
 */

/* When no send has completed for this time, the remaining ones wait for the receiver. */
#define REST_SECONDS 0.05
#define LATE_SECONDS 10.0

enum { KIND_FLOOD = 8, KIND_LATE, KIND_LATE_ACK, KIND_DONE };

struct flood {
	struct perf_side *side;
	struct peer *peer;
	const struct perf_run *run;
	uint64_t outstanding;
	int error;
};

/* Each message has its own tag, since the server receives them in reverse order. */
static uint64_t tag_of(const struct flood *f, uint64_t index, unsigned int kind)
{
	return f->run->id << 40 | index << 8 | kind;
}

static int flood_turn(struct flood *f)
{
	return peer_poll(f->peer) ? -ECANCELED : f->error;
}

/* @return 0 or an error; -ETIMEDOUT after @p seconds (0 = no limit) */
static int wait_for(struct flood *f, int ret, struct weft_request *req, struct weft_completion *c,
		    double seconds)
{
	double end = sys_seconds() + seconds;

	while (ret == WEFT_INPROGRESS) {
		ret = weft_request_test(req, c);
		if (ret != WEFT_INPROGRESS)
			break;
		if (flood_turn(f))
			return -ECANCELED;
		if (seconds > 0 && sys_seconds() > end)
			return -ETIMEDOUT;
	}
	weft_request_free(req);
	return ret;
}

static int send_word(struct flood *f, unsigned int kind)
{
	struct weft_request *req = NULL;
	static const uint64_t word = 1;
	int ret = weft_tag_send(f->peer->ep, &word, sizeof(word), tag_of(f, 0, kind), NULL, &req);

	return wait_for(f, ret, req, NULL, 0);
}

static int post_word(struct flood *f, unsigned int kind, uint64_t *word, struct weft_request **req)
{
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_FORCE_REQUEST);

	return weft_tag_recv(f->peer->worker, NULL, word, sizeof(*word), tag_of(f, 0, kind),
			     WEFT_TAG_MASK_FULL, &params, req);
}

/* ---- client */

static void on_sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct flood *f = arg;

	(void)req;
	f->outstanding--;
	if (c->status)
		f->error = c->status;
}

static int send_all(struct flood *f, char *buffers, uint64_t stride)
{
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = on_sent, .cb_arg = f);
	int ret;

	for (uint64_t i = 0; i < f->run->iters; i++) {
		perf_fill(buffers + i * stride, f->run->size, i);
		ret = weft_tag_send(f->peer->ep, buffers + i * stride, f->run->size,
				    tag_of(f, i, KIND_FLOOD), &params, NULL);
		if (ret < 0)
			return ret;
		if (ret == WEFT_INPROGRESS)
			f->outstanding++;
		if (i % 16 == 15 && flood_turn(f))
			return -ECANCELED;
	}
	return 0;
}

static int come_to_rest(struct flood *f)
{
	uint64_t before = f->outstanding;
	double since = sys_seconds();

	while (f->outstanding && sys_seconds() - since < REST_SECONDS) {
		if (flood_turn(f))
			return -ECANCELED;
		if (f->outstanding != before) {
			before = f->outstanding;
			since = sys_seconds();
		}
	}
	return 0;
}

static int send_late(struct flood *f, uint64_t *ns)
{
	struct weft_request *req = NULL;
	double begin = sys_seconds();
	uint64_t word;
	int ret = post_word(f, KIND_LATE_ACK, &word, &req), sent;

	if (ret < 0)
		return ret;
	sent = send_word(f, KIND_LATE);
	if (sent)
		return sent;
	ret = wait_for(f, ret, req, NULL, LATE_SECONDS);
	*ns = (uint64_t)((sys_seconds() - begin) * 1e9);
	if (ret == -ETIMEDOUT)
		cli_error("an expected message got no reply for %g s: the flood blocks it",
			  LATE_SECONDS);
	return ret;
}

static int flood_client(struct flood *f, struct perf_remote *remote)
{
	uint64_t stride = (f->run->size + 63) / 64 * 64 + 64;
	struct weft_request *req = NULL;
	uint64_t word;
	char *buffers;
	int ret, done;

	if (f->run->iters > SIZE_MAX / stride ||
	    posix_memalign((void **)&buffers, 64, f->run->iters * stride))
		return -ENOMEM;
	done = post_word(f, KIND_DONE, &word, &req);
	ret = done < 0 ? done : peer_barrier(f->peer);
	if (!ret)
		ret = send_all(f, buffers, stride);
	if (!ret)
		ret = come_to_rest(f);
	if (!ret)
		ret = send_late(f, &remote->flood_late_ns);
	if (!ret)
		ret = wait_for(f, done, req, NULL, 0);
	while (!ret && f->outstanding)
		ret = flood_turn(f);
	/* After a failure, sends may still use the memory. */
	if (!ret)
		free(buffers);
	return ret;
}

/* ---- server */

static int receive_one(struct flood *f, void *buffer, uint64_t index)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .completion = &c);
	struct weft_request *req = NULL;
	int ret;

	ret = weft_tag_recv(f->peer->worker, NULL, buffer, f->run->size,
			    tag_of(f, index, KIND_FLOOD), WEFT_TAG_MASK_FULL, &params, &req);
	ret = wait_for(f, ret, req, &c, 0);
	if (ret == -EMSGSIZE ||
	    (!ret && (c.length != f->run->size || !perf_check(buffer, f->run->size, index)))) {
		f->side->wrong++;
		ret = 0;
	}
	return ret;
}

static int flood_server(struct flood *f, struct perf_remote *remote)
{
	struct weft_request *req = NULL;
	struct sys_memory memory;
	uint64_t word;
	char *buffer = malloc(f->run->size + 8);
	int ret, late;

	if (!buffer)
		return -ENOMEM;
	memset(buffer, 0, f->run->size + 8);
	late = post_word(f, KIND_LATE, &word, &req);
	sys_reset_peak();
	sys_memory(&memory);
	remote->flood_before = memory.now;
	ret = late < 0 ? late : peer_barrier(f->peer);
	if (!ret)
		ret = wait_for(f, late, req, NULL, 0);
	if (!ret)
		ret = send_word(f, KIND_LATE_ACK);
	for (uint64_t i = f->run->iters; !ret && i-- > 0;) {
		ret = receive_one(f, buffer, i);
		/* Receives that complete at once do not progress the worker. */
		if (!ret && i % 64 == 0)
			ret = flood_turn(f);
	}
	if (!ret)
		ret = send_word(f, KIND_DONE);
	sys_memory(&memory);
	remote->flood_peak = memory.peak;
	if (!ret)
		free(buffer);
	return ret;
}

int perf_flood(struct perf_side *side, struct perf_remote *remote)
{
	struct flood f = {.side = side, .peer = side->peer, .run = side->run};
	int ret = f.peer->server ? flood_server(&f, remote) : flood_client(&f, remote);

	if (ret == -ETIMEDOUT)
		return peer_fail(f.peer, APP_FAIL);
	if (ret)
		return peer_fail_op(f.peer, "the flood failed", ret);
	return f.peer->exit_code;
}
