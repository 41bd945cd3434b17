/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath of put_lat, put_bw, get_lat, get_bw, fadd_lat and cswap_lat.
 *
 * A target sends the key of its memory over the out-of-band connection. In put_lat both sides are
 * targets, and each polls on the last byte of its own memory. In the other tests the server is the
 * target. It only progresses until the client sends a tagged message at the end of its operations.
 *
 * With -V the target is divided into slots, so that no byte is overwritten before it was compared.
 * The server compares the bytes of a window of puts before the next window may begin. Gets read
 * memory that was filled once. The results of atomics are compared with a count, also without -V.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"

#define KEY_MAX 2048u /* as weft_rkey_pack() promises */
#define GET_SLOTS 4u
#define PARTIAL_SECONDS 2.0 /* put_lat -V: timeout of the other bytes after the last one */

enum { KIND_UP = 1, KIND_DOWN };

struct flow {
	struct perf_flow base; /* first */
	uint64_t done;
	unsigned int target_slots;
	uint64_t stride;
	char *local, *target; /* buffers of operations, and memory for the peer; NULL = none */
	struct weft_mem *local_mem, *target_mem;
	struct weft_rkey *rkey;
};

static inline struct flow *flow_of(struct perf_flow *base)
{
	return (struct flow *)base;
}

static inline int turn(struct flow *f)
{
	return perf_flow_turn(&f->base);
}

/* ---- operations */

static bool atomic_is_right(const struct flow *f, const void *result, uint64_t old)
{
	return f->base.run->size == 4 ? *(const uint32_t *)result == (uint32_t)old
				      : *(const uint64_t *)result == old;
}

static void ended(struct perf_slot *slot)
{
	struct flow *f = flow_of(slot->flow);
	uint64_t test = f->base.run->test;

	slot->busy = false;
	f->done++;
	if (perf_is_atomic(test))
		f->base.side->wrong += !atomic_is_right(f, slot->buffer, slot->index);
	else if (f->base.validate && (test == PERF_GET_LAT || test == PERF_GET_BW))
		f->base.side->wrong +=
			!perf_check(slot->buffer, f->base.run->size, slot->index % f->target_slots);
}

static void on_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct perf_slot *slot = arg;

	(void)req;
	slot->flow->out--;
	if (c->status)
		slot->flow->error = c->status;
	else
		ended(slot);
}

/* Either operation increments the counter, so the old value is the number of the operation. */
static int post_atomic(struct flow *f, struct perf_slot *slot)
{
	bool add = f->base.run->test == PERF_FADD_LAT;
	struct weft_atomic_params a = WEFT_INIT(struct weft_atomic_params,
						.op = add ? WEFT_ATOMIC_ADD : WEFT_ATOMIC_CSWAP,
						.width = (unsigned int)f->base.run->size,
						.operand = add ? 1 : slot->index + 1,
						.compare = slot->index, .result = slot->buffer);

	return weft_atomic(f->base.peer->ep, &a, f->rkey, 0, &slot->params, NULL);
}

/* put_lat: the last byte differs from the one before, and at first from 0, the initial memory. */
static uint8_t mark(uint64_t index)
{
	return (uint8_t)(index + 1);
}

static int post_put(struct flow *f, struct perf_slot *slot, uint64_t offset)
{
	char *buffer = slot->buffer;

	if (f->base.validate)
		perf_fill(buffer, f->base.run->size, slot->index);
	if (f->base.run->test == PERF_PUT_LAT)
		buffer[f->base.run->size - 1] = (char)mark(slot->index);
	return weft_put(f->base.peer->ep, buffer, f->base.run->size, f->rkey, offset, &slot->params,
			NULL);
}

static int post_get(struct flow *f, struct perf_slot *slot, uint64_t offset)
{
	/* Other bytes than those to be read, so that earlier bytes cannot be taken for these. */
	if (f->base.validate)
		perf_fill(slot->buffer, f->base.run->size, ~slot->index);
	return weft_get(f->base.peer->ep, slot->buffer, f->base.run->size, f->rkey, offset,
			&slot->params, NULL);
}

static inline bool post(struct perf_flow *b)
{
	struct perf_slot *slot = perf_flow_next(b);
	struct flow *f = flow_of(b);
	uint64_t offset = b->posted % f->target_slots * f->stride;
	int ret;

	if (!slot)
		return false;
	slot->index = b->posted;
	if (perf_is_atomic(b->run->test))
		ret = post_atomic(f, slot);
	else if (b->run->test == PERF_PUT_LAT || b->run->test == PERF_PUT_BW)
		ret = post_put(f, slot, offset);
	else
		ret = post_get(f, slot, offset);
	if (!perf_flow_posted(b, slot, ret))
		return false;
	if (ret != WEFT_INPROGRESS)
		ended(slot);
	return true;
}

/* @param whole  post until the end of the run, instead of up to number @p end */
static int stream(struct flow *f, uint64_t end, bool whole)
{
	struct perf_side *side = f->base.side;

	while (f->done < (whole ? side->total : end) || (whole && side->open)) {
		uint64_t before = f->done;

		perf_flow_fill(&f->base, whole ? side->total : end, post);
		if (turn(f))
			return -ECANCELED;
		perf_count(side, f->done - before);
		if (whole && unlikely(perf_limit_near(side, f->base.posted)) &&
		    perf_limit_look(side, f->base.posted))
			return -ECANCELED;
	}
	return 0;
}

/* ---- waiting */

static uint64_t tag_of(const struct flow *f, int kind)
{
	return f->base.run->id << 8 | (uint64_t)kind;
}

static int write_flag(struct flow *f, int kind)
{
	struct weft_request *req = NULL;
	int ret = weft_tag_send(f->base.peer->ep, NULL, 0, tag_of(f, kind), NULL, &req);

	return perf_flow_finish(&f->base, ret, req);
}

static int await(struct flow *f, int kind)
{
	struct weft_request *req = NULL;
	int ret = weft_tag_recv(f->base.peer->worker, NULL, NULL, 0, tag_of(f, kind),
				WEFT_TAG_MASK_FULL, NULL, &req);

	return perf_flow_finish(&f->base, ret, req);
}

/* ---- one side posts operations, the other only progresses */

/* With -V the server compares the bytes of put_bw after each window. */
static bool in_rounds(const struct flow *f)
{
	return f->base.validate && f->base.run->test == PERF_PUT_BW;
}

static uint64_t round_end(const struct flow *f, uint64_t begin)
{
	uint64_t rest = f->base.side->total - begin;

	return begin + (in_rounds(f) && rest > f->target_slots ? f->target_slots : rest);
}

static int work(struct flow *f)
{
	int more;

	for (uint64_t at = 0; (more = perf_flow_more(&f->base, at)) > 0;) {
		at = round_end(f, at);
		if (stream(f, at, !in_rounds(f)) || perf_flow_flush(&f->base))
			return -ECANCELED;
		at = f->done;
		perf_flow_stop(&f->base);
		if (write_flag(f, KIND_UP) || await(f, KIND_DOWN))
			return -ECANCELED;
	}
	return more;
}

/* A run without rounds is closed before the client reports its end. */
static int wait_closed(struct flow *f)
{
	while (f->base.side->open)
		if (turn(f) || perf_limit_look(f->base.side, 0))
			return -ECANCELED;
	return 0;
}

static void look(struct flow *f, uint64_t begin, uint64_t end)
{
	if (perf_is_atomic(f->base.run->test)) {
		f->base.side->wrong += !atomic_is_right(f, f->target, end);
		return;
	}
	if (!f->base.validate || f->base.run->test != PERF_PUT_BW)
		return;
	for (uint64_t i = begin; i < end; i++)
		f->base.side->wrong += !perf_check(f->target + i % f->target_slots * f->stride,
						   f->base.run->size, i);
}

static int serve(struct flow *f)
{
	uint64_t end;
	int more;

	for (uint64_t at = 0; (more = perf_flow_more(&f->base, at)) > 0; at = end) {
		if (await(f, KIND_UP) || (!in_rounds(f) && wait_closed(f)))
			return -ECANCELED;
		end = round_end(f, at);
		look(f, at, end);
		if (write_flag(f, KIND_DOWN))
			return -ECANCELED;
	}
	return more ? more : perf_flow_flush(&f->base);
}

/* ---- put_lat */

/* Over several lanes bytes arrive in any order: others may arrive after the last one. */
static int compare(struct flow *f, uint64_t index)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(PARTIAL_SECONDS * (double)rte_get_tsc_hz());

	while (!perf_check(f->target, f->base.run->size - 1, index)) {
		if (rte_rdtsc() > end) {
			f->base.side->wrong++;
			return 0;
		}
		if (turn(f))
			return -ECANCELED;
	}
	return 0;
}

static int wait_written(struct flow *f, uint64_t index)
{
	const volatile uint8_t *last = (uint8_t *)f->target + f->base.run->size - 1;

	while (*last != mark(index))
		if (turn(f))
			return -ECANCELED;
	/* A NIC may have written the last byte: read the other bytes only after it. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return f->base.validate ? compare(f, index) : 0;
}

static int ping(struct flow *f)
{
	int more;

	for (uint64_t i = 0; (more = perf_flow_more(&f->base, i)) > 0; i++) {
		if (perf_flow_one(&f->base, post) || wait_written(f, i))
			return -ECANCELED;
		perf_count(f->base.side, 1);
	}
	return more ? more : perf_flow_flush(&f->base);
}

static int pong(struct flow *f)
{
	int more;

	for (uint64_t i = 0; (more = perf_flow_more(&f->base, i)) > 0; i++)
		if (wait_written(f, i) || perf_flow_one(&f->base, post))
			return -ECANCELED;
	return more ? more : perf_flow_flush(&f->base);
}

/* ---- set-up */

static unsigned int rights_of(uint64_t test)
{
	if (perf_is_atomic(test))
		return WEFT_MEM_F_REMOTE_ATOMIC;
	return test == PERF_GET_LAT || test == PERF_GET_BW ? WEFT_MEM_F_REMOTE_READ
							   : WEFT_MEM_F_REMOTE_WRITE;
}

static int make_local(struct flow *f)
{
	struct perf_flow *b = &f->base;
	int ret = 0;

	f->local = perf_flow_memory(b->slots * f->stride, 0x5a);
	if (!f->local)
		return -ENOMEM;
	if (!perf_is_atomic(b->run->test))
		ret = perf_flow_register(b, f->local, b->slots * f->stride, &f->local_mem);
	b->slot = perf_flow_slots(b, b->slots, on_done, f->local, f->stride, f->local_mem);
	return ret || b->slot ? ret : -ENOMEM;
}

static int make_target(struct flow *f)
{
	struct weft_mem_params params =
		WEFT_INIT(struct weft_mem_params, .flags = rights_of(f->base.run->test));

	f->target = perf_flow_memory(f->target_slots * f->stride, 0);
	if (!f->target)
		return -ENOMEM;
	for (unsigned int i = 0; f->base.validate && i < f->target_slots; i++)
		if (params.flags == WEFT_MEM_F_REMOTE_READ)
			perf_fill(f->target + i * f->stride, f->base.run->size, i);
	return weft_mem_register(f->base.peer->ctx, f->target, f->target_slots * f->stride, &params,
				 &f->target_mem);
}

static int set_up(struct flow *f, struct perf_side *side)
{
	const struct perf_run *run = side->run;
	bool put_lat = run->test == PERF_PUT_LAT, server = side->peer->server;
	int ret = 0;

	perf_flow_init(&f->base, side);
	f->stride = perf_flow_stride(run);
	f->base.slots = f->base.validate ? (unsigned int)run->window : 1;
	f->target_slots = 1;
	if (f->base.validate && run->test == PERF_PUT_BW)
		f->target_slots = f->base.slots;
	if (f->base.validate && rights_of(run->test) == WEFT_MEM_F_REMOTE_READ)
		f->target_slots = GET_SLOTS;
	if (!server || put_lat)
		ret = make_local(f);
	if (!ret && (server || put_lat))
		ret = make_target(f);
	return ret;
}

static int send_key(struct flow *f)
{
	size_t length;
	void *blob;
	int ret = weft_rkey_pack(f->target_mem, &blob, &length);

	if (ret)
		return peer_fail_op(f->base.peer, "the memory has no remote key", ret);
	ret = peer_send(f->base.peer, OOB_KEY, blob, length);
	weft_rkey_release_blob(blob);
	return ret;
}

/* The key is untrusted: the library validates it, and detects damage by a checksum. */
static int recv_key(struct flow *f)
{
	uint8_t blob[KEY_MAX];
	size_t length = sizeof(blob);
	int ret = peer_recv_some(f->base.peer, OOB_KEY, blob, &length);

	if (ret)
		return ret;
	ret = weft_rkey_unpack(f->base.peer->ep, blob, length, &f->rkey);
	if (!ret)
		return APP_OK;
	cli_error("the peer's remote key of %zu bytes cannot be used: %s", length,
		  weft_strerror(ret));
	return peer_fail(f->base.peer, APP_PEER);
}

static int exchange_keys(struct flow *f)
{
	int ret = f->target ? send_key(f) : APP_OK;

	return !ret && f->local ? recv_key(f) : ret;
}

/* Lanes may still use the memory for a short time: progress until they release it. */
static int deregister(struct flow *f, struct weft_mem *mem)
{
	int ret;

	while ((ret = weft_mem_deregister(mem)) == -EBUSY)
		if (turn(f))
			return -ECANCELED;
	return ret;
}

/* After a failure operations may still use the memory: it is not freed, the process ends soon. */
static void tear_down(struct flow *f)
{
	weft_rkey_destroy(f->rkey);
	if (f->base.error || f->base.peer->exit_code)
		return;
	if (deregister(f, f->local_mem) || deregister(f, f->target_mem))
		return;
	free(f->local);
	free(f->target);
	free(f->base.slot);
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
	perf_limit_begin(side);
	if (in_rounds(f))
		perf_limit_rounds(side, f->target_slots);
	if (side->run->test == PERF_PUT_LAT)
		ret = p->server ? pong(f) : ping(f);
	else
		ret = p->server ? serve(f) : work(f);
	if (f->base.error)
		peer_fail_op(p, "an operation on remote memory failed", f->base.error);
	tear_down(f);
	return p->exit_code;
}
