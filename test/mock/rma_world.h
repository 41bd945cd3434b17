/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/rma_world.h
 * Remote memory over the whole library: one worker that asks, and up to three with memory (or the
 * same one), over mock lanes, so any order and no room.
 */
#ifndef RMA_WORLD_H
#define RMA_WORLD_H

#include "mock/mock_lane.h"
#include "mock/msg_util.h"

#define MS 1000000ull
#define RIGHTS (WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC)

static inline int setup(void **state)
{
	(void)state;
	mock_reset();
	mock_features =
		WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_kept(), 0);
	assert_int_equal(mock_num_mems(), 0);
	return 0;
}

/* One asks (ctx[0]), the others have memory (ctx[1]); peer 0 may be the initiator itself. */
#define PEERS 3
struct world {
	struct weft_context *ctx[2];
	struct weft_worker *w, *peer[PEERS];
	struct weft_ep *ep[PEERS];
	struct weft_mem *mem[PEERS], *local;
	struct weft_rkey *rkey[PEERS];
	uint8_t *bytes[PEERS], *buf;
	size_t size;
	int n;
};

static inline struct weft_mem *reg(struct weft_context *ctx, void *at, size_t size,
				   unsigned int rights)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = rights);
	struct weft_mem *m;

	assert_int_equal(weft_mem_register(ctx, at, size, &mp, &m), 0);
	return m;
}

static inline void share(struct world *x, int i, struct weft_context *ctx)
{
	size_t length;
	void *blob;

	x->mem[i] = reg(ctx, x->bytes[i], x->size, RIGHTS);
	assert_int_equal(weft_rkey_pack(x->mem[i], &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(x->ep[i], blob, length, &x->rkey[i]), 0);
	weft_rkey_release_blob(blob);
}

static inline void world_run(struct world *x, int rounds)
{
	while (rounds--) {
		mock_run(1, MS, x->w, NULL);
		for (int i = 0; i < x->n; i++)
			if (x->peer[i] != x->w)
				mock_run(1, 0, x->peer[i], NULL);
	}
}

static inline void world_open(struct world *x, int n, const char *lanes, const char *mode,
			      bool loopback)
{
	*x = (struct world){.n = n, .size = 300000};
	for (int i = 0; i < 2; i++)
		x->ctx[i] = mock_context("CONNECT_TIMEOUT=30s", "LOG_LEVEL=error", mode, NULL);
	x->w = mock_worker(x->ctx[0], lanes);
	x->buf = malloc(x->size);
	x->local = reg(x->ctx[0], x->buf, x->size, 0);
	for (int i = 0; i < n; i++) {
		x->peer[i] = loopback ? x->w : mock_worker(x->ctx[1], lanes);
		x->ep[i] = mock_connect(x->w, x->peer[i]);
	}
	world_run(x, 20);
	for (int i = 0; i < n; i++) {
		x->bytes[i] = calloc(1, x->size);
		share(x, i, x->ctx[!loopback]);
	}
}

static inline void world_close(struct world *x)
{
	for (int i = 0; i < x->n; i++) {
		weft_rkey_destroy(x->rkey[i]);
		if (x->peer[i] != x->w)
			weft_worker_destroy(x->peer[i]);
	}
	weft_worker_destroy(x->w);
	for (int i = 0; i < x->n; i++) {
		assert_int_equal(weft_mem_deregister(x->mem[i]), 0);
		free(x->bytes[i]);
	}
	assert_int_equal(weft_mem_deregister(x->local), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(weft_context_destroy(x->ctx[i]), 0);
	free(x->buf);
}

static inline void wait_op(struct world *x, struct op *op)
{
	for (int t = 0; !op_done(op) && t < 3000; t++)
		world_run(x, 1);
	assert_true(op_done(op));
}

static inline struct weft_op_params params(struct op *op, struct weft_mem *mem)
{
	struct weft_op_params p = op_params(op, NULL);

	p.mem = mem;
	return p;
}

static inline void put(struct world *x, struct op *op, int i, size_t off, size_t len)
{
	struct weft_op_params p = params(op, x->local);

	op->rc = weft_put(x->ep[i], x->buf + off, len, x->rkey[i], off, &p, &op->req);
}

static inline void get(struct world *x, struct op *op, int i, size_t off, size_t len)
{
	struct weft_op_params p = params(op, x->local);

	op->rc = weft_get(x->ep[i], x->buf + off, len, x->rkey[i], off, &p, &op->req);
}

static inline void amo(struct world *x, struct op *op, int i, enum weft_atomic_op what,
		       uint64_t operand, uint64_t compare, uint64_t *result, uint64_t at)
{
	struct weft_op_params p = params(op, NULL);
	struct weft_atomic_params a =
		WEFT_INIT(struct weft_atomic_params, .op = what, .width = 8, .operand = operand,
			  .compare = compare, .result = result);

	op->rc = weft_atomic(x->ep[i], &a, x->rkey[i], at, &p, &op->req);
}

static inline void flush(struct world *x, int i, int status)
{
	struct op op;
	struct weft_op_params p = params(&op, NULL);

	op.rc = i < 0 ? weft_worker_flush(x->w, &p, &op.req) : weft_ep_flush(x->ep[i], &p, &op.req);
	wait_op(x, &op);
	op_end(&op, status);
}

#endif /* RMA_WORLD_H */
