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
#include "proto/cost.h"
#include "msg/msg.h"
#include "proto/select.h"
#include "mock/rounds.h"

static uint64_t rng;

static uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 11) % n;
}

static void seed(void)
{
	const char *s = getenv("WEFT_TEST_SEED");

	rng = s ? strtoull(s, NULL, 0) : 20261121;
	print_message("# WEFT_TEST_SEED=%llu\n", (unsigned long long)rng);
}

/* ------------------------------------------------------------------ envelope */

#define MAX_LINES 24
#define MAX_OUT 256

/* The rule in words: the lowest rank that is valid, of it the least time, of these the first. */
static int brute(const struct weft_env_line *l, unsigned int n, size_t x)
{
	int best = -1;

	for (unsigned int i = 0; i < n; i++) {
		double t, b;

		if (x < l[i].min || x > l[i].max)
			continue;
		if (best < 0 || l[i].rank < l[best].rank) {
			best = (int)i;
			continue;
		}
		t = weft_linear_at(l[i].f, (double)x);
		b = weft_linear_at(l[best].f, (double)x);
		if (l[i].rank == l[best].rank && t < b)
			best = (int)i;
	}
	return best;
}

static int found(const struct weft_env_range *out, int n, size_t x)
{
	for (int i = 0; i < n; i++)
		if (x <= out[i].max)
			return out[i].line;
	fail_msg("no range for %zu", x);
	return -1;
}

static int same_id(const struct weft_env_line *l, int a, int b)
{
	return a == b || (a >= 0 && b >= 0 && l[a].id == l[b].id);
}

static void check_shape(const struct weft_env_line *l, const struct weft_env_range *out, int n)
{
	assert_true(n >= 1);
	assert_true(out[n - 1].max == SIZE_MAX);
	for (int i = 1; i < n; i++) {
		assert_true(out[i].max > out[i - 1].max);
		assert_false(same_id(l, out[i].line, out[i - 1].line));
	}
}

/* Small whole numbers: doubles are exact, so every single size must agree. */
static void envelope_of_exact_lines_equals_brute_force(void **state)
{
	struct weft_env_line l[MAX_LINES];
	struct weft_env_range out[MAX_OUT];

	(void)state;
	seed();
	for (unsigned int round = 0; round < test_rounds(4000); round++) {
		unsigned int num = 1 + (unsigned int)rnd(12);
		int n;

		for (unsigned int i = 0; i < num; i++) {
			size_t a = rnd(600), b = rnd(600);

			l[i] = (struct weft_env_line){
				.min = rnd(3) ? 0 : a,
				.max = rnd(3) ? SIZE_MAX : a + b,
				.f = {(double)rnd(400), (double)rnd(20)},
				.rank = (unsigned int)rnd(2),
				.id = i,
			};
			if (rnd(20) == 0)
				l[i].min = l[i].max - 1; /* almost nothing */
		}
		n = weft_envelope(l, num, out, MAX_OUT);
		check_shape(l, out, n);
		for (size_t x = 0; x < 1400; x++)
			if (found(out, n, x) != brute(l, num, x))
				fail_msg("round %u: line %d instead of %d at %zu", round,
					 found(out, n, x), brute(l, num, x), x);
		for (int k = 20; k < 64; k++) /* sizes that products of doubles hold exactly */
			assert_int_equal(found(out, n, SIZE_MAX >> k),
					 brute(l, num, SIZE_MAX >> k));
	}
}

static double exp_between(double lo, double hi)
{
	return lo * pow(hi / lo, (double)rnd(1000000) / 1e6);
}

/*
 * Real magnitudes over the whole range: around every change, and at random sizes, nobody is faster.
 */
static void envelope_of_real_lines_is_the_fastest_everywhere(void **state)
{
	struct weft_env_line l[MAX_LINES];
	struct weft_env_range out[MAX_OUT];

	(void)state;
	seed();
	for (unsigned int round = 0; round < test_rounds(5000); round++) {
		unsigned int num = 1 + (unsigned int)rnd(MAX_LINES);
		int n;

		for (unsigned int i = 0; i < num; i++) {
			size_t a = (size_t)exp_between(1, 1e9);

			l[i] = (struct weft_env_line){
				.min = rnd(4) ? 0 : a,
				.max = rnd(4) ? SIZE_MAX : a + (size_t)exp_between(1, 1e12),
				.f = {exp_between(1e-8, 1e-3), exp_between(1e-12, 1e-8)},
				.rank = rnd(5) == 0,
				.id = i,
			};
		}
		n = weft_envelope(l, num, out, MAX_OUT);
		check_shape(l, out, n);
		for (int i = 0; i < n; i++) {
			for (int d = -3; d <= 3; d++) {
				size_t x = out[i].max + (size_t)d;

				if ((d > 0 && out[i].max > SIZE_MAX - 3) ||
				    (d < 0 && out[i].max < 3))
					continue;
				/*
				 * Near a crossing rounding may call a tie either way: compare
				 * times.
				 */
				int f = found(out, n, x), b = brute(l, num, x);

				if (f == b)
					continue;
				assert_true(f >= 0 && b >= 0);
				assert_int_equal(l[f].rank, l[b].rank);
				assert_true(weft_linear_at(l[f].f, (double)x) <=
					    weft_linear_at(l[b].f, (double)x) * (1 + 1e-12));
			}
		}
		for (int k = 0; k < 50; k++) {
			size_t x = (size_t)exp_between(1, 1e18);

			assert_int_equal(found(out, n, x), brute(l, num, x));
		}
	}
}

static void equal_lines_go_to_the_first(void **state)
{
	const struct weft_env_line l[] = {
		{0, SIZE_MAX, {5, 1}, 0, 1},
		{0, SIZE_MAX, {5, 1}, 0, 2},
		{0, SIZE_MAX, {0, 2}, 0, 3}, /* equal at 5 */
	};
	struct weft_env_range out[4];

	(void)state;
	assert_int_equal(weft_envelope(l, 3, out, 4), 2);
	assert_int_equal(out[0].line, 2);
	assert_int_equal(out[0].max, 4); /* at 5 both take 10: the first */
	assert_int_equal(out[1].line, 0);
}

static void sizes_without_a_line_are_said(void **state)
{
	const struct weft_env_line l[] = {{10, 20, {1, 1}, 0, 1}, {30, SIZE_MAX, {1, 1}, 0, 2}};
	struct weft_env_range out[8];

	(void)state;
	assert_int_equal(weft_envelope(l, 2, out, 8), 4);
	assert_int_equal(out[0].line, -1);
	assert_int_equal(out[0].max, 9);
	assert_int_equal(out[2].line, -1);
	assert_int_equal(out[2].max, 29);
	assert_int_equal(weft_envelope(l, 2, out, 3), -ENOSPC);
	assert_int_equal(weft_envelope(l, 0, out, 3), 1);
	assert_int_equal(out[0].line, -1);
	assert_true(out[0].max == SIZE_MAX);
}

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
			 .rndv_fallback = SIZE_MAX,
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
			 .rndv_fallback = SIZE_MAX,
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
	/* Without multi-eager nobody else carries what does not fit a fragment. */
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

static void an_operation_without_lanes_says_what_is_missing(void **state)
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
		cmocka_unit_test(envelope_of_exact_lines_equals_brute_force),
		cmocka_unit_test(envelope_of_real_lines_is_the_fastest_everywhere),
		cmocka_unit_test(equal_lines_go_to_the_first),
		cmocka_unit_test(sizes_without_a_line_are_said),
		cmocka_unit_test(rounds_overlap_and_the_slowest_resource_sets_the_pace),
		cmocka_unit_test(the_terms_of_a_line_sum_up_to_it),
		cmocka_unit_test(lanes_of_memory_share_the_cpus_and_have_no_wire),
		cmocka_unit_test(thresholds_set_by_hand_are_exact),
		cmocka_unit_test(U55_a_zero_copy_threshold_set_by_hand_is_exact),
		cmocka_unit_test(zero_copy_begins_at_a_page_on_cpus_that_copy_fast),
		cmocka_unit_test(an_operation_without_lanes_says_what_is_missing),
		cmocka_unit_test(every_size_and_buffer_has_a_protocol),
		cmocka_unit_test(equal_lanes_share_one_configuration),
		cmocka_unit_test(buffer_types_do_not_collide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
