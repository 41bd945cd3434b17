/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath of put_lat, put_bw, get_lat, get_bw, fadd_lat and cswap_lat.
 *
 * A side whose memory is reached sends the key of it over the out-of-band connection. In put_lat
 * both do, and each polls on the last byte of its own memory. In the others the server's memory is
 * reached, and the server does nothing but progress until the client tells it, by a tagged message,
 * that it is through.
 *
 * With -V the target is divided into slots, so that nothing is written over that was not compared:
 * the server compares what a window of puts has written before the next may begin, gets read memory
 * that was filled once, and what atomics return is counted along.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define KEY_MAX 2048u /* as weft_rkey_pack() promises */
#define GET_SLOTS 4u
#define TORN_SECONDS 2.0 /* how long the other bytes may come after the last one */

enum { KIND_UP = 1, KIND_DOWN };

struct flow;

/* An operation under way. */
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
	bool validate;
	int error;
	uint64_t posted, out, done;
	unsigned int slots, target_slots;
	struct slot *slot;
	uint64_t stride;
	char *local, *target; /* buffers of operations, and what the peer reaches; NULL = none */
	struct weft_mem *local_mem, *target_mem;
	struct weft_rkey *rkey;
};

static inline int turn(struct flow *f)
{
	return peer_poll(f->peer) ? -ECANCELED : f->error;
}

/* ---- operations */

static bool atomic_is_right(const struct flow *f, const void *result, uint64_t old)
{
	return f->run->size == 4 ? *(const uint32_t *)result == (uint32_t)old
				 : *(const uint64_t *)result == old;
}

static void ended(struct slot *slot)
{
	struct flow *f = slot->flow;
	uint64_t test = f->run->test;

	slot->busy = false;
	f->done++;
	if (perf_is_atomic(test))
		f->side->wrong += !atomic_is_right(f, slot->buffer, slot->index);
	else if (f->validate && (test == PERF_GET_LAT || test == PERF_GET_BW))
		f->side->wrong +=
			!perf_check(slot->buffer, f->run->size, slot->index % f->target_slots);
}

static void on_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct slot *slot = arg;

	(void)req;
	slot->flow->out--;
	if (c->status)
		slot->flow->error = c->status;
	else
		ended(slot);
}

/* The word counts up, by either operation: the old value is the operation's number. */
static int post_atomic(struct flow *f, struct slot *slot)
{
	bool add = f->run->test == PERF_FADD_LAT;
	struct weft_atomic a =
		WEFT_INIT(struct weft_atomic, .op = add ? WEFT_ATOMIC_ADD : WEFT_ATOMIC_CSWAP,
			  .width = (unsigned int)f->run->size, .operand = add ? 1 : slot->index + 1,
			  .compare = slot->index, .result = slot->buffer);

	return weft_atomic(f->peer->ep, &a, f->rkey, 0, &slot->params, NULL);
}

/* What put_lat's last byte is in iteration @index: never what it was before, 0 at first. */
static uint8_t mark(uint64_t index)
{
	return (uint8_t)(index + 1);
}

static int post_put(struct flow *f, struct slot *slot, uint64_t offset)
{
	char *buffer = slot->buffer;

	if (f->validate)
		perf_fill(buffer, f->run->size, slot->index);
	if (f->run->test == PERF_PUT_LAT)
		buffer[f->run->size - 1] = (char)mark(slot->index);
	return weft_put(f->peer->ep, buffer, f->run->size, f->rkey, offset, &slot->params, NULL);
}

static int post_get(struct flow *f, struct slot *slot, uint64_t offset)
{
	/* Nothing that is there from before shall pass for what was read. */
	if (f->validate)
		perf_fill(slot->buffer, f->run->size, ~slot->index);
	return weft_get(f->peer->ep, slot->buffer, f->run->size, f->rkey, offset, &slot->params,
			NULL);
}

static inline bool post(struct flow *f)
{
	struct slot *slot = &f->slot[f->posted % f->slots];
	uint64_t offset = f->posted % f->target_slots * f->stride;
	int ret;

	if (f->validate && slot->busy)
		return false;
	slot->index = f->posted;
	if (perf_is_atomic(f->run->test))
		ret = post_atomic(f, slot);
	else if (f->run->test == PERF_PUT_LAT || f->run->test == PERF_PUT_BW)
		ret = post_put(f, slot, offset);
	else
		ret = post_get(f, slot, offset);
	if (ret < 0) {
		f->error = ret;
		return false;
	}
	f->posted++;
	if (ret == WEFT_INPROGRESS) {
		slot->busy = true;
		f->out++;
	} else {
		ended(slot);
	}
	return true;
}

/* Operations up to number @total, a window of them at a time; a latency's window is 1. */
static int stream(struct flow *f, uint64_t total)
{
	while (f->done < total) {
		uint64_t before = f->done, count = 0;

		while (count < f->run->window && f->posted < total && f->out < f->run->window &&
		       post(f))
			count++;
		if (turn(f))
			return -ECANCELED;
		perf_count(f->side, f->done - before);
	}
	return 0;
}

/* ---- waiting */

/* To the end of a call that returned @ret. */
static int finish(struct flow *f, int ret, struct weft_request *req)
{
	while (ret == WEFT_INPROGRESS) {
		if (turn(f))
			break;
		ret = weft_request_test(req, NULL);
	}
	weft_request_free(req);
	if (ret < 0 && !f->error)
		f->error = ret;
	return ret ? -ECANCELED : 0;
}

static int flush(struct flow *f)
{
	struct weft_request *req = NULL;
	int ret = weft_ep_flush(f->peer->ep, NULL, &req);

	return finish(f, ret, req);
}

static uint64_t tag_of(const struct flow *f, int kind)
{
	return f->run->id << 8 | (uint64_t)kind;
}

static int say(struct flow *f, int kind)
{
	struct weft_request *req = NULL;
	int ret = weft_tag_send(f->peer->ep, NULL, 0, tag_of(f, kind), NULL, &req);

	return finish(f, ret, req);
}

static int await(struct flow *f, int kind)
{
	struct weft_request *req = NULL;
	int ret = weft_tag_recv(f->peer->worker, NULL, NULL, 0, tag_of(f, kind), WEFT_TAG_MASK_FULL,
				NULL, &req);

	return finish(f, ret, req);
}

/* ---- one side works, the other only progresses */

/* Operations before the server must look: with -V a put_bw's window, else all. */
static uint64_t round_length(const struct flow *f)
{
	return f->validate && f->run->test == PERF_PUT_BW ? f->target_slots : f->run->iters;
}

static uint64_t round_end(const struct flow *f, uint64_t begin)
{
	uint64_t rest = f->run->iters - begin, length = round_length(f);

	return begin + (rest < length ? rest : length);
}

static int work(struct flow *f)
{
	for (uint64_t at = 0; at < f->run->iters;) {
		at = round_end(f, at);
		if (stream(f, at) || flush(f))
			return -ECANCELED;
		if (f->side->meter && !perf_is_latency(f->run->test))
			f->side->meter->last = rte_rdtsc();
		if (say(f, KIND_UP) || await(f, KIND_DOWN))
			return -ECANCELED;
	}
	return 0;
}

static void look(struct flow *f, uint64_t begin, uint64_t end)
{
	if (perf_is_atomic(f->run->test)) {
		f->side->wrong += !atomic_is_right(f, f->target, end);
		return;
	}
	if (!f->validate || f->run->test != PERF_PUT_BW)
		return;
	for (uint64_t i = begin; i < end; i++)
		f->side->wrong +=
			!perf_check(f->target + i % f->target_slots * f->stride, f->run->size, i);
}

static int serve(struct flow *f)
{
	for (uint64_t at = 0; at < f->run->iters;) {
		uint64_t end = round_end(f, at);

		if (await(f, KIND_UP))
			return -ECANCELED;
		look(f, at, end);
		if (say(f, KIND_DOWN))
			return -ECANCELED;
		at = end;
	}
	return flush(f);
}

/* ---- put_lat */

/*
 * Over several lanes the bytes come in any order, and the others may come after the last one: with
 * -V they get a while.
 */
static int compare(struct flow *f, uint64_t index)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(TORN_SECONDS * (double)rte_get_tsc_hz());

	while (!perf_check(f->target, f->run->size - 1, index)) {
		if (rte_rdtsc() > end) {
			f->side->wrong++;
			return 0;
		}
		if (turn(f))
			return -ECANCELED;
	}
	return 0;
}

static int wait_written(struct flow *f, uint64_t index)
{
	const volatile uint8_t *last = (uint8_t *)f->target + f->run->size - 1;

	while (*last != mark(index))
		if (turn(f))
			return -ECANCELED;
	/* A NIC may have written it: nothing of the rest is read before. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return f->validate ? compare(f, index) : 0;
}

static int put_one(struct flow *f)
{
	while (f->out)
		if (turn(f))
			return -ECANCELED;
	return post(f) ? 0 : -ECANCELED;
}

static int ping(struct flow *f)
{
	for (uint64_t i = 0; i < f->run->iters; i++) {
		if (put_one(f) || wait_written(f, i))
			return -ECANCELED;
		perf_count(f->side, 1);
	}
	return flush(f);
}

static int pong(struct flow *f)
{
	for (uint64_t i = 0; i < f->run->iters; i++)
		if (wait_written(f, i) || put_one(f))
			return -ECANCELED;
	return flush(f);
}

/* ---- set-up */

static unsigned int rights_of(uint64_t test)
{
	if (perf_is_atomic(test))
		return WEFT_MEM_REMOTE_ATOMIC;
	return test == PERF_GET_LAT || test == PERF_GET_BW ? WEFT_MEM_REMOTE_READ
							   : WEFT_MEM_REMOTE_WRITE;
}

/* Page faults are not what is measured, so each byte is written once. */
static char *make_buffers(const struct flow *f, unsigned int count, int value)
{
	void *memory;

	if (posix_memalign(&memory, 4096, count * f->stride))
		return NULL;
	memset(memory, value, count * f->stride);
	return memory;
}

static int make_local(struct flow *f)
{
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);
	int ret = 0;

	f->slot = calloc(f->slots, sizeof(*f->slot));
	f->local = make_buffers(f, f->slots, 0x5a);
	if (!f->slot || !f->local)
		return -ENOMEM;
	if ((f->run->flags & PERF_F_REGISTERED) && !perf_is_atomic(f->run->test))
		ret = weft_mem_register(f->peer->ctx, f->local, f->slots * f->stride, &params,
					&f->local_mem);
	for (unsigned int i = 0; i < f->slots; i++) {
		f->slot[i].flow = f;
		f->slot[i].buffer = f->local + i * f->stride;
		f->slot[i].params = WEFT_INIT(struct weft_op_params, .cb = on_done,
					      .cb_arg = &f->slot[i], .mem = f->local_mem);
	}
	return ret;
}

static int make_target(struct flow *f)
{
	struct weft_mem_params params =
		WEFT_INIT(struct weft_mem_params, .flags = rights_of(f->run->test));

	f->target = make_buffers(f, f->target_slots, 0);
	if (!f->target)
		return -ENOMEM;
	for (unsigned int i = 0; f->validate && i < f->target_slots; i++)
		if (params.flags == WEFT_MEM_REMOTE_READ)
			perf_fill(f->target + i * f->stride, f->run->size, i);
	return weft_mem_register(f->peer->ctx, f->target, f->target_slots * f->stride, &params,
				 &f->target_mem);
}

static int set_up(struct flow *f, struct perf_side *side)
{
	const struct perf_run *run = side->run;
	bool put_lat = run->test == PERF_PUT_LAT, server = side->peer->server;
	int ret = 0;

	f->side = side;
	f->peer = side->peer;
	f->run = run;
	f->validate = run->flags & PERF_F_VALIDATE;
	f->stride = (run->size + 4095) / 4096 * 4096 + 4096;
	f->slots = f->validate ? (unsigned int)run->window : 1;
	f->target_slots = 1;
	if (f->validate && run->test == PERF_PUT_BW)
		f->target_slots = f->slots;
	if (f->validate && rights_of(run->test) == WEFT_MEM_REMOTE_READ)
		f->target_slots = GET_SLOTS;
	if (!server || put_lat)
		ret = make_local(f);
	if (!ret && (server || put_lat))
		ret = make_target(f);
	return ret;
}

static int tell_key(struct flow *f)
{
	size_t length;
	void *blob;
	int ret = weft_rkey_pack(f->target_mem, &blob, &length);

	if (ret)
		return peer_fail_op(f->peer, "the memory has no remote key", ret);
	ret = peer_tell(f->peer, OOB_KEY, blob, length);
	weft_rkey_release_blob(blob);
	return ret;
}

/* What comes is whatever the peer sends: the library looks at it, and knows damage by a checksum. */
static int hear_key(struct flow *f)
{
	uint8_t blob[KEY_MAX];
	size_t length = sizeof(blob);
	int ret = peer_hear_some(f->peer, OOB_KEY, blob, &length);

	if (ret)
		return ret;
	ret = weft_rkey_unpack(f->peer->ep, blob, length, &f->rkey);
	if (!ret)
		return APP_OK;
	cli_error("the peer's remote key of %zu bytes cannot be used: %s", length,
		  weft_strerror(ret));
	return peer_fail(f->peer, APP_PEER);
}

static int exchange_keys(struct flow *f)
{
	int ret = f->target ? tell_key(f) : APP_OK;

	return !ret && f->local ? hear_key(f) : ret;
}

/* What the lanes still send of it is let go of by progress, and soon. */
static int deregister(struct flow *f, struct weft_mem *mem)
{
	int ret;

	while ((ret = weft_mem_deregister(mem)) == -EBUSY)
		if (turn(f))
			return -ECANCELED;
	return ret;
}

/* After a failure operations may still use the memory; the process ends soon, so they keep it. */
static void tear_down(struct flow *f)
{
	weft_rkey_destroy(f->rkey);
	if (f->error || f->peer->exit_code)
		return;
	if (deregister(f, f->local_mem) || deregister(f, f->target_mem))
		return;
	free(f->local);
	free(f->target);
	free(f->slot);
	free(f);
}

int perf_rma(struct perf_side *side)
{
	struct peer *p = side->peer;
	struct flow *f = calloc(1, sizeof(*f));
	int ret = f ? set_up(f, side) : -ENOMEM;

	if (ret) {
		cli_error("cannot prepare memory for operations on %llu bytes: %s",
			  (unsigned long long)side->run->size, weft_strerror(ret));
		return peer_fail(p, APP_FAIL);
	}
	if (exchange_keys(f) || peer_barrier(p))
		return p->exit_code;
	if (side->meter)
		perf_meter_start(side->meter);
	if (side->run->test == PERF_PUT_LAT)
		ret = p->server ? pong(f) : ping(f);
	else
		ret = p->server ? serve(f) : work(f);
	if (f->error)
		peer_fail_op(p, "an operation on remote memory failed", f->error);
	tear_down(f);
	return p->exit_code;
}
