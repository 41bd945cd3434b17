/* SPDX-License-Identifier: BSD-3-Clause */
/* The staged model: lines, pieces, the lower envelope against brute force. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/config.h"
#include "dispatch.h"
#include "mock/rounds.h"
#include "msg/msg.h"
#include "proto/proto.h"
#include "proto/select.h"
#include "unit/proto/dice.h"

/* ------------------------------------------------------------------ curves */

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-12 * fabs(want))
		fail_msg("%.17g instead of %.17g", got, want);
}

/* By hand: doc/thresholds.md, "Pieces". */
static void rounds_overlap_and_the_slowest_resource_sets_the_pace(void **state)
{
	struct weft_curve cv;

	(void)state;
	weft_curve_begin(&cv, 0, SIZE_MAX);
	cv.fragment = 1000;
	cv.round = 2000;
	weft_curve_once(&cv, WEFT_STAGE_LATENCY, (struct weft_linear){10, 0}, "way", NULL);
	weft_curve_once(&cv, WEFT_STAGE_SEND_REG, (struct weft_linear){1, 0.001}, "register", NULL);
	/*
	 * Sender 2 + 0.002 x per round: 0.003 s/B. Wire 8 per round: 0.004 s/B. Receiver 0.001 s/B.
	 */
	weft_curve_round(&cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){1, 0},
			 (struct weft_linear){2, 0}, "post", NULL);
	weft_curve_round(&cv, WEFT_STAGE_SEND_COPY, (struct weft_linear){0, 0.002},
			 (struct weft_linear){0, 0.002}, "copy", NULL);
	weft_curve_round(&cv, WEFT_STAGE_WIRE, (struct weft_linear){0, 0.008},
			 (struct weft_linear){8, 0}, "wire", NULL);
	weft_curve_round(&cv, WEFT_STAGE_RECV_COPY, (struct weft_linear){0, 0.001},
			 (struct weft_linear){0, 0.001}, "copy", NULL);
	weft_curve_end(&cv);
	assert_int_equal(cv.num_pieces, 3);
	near(weft_curve_at(&cv, 1000), 10 + 1 + 1 + 1 + 2 + 8 + 1);
	near(weft_curve_at(&cv, 1001), 10 + 1 + 1.001 + 2 + 2.002 + 8 + 1.001);
	near(weft_curve_at(&cv, 2000), 10 + 1 + 2 + 2 + 4 + 8 + 2);
	/* One more round: registration 2, wire 8. */
	near(weft_curve_at(&cv, 4000), 29 + 2 + 8);
	near(weft_curve_at(&cv, 2000000), 29 + 999 * 10.0);
	assert_int_equal(cv.pieces[2].pace, WEFT_STAGE_WIRE);
	assert_int_equal(cv.pieces[0].pace, WEFT_PACE_ONE);
	assert_int_equal(cv.pieces[1].pace, WEFT_PACE_FIRST);
}

static void the_terms_of_a_line_sum_up_to_it(void **state)
{
	const struct weft_proto_key key = {WEFT_OP_TAG_SEND, WEFT_BUF_CONTIG};
	struct weft_model m = {
		.lanes_up = 3,
		.conf = {.protos = weft_tables.protos,
			 .bcopy_bw = 5e9,
			 .perf_diff = 1,
			 .rndv_thresh = WEFT_CONF_AUTO,
			 .zcopy_thresh = WEFT_CONF_AUTO,
			 .multi_eager_limit = 65536,
			 .max_eager_lanes = 16,
			 .max_rndv_lanes = 16},
	};
	unsigned int checked = 0;
	struct weft_curve cv;

	(void)state;
	for (int i = 0; i < 2; i++)
		m.lanes[i] = (struct weft_model_lane){
			.bandwidth = 1e9 * (i + 1),
			.latency = 2e-6,
			.send_overhead = 1e-7,
			.recv_overhead = 2e-7,
			.reg_cost = 1e-6,
			.reg_growth = 1e-11,
			.max_short = 200,
			.max_bcopy = 1400,
			.max_get = 1u << 30,
			.domain = (uint32_t)i,
			.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_GET};
	for (const struct weft_proto *const *p = weft_tables.protos; *p; p++) {
		if (weft_proto_curve(&m, &key, *p, &cv) < 0) {
			assert_true(cv.why[0] != '\0');
			continue;
		}
		for (size_t x = cv.min; x <= 1400 && x <= cv.max && x <= cv.fragment; x += 7) {
			double sum = 0;

			for (unsigned int i = 0; i < cv.num_terms; i++)
				sum += weft_linear_at(cv.terms[i].round ? cv.terms[i].one
									: cv.terms[i].f,
						      (double)x);
			near(weft_curve_at(&cv, x), sum * cv.scale);
			checked++;
		}
	}
	assert_true(checked > 100);
}

/* ------------------------------------------------------------------ selection */

static struct weft_model one_lane(void)
{
	struct weft_model m = {
		.lanes_up = 1,
		.conf = {.protos = weft_tables.protos,
			 .bcopy_bw = 5e9,
			 .perf_diff = 1,
			 .rndv_thresh = WEFT_CONF_AUTO,
			 .zcopy_thresh = WEFT_CONF_INF,
			 .multi_eager_limit = 262144,
			 .max_eager_lanes = 16,
			 .max_rndv_lanes = 16},
	};

	m.lanes[0] = (struct weft_model_lane){.bandwidth = 1e9,
					      .latency = 2e-6,
					      .send_overhead = 1e-7,
					      .recv_overhead = 1e-7,
					      .max_short = 200,
					      .max_bcopy = 1400,
					      .features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY};
	return m;
}

/* From the first size at which a rendezvous is used it is used for all, up to SIZE_MAX. */
static size_t rndv_from(const struct weft_model *m)
{
	const struct weft_proto_key key = {WEFT_OP_TAG_SEND, WEFT_BUF_CONTIG};
	struct weft_proto_select sel;
	size_t from = SIZE_MAX, min = 0;

	assert_int_equal(weft_proto_choose(m, &key, &sel, NULL, 0), 0);
	assert_true(sel.ranges[sel.num - 1].max == SIZE_MAX);
	for (unsigned int i = 0; i < sel.num; i++) {
		bool rndv = sel.ranges[i].proto->flags & WEFT_PROTO_F_RNDV;

		if (from != SIZE_MAX)
			assert_true(rndv);
		else if (rndv)
			from = min;
		min = sel.ranges[i].max + 1;
	}
	return from;
}

/*
 * Two lanes of memory, 10 GB/s each, drivers copy, a CPU copies 20 GB/s, fragments of 1000 bytes of
 * data. By hand below.
 */
static void lanes_of_memory_share_the_cpus_and_have_no_wire(void **state)
{
	struct weft_model m = {
		.lanes_up = 3,
		.conf = {.protos = weft_tables.protos, .bcopy_bw = 20e9, .zcopy_thresh = SIZE_MAX}};
	struct weft_curve cv;
	double before;

	(void)state;
	for (int i = 0; i < 2; i++)
		m.lanes[i] = (struct weft_model_lane){
			.bandwidth = 10e9,
			.max_short = 1016,
			.max_bcopy = 1016,
			.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_COPIES |
				    WEFT_LANE_F_MEMORY,
			.domain = (uint32_t)i,
			.device = (uint32_t)i,
		};
	weft_curve_begin(&cv, 0, SIZE_MAX);
	cv.scale = 1;
	assert_int_equal(weft_cost_fragments(&cv, &m, 3, 16, WEFT_BUF_CONTIG), 0);
	weft_curve_end(&cv);
	assert_int_equal(cv.round, 2000);
	/*
	 * One fragment: packed 1/20, into the ring 1/20, out of it 1/10, to its place 1/20 ns per
	 * byte; 10 ns to pack.
	 */
	near(weft_curve_at(&cv, 1000), 10e-9 + 1000 * 0.25e-9);
	/*
	 * Later rounds: the receiver, 1/10 + 1/20 ns per byte, is slower than the sender, and two
	 * lanes are no faster.
	 */
	before = weft_curve_at(&cv, 10000);
	near(weft_curve_at(&cv, 20000) - before, 10000 * 0.15e-9);
	/*
	 * With wires of their own: packing and both copies of the drivers stay, the lanes work side
	 * by side.
	 */
	m.lanes[0].features = m.lanes[1].features &= ~WEFT_LANE_F_MEMORY;
	m.lanes[0].bandwidth = m.lanes[1].bandwidth = 1e9;
	weft_curve_begin(&cv, 0, SIZE_MAX);
	cv.scale = 1;
	assert_int_equal(weft_cost_fragments(&cv, &m, 3, 16, WEFT_BUF_CONTIG), 0);
	weft_curve_end(&cv);
	near(weft_curve_at(&cv, 1000), 10e-9 + 1000 * (0.2e-9 + 1e-9));
	before = weft_curve_at(&cv, 10000);
	near(weft_curve_at(&cv, 20000) - before, 10000 / 2e9);
}

/*
 * @behaviour U53: short sends end where a rendezvous or zero-copy threshold begins
 * @behaviour U54: a rendezvous threshold set by hand (0, N, inf) is exact (there is no intra/inter:
 * hosts are not distinguished)
 */
static void thresholds_set_by_hand_are_exact(void **state)
{
	static const size_t values[] = {1, 2, 200, 1388, 1389, 5000, 262144, 262145, 1u << 30};
	struct weft_model m = one_lane();

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		m.conf.rndv_thresh = values[i];
		assert_true(rndv_from(&m) == values[i]);
	}
	/* Empty messages have nothing to ask for. */
	m.conf.rndv_thresh = 0;
	assert_int_equal(rndv_from(&m), 1);
	m.conf.rndv_thresh = WEFT_CONF_INF;
	assert_true(rndv_from(&m) == SIZE_MAX);
	/* Without multi-eager no other protocol carries what does not fit a fragment. */
	m.conf.multi_eager_limit = 0;
	assert_int_equal(rndv_from(&m), 1389);
	m.conf.rndv_thresh = WEFT_CONF_AUTO;
	assert_int_equal(rndv_from(&m), 1389);
	m.conf.multi_eager_limit = 4096;
	assert_int_equal(rndv_from(&m), 4096);
}

/* The first size at which the lane sends straight from user memory, below rendezvous. */
static size_t zcopy_from(const struct weft_model *m, weft_buf buf)
{
	const struct weft_proto_key key = {WEFT_OP_TAG_SEND, buf};
	struct weft_proto_select sel;
	size_t min = 0;

	assert_int_equal(weft_proto_choose(m, &key, &sel, NULL, 0), 0);
	for (unsigned int i = 0; i < sel.num; i++) {
		if (strstr(sel.ranges[i].proto->name, "zcopy"))
			return min;
		min = sel.ranges[i].max + 1;
	}
	return SIZE_MAX;
}

/*
 * @behaviour U55: a zero-copy threshold is exact, too; settings that leave no protocol enable the
 * others again
 * @behaviour U53
 */
static void U55_a_zero_copy_threshold_set_by_hand_is_exact(void **state)
{
	static const size_t values[] = {1, 2, 199, 201, 700, 1387, 1388};
	struct weft_model m = one_lane();

	(void)state;
	m.lanes[0].features |= WEFT_LANE_F_ZCOPY;
	m.lanes[0].max_zcopy = 1400;
	m.lanes[0].max_zcopy_hdr = 64;
	m.lanes[0].max_iov = 4;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		m.conf.zcopy_thresh = values[i];
		assert_int_equal(zcopy_from(&m, WEFT_BUF_CONTIG), values[i]);
		/* What zero copy cannot do keeps its copies: there is a protocol for every size. */
		assert_true(zcopy_from(&m, WEFT_BUF_GENERIC) == SIZE_MAX);
	}
	m.conf.zcopy_thresh = WEFT_CONF_INF;
	assert_true(zcopy_from(&m, WEFT_BUF_CONTIG) == SIZE_MAX);
}

/* However fast a CPU copies within its cache: pages are not copied where they need not be. */
/*
 * @behaviour T36: the zero-copy threshold depends on the machine: on hosts with fast copies it
 * begins at a page
 */
static void zero_copy_begins_at_a_page_on_cpus_that_copy_fast(void **state)
{
	struct weft_model m = one_lane();

	(void)state;
	m.lanes[0].features |= WEFT_LANE_F_ZCOPY;
	m.lanes[0].max_bcopy = m.lanes[0].max_zcopy = 9000;
	m.lanes[0].max_zcopy_hdr = 64;
	m.lanes[0].max_iov = 4;
	m.conf.zcopy_thresh = WEFT_CONF_AUTO;
	m.conf.bcopy_bw = 8e9;
	assert_int_equal(weft_cost_zcopy_from(&m), 2000);
	m.conf.bcopy_bw = 40e9;
	assert_int_equal(weft_cost_zcopy_from(&m), 4096);
}

static void a_fragment_from_user_memory_may_be_longer_than_a_copied_one(void **state)
{
	struct weft_model m = {
		.lanes_up = 3,
		.conf = {.protos = weft_tables.protos, .bcopy_bw = 20e9, .zcopy_thresh = 2000}};
	struct weft_curve cv;

	(void)state;
	for (int i = 0; i < 2; i++)
		m.lanes[i] = (struct weft_model_lane){
			.bandwidth = 10e9,
			.max_zcopy = 9016,
			.max_zcopy_hdr = 64,
			.max_iov = 4,
			.features = WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY,
			.domain = (uint32_t)i,
			.device = (uint32_t)i,
		};
	for (unsigned int i = 0; i < 2; i++) {
		m.lanes[0].max_bcopy = m.lanes[1].max_bcopy = i ? 1016 : 0;
		weft_curve_begin(&cv, 0, SIZE_MAX);
		cv.scale = 1;
		assert_int_equal(weft_cost_fragments(&cv, &m, 3, 16, WEFT_BUF_CONTIG), 0);
		weft_curve_end(&cv);
		assert_int_equal(cv.round, 18000);
		assert_int_equal(cv.fragment, 9000);
		/* One lane's wire carries it, at 0.1 ns per byte. */
		near(weft_curve_at(&cv, 9000) - weft_curve_at(&cv, 1000), 8000 * 0.15e-9);
	}
	m.conf.zcopy_thresh = SIZE_MAX;
	weft_curve_begin(&cv, 0, SIZE_MAX);
	cv.scale = 1;
	assert_int_equal(weft_cost_fragments(&cv, &m, 3, 16, WEFT_BUF_CONTIG), 0);
	assert_int_equal(cv.fragment, 1000);
}

static void an_operation_without_lanes_reports_what_is_missing(void **state)
{
	const struct weft_proto_key key = {WEFT_OP_TAG_SEND, WEFT_BUF_CONTIG};
	struct weft_model m = one_lane();
	struct weft_proto_select sel;
	char why[320] = "";

	(void)state;
	m.lanes[0].max_short = m.lanes[0].max_bcopy = 0;
	assert_int_equal(weft_proto_choose(&m, &key, &sel, why, sizeof(why)), -EHOSTUNREACH);
	assert_non_null(strstr(why, "lane 0 carries no active messages"));
	assert_null(weft_proto_lookup(&sel, 100));
	m.lanes_up = 0;
	assert_int_equal(weft_proto_choose(&m, &key, &sel, why, sizeof(why)), -EHOSTUNREACH);
	assert_non_null(strstr(why, "there is no lane"));
	/* Only the smallest: a lane too small for anything but an envelope. */
	m = one_lane();
	m.lanes[0].max_short = m.lanes[0].max_bcopy = sizeof(struct weft_wire_eager);
	assert_int_equal(weft_proto_choose(&m, &key, &sel, why, sizeof(why)), -EHOSTUNREACH);
	assert_non_null(strstr(why, "no protocol for 1 bytes"));
}

/* @behaviour U55 */
static void every_size_and_buffer_has_a_protocol(void **state)
{
	struct weft_proto_select sel;
	struct weft_model m;

	(void)state;
	seed();
	for (unsigned int round = 0; round < test_rounds(2000); round++) {
		unsigned int num = 1 + (unsigned int)rnd(16);

		m = one_lane();
		m.conf.rndv_thresh = rnd(3) == 0 ? WEFT_CONF_AUTO
				     : rnd(2)    ? WEFT_CONF_MODEL
						 : (size_t)exp_between(1, 1e9);
		m.conf.zcopy_thresh = rnd(2) ? WEFT_CONF_AUTO : rnd(100000);
		m.conf.multi_eager_limit = rnd(4) ? (size_t)exp_between(1, 1e9) : 0;
		m.conf.max_eager_lanes = 1 + (unsigned int)rnd(16);
		m.conf.max_rndv_lanes = 1 + (unsigned int)rnd(16);
		m.conf.rndv_scheme = (uint32_t)rnd(4);
		m.lanes_up = (1u << num) - 1;
		m.am_lane = (uint32_t)rnd(num);
		for (unsigned int i = 0; i < num; i++) {
			m.lanes[i] =
				(struct weft_model_lane){.bandwidth = exp_between(1e8, 1e11),
							 .latency = exp_between(1e-7, 1e-3),
							 .send_overhead = exp_between(1e-8, 1e-6),
							 .recv_overhead = exp_between(1e-8, 1e-6),
							 .max_short = rnd(3) ? 64 + rnd(2000) : 0,
							 .max_bcopy = 64 + rnd(70000),
							 .max_zcopy = rnd(100000),
							 .max_zcopy_hdr = rnd(128),
							 .max_iov = 1 + (unsigned int)rnd(40),
							 .max_get = 1u << 30,
							 .max_put = 1u << 30,
							 .features = rnd(512),
							 .domain = (uint32_t)rnd(num)};
		}
		for (weft_buf buf = 0; buf < WEFT_NUM_BUFS; buf++) {
			for (int op = 0; op < 2; op++) {
				struct weft_proto_key key = {(enum weft_op)op, buf};
				char why[320] = "";

				if (weft_proto_choose(&m, &key, &sel, why, sizeof(why)) < 0)
					fail_msg("round %u, buffer %u: %s", round, buf, why);
				for (unsigned int i = 0; i < sel.num; i++)
					assert_true(sel.ranges[i].proto && sel.ranges[i].lanes);
				assert_true(sel.ranges[sel.num - 1].max == SIZE_MAX);
			}
		}
	}
}

static void equal_lanes_share_one_configuration(void **state)
{
	struct weft_ep_configs list = LIST_HEAD_INITIALIZER(list);
	struct weft_model m = one_lane();
	struct weft_ep_config *a = weft_ep_config_get(&list, &m), *b, *c;

	(void)state;
	b = weft_ep_config_get(&list, &m);
	assert_ptr_equal(a, b);
	m.lanes[0].bandwidth *= 2;
	c = weft_ep_config_get(&list, &m);
	assert_ptr_not_equal(a, c);
	/* Contiguous memory is there without asking, the others on first use. */
	assert_int_not_equal(a->select[WEFT_OP_TAG_SEND][WEFT_BUF_CONTIG].num, 0);
	assert_int_equal(a->select[WEFT_OP_TAG_SEND][WEFT_BUF_GENERIC].num, 0);
	assert_int_not_equal(weft_ep_config_select(a, WEFT_OP_TAG_SEND, WEFT_BUF_GENERIC)->num, 0);
	weft_ep_config_put(a);
	weft_ep_config_put(b);
	weft_ep_config_put(c);
	assert_true(LIST_EMPTY(&list));
}

static void buffer_types_do_not_collide(void **state)
{
	(void)state;
	assert_int_equal(weft_buf_make(WEFT_DT_CONTIG, 0, false), 0);
	assert_int_equal(weft_buf_make(WEFT_DT_CONTIG, 0, true), 1);
	assert_int_equal(weft_buf_make(WEFT_DT_IOV, 4, false), WEFT_BUF_IOV_FEW);
	assert_int_equal(weft_buf_make(WEFT_DT_IOV, 5, false), WEFT_BUF_IOV_SOME);
	assert_int_equal(weft_buf_make(WEFT_DT_IOV, 33, true), WEFT_BUF_IOV_MANY + 1);
	assert_int_equal(weft_buf_make(WEFT_DT_GENERIC, 0, false), WEFT_BUF_GENERIC);
	for (weft_buf b = 0; b < WEFT_NUM_BUFS; b++)
		assert_int_equal(weft_buf_make(weft_buf_class(b),
					       weft_buf_class(b) == WEFT_DT_IOV ? weft_buf_iovs(b)
										: 0,
					       b & WEFT_BUF_REG),
				 b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_overlap_and_the_slowest_resource_sets_the_pace),
		cmocka_unit_test(the_terms_of_a_line_sum_up_to_it),
		cmocka_unit_test(lanes_of_memory_share_the_cpus_and_have_no_wire),
		cmocka_unit_test(thresholds_set_by_hand_are_exact),
		cmocka_unit_test(U55_a_zero_copy_threshold_set_by_hand_is_exact),
		cmocka_unit_test(zero_copy_begins_at_a_page_on_cpus_that_copy_fast),
		cmocka_unit_test(a_fragment_from_user_memory_may_be_longer_than_a_copied_one),
		cmocka_unit_test(an_operation_without_lanes_reports_what_is_missing),
		cmocka_unit_test(every_size_and_buffer_has_a_protocol),
		cmocka_unit_test(equal_lanes_share_one_configuration),
		cmocka_unit_test(buffer_types_do_not_collide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
