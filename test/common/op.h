/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/op.h
 * Operations of the public interface that count their callbacks, for tests that poll their workers
 * themselves.
 */
#ifndef TEST_OP_H
#define TEST_OP_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/pattern.h"
#include "weft.h"

#define FULL WEFT_TAG_MASK_FULL

/** An operation and what became of it. */
struct op {
	struct weft_request *req;
	int rc;
	int calls;
	struct weft_completion c;
};

static inline void op_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct op *op = arg;

	(void)req;
	op->calls++;
	op->c = *c;
}

/** Fails unless these are the bytes of message @p id. */
static inline void pattern_expect(uint64_t id, const void *buf, size_t len)
{
	size_t right = pattern_check(id, 0, buf, len);

	if (right != len)
		fail_msg("byte %zu of %zu of message %llu is wrong", right, len,
			 (unsigned long long)id);
}

static inline struct weft_op_params op_params(struct op *op, const struct weft_datatype *type)
{
	*op = (struct op){.c.size = sizeof(op->c)};
	return WEFT_INIT(struct weft_op_params, .cb = op_cb, .cb_arg = op, .datatype = type,
			 .completion = &op->c);
}

static inline void op_send_dt(struct op *op, struct weft_ep *ep, const void *buf, size_t count,
			      uint64_t tag, bool sync, const struct weft_datatype *type)
{
	struct weft_op_params p = op_params(op, type);

	op->rc = sync ? weft_tag_send_sync(ep, buf, count, tag, &p, &op->req)
		      : weft_tag_send(ep, buf, count, tag, &p, &op->req);
	if (sync && op->rc == 0)
		fail_msg("a synchronous send was done at once");
}

static inline void op_send(struct op *op, struct weft_ep *ep, const void *buf, size_t len,
			   uint64_t tag)
{
	op_send_dt(op, ep, buf, len, tag, false, NULL);
	assert_in_range(op->rc, 0, 1);
}

static inline void op_send_sync(struct op *op, struct weft_ep *ep, const void *buf, size_t len,
				uint64_t tag)
{
	op_send_dt(op, ep, buf, len, tag, true, NULL);
	assert_int_equal(op->rc, WEFT_INPROGRESS);
}

static inline void op_recv_dt(struct op *op, struct weft_worker *w, struct weft_ep *src, void *buf,
			      size_t count, uint64_t tag, uint64_t mask,
			      const struct weft_datatype *type)
{
	struct weft_op_params p = op_params(op, type);

	op->rc = weft_tag_recv(w, src, buf, count, tag, mask, &p, &op->req);
}

static inline void op_recv(struct op *op, struct weft_worker *w, void *buf, size_t len,
			   uint64_t tag, uint64_t mask)
{
	op_recv_dt(op, w, NULL, buf, len, tag, mask, NULL);
	assert_in_range(op->rc, 0, 1);
}

static inline bool op_done(const struct op *op)
{
	return op->rc <= 0 || op->calls;
}

/** It is over, once, with this status; the request is given back. */
static inline void op_end(struct op *op, int status)
{
	if (op->rc == WEFT_INPROGRESS) {
		struct weft_completion c = {.size = sizeof(c)};

		assert_int_equal(op->calls, 1);
		assert_int_equal(weft_request_test(op->req, &c), op->c.status);
		weft_request_free(op->req);
	} else {
		assert_int_equal(op->calls, 0);
		assert_null(op->req);
		op->c.status = op->rc;
	}
	assert_int_equal(op->c.status, status);
	op->rc = -ENOENT; /* used up */
}

static inline void op_end_recv(struct op *op, const void *buf, size_t len, uint64_t tag,
			       uint64_t id)
{
	op_end(op, 0);
	assert_int_equal(op->c.length, len);
	assert_true(op->c.tag == tag);
	pattern_expect(id, buf, len);
}

#endif /* TEST_OP_H */
