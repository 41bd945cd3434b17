/* SPDX-License-Identifier: BSD-3-Clause */
/* Long queues of receives and messages, and tags that are chosen to collide. */

#include "unit/tag/rig.h"

/* ------------------------------------------------------------------ large queues */

/* The longest chain that a search may have to walk. */
#define LONGEST(table, link)                                                              \
	({                                                                                \
		size_t longest_ = 0;                                                      \
		for (size_t b_ = 0; b_ < (size_t)1 << r->m.bits; b_++) {                  \
			size_t n_ = 0;                                                    \
			for (typeof((table)[0].tqh_first) e_ = (table)[b_].tqh_first; e_; \
			     e_ = e_->link.tqe_next)                                      \
				n_++;                                                     \
			longest_ = n_ > longest_ ? n_ : longest_;                         \
		}                                                                         \
		longest_;                                                                 \
	})

static void many_receives(unsigned int n, bool directed)
{
	struct weft_match_recv *recv = calloc(n, sizeof(*recv));
	struct rig *r = malloc(sizeof(*r));

	rig_init(r, 8);
	for (unsigned int i = 0; i < n; i++) {
		recv[i] =
			(struct weft_match_recv){.tag = i,
						 .mask = UINT64_MAX,
						 .source = directed ? &r->src[i % SOURCES] : NULL};
		weft_match_post(&r->m, &recv[i]);
		if (weft_match_overloaded(&r->m))
			grow(r);
	}
	assert_true(LONGEST(r->m.recv_table, link) <= 16);
	for (unsigned int i = n; i-- > 0;)
		assert_ptr_equal(weft_match_arrive(&r->m, &r->src[i % SOURCES], i,
						   ((struct weft_match_chan){0, 0})),
				 &recv[i]);
	free(recv);
	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
}

static void many_messages(unsigned int n)
{
	struct weft_match_msg *msg = calloc(n, sizeof(*msg));
	struct rig *r = malloc(sizeof(*r));

	rig_init(r, 8);
	for (unsigned int i = 0; i < n; i++) {
		msg[i] = (struct weft_match_msg){.tag = i, .source = &r->src[0]};
		weft_match_msg_add(&r->m, &msg[i]);
		if (weft_match_overloaded(&r->m))
			grow(r);
	}
	assert_true(LONGEST(r->m.tag_table, tag_link) <= 16);
	assert_true(LONGEST(r->m.pair_table, pair_link) <= 16);
	for (unsigned int i = n; i-- > 0;) {
		const struct weft_match_source *s = i % 2 ? &r->src[0] : NULL;

		assert_ptr_equal(weft_match_find(&r->m, s, i, UINT64_MAX,
						 ((struct weft_match_chan){0, 0})),
				 &msg[i]);
		weft_match_msg_remove(&r->m, &msg[i]);
	}
	weft_match_fini(&r->m);
	free(msg);
	free(r->mem);
	free(r);
}

/* Counted in steps, not in seconds. */
/*
 * @behaviour U25: full-mask tags cost the same with 10^5 entries
 * @behaviour E1
 */
static void U25_E1_full_mask_tags_cost_the_same_with_1e5_entries(void **state)
{
	(void)state;
	many_receives(100000, false);
	many_receives(100000, true);
	many_messages(100000);
}

/*
 * 10^5 receives of some masks, none of which takes the message, and one that does, posted last.
 * What is looked at is counted: it must not grow with the receives.
 */
static uint64_t looks_behind(unsigned int n, unsigned int num_masks, bool directed, bool agree)
{
	struct weft_match_recv *recv = calloc(n + 1, sizeof(*recv));
	struct rig *r = malloc(sizeof(*r));
	uint64_t looks, s = 11;

	rig_init(r, 8);
	for (unsigned int i = 0; i < n; i++) {
		recv[i] = (struct weft_match_recv){
			.tag = agree ? 1ull << 63 | i : next_random(&s) | 1ull << 40,
			.mask = ~((i % num_masks + 1ull) << 8),
			.source = directed ? &r->src[i % SOURCES] : NULL};
		weft_match_post(&r->m, &recv[i]);
		if (weft_match_overloaded(&r->m))
			grow(r);
	}
	recv[n] = (struct weft_match_recv){.tag = 5, .mask = UINT64_MAX};
	weft_match_post(&r->m, &recv[n]);
	looks = r->m.looks;
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 5, ((struct weft_match_chan){0, 0})),
			 &recv[n]);
	looks = r->m.looks - looks;
	/* In the order of posting, each with what only it takes; and to the last one. */
	for (unsigned int i = 0; i < n; i += 997) {
		struct weft_match_recv *got = weft_match_arrive(
			&r->m, &r->src[i % SOURCES], recv[i].tag, ((struct weft_match_chan){0, 0}));

		assert_non_null(got);
		assert_true(got->order <= recv[i].order);
		assert_true(((got->tag ^ recv[i].tag) & got->mask) == 0);
	}
	for (unsigned int i = r->m.num_recvs; i > 0; i--)
		weft_match_cancel(&r->m, weft_match_any_recv(&r->m));
	assert_int_equal(r->m.num_recvs, 0);
	assert_int_equal(r->m.num_used, 0);
	free(recv);
	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
	return looks;
}

/*
 * @behaviour T34: no such cost grows with waiting receives: a match checks the masks
 * @behaviour T41: measurement: a match behind 10^5 receives of 1 to 4096 masks (figures:
 * `idle_bench`)
 */
static void a_match_behind_1e5_wildcards_looks_at_their_masks(void **state)
{
	(void)state;
	for (unsigned int num_masks = 1; num_masks <= 4096; num_masks *= 2) {
		/* On average 1.5 receives stand in a bucket. */
		assert_in_range(looks_behind(100000, num_masks, false, false), 0, 6 * num_masks);
		assert_in_range(looks_behind(100000, num_masks, true, false), 0, 6 * num_masks);
		/* A tag that differs from all where all agree is not looked for at all. */
		assert_int_equal(looks_behind(100000, num_masks, false, true), 0);
	}
}

/* Receives that come and go, each with a mask of its own: masks without receives are few. */
/* @behaviour T34 */
static void masks_without_receives_do_not_pile_up(void **state)
{
	struct weft_match_recv *recv = calloc(5000, sizeof(*recv));
	struct rig *r = malloc(sizeof(*r));

	(void)state;
	rig_init(r, 8);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 5000; i++) {
			recv[i] = (struct weft_match_recv){.tag = i, .mask = 4 * i + round};
			assert_int_equal(weft_match_post(&r->m, &recv[i]), 0);
			if (round < 2)
				weft_match_cancel(&r->m, &recv[i]);
		}
		if (round < 2)
			assert_true(r->m.num_masks <= WEFT_MATCH_MASKS_IDLE);
	}
	assert_int_equal(r->m.num_used, 5000);
	for (unsigned int i = 0; i < 5000; i++) {
		struct weft_match_recv *got =
			weft_match_arrive(&r->m, &r->src[0], i, ((struct weft_match_chan){0, 0}));

		assert_non_null(got);
		assert_true(((got->tag ^ i) & got->mask) == 0);
	}
	assert_int_equal(r->m.num_used, 0);
	weft_match_fini(&r->m);
	free(r->mem);
	free(recv);
	free(r);
}

/* Of 10^5 messages the last one is searched for, over and over, as a program that probes does. */
/* @behaviour T34 */
static void a_search_with_wildcards_looks_at_each_message_once(void **state)
{
	enum { N = 100000 };
	struct weft_match_msg *msg = calloc(N + 1, sizeof(*msg));
	struct rig *r = malloc(sizeof(*r));
	uint64_t looks;

	(void)state;
	rig_init(r, 12);
	for (unsigned int i = 0; i < N; i++) {
		msg[i] = (struct weft_match_msg){.tag = 2 * i, .source = &r->src[i % 2]};
		weft_match_msg_add(&r->m, &msg[i]);
	}
	for (unsigned int i = 0; i < 1000; i++) {
		assert_null(weft_match_find(&r->m, NULL, 1, 1, ((struct weft_match_chan){0, 0})));
		assert_null(
			weft_match_find(&r->m, &r->src[0], 1, 1, ((struct weft_match_chan){0, 0})));
	}
	assert_int_equal(r->m.msg_looks, N + N / 2);
	/* It does not matter which of them go meanwhile. */
	for (unsigned int i = 1; i < N; i += 3)
		weft_match_msg_remove(&r->m, &msg[N - i]);
	looks = r->m.msg_looks;
	msg[N] = (struct weft_match_msg){.tag = 7, .source = &r->src[0]};
	weft_match_msg_add(&r->m, &msg[N]);
	for (unsigned int i = 0; i < 10; i++) {
		assert_ptr_equal(weft_match_find(&r->m, NULL, 1, 1,
						 ((struct weft_match_chan){0, 0})),
				 &msg[N]);
		assert_ptr_equal(weft_match_find(&r->m, &r->src[0], 1, 1,
						 ((struct weft_match_chan){0, 0})),
				 &msg[N]);
	}
	assert_int_equal(r->m.msg_looks - looks, 20);
	weft_match_fini(&r->m);
	free(msg);
	free(r->mem);
	free(r);
}

/* The longest list of messages in a bucket, when these come in. */
static size_t longest(const uint64_t *tags, unsigned int n, unsigned int bits, uint64_t seed)
{
	struct weft_match_msg *msgs = calloc(n, sizeof(*msgs)), *msg;
	void *mem = malloc(weft_match_table_size(bits));
	size_t len, max = 0;
	struct weft_match m;

	weft_match_init(&m, mem, bits, seed);
	for (unsigned int i = 0; i < n; i++) {
		msgs[i].tag = tags[i];
		weft_match_msg_add(&m, &msgs[i]);
	}
	for (size_t b = 0; b < (size_t)1 << bits; b++) {
		len = 0;
		TAILQ_FOREACH(msg, &m.tag_table[b], tag_link)
			len++;
		if (len > max)
			max = len;
	}
	free(mem);
	free(msgs);
	return max;
}

/*
 * Tags that all meet under one seed, as a peer that knows it would choose them, meet under no
 * other.
 */
/* Of an odd number, modulo 2^64, by Newton. */
static uint64_t inverse_of(uint64_t odd)
{
	uint64_t inverse = odd;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - odd * inverse;
	assert_true(inverse * odd == 1);
	return inverse;
}

/* @behaviour T34 */
static void tags_chosen_to_collide_do_not_without_the_seed(void **state)
{
	enum { BITS = 12, N = 1 << BITS };
	uint64_t *tags = malloc(N * sizeof(*tags)), undo = inverse_of(SEED), s = 1;
	uint64_t unscramble = inverse_of(0x9e3779b97f4a7c15u);
	unsigned int bad = 0;
	size_t len;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		tags[i] = undo * i;
		tags[i] = (tags[i] ^ tags[i] >> 32) * unscramble;
	}
	assert_int_equal(longest(tags, N, BITS, SEED), N);
	for (int i = 0; i < 200; i++) {
		len = longest(tags, N, BITS, next_random(&s));
		bad += len > N / 16;
	}
	/* Of random multipliers a few are unlucky for any one choice, and none can be aimed at. */
	assert_true(bad <= 10);
	free(tags);
}

/* What programs do: they count, by any step. No seed may be unlucky for that. */
static void tags_that_count_up_spread_with_every_seed(void **state)
{
	static const uint64_t steps[] = {1, 2, 3, 16, 256, 1ull << 16, 1ull << 32, 1ull << 48};
	static const uint64_t seeds[] = {0x5a5a5a5a5a5a5a5a, 0x0123456789abcdef, UINT64_MAX / 3};
	enum { BITS = 12, N = 1 << BITS };
	uint64_t *tags = malloc(N * sizeof(*tags)), s = 7;

	(void)state;
	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		for (uint64_t i = 0; i < N; i++)
			tags[i] = steps[k] * i;
		for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
			assert_in_range(longest(tags, N, BITS, seeds[i]), 1, N / 64);
		for (int i = 0; i < 100; i++)
			assert_in_range(longest(tags, N, BITS, next_random(&s)), 1, N / 64);
	}
	free(tags);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags_chosen_to_collide_do_not_without_the_seed),
		cmocka_unit_test(tags_that_count_up_spread_with_every_seed),
		cmocka_unit_test(a_match_behind_1e5_wildcards_looks_at_their_masks),
		cmocka_unit_test(masks_without_receives_do_not_pile_up),
		cmocka_unit_test(a_search_with_wildcards_looks_at_each_message_once),
		cmocka_unit_test(U25_E1_full_mask_tags_cost_the_same_with_1e5_entries),
	};

	return cmocka_run_group_tests_name("match, large", tests, NULL, NULL);
}
