/* SPDX-License-Identifier: BSD-3-Clause */
/* Tag matching against a model that does everything by linear search over two lists. */

#include "unit/tag/rig.h"

/* Channel 0, from anywhere. */
static const struct weft_match_chan any_chan = {0, 0};

/* ------------------------------------------------------------------ model */

static bool fits(const struct weft_match_recv *recv, const struct weft_match_source *s,
		 uint64_t tag, struct weft_match_chan chan)
{
	return ((recv->tag ^ tag) & recv->mask) == 0 && (!recv->source || recv->source == s) &&
	       recv->channel == chan.channel && (!recv->from || recv->from == chan.from);
}

static struct weft_match_recv *model_arrive(struct rig *r, const struct weft_match_source *s,
					    uint64_t tag, struct weft_match_chan chan)
{
	for (unsigned int i = 0; i < r->num_posted; i++) {
		struct weft_match_recv *recv = r->posted[i];

		if (!fits(recv, s, tag, chan))
			continue;
		memmove(&r->posted[i], &r->posted[i + 1],
			(r->num_posted - i - 1) * sizeof(*r->posted));
		r->num_posted--;
		return recv;
	}
	return NULL;
}

static struct weft_match_msg *model_find(struct rig *r, const struct weft_match_source *s,
					 uint64_t tag, uint64_t mask, struct weft_match_chan chan)
{
	const struct weft_match_recv probe = {.tag = tag,
					      .mask = mask,
					      .source = (struct weft_match_source *)(uintptr_t)s,
					      .channel = chan.channel,
					      .from = chan.from};

	for (unsigned int i = 0; i < r->num_arrived; i++) {
		const struct weft_match_msg *m = r->arrived[i];
		const struct weft_match_chan of = {m->channel, m->from};

		if (fits(&probe, m->source, m->tag, of))
			return r->arrived[i];
	}
	return NULL;
}

/*
 * @behaviour A13: two communicators never cross-match; does not apply: there is no communicator;
 * matching belongs to a worker, and an application puts its contexts into tag bits (A5) or uses two
 * workers, which share nothing
 */

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

/* Mostly 0; the highest one, too. */
static uint16_t some_channel(uint64_t *seed)
{
	static const uint16_t of[] = {0, 0, 0, 1, 7, UINT16_MAX};

	return of[next_random(seed) % 6];
}

static uint32_t some_from(uint64_t *seed)
{
	return next_random(seed) % 2 ? 0 : 1 + (uint32_t)some_channel(seed);
}

static void step_receive(struct rig *r, bool many, bool named, uint64_t *seed)
{
	struct weft_match_source *s =
		!named && next_random(seed) % 3 ? NULL : &r->src[next_random(seed) % SOURCES];
	uint64_t tag = next_random(seed) % 12, mask = some_mask(many, seed);
	struct weft_match_chan chan = {some_channel(seed), s ? some_from(seed) : 0};
	struct weft_match_msg *msg = weft_match_find(&r->m, s, tag, mask, chan);
	int i;

	assert_ptr_equal(msg, model_find(r, s, tag, mask, chan));
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
	r->recv[i].channel = chan.channel;
	r->recv[i].from = chan.from;
	r->posted[r->num_posted++] = post(r, (unsigned int)i, s, tag, mask);
}

static void step_message(struct rig *r, uint64_t *seed)
{
	struct weft_match_source *s = &r->src[next_random(seed) % SOURCES];
	uint64_t tag = next_random(seed) % 12;
	struct weft_match_chan chan = {some_channel(seed), 1 + (uint32_t)some_channel(seed)};
	int i = free_slot(r->msg_used);
	struct weft_match_recv *recv;

	if (i < 0)
		return;
	recv = weft_match_arrive(&r->m, s, tag, chan);
	assert_ptr_equal(recv, model_arrive(r, s, tag, chan));
	if (recv) {
		r->recv_used[recv - r->recv] = false;
		return;
	}
	r->msg_used[i] = true;
	r->msg[i].channel = chan.channel;
	r->msg[i].from = chan.from;
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

static uint32_t num_fresh(const struct weft_match *m)
{
	struct weft_match_source *s;
	struct weft_match_recv *recv;
	uint32_t n = 0;

	LIST_FOREACH(s, &m->fresh, fresh_link)
		TAILQ_FOREACH(recv, &s->recvs, source_link)
			n += recv->fresh;
	return n;
}

static void random_history(uint64_t seed)
{
	struct rig *r = malloc(sizeof(*r));

	rig_init(r, 1);
	bool many = next_random(&seed) % 2;
	/* All receives name a source: in no step, in most of them, in each. */
	unsigned int naming = (unsigned int)(next_random(&seed) % 3);

	for (int step = 0; step < 3000; step++) {
		/* Phases with more receives, then with more messages. */
		unsigned int more = (step / 500) % 2 ? 7 : 3,
			     what = (unsigned int)(next_random(&seed) % 10);

		if (next_random(&seed) % 20 == 0)
			step_cancel(r, &seed);
		else if (next_random(&seed) % 200 == 0)
			step_source_gone(r, &seed);
		else if (what < more)
			step_receive(r, many, naming == 2 || (naming == 1 && step / 100 % 4),
				     &seed);
		else
			step_message(r, &seed);
		if (weft_match_overloaded(&r->m) && r->m.bits < 6)
			grow(r);
		assert_int_equal(r->m.num_recvs, r->num_posted);
		assert_int_equal(r->m.num_msgs, r->num_arrived);
		assert_int_equal(r->m.num_fresh, num_fresh(&r->m));
	}
	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
}

/* @behaviour U11, A2 */
static void random_histories_agree_with_the_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(300); seed++)
		random_history(seed * 0x9e3779b97f4a7c15ull);
}

/* ------------------------------------------------------------------ single rules */

/* @behaviour A2: posting order between receives from any source and from one */
static void A2_posting_order_between_wildcard_source_and_directed_receives(void **state)
{
	struct rig *r = *state;
	struct weft_match_recv *any, *directed;

	any = post(r, 0, NULL, 7, UINT64_MAX);
	directed = post(r, 1, &r->src[0], 7, UINT64_MAX);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7, any_chan), any);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7, any_chan), directed);

	directed = post(r, 2, &r->src[0], 7, UINT64_MAX);
	any = post(r, 3, NULL, 7, UINT64_MAX);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7, any_chan), directed);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 7, any_chan), any);
}

/*
 * @behaviour U11: a wildcard posted before an exact receive: the earlier posted receive that
 * matches gets the message
 * @behaviour A3: posting order between wildcard tags and exact ones
 */
static void A3_U11_posting_order_between_wildcard_tags_and_exact_ones(void **state)
{
	struct rig *r = *state;
	struct weft_match_recv *wild = post(r, 0, NULL, 0, 0),
			       *exact = post(r, 1, NULL, 7, UINT64_MAX);
	struct weft_match_recv *wild2 = post(r, 2, &r->src[1], 6, UINT64_MAX << 1);

	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[1], 7, any_chan), wild);
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[1], 7, any_chan), exact);
	assert_null(weft_match_arrive(&r->m, &r->src[0], 7, any_chan));
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[1], 7, any_chan), wild2);
}

/*
 * @behaviour U12: a wildcard takes the message that arrived first
 * @behaviour A4: unexpected messages are taken in arrival order
 */
static void A4_U12_unexpected_messages_are_taken_in_arrival_order(void **state)
{
	struct rig *r = *state;
	struct weft_match_msg *a = keep(r, 0, &r->src[2], 9), *b = keep(r, 1, &r->src[0], 5);
	struct weft_match_msg *c = keep(r, 2, &r->src[2], 5);

	assert_ptr_equal(weft_match_find(&r->m, NULL, 0, 0, any_chan), a);
	assert_ptr_equal(weft_match_find(&r->m, NULL, 5, UINT64_MAX, any_chan), b);
	assert_ptr_equal(weft_match_find(&r->m, &r->src[2], 5, UINT64_MAX, any_chan), c);
	assert_ptr_equal(weft_match_find(&r->m, &r->src[2], 1, 1, any_chan), a);
	assert_null(weft_match_find(&r->m, &r->src[1], 0, 0, any_chan));
}

/*
 * @behaviour U3: only the bits of the mask count; the full tag and true length are reported
 * @behaviour A5: 64-bit tags, masks (no tag is reserved: all 2^64 are the application's)
 */
static void A5_U3_tags_of_64_bits_and_mask_algebra(void **state)
{
	struct rig *r = *state;
	const uint64_t tags[] = {0, UINT64_MAX, 1ull << 63, 0x123456789abcdef0ull};

	for (unsigned int i = 0; i < 4; i++) {
		for (unsigned int j = 0; j < 4; j++) {
			struct weft_match_recv *recv = post(r, 0, NULL, tags[i], UINT64_MAX);
			struct weft_match_recv *got =
				weft_match_arrive(&r->m, &r->src[0], tags[j], any_chan);

			assert_ptr_equal(got, i == j ? recv : NULL);
			if (!got)
				weft_match_cancel(&r->m, recv);
		}
	}
	post(r, 1, NULL, 0xabcd0000, 0xffff0000);
	assert_null(weft_match_arrive(&r->m, &r->src[0], 0xabce1234, any_chan));
	assert_ptr_equal(weft_match_arrive(&r->m, &r->src[0], 0xff00abcd1234ull, any_chan),
			 &r->recv[1]);
}

static void messages_of_a_source_that_is_gone_stay_for_any_source(void **state)
{
	struct rig *r = *state;
	struct weft_match_msg *a = keep(r, 0, &r->src[0], 1);

	weft_match_source_fini(&r->m, &r->src[0]);
	assert_ptr_equal(weft_match_find(&r->m, NULL, 1, UINT64_MAX, any_chan), a);
	weft_match_msg_remove(&r->m, a);
	assert_null(weft_match_find(&r->m, NULL, 0, 0, any_chan));
}

/* Without receives from any source, messages in the order of the receives need no search. */
static void receives_in_the_order_of_messages_are_found_without_a_search(void **state)
{
	enum { NUM = WEFT_MATCH_FRESH + 40, IN_ORDER = 20 };
	struct rig *r = *state;

	for (unsigned int i = 0; i < NUM; i++) {
		post(r, i, &r->src[i % 2], i, ~(1ull << 40));
		assert_non_null(weft_match_any_recv(&r->m));
		assert_in_range(r->m.num_fresh, 1, WEFT_MATCH_FRESH);
	}
	for (unsigned int i = 0; i < IN_ORDER; i++)
		assert_ptr_equal(weft_match_arrive(&r->m, &r->src[i % 2], i, any_chan),
				 &r->recv[i]);
	assert_int_equal(r->m.looks, 0);
	assert_null(weft_match_arrive(&r->m, &r->src[2], IN_ORDER, any_chan));
	for (unsigned int i = NUM; i-- > IN_ORDER;) {
		assert_null(weft_match_arrive(&r->m, &r->src[!(i % 2)], i, any_chan));
		assert_ptr_equal(weft_match_arrive(&r->m, &r->src[i % 2], i, any_chan),
				 &r->recv[i]);
	}
	assert_true(r->m.looks > 0);
	assert_null(weft_match_any_recv(&r->m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(receives_in_the_order_of_messages_are_found_without_a_search),
		T(A2_posting_order_between_wildcard_source_and_directed_receives),
		T(A3_U11_posting_order_between_wildcard_tags_and_exact_ones),
		T(A4_U12_unexpected_messages_are_taken_in_arrival_order),
		T(A5_U3_tags_of_64_bits_and_mask_algebra),
		T(messages_of_a_source_that_is_gone_stay_for_any_source),
		cmocka_unit_test(random_histories_agree_with_the_model),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
