/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by pulls, to the piece: what is asked for and over which lane, what the sender gives
 * and refuses. U n = item n of the list in doc/behaviours.md.
 */

#include "mock/rndv_util.h"

static void push_pull(struct pair *p, struct weft_wire_ref sreq, uint64_t off, uint64_t len)
{
	struct weft_wire_pull pull = {
		.sreq = sreq, .offset = weft_put64(off), .length = weft_put64(len)};

	push(p, 0, WEFT_WIRE_PULL, &pull, sizeof(pull));
}

static void pulled_data_comes_from_user_memory_uncopied(void **state)
{
	struct op s, r;
	struct pair p;

	(void)state;
	for (int expected = 0; expected < 2; expected++) {
		begin(&p, &s, &r, 2, expected);
		if (!expected) {
			pair_run(&p);
			op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
		}
		finish(&p, &s, &r);
		assert_int_equal(mw_of(&p, 0)->count.copied_bytes, 0);
		/* Announced and asked for: to its place, whenever that is known. */
		assert_int_equal(mw_of(&p, 1)->count.rx_copied_bytes, LEN);
		assert_true(mw_of(&p, 1)->count.pulls > 10);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

static void requested_bytes_are_bounded_per_lane_and_per_worker(void **state)
{
	struct op s[8], r[8];
	struct pair p;
	uint64_t seed = 77;

	(void)state;
	pair_defaults(&p);
	p.conf.rndv_window = 5000;
	p.conf.rndv_limit = 8000;
	pair_open(&p, 2, two);
	for (int i = 0; i < 8; i++) {
		op_recv(&r[i], &p.w[1], rbuf + i * 12000, 12000, (uint64_t)i, FULL);
		op_send(&s[i], &p.ep[0], sbuf + i * 12000, 12000, (uint64_t)i);
	}
	for (int n = 0; n < 20000 && p.num; n++) {
		uint64_t out = 0;

		for (int i = 0; i < 2; i++) {
			out += p.ep[1].msg->lanes[i].load[WEFT_DIR_RX].out;
			assert_true(p.ep[1].msg->lanes[i].load[WEFT_DIR_RX].out <= 5000);
		}
		assert_int_equal(out, mw_of(&p, 1)->rndv->pulls.used);
		assert_true(out < 8000 + 5000); /* the last piece may cross the limit */
		pair_deliver(&p, pair_random(&seed) % p.num);
		if (n % 4 == 0)
			pair_progress(&p);
	}
	pair_run(&p);
	for (int i = 0; i < 8; i++) {
		op_end(&s[i], 0);
		op_end(&r[i], 0);
	}
	assert_int_equal(mw_of(&p, 1)->rndv->pulls.used, 0);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour X15 */
static void stale_foreign_and_out_of_range_pulls_are_dropped_and_counted(void **state)
{
	struct weft_wire_ref ref, bad;
	struct op s, r, other;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, false);
	op_recv(&other, &p.w[0], rbuf, 10, 7, FULL); /* a receive of the sender's worker */
	ref = weft_request_ref(s.req);
	push_pull(&p, ref, LEN, 1);
	push_pull(&p, ref, 0, LEN + 1);
	push_pull(&p, ref, LEN - 1, 2);
	push_pull(&p, ref, PTRDIFF_MAX - 5, 5);
	assert_int_equal(mw_of(&p, 0)->count.mismatch, 4);
	bad = ref;
	bad.generation = weft_put32(weft_get32(ref.generation) + 1);
	push_pull(&p, bad, 0, 10);
	bad.index = weft_put32(1u << 30);
	push_pull(&p, bad, 0, 10);
	push_pull(&p, weft_request_ref(other.req), 0, 10);
	assert_int_equal(mw_of(&p, 0)->count.bad_ref, 3);
	assert_null(p.ep[0].msg->rndv);
	assert_int_equal(pair_count(&p, 1, WEFT_WIRE_DATA), 0);
	/* Another endpoint of the same worker may not name it. */
	s.req->me = NULL;
	push_pull(&p, ref, 0, 10);
	s.req->me = p.ep[0].msg;
	assert_int_equal(mw_of(&p, 0)->count.bad_ref, 4);
	op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
	finish(&p, &s, &r);
	/* Access ends with the message. */
	push_pull(&p, ref, 0, 10);
	assert_int_equal(mw_of(&p, 0)->count.bad_ref, 5);
	pair_progress(&p);
	assert_int_equal(p.num, 0);
	weft_request_cancel(other.req);
	weft_request_free(other.req);
	pair_close(&p);
}

/* Sends a message that fits the credit, of 5 pieces. @return it was announced */
static bool announced(struct pair *p, uint64_t tag)
{
	unsigned int before = pair_count(p, 1, WEFT_WIRE_RTS);
	struct op s, r;
	bool is;

	op_send(&s, &p->ep[0], sbuf, 5000, tag);
	is = pair_count(p, 1, WEFT_WIRE_RTS) > before;
	op_recv(&r, &p->w[1], rbuf, 5000, tag, FULL);
	pair_run(p);
	op_end(&s, 0);
	op_end(&r, 0);
	return is;
}

static void a_sender_notified_of_contention_announces_until_it_is_over(void **state)
{
	struct weft_wire_pull pull = {.length = weft_put64(10)};
	struct op s, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, false);
	assert_false(announced(&p, 2));
	pull.sreq = weft_request_ref(s.req);
	pull.rreq.index = weft_put32(1u << 30); /* the bytes are for no request */
	pull.flags = weft_put16(WEFT_PULL_F_CONTENDED);
	push(&p, 0, WEFT_WIRE_PULL, &pull, sizeof(pull));
	assert_true(p.ep[0].msg->peer_contended);
	pair_run(&p);
	assert_int_equal(mw_of(&p, 1)->count.bad_ref, 1);
	/* Pulls of the receiver report that no endpoint waits. */
	op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
	finish(&p, &s, &r);
	assert_false(p.ep[0].msg->peer_contended);
	assert_false(announced(&p, 3));
	p.ep[0].msg->peer_contended = true;
	assert_true(announced(&p, 4));
	assert_false(announced(&p, 5));
	/* Numbers have the last word. */
	p.ep[0].msg->peer_contended = true;
	mw_of(&p, 0)->conf.model.rndv_thresh = 6000;
	assert_false(announced(&p, 6));
	mw_of(&p, 0)->conf.model.rndv_thresh = WEFT_CONF_AUTO;
	/* A window that fell to less than a quarter of the message, and to half of what it was. */
	p.ep[0].msg->peer_contended = false;
	p.ep[0].msg->lanes[0].room = p.ep[0].msg->lanes[0].room_most = 1000;
	assert_false(announced(&p, 7));
	p.ep[0].msg->lanes[0].room_most = 2000;
	p.ep[0].msg->lanes[0].room = 1000;
	assert_true(announced(&p, 8));
	pair_close(&p);
}

/* @behaviour Y2: foreign, repeated, out-of-range pulls and data that was not requested */
static void a_pull_of_an_eager_message_is_refused(void **state)
{
	struct op s;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_send_sync(&s, &p.ep[0], sbuf, 5000, 1);
	push_pull(&p, weft_request_ref(s.req), 0, 10);
	assert_int_equal(mw_of(&p, 0)->count.mismatch, 1);
	assert_int_equal(pair_count(&p, 1, WEFT_WIRE_DATA), 0);
	pair_fail(&p, 0, -ECANCELED);
	op_end(&s, -ECANCELED);
	pair_close(&p);
}

/* @behaviour Y2 */
static void more_pulls_than_may_wait_fail_the_endpoint(void **state)
{
	struct op s, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, false);
	pair_room(&p, 0, 0);
	for (unsigned int i = 0; i < WEFT_RNDV_PULLS_MAX; i++)
		push_pull(&p, weft_request_ref(s.req), i, 1);
	assert_int_equal(p.fail_status[0], 0);
	push_pull(&p, weft_request_ref(s.req), 0, 1);
	assert_int_equal(p.fail_status[0], -EPROTO);
	assert_int_equal(p.ep[0].msg->rndv->num_pulls, 0);
	op_end(&s, -EPROTO);
	pair_close(&p);
}

/* @behaviour Y2 */
static void unrequested_data_is_dropped_and_counted(void **state)
{
	struct {
		struct weft_wire_data hdr;
		uint8_t bytes[700];
	} __attribute__((packed)) d = {.bytes = {0xbb}};
	struct op s, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, true);
	pair_deliver(&p, 0); /* RTS: the first pieces are asked for */
	d.hdr.rreq = weft_request_ref(r.req);
	d.hdr.offset = weft_put64(LEN - 700);
	push(&p, 1, WEFT_WIRE_DATA, &d, sizeof(d));
	assert_int_equal(mw_of(&p, 1)->count.mismatch, 1);
	d.hdr.offset = weft_put64(LEN - 100); /* past the end */
	push(&p, 1, WEFT_WIRE_DATA, &d, sizeof(d));
	assert_int_equal(mw_of(&p, 1)->count.mismatch, 2);
	assert_int_equal(rbuf[LEN - 700], 0);
	finish(&p, &s, &r);
	pair_close(&p);
}

static void a_twice_delivered_piece_changes_nothing(void **state)
{
	struct op s, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, true);
	pair_deliver(&p, 0);
	pair_deliver(&p, 0); /* a PULL */
	pair_progress(&p);
	for (size_t i = 0; i < p.num; i++) {
		if (p.msgs[i].id == WEFT_WIRE_DATA) {
			pair_deliver_copy(&p, i);
			break;
		}
	}
	finish(&p, &s, &r);
	assert_int_equal(mw_of(&p, 1)->count.overlap + mw_of(&p, 1)->count.mismatch, 1);
	pair_close(&p);
}

/* The peer may be connected sooner, and send before we know it. */
/*
 * @behaviour Y23: a rendezvous that overtakes the end of the handshake is fetched once the endpoint
 * is up
 */
static void what_overtakes_the_connection_is_fetched_once_it_is_there(void **state)
{
	(void)state;
	for (int posted = 0; posted < 2; posted++) {
		struct weft_wire_credit c[2];
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open_unconnected(&p, 2, two);
		pattern_fill(3, 0, sbuf, LEN);
		memset(rbuf, 0, LEN);
		for (int i = 0; i < 2; i++)
			weft_msg_ep_grant(&p.ep[i], &c[i]);
		for (int i = 0; i < 2; i++) {
			if (i == 1) {
				if (posted)
					op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
				op_send(&s, &p.ep[0], sbuf, LEN, 1);
				pair_deliver(&p, 0);
				if (!posted)
					op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
				pair_progress(&p);
				assert_false(op_done(&r));
			}
			p.ep[i].state = WEFT_EP_UP;
			p.ep[i].lanes_up = 3;
			weft_msg_ep_connected(&p.ep[i], &c[!i]);
		}
		finish(&p, &s, &r);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/*
 * @behaviour U38: sender killed during the transfer: the receive ends, nothing is written
 * afterwards
 * @behaviour U70
 */
static void U38_U70_an_endpoint_that_fails_amid_pulls_ends_both_requests_once(void **state)
{
	(void)state;
	for (int stage = 1; stage < 30; stage++) {
		for (int side = 0; side < 2; side++) {
			struct op s, r;
			struct pair p;

			begin(&p, &s, &r, 2, true);
			for (int i = 0; i < stage && p.num; i++) {
				pair_deliver(&p, 0);
				pair_progress(&p);
			}
			pair_fail(&p, side, -ETIMEDOUT);
			pair_fail(&p, !side, -ETIMEDOUT);
			memset(rbuf, 0x77, LEN);
			pair_run(&p);
			for (int i = 0; i < LEN; i++)
				assert_int_equal(rbuf[i], 0x77);
			op_end(&s, -ETIMEDOUT);
			op_end(&r, -ETIMEDOUT);
			assert_int_equal(mw_of(&p, 1)->rndv->pulls.used, 0);
			assert_int_equal(mw_of(&p, 0)->reqs.in_use, 0);
			pair_close(&p);
		}
	}
}

static void malformed_records_and_fields_do_not_pass_the_check(void **state)
{
	struct {
		struct weft_wire_rts rts;
		struct weft_wire_record r;
		struct weft_wire_keys keys;
		struct weft_wire_lane_key key[2];
	} __attribute__((packed)) m = {
		.r = {weft_put16(WEFT_MSG_RECORD_KEYS), weft_put16(28)},
		.key = {{.lane = 0}, {.lane = 1}},
	};
	struct weft_wire_pull pull = {.length = weft_put64(0)};
	struct weft_wire_put_done done = {.length = weft_put64(1),
					  .offset = weft_put64(UINT64_MAX)};

	(void)state;
	assert_int_equal(weft_wire_check(WEFT_WIRE_RTS, &m, sizeof(m)), 0);
	m.key[1].lane = 0; /* twice */
	assert_int_equal(weft_wire_check(WEFT_WIRE_RTS, &m, sizeof(m)), -EBADMSG);
	m.key[1].lane = 200;
	assert_int_equal(weft_wire_check(WEFT_WIRE_RTS, &m, sizeof(m)), -EBADMSG);
	m.key[1].lane = 1;
	m.r.length = weft_put16(27);
	assert_int_equal(weft_wire_check(WEFT_WIRE_RTS, &m, sizeof(m) - 1), -EBADMSG);
	m.r.length = weft_put16(4);
	assert_int_equal(weft_wire_check(WEFT_WIRE_RTS, &m, sizeof(m.rts) + 8), -EBADMSG);
	assert_int_equal(weft_wire_check(WEFT_WIRE_PULL, &pull, sizeof(pull)), -EBADMSG);
	pull.length = weft_put64(1);
	assert_int_equal(weft_wire_check(WEFT_WIRE_PULL, &pull, sizeof(pull)), 0);
	assert_int_equal(weft_wire_check(WEFT_WIRE_PULL, &pull, sizeof(pull) - 1), -EBADMSG);
	pull.offset = weft_put64(UINT64_MAX);
	assert_int_equal(weft_wire_check(WEFT_WIRE_PULL, &pull, sizeof(pull)), -EBADMSG);
	assert_int_equal(weft_wire_check(WEFT_WIRE_PUT_DONE, &done, sizeof(done)), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pulled_data_comes_from_user_memory_uncopied),
		cmocka_unit_test(what_overtakes_the_connection_is_fetched_once_it_is_there),
		cmocka_unit_test(requested_bytes_are_bounded_per_lane_and_per_worker),
		cmocka_unit_test(stale_foreign_and_out_of_range_pulls_are_dropped_and_counted),
		cmocka_unit_test(a_sender_notified_of_contention_announces_until_it_is_over),
		cmocka_unit_test(a_pull_of_an_eager_message_is_refused),
		cmocka_unit_test(more_pulls_than_may_wait_fail_the_endpoint),
		cmocka_unit_test(unrequested_data_is_dropped_and_counted),
		cmocka_unit_test(a_twice_delivered_piece_changes_nothing),
		cmocka_unit_test(U38_U70_an_endpoint_that_fails_amid_pulls_ends_both_requests_once),
		cmocka_unit_test(malformed_records_and_fields_do_not_pass_the_check),
	};

	return cmocka_run_group_tests_name("rendezvous", tests, NULL, NULL);
}
