/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/rndv_util.h
 * A message of LEN bytes by pulls over one or two lanes of a pair.
 */
#ifndef RNDV_UTIL_H
#define RNDV_UTIL_H

#include "mock/msg_util.h"

#define LEN 100000

static const struct pair_lane_params two[2] = {
	{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 1024},
	{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 1024},
};

static uint8_t sbuf[LEN], rbuf[LEN];

static inline struct weft_msg_worker *mw_of(struct pair *p, int side)
{
	return p->w[side].msg;
}

/* As if the peer of side @to had sent it. */
static inline void push(struct pair *p, int to, uint8_t id, const void *data, size_t length)
{
	uint8_t *copy = malloc(length);

	memcpy(copy, data, length);
	pair_receive(p, (unsigned int)to, 0, id, copy, length);
	free(copy);
}

static inline void begin(struct pair *p, struct op *s, struct op *r, unsigned int lanes,
			 bool expected)
{
	pair_defaults(p);
	pair_open(p, lanes, two);
	pattern_fill(3, 0, sbuf, LEN);
	memset(rbuf, 0, LEN);
	if (expected)
		op_recv(r, &p->w[1], rbuf, LEN, 1, FULL);
	op_send(s, &p->ep[0], sbuf, LEN, 1);
}

static inline void finish(struct pair *p, struct op *s, struct op *r)
{
	pair_run(p);
	op_end(s, 0);
	op_end_recv(r, rbuf, LEN, 1, 3);
	assert_int_equal(mw_of(p, 1)->rndv->pulls.used, 0);
	assert_int_equal(p->ep[0].msg->rndv->num_pulls, 0);
}

#endif /* RNDV_UTIL_H */
