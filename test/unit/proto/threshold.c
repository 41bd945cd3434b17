/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The closed form of doc/thresholds.md: vectors worked out by hand, every rule, and against the
 * engine.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "core/config.h"
#include "proto/select.h"

/* Relative: to 12 digits. */
static void near(double got, double want)
{
	if (fabs(got - want) > 1e-12 * fabs(want) + 1e-30)
		fail_msg("%.17g instead of %.17g", got, want);
}

/* Two lanes of a 100G RoCE card for rendezvous, one of them for eager; round numbers. */
static struct weft_thresh_in example(void)
{
	return (struct weft_thresh_in){
		.eager = {.bandwidth = 10e9,
			  .latency = 1e-6,
			  .overhead = 100e-9,
			  .reg_cost = 1e-6,
			  .reg_growth = 0.05e-9},
		.rndv = {.bandwidth = 20e9,
			 .latency = 1e-6,
			 .overhead = 200e-9,
			 .reg_cost = 1e-6,
			 .reg_growth = 0.01e-9},
		.rma = true,
		.bcopy_bw = 5e9,
		.perf_diff = 0,
		.cap = SIZE_MAX,
	};
}

static void a_crossing_by_remote_access(void **state)
{
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	/*
	 * num = 2*1 + 4*1 + 3*0.2 - 1 - 0.1 = 5.5 us
	 * den = 0.05 + 1/5 - 2*0.01 - 1/20  = 0.18 ns/B
	 * 5500 / 0.18 = 30555.5...
	 */
	weft_threshold(&in, &t);
	near(t.num, 5.5e-6);
	near(t.den, 0.18e-9);
	assert_true(t.has_quotient);
	near(t.quotient, 5500 / 0.18);
	assert_int_equal(t.bytes, 30556);
	assert_int_equal(t.rule, WEFT_THRESH_CROSSING);
}

static void a_crossing_by_active_messages(void **state)
{
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	in.rma = false;
	in.bcopy_bw = 8e9;
	/*
	 * Both ends copy at 8 GB/s, one registers:
	 * num = 1 + 4 + 0.6 - 1 - 0.1 = 4.5 us
	 * den = 0.05 + 1/8 - 0.01 - 1/8 = 0.04 ns/B
	 */
	weft_threshold(&in, &t);
	near(t.num, 4.5e-6);
	near(t.den, 0.04e-9);
	near(t.quotient, 112500);
	assert_in_range(t.bytes, 112500, 112501);
	assert_int_equal(t.rule, WEFT_THRESH_CROSSING);
}

/* @behaviour U57: PERF_DIFF moves the threshold by the predicted amount */
static void the_bias_favours_rendezvous_in_both_shapes(void **state)
{
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	in.perf_diff = 1;
	/* d = 0.99: num = 0.99*6.6 - 1.1 = 5.434 us; den = 0.25 - 0.99*0.07 = 0.1807 ns/B */
	weft_threshold(&in, &t);
	near(t.num, 5.434e-6);
	near(t.den, 0.1807e-9);
	assert_int_equal(t.bytes, 30072); /* 30071.9... */
	in.rma = false;
	/* num = 0.99*5.6 - 1.1 = 4.444 us; den = 0.25 - 0.99*0.21 = 0.0421 ns/B */
	weft_threshold(&in, &t);
	near(t.num, 4.444e-6);
	near(t.den, 0.0421e-9);
	assert_int_equal(t.bytes, 105559); /* 105558.19... */
}

static void rendezvous_that_is_always_cheaper(void **state)
{
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	in.eager.reg_cost = 20e-6;
	weft_threshold(&in, &t); /* num = 6.6 - 20.1 = -13.5 us, den > 0 */
	near(t.num, -13.5e-6);
	assert_int_equal(t.rule, WEFT_THRESH_ALWAYS);
	assert_int_equal(t.bytes, 0);
	/* Parallel lines, rendezvous below: num < 0, den = 0. */
	in.rma = false;
	in.rndv.reg_growth = in.eager.reg_growth;
	weft_threshold(&in, &t);
	assert_true(t.den == 0);
	assert_false(t.has_quotient);
	assert_int_equal(t.rule, WEFT_THRESH_ALWAYS);
	/* The cap is no floor. */
	in.cap = 4096;
	weft_threshold(&in, &t);
	assert_int_equal(t.rule, WEFT_THRESH_ALWAYS);
	assert_int_equal(t.bytes, 0);
}

static void lines_that_never_meet_take_the_fallback(void **state)
{
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	/* Parallel, rendezvous above: num > 0, |den| < 1e-18. */
	in.rma = false;
	in.rndv.reg_growth = in.eager.reg_growth + 5e-19;
	weft_threshold(&in, &t);
	assert_true(t.den == 0);
	assert_false(t.has_quotient);
	assert_int_equal(t.rule, WEFT_THRESH_FALLBACK);
	assert_true(t.bytes == SIZE_MAX);
	/* One is just enough to count. */
	in.rndv.reg_growth = in.eager.reg_growth - 2e-18;
	weft_threshold(&in, &t);
	assert_int_equal(t.rule, WEFT_THRESH_CROSSING);
	/* They diverge: num > 0, den < 0. */
	in.rndv.reg_growth = 1e-9;
	weft_threshold(&in, &t);
	assert_true(t.has_quotient);
	assert_true(t.quotient < 0);
	assert_int_equal(t.rule, WEFT_THRESH_FALLBACK);
	assert_true(t.bytes == SIZE_MAX);
	/* Rendezvous wins only below: num <= 0, den < 0. */
	in.eager.reg_cost = 20e-6;
	weft_threshold(&in, &t);
	assert_true(t.num < 0 && t.den < 0 && t.quotient > 0);
	assert_int_equal(t.rule, WEFT_THRESH_FALLBACK);
	assert_true(t.bytes == SIZE_MAX);
}

static void the_cap_comes_last(void **state)
{
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	in.cap = 30556;
	weft_threshold(&in, &t);
	assert_int_equal(t.rule, WEFT_THRESH_CROSSING);
	assert_int_equal(t.bytes, 30556);
	in.cap = 30555;
	weft_threshold(&in, &t);
	assert_int_equal(t.rule, WEFT_THRESH_CAPPED);
	assert_int_equal(t.bytes, 30555);
	near(t.quotient, 5500 / 0.18);
	/* A fallback is capped as well. */
	in.rndv.reg_growth = 1e-9;
	in.cap = 262144;
	weft_threshold(&in, &t);
	assert_int_equal(t.rule, WEFT_THRESH_CAPPED);
	assert_int_equal(t.bytes, 262144);
}

/* @behaviour U54 */
static void a_fixed_threshold_is_taken_as_it_is(void **state)
{
	static const size_t values[] = {0, 1, 30555, 1u << 20, SIZE_MAX};
	struct weft_thresh_in in = example();
	struct weft_thresh t;

	(void)state;
	in.has_fixed = true;
	in.cap = 262144;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		in.fixed = values[i];
		weft_threshold(&in, &t);
		assert_int_equal(t.rule, WEFT_THRESH_FIXED);
		assert_true(t.bytes == values[i]);
		near(t.quotient, 5500 / 0.18);
	}
}

/* ------------------------------------------------------------------ sets of lanes */

static struct weft_model_lane lane(double bw, double lat, double over, double reg, double growth,
				   uint32_t domain)
{
	return (struct weft_model_lane){
		.bandwidth = bw,
		.latency = lat,
		.send_overhead = over,
		.recv_overhead = over,
		.reg_cost = reg,
		.reg_growth = growth,
		.max_bcopy = 8192,
		.domain = domain,
	};
}

static void lanes_are_summed_and_each_domain_counts_once(void **state)
{
	struct weft_model m = {.lanes_up = 7};
	struct weft_lanes_sum s;

	(void)state;
	m.lanes[0] = lane(10e9, 1e-6, 100e-9, 16e-6, 0.06e-9, 0);
	m.lanes[1] = lane(10e9, 2e-6, 100e-9, 99e-6, 0.99e-9, 0); /* same domain: not counted */
	m.lanes[2] = lane(3e9, 5e-6, 50e-9, 1e-6, 0.01e-9, 2);
	weft_lanes_sum(&m, 7, &s);
	assert_int_equal(s.num, 3);
	near(s.bandwidth, 23e9);
	near(s.latency, 5e-6);
	near(s.send_overhead, 250e-9);
	near(s.reg_cost, 17e-6);
	near(s.reg_growth, 0.07e-9);
	/* Its first lane counts: of lanes 1 and 2 the domain's first is lane 1. */
	weft_lanes_sum(&m, 6, &s);
	near(s.reg_cost, 100e-6);
	near(s.latency, 5e-6);
}

static void eager_and_rendezvous_may_have_different_lanes(void **state)
{
	struct weft_model m = {
		.lanes_up = 3,
		.conf = {.bcopy_bw = 1e12,
			 .perf_diff = 0,
			 .rndv_thresh = WEFT_CONF_AUTO,
			 .multi_eager_limit = SIZE_MAX},
	};
	struct weft_thresh t;

	(void)state;
	m.lanes[0] = lane(1e9, 1e-6, 0, 0, 0, 0);
	m.lanes[1] = lane(1e9, 1e-6, 0, 0, 0, 1);
	/* One eager, two rendezvous lanes: 4 us / (1 - 0.5 ns/B) = 8000. */
	weft_threshold_of(&m, 1, 3, true, 8000, &t);
	near(t.quotient, 8000);
	assert_in_range(t.bytes, 8000, 8001);
	/* The same lanes for both: parallel. */
	weft_threshold_of(&m, 3, 3, true, 8000, &t);
	assert_int_equal(t.rule, WEFT_THRESH_FALLBACK);
	/* Two eager, one rendezvous: it only gets worse. */
	weft_threshold_of(&m, 3, 1, true, 8000, &t);
	assert_int_equal(t.rule, WEFT_THRESH_FALLBACK);
	/* No multi-eager: the cap is one fragment. */
	m.conf.multi_eager_limit = 0;
	weft_threshold_of(&m, 3, 1, true, 7000, &t);
	assert_int_equal(t.rule, WEFT_THRESH_CAPPED);
	assert_int_equal(t.bytes, 7001);
}

/* ------------------------------------------------------------------ the engine agrees */

static uint64_t seed;

static double uniform(double lo, double hi)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return lo + (hi - lo) * (double)(seed >> 11) / 9007199254740992.0;
}

/* Log-uniform, and 0 with some probability. */
static double spread(double lo, double hi, double zero)
{
	return uniform(0, 1) < zero ? 0 : exp(uniform(log(lo), log(hi)));
}

static void random_model(struct weft_model *m, unsigned int num)
{
	*m = (struct weft_model){
		.lanes_up = (1u << num) - 1,
		.conf = {.bcopy_bw = spread(1e9, 50e9, 0),
			 .perf_diff = spread(0.1, 50, 0.3),
			 .rndv_thresh = WEFT_CONF_AUTO,
			 .multi_eager_limit = SIZE_MAX},
	};
	for (unsigned int i = 0; i < num; i++)
		m->lanes[i] = lane(spread(1e8, 5e10, 0), spread(1e-7, 1e-4, 0),
				   spread(1e-8, 1e-6, 0.2), spread(1e-7, 5e-5, 0.4),
				   spread(1e-12, 1e-9, 0.4), (uint32_t)uniform(0, num));
}

/*
 * The engine, fed with the two lines, changes from eager to rendezvous at the crossing, has nothing
 * but rendezvous for "always", and for a fallback either nothing but eager or rendezvous only at
 * the small end.
 */
static void compare(const struct weft_thresh_in *in)
{
	struct weft_env_line lines[] = {
		{0, SIZE_MAX, weft_thresh_rndv_line(in), 0, 1},
		{0, SIZE_MAX, weft_thresh_eager_line(in), 0, 2},
	};
	struct weft_env_range out[4];
	struct weft_thresh t;
	int n = weft_envelope(lines, 2, out, 4);

	weft_threshold(in, &t);
	assert_in_range(n, 1, 2);
	switch (t.rule) {
	case WEFT_THRESH_CROSSING:
		if (t.quotient > 1e15) /* doubles have no such sizes one by one */
			break;
		if (t.bytes == 0)
			break;
		assert_int_equal(n, 2);
		assert_int_equal(out[0].line, 1);
		/* Rendezvous from the first whole byte that is not below the crossing. */
		if (fabs((double)(out[0].max + 1) - t.quotient) > 1 + 1e-9 * t.quotient)
			fail_msg("the engine changes at %zu, the formula says %.17g",
				 out[0].max + 1, t.quotient);
		break;
	case WEFT_THRESH_ALWAYS:
		if (t.den > 1e-15) {
			assert_int_equal(n, 1);
			assert_int_equal(out[0].line, 0);
		}
		break;
	default:
		if (t.num > 0 && t.den < 0) {
			assert_int_equal(n, 1);
			assert_int_equal(out[0].line, 1);
		} else if (t.num < 0 && t.den < 0 && t.quotient < 1e15) {
			assert_int_equal(out[n - 1].line, 1);
		}
	}
}

static void the_engine_yields_the_crossing_of_random_lane_sets(void **state)
{
	unsigned int rules[5] = {0};
	struct weft_thresh_in in;
	struct weft_thresh t;
	struct weft_model m;

	(void)state;
	seed = getenv("WEFT_TEST_SEED") ? strtoull(getenv("WEFT_TEST_SEED"), NULL, 0) : 20261121;
	print_message("# WEFT_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (int i = 0; i < 20000; i++) {
		unsigned int num = 1 + (unsigned int)uniform(0, 8);
		uint32_t all, eager, rndv;

		random_model(&m, num);
		all = m.lanes_up;
		eager = (1 + (uint32_t)uniform(0, all)) & all;
		rndv = (1 + (uint32_t)uniform(0, all)) & all;
		weft_threshold_in(&m, eager, rndv, uniform(0, 1) < 0.5, 4096, &in);
		weft_threshold(&in, &t);
		rules[t.rule]++;
		compare(&in);
	}
	/* The random sets reach every rule that has no setting behind it. */
	assert_true(rules[WEFT_THRESH_CROSSING] > 1000);
	assert_true(rules[WEFT_THRESH_ALWAYS] > 100);
	assert_true(rules[WEFT_THRESH_FALLBACK] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crossing_by_remote_access),
		cmocka_unit_test(a_crossing_by_active_messages),
		cmocka_unit_test(the_bias_favours_rendezvous_in_both_shapes),
		cmocka_unit_test(rendezvous_that_is_always_cheaper),
		cmocka_unit_test(lines_that_never_meet_take_the_fallback),
		cmocka_unit_test(the_cap_comes_last),
		cmocka_unit_test(a_fixed_threshold_is_taken_as_it_is),
		cmocka_unit_test(lanes_are_summed_and_each_domain_counts_once),
		cmocka_unit_test(eager_and_rendezvous_may_have_different_lanes),
		cmocka_unit_test(the_engine_yields_the_crossing_of_random_lane_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
