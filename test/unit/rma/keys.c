/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote keys: damaged, many, revoked, forged.
 */

#include "mem/mem.h"
#include "mock/rma_util.h"

/* @behaviour U79, X14, S11 */
static void a_damaged_key_is_refused_whichever_byte_it_is(void **state)
{
	struct weft_rkey *rkey;
	struct stage s;
	size_t length;
	uint8_t *blob, *copy;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	assert_int_equal(weft_rkey_pack(s.m, (void **)&blob, &length), 0);
	assert_in_range(length, 40, 2048);
	weft_log_level = -1; /* on purpose */
	for (size_t i = 0; i < length; i++) {
		int rc;

		copy = malloc(length);
		memcpy(copy, blob, length);
		copy[i] ^= 1;
		rc = weft_rkey_unpack(s.ep, copy, length, &rkey);
		assert_int_equal(rc, i == 4 ? -EPROTONOSUPPORT : -EINVAL);
		free(copy);
		copy = malloc(i ? i : 1);
		memcpy(copy, blob, i);
		assert_int_equal(weft_rkey_unpack(s.ep, copy, i, &rkey), -EINVAL);
		free(copy);
	}
	weft_rkey_release_blob(blob);
	stage_close(&s);
}

static void many_keys_are_all_different_and_all_found(void **state)
{
	enum { N = 3000 };
	static struct weft_mem *m[N];
	static uint8_t mem[N];
	struct stage s;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	for (int i = 0; i < N; i++)
		m[i] = stage_register(&s, &mem[i], 1, ALL_RIGHTS);
	for (int i = 0; i < N; i += 2)
		assert_int_equal(weft_mem_deregister(m[i]), 0);
	for (int i = 0; i < N; i++) {
		struct weft_mem_slot *slot;

		if (i % 2 == 0)
			continue;
		slot = weft_mem_key_enter(&s.p.ctx.keys, m[i]->key);
		assert_non_null(slot);
		assert_ptr_equal(slot->mem, m[i]);
		weft_mem_key_leave(slot);
		assert_null(weft_mem_key_enter(&s.p.ctx.keys, m[i]->key + (1ull << 40)));
	}
	for (int i = 1; i < N; i += 2)
		assert_int_equal(weft_mem_deregister(m[i]), 0);
	assert_null(weft_mem_key_enter(&s.p.ctx.keys, 0));
	stage_close(&s);
}

/*
 * What was posted last comes first, and what is said of it: an RMA_NAK, or nothing, as from a peer
 * that has too many answers under way (@p no_nak; until the rest has come, too, if @p before).
 */
static void deliver_last_first(struct stage *s, bool no_nak, bool before)
{
	struct weft_rma *peer = weft_rma_of(s->p.ep[1].msg);

	if (no_nak)
		peer->answers_open = WEFT_WIRE_ANSWERS / 2;
	pair_deliver(&s->p, s->p.num - 1);
	for (size_t i = 0; i < s->p.num; i++)
		if (s->p.msgs[i].id == WEFT_WIRE_RMA_NAK)
			pair_deliver(&s->p, i--);
	if (no_nak && !before)
		peer->answers_open = 0;
	while (s->p.num > 0) {
		pair_deliver(&s->p, 0);
		pair_progress(&s->p);
	}
	if (no_nak && before)
		peer->answers_open = 0;
	pair_run(&s->p);
}

/*
 * A flush, and then a put that is refused, which overtakes all before it: the error is the next
 * flush's. With an RMA_NAK, and without one, as for a peer that has too many answers under way.
 */
static void a_flush_takes_no_error_of_what_was_posted_later(void **state)
{
	static const struct pair_lane_params lanes[2] = {{.max_bcopy = 1024, .latency = 1e-6},
							 {.max_bcopy = 1024, .latency = 1e-6}};
	uint8_t buf[8] = {1}, mem[64];

	(void)state;
	for (unsigned int round = 0; round < 12; round++) {
		bool amo = round & 1, no_nak = round & 2, queried = round / 4 == 1,
		     before = round / 4 == 2;
		struct weft_atomic_params add = WEFT_INIT(
			struct weft_atomic_params, .op = WEFT_ATOMIC_ADD, .width = 8, .operand = 1);
		struct flushed f = {0}, g = {0};
		struct weft_rkey *good;
		struct weft_mem *m;
		struct stage s;

		pair_defaults(&s.p);
		stage_open(&s, 2, lanes, 100);
		good = s.rkey;
		m = stage_register(&s, mem, sizeof(mem), ALL_RIGHTS);
		s.rkey = stage_key(&s, m);
		assert_int_equal(weft_mem_deregister(m), 0);
		/* A question is out already, so that one more is needed. */
		if (queried) {
			assert_int_equal(weft_put(s.ep, buf, 8, good, 8, NULL, NULL), 0);
			assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &g), 0);
		}
		if (before)
			assert_int_equal(weft_put(s.ep, buf, 8, s.rkey, 0, NULL, NULL), 0);
		assert_int_equal(weft_put(s.ep, buf, 8, good, 0, NULL, NULL), 0);
		assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f), 0);
		if (amo)
			assert_int_equal(weft_atomic(s.ep, &add, s.rkey, 0, NULL, NULL), 0);
		else
			assert_int_equal(weft_put(s.ep, buf, 8, s.rkey, 0, NULL, NULL), 0);
		deliver_last_first(&s, no_nak, before);
		assert_int_equal(f.calls, 1);
		assert_int_equal(f.status, before ? -EKEYREJECTED : 0);
		assert_int_equal(g.status, 0);
		assert_int_equal(stage_flush(&s), -EKEYREJECTED);
		assert_int_equal(stage_flush(&s), 0);
		weft_rkey_destroy(s.rkey);
		s.rkey = good;
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/*
 * @behaviour U72: a key becomes invalid with its registration, at once, also for half-done
 * operations
 * @behaviour X14: revoked, forged and foreign keys
 * @behaviour S11: the key of remote memory is random, guessable only by its own peer, and revocable
 */
static void a_revoked_or_forged_key_is_refused_and_reported(void **state)
{
	uint8_t buf[3000] = {0}, was;
	uint64_t old = 77;
	struct stage s;
	struct op op;

	(void)state;
	for (int forged = 0; forged < 2; forged++) {
		struct weft_mem *m;
		struct weft_rkey *all;
		uint8_t mem[4000];

		pair_defaults(&s.p);
		stage_open(&s, 1, NULL, 100);
		all = s.rkey;
		memset(mem, 0xa5, sizeof(mem));
		m = stage_register(&s, mem, sizeof(mem), ALL_RIGHTS);
		s.rkey = stage_key(&s, m);
		if (forged)
			s.rkey->key ^= 1ull << 50;
		else
			assert_int_equal(weft_mem_deregister(m), 0);
		op_put(&op, &s, buf, sizeof(buf), 0, WEFT_OP_F_DELIVERED);
		pair_run(&s.p);
		op_end(&op, -EKEYREJECTED);
		op_get(&op, &s, &was, 1, 0);
		pair_run(&s.p);
		op_end(&op, -EKEYREJECTED);
		op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old, 0, 0);
		pair_run(&s.p);
		op_end(&op, -EKEYREJECTED);
		op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, NULL, 0, WEFT_OP_F_DELIVERED);
		pair_run(&s.p);
		op_end(&op, -EKEYREJECTED);
		assert_int_equal(old, 77);
		/* Their requests have reported all of those. */
		assert_int_equal(stage_flush(&s), 0);
		/* A put that is done and gone: the next flush tells, once. */
		assert_int_equal(weft_put(s.ep, buf, 8, s.rkey, 0, NULL, NULL), 0);
		assert_int_equal(stage_flush(&s), -EKEYREJECTED);
		assert_int_equal(stage_flush(&s), 0);
		for (size_t i = 0; i < sizeof(mem); i++)
			assert_int_equal(mem[i], 0xa5);
		assert_true(s.p.w[1].msg->rma->bad_key >= 5);
		assert_int_equal(s.p.fail_status[0] | s.p.fail_status[1], 0);
		stage_check_empty(&s);
		weft_rkey_destroy(s.rkey);
		if (forged)
			assert_int_equal(weft_mem_deregister(m), 0);
		s.rkey = all;
		stage_close(&s);
	}
}

/*
 * More errors than are kept apart; and refusals that the peer can't name one by one: each flush
 * with one of them before it, and after the flush before, tells.
 */
static void no_flush_ends_well_over_a_refusal(void **state)
{
	uint8_t buf[8] = {1}, mem[64];

	(void)state;
	for (int no_nak = 0; no_nak < 2; no_nak++) {
		struct flushed f[3] = {0}, first = {0};
		struct weft_rkey *good;
		struct weft_mem *m;
		struct stage s;

		pair_defaults(&s.p);
		stage_open(&s, 1, NULL, 100);
		good = s.rkey;
		m = stage_register(&s, mem, sizeof(mem), ALL_RIGHTS);
		s.rkey = stage_key(&s, m);
		assert_int_equal(weft_mem_deregister(m), 0);
		assert_int_equal(weft_put(s.ep, buf, 8, good, 0, NULL, NULL), 0);
		assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &first), 0);
		if (no_nak)
			weft_rma_of(s.p.ep[1].msg)->answers_open = WEFT_WIRE_ANSWERS / 2;
		for (int i = 0; i < 3; i++) {
			for (int k = 0; k < (no_nak || i ? 1 : WEFT_RMA_ERRORS); k++)
				assert_int_equal(weft_put(s.ep, buf, 8, s.rkey, 0, NULL, NULL), 0);
			assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f[i]), 0);
		}
		pair_run(&s.p);
		weft_rma_of(s.p.ep[1].msg)->answers_open = 0;
		assert_int_equal(first.calls, 1);
		assert_int_equal(first.status, 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(f[i].calls, 1);
			assert_int_equal(f[i].status, -EKEYREJECTED);
		}
		assert_int_equal(s.p.ep[0].msg->rma->num_errors, 0);
		weft_rkey_destroy(s.rkey);
		s.rkey = good;
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/* @behaviour U72, X14, S11 */
static void a_key_that_is_revoked_in_the_middle_stops_the_rest(void **state)
{
	uint8_t *buf = malloc(200000), mem[1];
	struct pair_lane_params lane = {.max_short = 128, .max_bcopy = 1024};

	(void)state;
	(void)mem;
	for (int get = 0; get < 2; get++) {
		size_t before;
		struct stage s;
		struct op op;

		pair_defaults(&s.p);
		stage_open(&s, 1, &lane, 200000);
		memset(buf, 1, 200000);
		if (get) {
			pair_room(&s.p, 1, 20);
			op_get(&op, &s, buf, 200000, 0);
		} else {
			op_put(&op, &s, buf, 200000, 0, WEFT_OP_F_DELIVERED);
		}
		for (int i = 0; i < 20; i++)
			pair_deliver(&s.p, 0);
		before = get ? 0 : s.p.w[1].msg->rma->put_bytes;
		/* Answers that wait hold a reference; the key is dead in any case. */
		assert_int_equal(weft_mem_deregister(s.m), get ? -EBUSY : 0);
		pair_room(&s.p, 1, -1);
		pair_run(&s.p);
		op_end(&op, -EKEYREJECTED);
		if (!get) {
			assert_int_equal(s.p.w[1].msg->rma->put_bytes, before);
			for (size_t i = 0; i < 200000; i++)
				assert_int_equal(s.mem[i], i < before ? 1 : 0xa5);
			s.m = stage_register(&s, s.mem, s.size, ALL_RIGHTS);
		} else {
			assert_in_range(s.p.w[1].msg->rma->get_bytes, 1, 40000);
		}
		stage_check_empty(&s);
		stage_close(&s);
	}
	free(buf);
}

static void refusals_without_end_do_not_fill_memory(void **state)
{
	struct stage s;
	struct op op;
	uint8_t b = 0;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	s.rkey->key++;
	pair_room(&s.p, 1, 0); /* the target gets no word out */
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(weft_put(s.ep, &b, 1, s.rkey, 0, NULL, NULL), 0);
		pair_deliver(&s.p, 0);
	}
	op_put(&op, &s, &b, 1, 0, WEFT_OP_F_DELIVERED);
	while (s.p.num)
		pair_deliver(&s.p, 0);
	assert_int_equal(s.p.fail_status[1], 0);
	assert_in_range(s.p.w[1].msg->reqs.in_use, 1, WEFT_WIRE_ANSWERS);
	pair_room(&s.p, 1, -1);
	pair_run(&s.p);
	op_end(&op, -EKEYREJECTED);
	assert_int_equal(stage_flush(&s), -EKEYREJECTED);
	stage_untouched(&s);
	stage_check_empty(&s);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_damaged_key_is_refused_whichever_byte_it_is),
		cmocka_unit_test(many_keys_are_all_different_and_all_found),
		cmocka_unit_test(a_revoked_or_forged_key_is_refused_and_reported),
		cmocka_unit_test(a_flush_takes_no_error_of_what_was_posted_later),
		cmocka_unit_test(no_flush_ends_well_over_a_refusal),
		cmocka_unit_test(a_key_that_is_revoked_in_the_middle_stops_the_rest),
		cmocka_unit_test(refusals_without_end_do_not_fill_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
