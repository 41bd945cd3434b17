/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of what a native rendezvous registers: their rights, whose they are, when they die. */

#include <unistd.h>

#include "unit/rndv/duo.h"

/* ------------------------------------------------------------------ rights */

static void the_key_of_a_send_buffer_allows_reading_and_that_of_a_receive_buffer_writing(
	void **state)
{
	static const struct {
		const char *scheme;
		unsigned int rights;
	} cases[] = {{"get", WEFT_LANE_ACCESS_REMOTE_READ}, {"put", WEFT_LANE_ACCESS_REMOTE_WRITE}};
	struct op s, r;
	struct duo d;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		mock_reset();
		duo_open(&d, "mock:0,get=4096,put=4096", cases[i].scheme, cases[i].scheme);
		mock_set_rma_window(1);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		op_send_sync(&s, d.ep, d.sbuf, LEN, 1);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_int_equal(mock_mem_remote_rights(), cases[i].rights);
		wait_for(&d, &s, &r);
		op_end(&s, 0);
		op_end_recv(&r, d.rbuf, LEN, 1, 5);
		assert_int_equal(mock_num_denied(), 0);
		duo_close(&d);
	}
}

static void send_from(struct duo *d, struct weft_mem *mem, const uint8_t *buf, struct op *op)
{
	struct weft_op_params p = op_params(op, NULL);

	p.mem = mem;
	op->rc = weft_tag_send_sync(d->ep, buf, LEN, 1, &p, &op->req);
	assert_int_equal(op->rc, WEFT_INPROGRESS);
}

static void memory_of_the_user_is_sent_by_a_key_for_reading_that_is_made_once(void **state)
{
	static const unsigned int flags[] = {0, WEFT_MEM_F_REMOTE_READ,
					     WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = flags[i]);
		struct weft_mem *mem;
		struct op s, r;
		struct duo d;
		unsigned int before;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
		duo_open(&d, "mock:0,get=65536", "auto", "auto");
		assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
		before = mock_num_registers();
		for (int k = 0; k < 3; k++) {
			op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
			send_from(&d, mem, d.sbuf, &s);
			wait_for(&d, &s, &r);
			op_end(&s, 0);
			op_end_recv(&r, d.rbuf, LEN, 1, 5);
		}
		assert_true(gets(&d) >= 3 * LEN / 65536);
		assert_int_equal(mock_num_denied(), 0);
		/*
		 * Three of the receiver, and one of the sender: never a key that the user gives
		 * away.
		 */
		assert_int_equal(mock_num_registers() - before, 4);
		assert_int_equal(weft_mem_deregister(mem), 0);
		assert_int_equal(mock_num_mems(), 0);
		duo_close(&d);
	}
	mock_features = 0;
}

static void memory_that_the_user_may_only_read_is_registered_and_sent(void **state)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = 0);
	struct weft_mem *mem;
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	mock_set_read_only(d.sbuf, LEN);
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
	op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
	send_from(&d, mem, d.sbuf, &s);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_true(gets(&d) > 0);
	assert_int_equal(weft_mem_deregister(mem), 0);
	/* Nor on the fly. */
	one(&d, LEN);
	assert_int_equal(pulls(&d), 0);
	duo_close(&d);
}

static void memory_that_may_not_be_written_has_no_key_for_writing(void **state)
{
	struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_WRITE);
	struct weft_mem *mem;
	struct duo d;

	(void)state;
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
	duo_open(&d, "mock:0,get=65536,put=65536", "auto", "auto");
	mock_set_read_only(d.sbuf, LEN);
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), -EFAULT);
	mp.flags = WEFT_MEM_F_REMOTE_READ;
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
	assert_int_equal(weft_mem_deregister(mem), 0);
	duo_close(&d);
	mock_features = 0;
}

/* Else a request of the peer's hardware goes on in memory that is its owner's again. */
static void keys_of_a_message_that_ends_before_its_time_are_dead_when_it_ends(void **state)
{
	static const char *const schemes[] = {"get", "put"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct op s, r;
		struct duo d;
		bool keeps;

		mock_reset();
		cache = "REG_CACHE=auto";
		duo_open(&d, "mock:0,get=4096,put=4096", schemes[i], schemes[i]);
		one(&d, LEN);
		/* It ended as agreed: it stays for the next. */
		keeps = mock_mem_remote_rights() != 0;
		mock_set_rma_window(1);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		op_send(&s, d.ep, d.sbuf, LEN, 1);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_int_not_equal(mock_mem_remote_rights(), 0);
		mock_kill(NULL, NULL, -ECONNRESET, "cut");
		for (int k = 0; k < 50 && !(op_done(&r) && op_done(&s)); k++)
			duo_run(&d, 1);
		assert_int_equal(mock_mem_remote_rights(), 0);
		op_end(&r, -ECONNRESET);
		op_end(&s, -ECONNRESET);
		duo_close(&d);
		if (!keeps) {
			print_message("left out: the kernel does not let registrations be kept\n");
			skip();
		}
	}
}

/* The user's registration stays; the one that was made for messages does not. */
static void a_key_to_memory_of_the_user_is_dead_when_its_message_fails(void **state)
{
	static const unsigned int flags[] = {0, WEFT_MEM_F_REMOTE_READ};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = flags[i]);
		struct weft_mem *mem;
		unsigned int before;
		struct op s, r;
		struct duo d;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
		duo_open(&d, "mock:0,get=4096", "get", "get");
		assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
		before = mock_num_mems();
		mock_set_rma_window(1);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		send_from(&d, mem, d.sbuf, &s);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_int_equal(mock_num_mems(), before + 2);
		mock_kill(NULL, NULL, -ECONNRESET, "cut");
		for (int k = 0; k < 50 && !(op_done(&r) && op_done(&s)); k++)
			duo_run(&d, 1);
		assert_int_equal(mock_num_mems(), before);
		op_end(&r, -ECONNRESET);
		op_end(&s, -ECONNRESET);
		assert_int_equal(weft_mem_deregister(mem), 0);
		duo_close(&d);
	}
	mock_features = 0;
}

static void a_registration_beside_the_buffer_is_not_offered(void **state)
{
	struct weft_mem *mem;
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN / 2, NULL, &mem), 0);
	op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
	send_from(&d, mem, d.sbuf, &s);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_int_equal(gets(&d), 0);
	assert_int_equal(weft_mem_deregister(mem), 0);
	duo_close(&d);
}

/*
 * The lanes give back what they still hold when they close, under the context's lock; its
 * registration, made on the fly, goes with it, under the same lock.
 */
static void a_worker_may_go_while_its_lanes_hold_what_was_registered_on_the_fly(void **state)
{
	static const char *const schemes[] = {"put", "get"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct weft_op_params p;
		struct duo d;
		struct op s, r;

		alarm(20); /* it would wait for itself for ever */
		duo_open(&d, "mock:0,get=16k,put=16k", schemes[i], schemes[i]);
		p = op_params(&r, NULL);
		assert_int_equal(weft_tag_recv(d.w[1], NULL, d.rbuf, LEN, 1, FULL, &p, NULL),
				 WEFT_INPROGRESS);
		p = op_params(&s, NULL);
		assert_int_equal(weft_tag_send(d.ep, d.sbuf, LEN, 1, &p, NULL), WEFT_INPROGRESS);
		for (int k = 0; k < 200 && !puts_of(&d) && !gets(&d); k++)
			duo_run(&d, 1);
		assert_true(puts_of(&d) + gets(&d) > 0);
		assert_in_range(mock_num_mems(), 1, 2);
		mock_set_slow_hardware(true);
		duo_close(&d);
		assert_int_equal(s.calls, 1);
		assert_int_equal(r.calls, 1);
		assert_true(s.c.status < 0 && r.c.status < 0);
		alarm(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_worker_may_go_while_its_lanes_hold_what_was_registered_on_the_fly),
		T(the_key_of_a_send_buffer_allows_reading_and_that_of_a_receive_buffer_writing),
		T(memory_of_the_user_is_sent_by_a_key_for_reading_that_is_made_once),
		T(memory_that_the_user_may_only_read_is_registered_and_sent),
		T(memory_that_may_not_be_written_has_no_key_for_writing),
		T(a_registration_beside_the_buffer_is_not_offered),
		T(keys_of_a_message_that_ends_before_its_time_are_dead_when_it_ends),
		T(a_key_to_memory_of_the_user_is_dead_when_its_message_fails),
	};

	return cmocka_run_group_tests_name("rendezvous, native: rights", tests, NULL, NULL);
}
