/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unit/rndv/duo.h
 * A sender and a receiver over mock lanes, with memory of their own.
 */
#ifndef UNIT_RNDV_DUO_H
#define UNIT_RNDV_DUO_H

#include "mock/mock_lane.h"
#include "mock/msg_util.h"

#define MS 1000000ull
#define LEN 1000000

static const char *cache = "REG_CACHE=off", *thresh = "RNDV_THRESH=1k"; /* of the next duos */

static inline int setup(void **state)
{
	(void)state;
	mock_reset();
	cache = "REG_CACHE=off";
	thresh = "RNDV_THRESH=1k";
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_mems(), 0);
	return 0;
}

struct duo {
	struct weft_context *ctx[2];
	struct weft_worker *w[2];
	struct weft_ep *ep;
	uint8_t *sbuf, *rbuf;
};

static inline void duo_run(struct duo *d, int rounds)
{
	while (rounds--)
		mock_run(1, MS / 10, d->w[0], d->w[1], NULL);
}

static inline void duo_workers(struct duo *d, const char *lanes, const char *send_scheme,
			       const char *recv_scheme)
{
	for (int i = 0; i < 2; i++) {
		char scheme[64];

		snprintf(scheme, sizeof(scheme), "RNDV_SCHEME=%s", i ? recv_scheme : send_scheme);
		d->ctx[i] = mock_context(scheme, thresh, cache, "LOG_LEVEL=error", NULL);
		d->w[i] = mock_worker(d->ctx[i], lanes);
	}
}

static inline void duo_connect(struct duo *d)
{
	d->ep = mock_connect(d->w[0], d->w[1]);
	duo_run(d, 50);
	d->sbuf = malloc(LEN);
	d->rbuf = malloc(LEN + 8);
	pattern_fill(5, 0, d->sbuf, LEN);
	memset(d->rbuf, 0xee, LEN + 8);
}

static inline void duo_open(struct duo *d, const char *lanes, const char *send_scheme,
			    const char *recv_scheme)
{
	duo_workers(d, lanes, send_scheme, recv_scheme);
	duo_connect(d);
}

static inline void duo_close(struct duo *d)
{
	for (int i = 0; i < 2; i++)
		weft_worker_destroy(d->w[i]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(weft_context_destroy(d->ctx[i]), 0);
	free(d->sbuf);
	free(d->rbuf);
}

static inline void guard_is_whole(const struct duo *d, size_t len)
{
	for (size_t i = len; i < len + 8 && i < LEN + 8; i++)
		assert_int_equal(d->rbuf[i], 0xee);
}

static inline void wait_for(struct duo *d, const struct op *a, const struct op *b)
{
	for (int i = 0; i < 5000 && !(op_done(a) && op_done(b)); i++)
		duo_run(d, 1);
}

/* One message of @len bytes, and its counters. */
static inline void one(struct duo *d, size_t len)
{
	struct op s, r;

	op_recv(&r, d->w[1], d->rbuf, len, 1, FULL);
	op_send_sync(&s, d->ep, d->sbuf, len, 1);
	wait_for(d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d->rbuf, len, 1, 5);
	guard_is_whole(d, len);
}

static inline uint64_t gets(const struct duo *d)
{
	return d->w[1]->msg->count.gets;
}

static inline uint64_t pulls(const struct duo *d)
{
	return d->w[1]->msg->count.pulls;
}

static inline uint64_t puts_of(const struct duo *d)
{
	return d->w[0]->msg->count.puts;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif /* UNIT_RNDV_DUO_H */
