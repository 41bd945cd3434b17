/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/ep_pair.h
 * Two workers of one process with an endpoint each to the other, both up.
 */
#ifndef EP_PAIR_H
#define EP_PAIR_H

#include "mock/conn_util.h"

static const char two_nics[] = "mock:0;mock:1";

struct pair {
	struct weft_context *ctx;
	struct weft_worker *a, *b;
	struct weft_ep *x, *y; /* a to b, b to a; both owned */
	struct mock_err ex, ey;
};

static inline void pair_up(struct pair *p, const char *lanes)
{
	memset(p, 0, sizeof(*p));
	p->ctx =
		mock_context("CONNECT_TIMEOUT=30s", "PEER_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
	p->a = mock_worker(p->ctx, lanes);
	p->b = mock_worker(p->ctx, lanes);
	p->x = conn_create(p->a, p->b, &p->ex);
	p->y = conn_create(p->b, p->a, &p->ey);
	mock_run(100, MS, p->a, p->b, NULL);
	assert_int_equal(p->x->state, WEFT_EP_UP);
	assert_int_equal(p->y->state, WEFT_EP_UP);
}

static inline void pair_down(struct pair *p)
{
	conn_destroy(p->ctx, p->a, p->b);
}

static inline int status_of(struct weft_request *req)
{
	int status = weft_request_test(req, NULL);

	weft_request_free(req);
	return status;
}

#endif /* EP_PAIR_H */
