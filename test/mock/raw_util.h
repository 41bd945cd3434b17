/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/raw_util.h
 * What the tests of the raw-DPDK engine share: two ends over a wire that they hold, a stream of
 * numbered messages, and how often a completion was called.
 */
#ifndef RAW_UTIL_H
#define RAW_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mock/raw_pair.h"

static struct pair pair;

static struct pair_end *A = &pair.end[0], *B = &pair.end[1];

static uint32_t want;

static inline bool all_there(struct pair *p)
{
	return p->end[1].messages >= want;
}

/* Send `count` messages from A to B with lengths up to `max`, and see each arrive exactly once. */
static inline void stream(uint32_t count, uint32_t max, uint64_t max_ns)
{
	uint64_t end = pair.now + max_ns;
	uint32_t n = 0, len;
	int err;

	B->seen = calloc(1, count);
	B->seen_len = count;
	B->messages = 0;
	want = count;
	while (n < count && pair.now < end) {
		len = max < 8 ? max : (uint32_t)(pair_rand(&pair) % max);
		err = pair_send(A, A->lane_ep, n, len);
		if (err == 0) {
			n++;
			if (pair_rand(&pair) % 4)
				continue;
		} else {
			assert_int_equal(err, -EAGAIN);
		}
		pair_step(&pair, 1000);
	}
	assert_int_equal(n, count);
	assert_true(pair_run(&pair, max_ns, all_there));
	pair_run(&pair, 100000000, NULL);
	for (n = 0; n < count; n++) {
		if (B->seen[n] != 1)
			fail_msg("message %u came %u times", n, B->seen[n]);
	}
	assert_int_equal(B->bad, 0);
	assert_int_equal(A->lane_ep->queued, 0);
	free(B->seen);
	B->seen = NULL;
}

static unsigned int done_count;
static int done_status;

static inline void on_done(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	done_count++;
	done_status = status;
}

static inline bool comp_done(struct pair *p)
{
	(void)p;
	return done_count > 0;
}

static inline void nothing(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data,
			   size_t len)
{
	(void)e;
	(void)lane_ep;
	(void)data;
	(void)len;
}

#endif /* RAW_UTIL_H */
