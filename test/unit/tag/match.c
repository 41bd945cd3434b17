/* SPDX-License-Identifier: BSD-3-Clause */
/* Tag matching against a model that does everything by linear search over two lists. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tag/match.h"
#include "mock/rounds.h"

#define MAX 512
#define SOURCES 4
#define SEED 0x9e3779b97f4a7c15ull

struct rig {
	struct weft_match m;
	void *mem;
	struct weft_match_source src[SOURCES];
	struct weft_match_recv recv[MAX];
	struct weft_match_msg msg[MAX];
	/* The model: what is there, in posting and in arrival order. */
	struct weft_match_recv *posted[MAX];
	struct weft_match_msg *arrived[MAX];
	unsigned int num_posted, num_arrived;
	bool recv_used[MAX], msg_used[MAX];
};

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void rig_init(struct rig *r, unsigned int bits)
{
	memset(r, 0, sizeof(*r));
	r->mem = malloc(weft_match_table_size(bits));
	weft_match_init(&r->m, r->mem, bits, SEED);
	for (int i = 0; i < SOURCES; i++)
		weft_match_source_init(&r->m, &r->src[i]);
}

static int setup(void **state)
{
	struct rig *r = malloc(sizeof(*r));

	rig_init(r, 4);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
	return 0;
}

static void grow(struct rig *r)
{
	unsigned int bits = r->m.bits + 1;
	void *mem = malloc(weft_match_table_size(bits));

	free(weft_match_grow(&r->m, mem, bits));
	r->mem = mem;
}

static struct weft_match_recv *post(struct rig *r, unsigned int i, struct weft_match_source *s,
				    uint64_t tag, uint64_t mask)
{
	r->recv[i].tag = tag;
	r->recv[i].mask = mask;
	r->recv[i].source = s;
	weft_match_post(&r->m, &r->recv[i]);
	return &r->recv[i];
}

static struct weft_match_msg *keep(struct rig *r, unsigned int i, struct weft_match_source *s,
				   uint64_t tag)
{
	r->msg[i].tag = tag;
	r->msg[i].source = s;
	weft_match_msg_add(&r->m, &r->msg[i]);
	return &r->msg[i];
}

/* ------------------------------------------------------------------ model */

static bool fits(const struct weft_match_recv *recv, const struct weft_match_source *s,
		 uint64_t tag)
{
	return ((recv->tag ^ tag) & recv->mask) == 0 && (!recv->source || recv->source == s);
}

static struct weft_match_recv *model_arrive(struct rig *r, const struct weft_match_source *s,
					    uint64_t tag)
{
	for (unsigned int i = 0; i < r->num_posted; i++) {
		struct weft_match_recv *recv = r->posted[i];

		if (!fits(recv, s, tag))
			continue;
		memmove(&r->posted[i], &r->posted[i + 1],
			(r->num_posted - i - 1) * sizeof(*r->posted));
		r->num_posted--;
		return recv;
	}
	return NULL;
}

static struct weft_match_msg *model_find(struct rig *r, const struct weft_match_source *s,
					 uint64_t tag, uint64_t mask)
{
	const struct weft_match_recv probe = {
		.tag = tag, .mask = mask, .source = (struct weft_match_source *)(uintptr_t)s};

	for (unsigned int i = 0; i < r->num_arrived; i++) {
		if (fits(&probe, r->arrived[i]->source, r->arrived[i]->tag))
			return r->arrived[i];
	}
	return NULL;
}

static void model_remove_msg(struct rig *r, const struct weft_match_msg *msg)
{
	unsigned int i = 0;

	while (r->arrived[i] != msg)
		i++;
	memmove(&r->arrived[i], &r->arrived[i + 1], (r->num_arrived - i - 1) * sizeof(*r->arrived));
	r->num_arrived--;
}

static void model_remove_recv(struct rig *r, unsigned int i)
{
	memmove(&r->posted[i], &r->posted[i + 1], (r->num_posted - i - 1) * sizeof(*r->posted));
	r->num_posted--;
}

/* ------------------------------------------------------------------ random histories */

static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0,
				 1,          3,          0xff,       UINT64_MAX << 2};

/* Half of the histories have more masks than there are places for. */
static uint64_t some_mask(bool many, uint64_t *seed)
{
	uint64_t n = next_random(seed);

	if (!many || n % 2)
		return masks[n / 2 % 8];
	return n / 2 % 16 | (n / 32 % 3 ? UINT64_MAX << 8 : 0);
}

static int free_slot(const bool *used)
{
	for (int i = 0; i < MAX; i++) {
		if (!used[i])
			return i;
	}
	return -1;
}

static void step_receive(struct rig *r, bool many, uint64_t *seed)
{
	struct weft_match_source *s =
		next_random(seed) % 3 ? NULL : &r->src[next_random(seed) % SOURCES];
	uint64_t tag = next_random(seed) % 12, mask = some_mask(many, seed);
	struct weft_match_msg *msg = weft_match_find(&r->m, s, tag, mask);
	int i;

	assert_ptr_equal(msg, model_find(r, s, tag, mask));
	if (msg) {
		weft_match_msg_remove(&r->m, msg);
		model_remove_msg(r, msg);
		r->msg_used[msg - r->msg] = false;
		return;
	}
	i = free_slot(r->recv_used);
	if (i < 0)
		return;
	r->recv_used[i] = true;
	r->posted[r->num_posted++] = post(r, (unsigned int)i, s, tag, mask);
}

static void step_message(struct rig *r, uint64_t *seed)
{
	struct weft_match_source *s = &r->src[next_random(seed) % SOURCES];
	uint64_t tag = next_random(seed) % 12;
	int i = free_slot(r->msg_used);
	struct weft_match_recv *recv;

	if (i < 0)
		return;
	recv = weft_match_arrive(&r->m, s, tag);
	assert_ptr_equal(recv, model_arrive(r, s, tag));
	if (recv) {
		r->recv_used[recv - r->recv] = false;
		return;
	}
	r->msg_used[i] = true;
	r->arrived[r->num_arrived++] = keep(r, (unsigned int)i, s, tag);
}

static void step_cancel(struct rig *r, uint64_t *seed)
{
	unsigned int i;

	if (!r->num_posted)
		return;
	i = (unsigned int)(next_random(seed) % r->num_posted);
	weft_match_cancel(&r->m, r->posted[i]);
	r->recv_used[r->posted[i] - r->recv] = false;
	model_remove_recv(r, i);
}

/* The endpoint behind a source goes away and another one takes its place. */
static void step_source_gone(struct rig *r, uint64_t *seed)
{
	struct weft_match_source *s = &r->src[next_random(seed) % SOURCES];

	for (unsigned int i = 0; i < r->num_posted;) {
		if (r->posted[i]->source != s) {
			i++;
			continue;
		}
		weft_match_cancel(&r->m, r->posted[i]);
		r->recv_used[r->posted[i] - r->recv] = false;
		model_remove_recv(r, i);
	}
	weft_match_source_fini(&r->m, s);
	weft_match_source_init(&r->m, s);
}

static void random_history(uint64_t seed)
{
	struct rig *r = malloc(sizeof(*r));

	rig_init(r, 1);
	bool many = next_random(&seed) % 2;

	for (int step = 0; step < 3000; step++) {
		/* Phases with more receives, then with more messages. */
		unsigned int more = (step / 500) % 2 ? 7 : 3,
			     what = (unsigned int)(next_random(&seed) % 10);

		if (next_random(&seed) % 20 == 0)
			step_cancel(r, &seed);
		else if (next_random(&seed) % 200 == 0)
			step_source_gone(r, &seed);
		else if (what < more)
			step_receive(r, many, &seed);
		else
			step_message(r, &seed);
		if (weft_match_crowded(&r->m) && r->m.bits < 6)
			grow(r);
		assert_int_equal(r->m.num_recvs, r->num_posted);
		assert_int_equal(r->m.num_msgs, r->num_arrived);
	}
	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
}

static void random_histories_agree_with_the_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(300); seed++)
		random_history(seed * 0x9e3779b97f4a7c15ull);
}

/* ------------------------------------------------------------------ single rules */

static void A2_posting_order_between_wildcard_source_and_directed_receives(void **state)
{
	struct rig *r = *state;
	struct weft_match_recv *any, *directed;

	any = post(r, 0, NULL, 7, UINT64_MAX);
	directed = post(r, 1, &r->src[0], 7, UINT64_MAX);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7), any);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7), directed);

	directed = post(r, 2, &r->src[0], 7, UINT64_MAX);
	any = post(r, 3, NULL, 7, UINT64_MAX);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7), directed);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7), any);
}

static void A3_U11_posting_order_between_wildcard_tags_and_exact_ones(void **state)
{
	struct rig *r = *state;
	struct weft_match_recv *wild = post(r, 0, NULL, 0, 0),
			       *exact = post(r, 1, NULL, 7, UINT64_MAX);
	struct weft_match_recv *wild2 = post(r, 2, &r->src[1], 6, UINT64_MAX << 1);

	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[1], 7), wild);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[1], 7), exact);
	assert_null(weft_match_arrive(&r->m, &r->src[0], 7));
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[1], 7), wild2);
}

static void A4_U12_unexpected_messages_are_taken_in_arrival_order(void **state)
{
	struct rig *r = *state;
	struct weft_match_msg *a = keep(r, 0, &r->src[2], 9), *b = keep(r, 1, &r->src[0], 5);
	struct weft_match_msg *c = keep(r, 2, &r->src[2], 5);

	assert_ptr_equal(weft_match_find(&r->m, NULL, 0, 0), a);
	assert_ptr_equal(weft_match_find(&r->m, NULL, 5, UINT64_MAX), b);
	assert_ptr_equal(weft_match_find(&r->m, &r->src[2], 5, UINT64_MAX), c);
	assert_ptr_equal(weft_match_find(&r->m, &r->src[2], 1, 1), a);
	assert_null(weft_match_find(&r->m, &r->src[1], 0, 0));
}

static void A5_U3_tags_of_64_bits_and_mask_algebra(void **state)
{
	struct rig *r = *state;
	const uint64_t tags[] = {0, UINT64_MAX, 1ull << 63, 0x123456789abcdef0ull};

	for (unsigned int i = 0; i < 4; i++) {
		for (unsigned int j = 0; j < 4; j++) {
			struct weft_match_recv *recv = post(r, 0, NULL, tags[i], UINT64_MAX);
			struct weft_match_recv *got = weft_match_arrive(&r->m, &r->src[0], tags[j]);

			assert_ptr_equal(got, i == j ? recv : NULL);
			if (!got)
				weft_match_cancel(&r->m, recv);
		}
	}
	post(r, 1, NULL, 0xabcd0000, 0xffff0000);
	assert_null(weft_match_arrive(&r->m, &r->src[0], 0xabce1234));
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 0xff00abcd1234ull), &r->recv[1]);
}

static void messages_of_a_source_that_is_gone_stay_for_any_source(void **state)
{
	struct rig *r = *state;
	struct weft_match_msg *a = keep(r, 0, &r->src[0], 1);

	weft_match_source_fini(&r->m, &r->src[0]);
	assert_ptr_equal(weft_match_find(&r->m, NULL, 1, UINT64_MAX), a);
	weft_match_msg_remove(&r->m, a);
	assert_null(weft_match_find(&r->m, NULL, 0, 0));
}

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
		if (weft_match_crowded(&r->m))
			grow(r);
	}
	assert_true(LONGEST(r->m.recv_table, link) <= 16);
	for (unsigned int i = n; i-- > 0;)
		assert_ptr_equal(weft_match_arrive(&r->m, &r->src[i % SOURCES], i), &recv[i]);
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
		if (weft_match_crowded(&r->m))
			grow(r);
	}
	assert_true(LONGEST(r->m.tag_table, tag_link) <= 16);
	assert_true(LONGEST(r->m.pair_table, pair_link) <= 16);
	for (unsigned int i = n; i-- > 0;) {
		const struct weft_match_source *s = i % 2 ? &r->src[0] : NULL;

		assert_ptr_equal(weft_match_find(&r->m, s, i, UINT64_MAX), &msg[i]);
		weft_match_msg_remove(&r->m, &msg[i]);
	}
	weft_match_fini(&r->m);
	free(msg);
	free(r->mem);
	free(r);
}

/* Counted in steps, not in seconds. */
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
			.mask = ~(0xffull << i % num_masks),
			.source = directed ? &r->src[i % SOURCES] : NULL};
		weft_match_post(&r->m, &recv[i]);
		if (weft_match_crowded(&r->m))
			grow(r);
	}
	recv[n] = (struct weft_match_recv){.tag = 5, .mask = UINT64_MAX};
	weft_match_post(&r->m, &recv[n]);
	looks = r->m.looks;
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 5), &recv[n]);
	looks = r->m.looks - looks;
	/* In the order of posting, each with what only it takes; and to the last one. */
	for (unsigned int i = 0; i < n; i += 997) {
		struct weft_match_recv *got =
			weft_match_arrive(&r->m, &r->src[i % SOURCES], recv[i].tag);

		assert_non_null(got);
		assert_true(got->order <= recv[i].order);
		assert_true(((got->tag ^ recv[i].tag) & got->mask) == 0);
	}
	for (unsigned int i = r->m.num_recvs; i > 0; i--)
		weft_match_cancel(&r->m, weft_match_any_recv(&r->m));
	assert_int_equal(r->m.num_recvs, 0);
	assert_int_equal(r->m.masks_used, 0);
	free(recv);
	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
	return looks;
}

static void a_match_behind_1e5_wildcards_looks_at_their_masks(void **state)
{
	(void)state;
	for (unsigned int num_masks = 1; num_masks <= 16; num_masks *= 2) {
		/* On average 1.5 receives stand in a bucket. */
		assert_in_range(looks_behind(100000, num_masks, false, false), 0, 6 * num_masks);
		assert_in_range(looks_behind(100000, num_masks, true, false), 0, 6 * num_masks);
		/* A tag that differs from all where all agree is not looked for at all. */
		assert_int_equal(looks_behind(100000, num_masks, false, true), 0);
	}
}

/* Of 10^5 messages the last one is searched for, over and over, as a program that probes does. */
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
		assert_null(weft_match_find(&r->m, NULL, 1, 1));
		assert_null(weft_match_find(&r->m, &r->src[0], 1, 1));
	}
	assert_int_equal(r->m.msg_looks, N + N / 2);
	/* It does not matter which of them go meanwhile. */
	for (unsigned int i = 1; i < N; i += 3)
		weft_match_msg_remove(&r->m, &msg[N - i]);
	looks = r->m.msg_looks;
	msg[N] = (struct weft_match_msg){.tag = 7, .source = &r->src[0]};
	weft_match_msg_add(&r->m, &msg[N]);
	for (unsigned int i = 0; i < 10; i++) {
		assert_ptr_equal(weft_match_find(&r->m, NULL, 1, 1), &msg[N]);
		assert_ptr_equal(weft_match_find(&r->m, &r->src[0], 1, 1), &msg[N]);
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
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(A2_posting_order_between_wildcard_source_and_directed_receives),
		T(A3_U11_posting_order_between_wildcard_tags_and_exact_ones),
		T(A4_U12_unexpected_messages_are_taken_in_arrival_order),
		T(A5_U3_tags_of_64_bits_and_mask_algebra),
		T(messages_of_a_source_that_is_gone_stay_for_any_source),
		cmocka_unit_test(random_histories_agree_with_the_model),
		cmocka_unit_test(tags_chosen_to_collide_do_not_without_the_seed),
		cmocka_unit_test(tags_that_count_up_spread_with_every_seed),
		cmocka_unit_test(a_match_behind_1e5_wildcards_looks_at_their_masks),
		cmocka_unit_test(a_search_with_wildcards_looks_at_each_message_once),
		cmocka_unit_test(U25_E1_full_mask_tags_cost_the_same_with_1e5_entries),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
