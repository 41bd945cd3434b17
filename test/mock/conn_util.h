/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/conn_util.h
 * What the tests of the connection half share.
 */
#ifndef WEFT_TEST_CONN_UTIL_H
#define WEFT_TEST_CONN_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "common/op.h"
#include "mock/mock_lane.h"
#include "wireup/wireup.h"

#define MS 1000000ull
#define S 1000000000ull

static inline int conn_setup(void **state)
{
	(void)state;
	mock_reset();
	return 0;
}

/* Nothing may be left over by any test. */
static inline int conn_teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_messages(), 0);
	assert_int_equal(mock_num_kept(), 0);
	assert_int_equal(mock_num_mems(), 0);
	return 0;
}

#define CONN_TEST(f) cmocka_unit_test_setup_teardown(f, conn_setup, conn_teardown)

/* Worker a has the lower id, whatever the random numbers say. */
static inline void conn_order(struct weft_worker **a, struct weft_worker **b)
{
	struct weft_worker *t;

	if ((*a)->id > (*b)->id) {
		t = *a;
		*a = *b;
		*b = t;
	}
}

static inline struct weft_ep *conn_first_ep(struct weft_worker *w)
{
	return LIST_FIRST(&w->eps);
}

static inline struct weft_ep *conn_create(struct weft_worker *from, struct weft_worker *to,
					  struct mock_err *err)
{
	struct weft_ep *ep = mock_connect(from, to);

	ep->err_arg = err;
	return ep;
}

static uint64_t conn_counter_value;

static inline void conn_counter_cb(const char *name, uint64_t value, void *arg)
{
	if (strcmp(name, arg) == 0)
		conn_counter_value = value;
}

static inline uint64_t conn_counter(struct weft_worker *w, const char *name)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%s", name);
	conn_counter_value = UINT64_MAX;
	weft_worker_counters(w, conn_counter_cb, buf);
	assert_true(conn_counter_value != UINT64_MAX);
	return conn_counter_value;
}

static inline unsigned int conn_lanes_up(const struct weft_ep *ep)
{
	return (unsigned int)__builtin_popcount(ep->lanes_up);
}

/* Send one message from @p ep and receive it at @p to, progressing both. */
static inline void conn_message(struct weft_ep *ep, struct weft_worker *to, size_t size,
				uint64_t tag)
{
	uint8_t *out = malloc(size + 1), *in = malloc(size + 1);
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_request *s = NULL, *r = NULL;
	int rs, rr, i;

	pattern_fill(tag, 0, out, size);
	memset(in, 0, size);
	rr = weft_tag_recv(to, NULL, in, size, tag, WEFT_TAG_MASK_FULL, NULL, &r);
	assert_true(rr >= 0);
	rs = weft_tag_send(ep, out, size, tag, NULL, &s);
	assert_true(rs >= 0);
	for (i = 0; i < 10000; i++) {
		if ((rr == 0 || weft_request_test(r, &c) != WEFT_INPROGRESS) &&
		    (rs == 0 || weft_request_test(s, NULL) != WEFT_INPROGRESS))
			break;
		mock_run(1, MS, ep->worker, to, NULL);
	}
	if (rr)
		assert_int_equal(weft_request_test(r, &c), 0);
	if (rs)
		assert_int_equal(weft_request_test(s, NULL), 0);
	pattern_expect(tag, in, size);
	weft_request_free(r);
	weft_request_free(s);
	free(out);
	free(in);
}

/* Close in good order and wait for it. */
static inline int conn_close(struct weft_ep *ep, struct weft_worker *peer)
{
	struct weft_worker *w = ep->worker;
	struct weft_request *req;
	int rc, i;

	rc = weft_ep_close(ep, 0, NULL, &req);
	if (rc != WEFT_INPROGRESS)
		return rc;
	for (i = 0; i < 10000 && weft_request_test(req, NULL) == WEFT_INPROGRESS; i++)
		mock_run(1, MS, w, peer, NULL);
	rc = weft_request_test(req, NULL);
	weft_request_free(req);
	return rc;
}

static inline void conn_destroy(struct weft_context *ctx, struct weft_worker *a,
				struct weft_worker *b)
{
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

#endif /* WEFT_TEST_CONN_UTIL_H */
