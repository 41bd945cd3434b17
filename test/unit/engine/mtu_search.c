/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for the largest frame that arrives, over a path that is modelled: an MTU, a round
 * trip, loss of either direction.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/mtu.h"

#define L2 14u
#define LEAST (1280u + L2)
#define FULL 9230u
#define MS 1000000ull
#define MAX_FLYING 64

/* What clouds have, beside the full size. */
static const uint16_t clouds[] = {9001, 9000, 8896, 8500, 3900, 1500, 1460, 1400};

struct path {
	uint16_t mtu;
	uint64_t rtt;
	unsigned int loss; /* percent, each way */
	uint64_t rng;
	/* answers under way */
	struct {
		uint64_t at;
		uint16_t id, size;
	} flying[MAX_FLYING];
	unsigned int num_flying;
	/* outcome */
	unsigned int probes;
	uint64_t now;
};

static bool lost(struct path *p)
{
	p->rng ^= p->rng << 13;
	p->rng ^= p->rng >> 7;
	p->rng ^= p->rng << 17;
	return p->rng % 100 < p->loss;
}

static void send_probe(struct path *p, uint16_t id, uint16_t size)
{
	p->probes++;
	if (size > p->mtu + L2 || lost(p) || lost(p) || p->num_flying == MAX_FLYING)
		return;
	p->flying[p->num_flying].at = p->now + p->rtt;
	p->flying[p->num_flying].id = id;
	p->flying[p->num_flying++].size = size;
}

/* The first answer that has arrived. */
static bool take(struct path *p, uint16_t *id, uint16_t *size)
{
	unsigned int i;

	for (i = 0; i < p->num_flying; i++)
		if (p->flying[i].at <= p->now) {
			*id = p->flying[i].id;
			*size = p->flying[i].size;
			p->num_flying--;
			memmove(&p->flying[i], &p->flying[i + 1],
				(p->num_flying - i) * sizeof(p->flying[0]));
			return true;
		}
	return false;
}

static uint64_t next_event(const struct path *p, const struct weft_mtu_search *s)
{
	uint64_t t = s->next;
	unsigned int i;

	for (i = 0; i < p->num_flying; i++)
		if (p->flying[i].at < t)
			t = p->flying[i].at;
	return t > p->now ? t : p->now;
}

/* Until there is a result, or @p until. */
static enum weft_mtu_result search(struct path *p, struct weft_mtu_search *s, uint64_t until)
{
	enum weft_mtu_result r;
	unsigned int big, small;
	uint16_t id, size;

	while (p->now < until) {
		while (take(p, &id, &size)) {
			r = weft_mtu_search_ack(s, id, size, p->now);
			if (r != WEFT_MTU_GOES_ON)
				return r;
		}
		r = weft_mtu_search_round(s, p->now, &big, &small);
		if (r != WEFT_MTU_GOES_ON)
			return r;
		while (big-- > 0)
			send_probe(p, s->id, s->size);
		while (small-- > 0)
			send_probe(p, s->id, 0);
		p->now = next_event(p, s);
	}
	return WEFT_MTU_GOES_ON;
}

static enum weft_mtu_result run(struct path *p, struct weft_mtu_search *s)
{
	p->now = 1000;
	if (p->rng == 0)
		p->rng = 0x9e3779b97f4a7c15ull;
	weft_mtu_search_begin(s, FULL, LEAST, L2, p->now);
	return search(p, s, 10000 * MS);
}

static void a_wide_path_costs_one_probe(void **state)
{
	struct path p = {.mtu = 9216, .rtt = 100000};
	struct weft_mtu_search s;

	(void)state;
	assert_int_equal(run(&p, &s), WEFT_MTU_FOUND);
	assert_int_equal(s.lo, FULL);
	assert_int_equal(p.probes, 1);
	assert_int_equal(p.now, 1000 + p.rtt);
}

/* @behaviour X7 */
static void every_mtu_is_found_in_bounded_time(void **state)
{
	struct weft_mtu_search s;
	unsigned int mtu;

	(void)state;
	for (mtu = 1280; mtu < 9216; mtu++) {
		struct path p = {.mtu = (uint16_t)mtu, .rtt = 200000};

		assert_int_equal(run(&p, &s), WEFT_MTU_FOUND);
		assert_in_range(s.lo, mtu + L2 - (WEFT_MTU_GRAIN - 1), mtu + L2);
		assert_in_range(p.now, 0, 700 * MS);
		assert_in_range(p.probes, 1, 400);
	}
}

static void what_clouds_have_is_found_exactly_and_soon(void **state)
{
	struct weft_mtu_search s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		struct path p = {.mtu = clouds[i], .rtt = 200000};

		assert_int_equal(run(&p, &s), WEFT_MTU_FOUND);
		assert_int_equal(s.lo, clouds[i] + L2);
		assert_in_range(p.now, 0, 250 * MS);
	}
}

static void too_narrow_is_distinguished_from_absent(void **state)
{
	struct path narrow = {.mtu = 1279, .rtt = 200000}, gone = {.mtu = 9216, .loss = 100};
	struct weft_mtu_search s;

	(void)state;
	assert_int_equal(run(&narrow, &s), WEFT_MTU_NARROW);
	assert_int_equal(run(&gone, &s), WEFT_MTU_GOES_ON);
	assert_int_equal(s.lo, 0);
	assert_int_equal(s.hi, 0);
	/* No peer is there: it must not get many frames. */
	assert_in_range(gone.probes, 100, 500);
}

static void loss_is_not_taken_for_a_narrow_path(void **state)
{
	struct weft_mtu_search s;
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= 3000; seed++) {
		struct path p = {.mtu = 9216, .rtt = 500000, .loss = 40, .rng = seed * 2654435761u};

		assert_int_equal(run(&p, &s), WEFT_MTU_FOUND);
		assert_int_equal(s.lo, FULL);
	}
}

static void narrow_paths_are_found_under_loss(void **state)
{
	struct weft_mtu_search s;
	unsigned int seed;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++)
		for (seed = 1; seed <= 200; seed++) {
			struct path p = {.mtu = clouds[i],
					 .rtt = 500000,
					 .loss = 20,
					 .rng = seed * 2654435761u};

			assert_int_equal(run(&p, &s), WEFT_MTU_FOUND);
			assert_int_equal(s.lo, clouds[i] + L2);
			assert_in_range(p.now, 0, WEFT_MTU_TIME + 100 * MS);
		}
}

/* A path longer than the rounds: answers come in bunches, those of given-up sizes among them. */
static void long_paths(void **state)
{
	struct weft_mtu_search s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		struct path p = {.mtu = clouds[i], .rtt = 150 * MS};

		assert_int_equal(run(&p, &s), WEFT_MTU_FOUND);
		assert_int_equal(s.lo, clouds[i] + L2);
		assert_in_range(p.now, 0, WEFT_MTU_TIME + 100 * MS);
	}
}

/* Small ones that were sent beside another size say nothing of this one. */
static void answers_of_the_last_size_do_not_count(void **state)
{
	struct weft_mtu_search s;
	unsigned int big, small, i;
	uint16_t old, size;

	(void)state;
	weft_mtu_search_begin(&s, FULL, LEAST, L2, 1000);
	assert_int_equal(weft_mtu_search_round(&s, 1000, &big, &small), WEFT_MTU_GOES_ON);
	old = s.id;
	for (i = 0; i < WEFT_MTU_SMALL_ACKS; i++)
		weft_mtu_search_ack(&s, old, 0, 2000);
	size = s.size;
	assert_true(size < FULL);
	for (i = 0; i < 2 * WEFT_MTU_SMALL_ACKS; i++)
		weft_mtu_search_ack(&s, old, 0, 2000);
	weft_mtu_search_round(&s, 2000, &big, &small);
	for (i = 0; i < 2 * WEFT_MTU_SMALL_ACKS; i++)
		weft_mtu_search_ack(&s, old, 0, 2000);
	assert_int_equal(s.size, size);
	assert_int_equal(s.hi, FULL);
}

static void a_late_answer_corrects_what_was_given_up(void **state)
{
	struct weft_mtu_search s;
	unsigned int big, small, i;

	(void)state;
	weft_mtu_search_begin(&s, FULL, LEAST, L2, 1000);
	weft_mtu_search_round(&s, 1000, &big, &small);
	for (i = 0; i < WEFT_MTU_SMALL_ACKS; i++)
		assert_int_equal(weft_mtu_search_ack(&s, s.id, 0, 2000), WEFT_MTU_GOES_ON);
	assert_int_equal(s.hi, FULL);
	assert_true(s.size < FULL);
	assert_int_equal(weft_mtu_search_ack(&s, 1, FULL, 3000), WEFT_MTU_FOUND);
	assert_int_equal(s.lo, FULL);
}

static void answers_of_sizes_never_requested(void **state)
{
	struct weft_mtu_search s;

	(void)state;
	weft_mtu_search_begin(&s, FULL, LEAST, L2, 1000);
	assert_int_equal(weft_mtu_search_ack(&s, 1, FULL + 1, 1000), WEFT_MTU_GOES_ON);
	assert_int_equal(weft_mtu_search_ack(&s, 1, LEAST - 1, 1000), WEFT_MTU_GOES_ON);
	assert_int_equal(weft_mtu_search_ack(&s, 1, 1, 1000), WEFT_MTU_GOES_ON);
	assert_int_equal(s.lo, 0);
}

/* Small ones are answered too seldom to tell: what has passed has to do. */
static void time_is_up_in_the_end(void **state)
{
	struct weft_mtu_search s;
	unsigned int big, small;

	(void)state;
	weft_mtu_search_begin(&s, FULL, LEAST, L2, 1000);
	assert_int_equal(weft_mtu_search_ack(&s, 1, 1514, 1000), WEFT_MTU_GOES_ON);
	assert_int_equal(weft_mtu_search_round(&s, WEFT_MTU_TIME, &big, &small), WEFT_MTU_GOES_ON);
	assert_int_equal(big, WEFT_MTU_BIG);
	assert_int_equal(weft_mtu_search_round(&s, WEFT_MTU_TIME + 10 * MS, &big, &small),
			 WEFT_MTU_FOUND);
	assert_int_equal(s.lo, 1514);
	assert_int_equal(big + small, 0);
}

/* The size wanted is the least one already. */
static void nothing_smaller_to_try(void **state)
{
	struct weft_mtu_search s;
	unsigned int big, small, i;

	(void)state;
	weft_mtu_search_begin(&s, LEAST, LEAST, L2, 1000);
	weft_mtu_search_round(&s, 1000, &big, &small);
	for (i = 1; i < WEFT_MTU_SMALL_ACKS; i++)
		assert_int_equal(weft_mtu_search_ack(&s, s.id, 0, 1000), WEFT_MTU_GOES_ON);
	assert_int_equal(weft_mtu_search_ack(&s, s.id, 0, 1000), WEFT_MTU_NARROW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wide_path_costs_one_probe),
		cmocka_unit_test(every_mtu_is_found_in_bounded_time),
		cmocka_unit_test(what_clouds_have_is_found_exactly_and_soon),
		cmocka_unit_test(too_narrow_is_distinguished_from_absent),
		cmocka_unit_test(loss_is_not_taken_for_a_narrow_path),
		cmocka_unit_test(narrow_paths_are_found_under_loss),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(answers_of_the_last_size_do_not_count),
		cmocka_unit_test(a_late_answer_corrects_what_was_given_up),
		cmocka_unit_test(answers_of_sizes_never_requested),
		cmocka_unit_test(time_is_up_in_the_end),
		cmocka_unit_test(nothing_smaller_to_try),
	};

	return cmocka_run_group_tests_name("mtu_search", tests, NULL, NULL);
}
