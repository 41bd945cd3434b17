/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RTT estimate, timeouts and loss detection: tables of cases.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/rules.h"

#define US 1000ull
#define MS 1000000ull

static void first_sample_is_the_estimate(void **state)
{
	struct weft_rtt r = {0};

	(void)state;
	weft_rtt_sample(&r, 10000);
	assert_int_equal(r.srtt, 10000);
	assert_int_equal(r.var, 5000);
	assert_int_equal(r.min, 10000);
	weft_rtt_sample(&r, 0);
	assert_int_equal(r.min, 1);
	assert_true(r.srtt > 0);
}

static void estimate_follows_slowly_and_forgets_spikes(void **state)
{
	struct weft_rtt r = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		weft_rtt_sample(&r, 10000);
	assert_in_range(r.srtt, 9900, 10100);
	assert_true(r.var < 200);
	weft_rtt_sample(&r, 1000000);
	assert_in_range(r.srtt, 100000, 150000);
	for (int i = 0; i < 100; i++)
		weft_rtt_sample(&r, 10000);
	assert_in_range(r.srtt, 9900, 10200);
	/* Constant tiny samples never reach 0, which would mean "none". */
	for (int i = 0; i < 1000; i++)
		weft_rtt_sample(&r, 1);
	assert_true(r.srtt >= 1);
}

static void timeouts_stay_within_their_bounds(void **state)
{
	static const struct {
		uint32_t srtt, var;
		unsigned int backoff;
		uint64_t rto;
	} t[] = {
		{0, 0, 0, WEFT_RTO_INITIAL},
		{0, 0, 1, 2 * WEFT_RTO_INITIAL},
		{1000, 100, 0, WEFT_RTO_MIN},
		{1000, 100, 3, 8 * WEFT_RTO_MIN},
		{1000, 100, 6, WEFT_RTO_MAX},
		{1000, 100, 1000, WEFT_RTO_MAX},
		{2000000, 500000, 0, 4000000},
		/* Never below the round trip: only the backoff is limited. */
		{20000000, 0, 0, 25000000},
		{20000000, 0, 1, WEFT_RTO_MAX},
		{40000000, 0, 0, WEFT_RTO_MAX},
		{150000000, 0, 0, 187500000},
		{150000000, 0, 9, 187500000},
		{100000000, 50000000, 0, 300000000},
		{100000000, 50000000, 3, 300000000},
		{UINT32_MAX, UINT32_MAX, 16, WEFT_RTO_ROOF},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct weft_rtt r = {.srtt = t[i].srtt, .var = t[i].var};

		assert_int_equal(weft_rtt_rto(&r, t[i].backoff), t[i].rto);
	}
}

static void the_handshake_bounds_the_first_timeout(void **state)
{
	struct weft_rtt r = {.first = 100 * US};

	(void)state;
	assert_int_equal(weft_rtt_rto(&r, 0), WEFT_RTO_INITIAL);
	assert_int_equal(weft_rtt_probe(&r, 50 * US), WEFT_RTO_INITIAL);
	r.first = 150000000;
	assert_int_equal(weft_rtt_known(&r), 150000000);
	assert_int_equal(weft_rtt_rto(&r, 0), 300000000);
	assert_int_equal(weft_rtt_rto(&r, 5), 300000000);
	assert_int_equal(weft_rtt_probe(&r, 50 * US), 300000000);
	weft_rtt_sample(&r, 2000000);
	assert_int_equal(weft_rtt_known(&r), 2000000);
	assert_int_equal(weft_rtt_rto(&r, 0), 6000000);
	r = (struct weft_rtt){.first = UINT32_MAX};
	assert_int_equal(weft_rtt_rto(&r, 7), WEFT_RTO_ROOF);
}

static void probe_comes_before_the_timeout(void **state)
{
	struct weft_rtt r = {0};

	(void)state;
	assert_int_equal(weft_rtt_probe(&r, 50 * US), WEFT_RTO_INITIAL);
	r = (struct weft_rtt){.srtt = 1000, .var = 100};
	assert_int_equal(weft_rtt_probe(&r, 50 * US), WEFT_PROBE_MIN);
	r = (struct weft_rtt){.srtt = 300000, .var = 100000};
	assert_int_equal(weft_rtt_probe(&r, 50 * US), 650000);
	assert_true(weft_rtt_probe(&r, 50 * US) < weft_rtt_rto(&r, 0));
	/* On long paths after the round trip and a quarter. */
	r = (struct weft_rtt){.srtt = 150000000};
	assert_int_equal(weft_rtt_probe(&r, 50 * US), 187500000);
}

static void lost_needs_newer_arrivals_and_time(void **state)
{
	/* acked order, own order, sent, srtt, now -> lost? */
	static const struct {
		uint32_t acked, order;
		uint64_t sent;
		uint32_t srtt;
		uint64_t now;
		bool lost;
	} t[] = {
		{10, 10, 0, 1000, MS, false}, /* nothing newer */
		{10, 9, 0, 1000, MS, false},  /* one newer: reordering */
		{10, 8, 0, 1000, MS, false},
		{10, 7, 0, 1000, MS, true}, /* three newer */
		{10, 0, 0, 1000, MS, true},
		{10, 7, 0, 1000, 1249, false}, /* had not the time */
		{10, 7, 0, 1000, 1250, true},
		{10, 7, 500, 1000, 1500, false},
		{10, 11, 0, 1000, MS, false}, /* sent later than what arrived */
		{10, 0xfffffff0u, 0, 1000, MS, true},
		{2, 0xffffffffu, 0, 1000, MS, true}, /* across the wrap */
		{1, 0xffffffffu, 0, 1000, MS, false},
		{0xfffffffeu, 1, 0, 1000, MS, false},
		{10, 7, 0, 0, 0, true}, /* no RTT known: arrivals decide */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct weft_rtt r = {.srtt = t[i].srtt, .min = t[i].srtt};
		struct weft_loss l;

		weft_loss_init(&l);
		assert_false(weft_loss_suspect(&l, t[i].order));
		weft_loss_acked(&l, &r, t[i].acked, 1, 0, MS);
		assert_int_equal(weft_loss_lost(&l, &r, t[i].order, t[i].sent, t[i].now),
				 t[i].lost);
	}
}

static void order_never_goes_back(void **state)
{
	struct weft_rtt r = {.srtt = 1000, .min = 900};
	struct weft_loss l;

	(void)state;
	weft_loss_init(&l);
	weft_loss_acked(&l, &r, 0xfffffff0u, 1, 0, MS);
	weft_loss_acked(&l, &r, 5, 1, 0, MS);
	weft_loss_acked(&l, &r, 0xfffffff8u, 1, 0, MS);
	assert_int_equal(l.acked, 5);
}

static void too_quick_an_answer_was_for_the_first_transmission(void **state)
{
	struct weft_rtt r = {.srtt = 10000, .min = 9000};
	struct weft_loss l;

	(void)state;
	weft_loss_init(&l);
	weft_loss_acked(&l, &r, 5, 1, 0, MS);
	weft_loss_acked(&l, &r, 50, 2, MS, MS + 8000); /* sooner than ever: not this one */
	assert_int_equal(l.acked, 5);
	assert_int_equal(l.reorder, WEFT_LOSS_REORDER + 1);
	weft_loss_acked(&l, &r, 50, 2, MS, MS + 9000);
	assert_int_equal(l.acked, 50);
	assert_int_equal(l.reorder, WEFT_LOSS_REORDER + 1);
	for (int i = 0; i < 1000; i++)
		weft_loss_spurious(&l);
	assert_int_equal(l.reorder, WEFT_LOSS_REORDER_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_sample_is_the_estimate),
		cmocka_unit_test(estimate_follows_slowly_and_forgets_spikes),
		cmocka_unit_test(timeouts_stay_within_their_bounds),
		cmocka_unit_test(the_handshake_bounds_the_first_timeout),
		cmocka_unit_test(probe_comes_before_the_timeout),
		cmocka_unit_test(lost_needs_newer_arrivals_and_time),
		cmocka_unit_test(order_never_goes_back),
		cmocka_unit_test(too_quick_an_answer_was_for_the_first_transmission),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
