/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by pulls of generic datatypes, and in pieces of every size.
 */

#include "mock/rndv_util.h"

struct walker {
	uint8_t *buf;
	size_t len;
	int started, finished, fail_at;
};

static void *start_pack(void *arg, const void *buffer, size_t count)
{
	struct walker *w = arg;

	(void)buffer;
	(void)count;
	w->started++;
	return w;
}

static void *start_unpack(void *arg, void *buffer, size_t count)
{
	return start_pack(arg, buffer, count);
}

static size_t packed_size(void *state)
{
	return ((struct walker *)state)->len;
}

static ssize_t pack(void *state, size_t offset, void *dst, size_t max)
{
	struct walker *w = state;

	if (w->fail_at && offset >= (size_t)w->fail_at)
		return -ENXIO;
	if (max > 333)
		max = 333;
	memcpy(dst, w->buf + offset, max);
	return (ssize_t)max;
}

static int unpack(void *state, size_t offset, const void *src, size_t length)
{
	struct walker *w = state;

	memcpy(w->buf + offset, src, length);
	return 0;
}

static void finish_walk(void *state)
{
	((struct walker *)state)->finished++;
}

static struct weft_generic_ops walk_ops = {
	.size = sizeof(walk_ops),
	.start_pack = start_pack,
	.start_unpack = start_unpack,
	.packed_size = packed_size,
	.pack = pack,
	.unpack = unpack,
	.finish = finish_walk,
};

/* @behaviour U22 */
static void U22_generic_types_at_both_ends_are_pulled(void **state)
{
	struct walker sw = {.buf = sbuf, .len = LEN}, rw = {.buf = rbuf, .len = LEN};
	struct weft_datatype st = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
					    .ops = &walk_ops, .arg = &sw);
	struct weft_datatype rt = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
					    .ops = &walk_ops, .arg = &rw);
	uint64_t seed = 5;
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, two);
	pattern_fill(3, 0, sbuf, LEN);
	memset(rbuf, 0, LEN);
	op_recv_dt(&r, &p.w[1], NULL, NULL, 0, 1, FULL, &rt);
	op_send_dt(&s, &p.ep[0], NULL, 0, 1, false, &st);
	pair_run_random(&p, &seed);
	finish(&p, &s, &r);
	assert_int_equal(sw.started, 1);
	assert_int_equal(sw.finished, 1);
	assert_int_equal(rw.finished, 1);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour U23 */
static void U23_a_pack_error_amid_pulls_ends_both_sides(void **state)
{
	struct walker sw = {.buf = sbuf, .len = LEN, .fail_at = LEN / 2};
	struct weft_datatype st = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
					    .ops = &walk_ops, .arg = &sw);
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, two);
	op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
	op_send_dt(&s, &p.ep[0], NULL, 0, 1, false, &st);
	pair_run(&p);
	op_end(&s, -ENXIO);
	op_end(&r, -ENXIO);
	assert_int_equal(sw.finished, 1);
	assert_int_equal(mw_of(&p, 1)->rndv->pulls.used, 0);
	assert_int_equal(p.ep[0].msg->rndv->num_pulls, 0);
	pair_close(&p);
}

static const struct pair_lane_params aligned[2] = {
	{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 1024, .align = 64},
	{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 1024, .align = 64},
};

/* @behaviour U36: every size from 1 to 64 KiB in pieces smaller than the message */
static void U36_every_size_from_1_to_64_KiB_in_small_pieces(void **state)
{
	struct op s, r;
	struct pair p;

	(void)state;
	pattern_fill(3, 0, sbuf, LEN);
	for (size_t len = 1024; len <= 65536; len += 1024) {
		uint64_t seed = len;

		pair_defaults(&p);
		p.conf.rndv_thresh = 1;
		p.conf.rndv_min_piece = 100;
		pair_open(&p, 2, len % 3 ? two : aligned);
		memset(rbuf, 0, LEN);
		op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
		op_send(&s, &p.ep[0], sbuf, len - len % 7, 1);
		pair_run_random(&p, &seed);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, len - len % 7, 1, 3);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(U22_generic_types_at_both_ends_are_pulled),
		cmocka_unit_test(U23_a_pack_error_amid_pulls_ends_both_sides),
		cmocka_unit_test(U36_every_size_from_1_to_64_KiB_in_small_pieces),
	};

	return cmocka_run_group_tests_name("rendezvous of datatypes", tests, NULL, NULL);
}
