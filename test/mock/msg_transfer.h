/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/msg_transfer.h
 * One message of given size, and the one behind it, over one to four lanes that differ.
 */
#ifndef MSG_TRANSFER_H
#define MSG_TRANSFER_H

#include "mock/msg_util.h"

static const struct pair_lane_params four_lanes[4] = {
	{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 4096, .max_iov = 4},
	{.max_short = 128, .max_bcopy = 2048, .latency = 2e-6, .align = 64},
	{.max_short = 256,
	 .max_bcopy = 777,
	 .max_zcopy = 1500,
	 .bandwidth = 5e9,
	 .zcopy_reg = true},
	{.max_bcopy = 512, .max_zcopy = 900},
};

/* Sizes at which something changes, for any of the lanes and the settings of pair_defaults(). */
__attribute__((unused)) static const size_t edges[] = {1,    64,   116,  244,  256,  512,  1004,
						       1012, 1024, 2048, 4060, 4084, 8192, 12288};

struct transfer {
	size_t len, room;
	unsigned int lanes;
	bool sync, late, rndv; /* rndv: at every size */
	uint64_t seed;
	size_t offset; /* of the buffers, besides 1 */
};

static inline void transfer(const struct transfer *t, const struct weft_datatype *stype,
			    const void *sbuf, size_t scount, const struct weft_datatype *rtype,
			    void *rbuf, size_t rcount)
{
	uint64_t seed = t->seed + 1;
	struct op s, r, s2, r2;
	struct pair p;
	int next = 4711, got = 0;

	pair_defaults(&p);
	if (t->rndv)
		p.conf.rndv_thresh = 1;
	pair_open(&p, t->lanes, four_lanes);
	if (!t->late) {
		op_recv_dt(&r, &p.w[1], NULL, rbuf, rcount, 6, FULL, rtype);
		op_recv(&r2, &p.w[1], &got, sizeof(got), 6, FULL);
	}
	op_send_dt(&s, &p.ep[0], sbuf, scount, 6, t->sync, stype);
	op_send(&s2, &p.ep[0], &next, sizeof(next), 6);
	pair_run_random(&p, &seed);
	if (t->late) {
		if (t->sync)
			assert_false(op_done(&s)); /* C2, U14: not before the match */
		op_recv_dt(&r, &p.w[1], NULL, rbuf, rcount, 6, FULL, rtype);
		op_recv(&r2, &p.w[1], &got, sizeof(got), 6, FULL);
	}
	pair_run_random(&p, &seed);
	op_end(&s, 0);
	assert_int_equal(s.rc == -ENOENT, 1);
	op_end(&r, t->len > t->room ? -EMSGSIZE : 0);
	assert_int_equal(r.c.length, t->len);
	assert_int_equal(r.c.tag, 6);
	/* The next message is not affected. */
	op_end(&s2, 0);
	op_end(&r2, 0);
	assert_int_equal(got, 4711);
	pair_check_empty(&p);
	pair_close(&p);
}

#endif /* MSG_TRANSFER_H */
