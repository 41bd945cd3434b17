/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Identity and trust (doc/wire.md): what a peer claims in wire-up messages counts only as far as it
 * has shown it.
 */

#include "mock/unknown_sender.h"
#include "wireup/peer.h"

static struct weft_context *context(void)
{
	return mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
}

static void unpack(struct weft_worker *w, struct weft_address *a)
{
	void *address;
	size_t length;

	assert_int_equal(weft_worker_get_address(w, &address, &length), 0);
	assert_int_equal(weft_address_unpack(a, address, length, NULL, 0), 0);
	weft_worker_release_address(w, address);
}

static void siphash_is_the_known_one(void **state)
{
	const struct weft_siphash_key key = {0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull};
	struct weft_siphash s;
	uint8_t in[15];
	size_t cut;

	(void)state;
	for (uint8_t i = 0; i < sizeof(in); i++)
		in[i] = i;
	/* From the paper's appendix. */
	assert_true(weft_siphash(&key, in, sizeof(in)) == 0xa129ca6149be45e5ull);
	for (cut = 0; cut <= sizeof(in); cut++) {
		weft_siphash_init(&s, &key);
		weft_siphash_add(&s, in, cut);
		weft_siphash_add(&s, in + cut, sizeof(in) - cut);
		assert_true(weft_siphash_end(&s) == 0xa129ca6149be45e5ull);
	}
}

/* @behaviour S1: a process without a worker's address can't connect */
static void a_sender_without_an_address_is_refused(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans = {0};
	struct weft_records r;

	(void)state;
	unknown_good_req(&s, w, &r);
	h.dst_secret = weft_put64(w->secret ^ 1);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ERROR);
	assert_int_equal(weft_get16(ans.status), EACCES);
	assert_int_equal(w->num_eps, 0);
	assert_int_equal(conn_counter(w, "wireup.denied"), 1);
	h.dst_secret = weft_put64(w->secret);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	conn_destroy(ctx, w, NULL);
}

/*
 * @behaviour S2: a process with the address can't impersonate that worker from another interface:
 * it neither gets its messages nor blocks it
 */
static void a_sender_at_another_address_than_its_own_is_refused(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {
		.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42, .net_addr = 501};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans = {0};
	struct weft_records r;

	(void)state;
	mock_unknown_at(s.lane_ep, 500);
	unknown_good_req(&s, w, &r);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ERROR);
	assert_int_equal(weft_get16(ans.status), EACCES);
	assert_int_equal(w->num_eps, 0);
	s.net_addr = 500;
	unknown_good_req(&s, w, &r);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	conn_destroy(ctx, w, NULL);
}

/*
 * Connects to w and says that it is b, of which it has the address, from an interface of its own.
 */
static struct unknown_sender impersonate(struct weft_worker *w, struct weft_worker *b, uint32_t sn,
					 unsigned int how)
{
	struct unknown_sender s = {
		.lane_ep = mock_unknown(mock_iface(w, 0)), .id = b->id, .net_addr = 500};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, sn), ans = {0};
	struct weft_records r;
	struct weft_address a;
	unsigned int from = 5;

	mock_unknown_at(s.lane_ep, 500);
	unpack(b, &a);
	if (how == 0) { /* beside b's interfaces */
		a.ifaces[a.num_ifaces++] = unknown_iface(&s, from);
	} else if (how == 1) { /* instead of b's */
		a.ifaces[0] = unknown_iface(&s, from);
	} else { /* b's, and the device is another's */
		from = a.ifaces[0].index;
		memcpy(a.ifaces[0].addr, &s.net_addr, 8);
	}
	unknown_req(&a, from, w, &r);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
	s.remote = weft_get64(ans.src_secret);
	h = unknown_head(&s, w, WEFT_WIREUP_ACK, sn);
	h.dst_ep = ans.src_ep;
	unknown_send(&s, w, &h, NULL);
	return s;
}

/* @behaviour S2 */
static void a_message_for_a_worker_does_not_go_to_an_impostor(void **state)
{
	unsigned int how;

	(void)state;
	for (how = 0; how < 3; how++) {
		struct weft_context *ctx = context();
		struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
		struct unknown_sender s = impersonate(w, b, 0, how);
		struct mock_err err = {0};
		struct weft_ep *ep;

		assert_int_equal(conn_counter(w, "ep.unclaimed"), 1);
		ep = conn_create(w, b, &err);
		mock_run(50, MS, w, b, NULL);
		assert_int_equal(err.calls, 0);
		assert_int_equal(ep->state, WEFT_EP_UP);
		assert_int_equal(conn_counter(w, "ep.unclaimed"), 1);
		conn_message(ep, b, 1000, 1);
		mock_unknown_close(s.lane_ep);
		mock_run(3, MS, w, b, NULL);
		conn_destroy(ctx, w, b);
	}
}

/* @behaviour S2 */
static void a_forged_number_keeps_no_peer_away(void **state)
{
	unsigned int how;

	(void)state;
	for (how = 0; how < 3; how++) {
		struct weft_context *ctx = context();
		struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
		struct unknown_sender s = impersonate(w, b, 0x7ffffff0u, how);
		struct mock_err err = {0};
		struct weft_ep *ep = conn_create(b, w, &err);

		mock_run(50, MS, w, b, NULL);
		assert_int_equal(err.calls, 0);
		assert_int_equal(ep->state, WEFT_EP_UP);
		assert_int_equal(ep->conn_sn, 0);
		conn_message(ep, w, 1000, 1);
		mock_unknown_close(s.lane_ep);
		mock_run(3, MS, w, b, NULL);
		conn_destroy(ctx, w, b);
	}
}

/*
 * A holder of b's whole address sends it from an interface that is not in it, or over another
 * one of w's than it names.
 */
static void req_from_nowhere(struct weft_worker *w, struct weft_worker *b, uint32_t sn, bool beside)
{
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, beside)), .id = b->id};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, sn), ans = {0};
	unsigned int from = 15;
	struct weft_records r;
	struct weft_address a;

	s.net_addr = 500;
	mock_unknown_at(s.lane_ep, 500);
	unpack(b, &a);
	if (beside) {
		from = 5;
		a.ifaces[a.num_ifaces++] = unknown_iface(&s, from);
	}
	unknown_req(&a, from, w, &r); /* names interface 0 of w */
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ERROR);
	assert_int_equal(weft_get16(ans.status), EACCES);
	mock_unknown_close(s.lane_ep);
	mock_run(2, MS, w, NULL);
}

/* @behaviour S2 */
static void a_request_from_no_interface_uses_no_number(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct weft_context *ctx = context();
		struct weft_worker *w = mock_worker(ctx, "mock:0;mock:1"),
				   *b = mock_worker(ctx, "mock:0");
		struct mock_err err = {0};
		struct weft_ep *ep;

		req_from_nowhere(w, b, 0, i);
		assert_int_equal(w->num_eps, 0);
		assert_int_equal(conn_counter(w, "wireup.denied"), 1);
		ep = conn_create(b, w, &err);
		mock_run(50, MS, w, b, NULL);
		assert_int_equal(err.calls, 0);
		assert_int_equal(ep->state, WEFT_EP_UP);
		assert_int_equal(ep->conn_sn, 0);
		conn_message(ep, w, 1000, 1);
		conn_destroy(ctx, w, b);
	}
}

/* @behaviour S2 */
static void a_request_from_no_interface_ends_no_endpoint_that_connects(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct weft_context *ctx = context();
		struct weft_worker *w = mock_worker(ctx, "mock:0;mock:1"),
				   *b = mock_worker(ctx, "mock:0;mock:1");
		struct mock_err err = {0};
		struct weft_ep *ep;

		conn_order(i & 1 ? &w : &b, i & 1 ? &b : &w);
		ep = conn_create(w, b, &err);
		mock_run(3, MS, w, NULL); /* b does not progress yet */
		req_from_nowhere(w, b, ep->conn_sn, i & 2);
		assert_int_equal(err.calls, 0);
		assert_int_equal(ep->state, WEFT_EP_CONNECTING);
		mock_run(50, MS, w, b, NULL);
		assert_int_equal(ep->state, WEFT_EP_UP);
		conn_message(ep, b, 1000, 1);
		conn_destroy(ctx, w, b);
	}
}

/* Many records share a bucket of the table. Each is found by both of its numbers. */
static void a_record_is_that_of_a_worker_and_an_address(void **state)
{
	enum { IDS = 16, DIGESTS = 32 };
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct weft_peer *peer[IDS][DIGESTS], *whole;
	struct weft_address a;
	uint64_t looks;

	(void)state;
	for (unsigned int i = 0; i < IDS * DIGESTS; i++) {
		struct weft_peer *p = weft_peer_of_boot(w, 1 + i / DIGESTS, 1 + i % DIGESTS);

		peer[i / DIGESTS][i % DIGESTS] = p;
		assert_true(p->id == 1 + i / DIGESTS && p->digest == 1 + i % DIGESTS);
		assert_true(p->boot);
	}
	looks = w->conns->looks;
	for (unsigned int i = 0; i < IDS * DIGESTS; i++)
		assert_ptr_equal(weft_peer_of_boot(w, 1 + i / DIGESTS, 1 + i % DIGESTS),
				 peer[i / DIGESTS][i % DIGESTS]);
	/* Hardly more than one of them in each bucket, for both kinds of records. */
	assert_in_range(w->conns->looks - looks, 2 * IDS * DIGESTS, 6 * IDS * DIGESTS);
	/* The whole address replaces the boot address, and both have one record. */
	unpack(b, &a);
	peer[0][0] = weft_peer_of_boot(w, a.worker_id, weft_address_digest(&a));
	whole = weft_peer_get(w, &a);
	assert_ptr_equal(whole, peer[0][0]);
	assert_false(whole->boot);
	assert_ptr_equal(weft_peer_get(w, &a), whole);
	assert_ptr_equal(weft_peer_of_boot(w, a.worker_id, weft_address_digest(&a)), whole);
	conn_destroy(ctx, w, b);
}

/* Used up at the peer, for whatever reason: the next try has a number that is free. */
/*
 * @behaviour S4: endpoint numbers that are used up: the next attempt uses a free one, and further
 * attempts have pauses
 */
static void numbers_jump_to_what_is_free(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct mock_err err = {0};
	struct weft_address a;
	struct weft_ep *ep;

	(void)state;
	unpack(b, &a);
	weft_peer_sn_use(weft_peer_get(w, &a), 100000);
	ep = conn_create(b, w, &err);
	mock_run(20, MS, w, b, NULL);
	assert_int_equal(err.calls, 0);
	assert_int_equal(ep->state, WEFT_EP_UP);
	assert_int_equal(ep->conn_sn, 100001);
	conn_message(ep, w, 1000, 1);
	conn_destroy(ctx, w, b);
}

/* A peer that finds every number used up is not asked at the rate of its answers. */
/* @behaviour S4 */
static void new_numbers_are_requested_with_pauses(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(b, w, &err);
	struct weft_wire_wireup h;
	unsigned int i, first;

	(void)state;
	mock_run(1, MS, b, w, NULL);
	mock_run(2, MS, b, NULL);
	assert_int_equal(ep->wireup->step, WEFT_STEP_REQUESTED);
	first = mock_num_messages();
	/* w does not get to answer: what comes is made up. 2 s of it. */
	for (i = 0; i < 2000; i++) {
		h = (struct weft_wire_wireup){
			.type = WEFT_WIREUP_ERROR,
			.major = WEFT_WIRE_MAJOR,
			.lane = WEFT_WIREUP_ALL_LANES,
			.conn_sn = weft_put32(ep->conn_sn),
			.src_worker = weft_put64(w->id),
			.dst_worker = weft_put64(b->id),
			.dst_ep = {weft_put32(ep->slot), weft_put32(ep->generation)},
			.status = weft_put16(ESTALE),
			.dst_secret = weft_put64(ep->secret),
		};
		mock_inject(ep->wireup->boot, WEFT_WIRE_WIREUP, &h, sizeof(h));
		mock_run(1, MS, b, NULL);
	}
	assert_int_equal(err.calls, 0);
	assert_in_range(mock_num_messages() - first, 2, 6);
	conn_destroy(ctx, w, b);
}

static enum mock_verdict hold_attach(const struct mock_msg_view *msg, void *arg)
{
	return msg->from != NULL && msg->am_id == WEFT_WIRE_WIREUP &&
			       ((const uint8_t *)msg->data)[0] == WEFT_WIREUP_ATTACH && *(bool *)arg
		       ? MOCK_LATER
		       : MOCK_DELIVER;
}

/*
 * An unknown sender that guesses every small number of an endpoint offers its connection as the
 * endpoint's lane.
 */
/*
 * @behaviour S3: a lane is attached only with both secrets of its endpoint, from the interface that
 * the map names
 */
static void a_lane_is_attached_only_with_both_secrets_and_from_its_interface(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0;mock:1"),
			   *b = mock_worker(ctx, "mock:0;mock:1");
	struct weft_wire_wireup h, ans = {0};
	struct weft_ep *ep, *mine;
	struct unknown_sender s;
	bool late = true;
	unsigned int i;

	(void)state;
	conn_order(&b, &w);
	mock_set_filter(hold_attach, &late);
	ep = mock_connect(b, w);
	mock_run(100, MS, w, b, NULL);
	mine = conn_first_ep(w);
	assert_int_equal(mine->state, WEFT_EP_UP);
	assert_int_equal(mine->wireup->attach[1], WEFT_ATTACH_AWAIT);
	for (i = 0; i < 4; i++) {
		s = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 1)),
					    .id = b->id,
					    .secret = i & 1 ? ep->secret : ep->secret ^ 4,
					    .remote = i & 2 ? mine->secret : mine->secret ^ 4};
		mock_unknown_at(s.lane_ep, 500);
		h = unknown_head(&s, w, WEFT_WIREUP_ATTACH, mine->conn_sn);
		h.src_ep = mine->remote;
		h.dst_ep = (struct weft_wire_ref){weft_put32(mine->slot),
						  weft_put32(mine->generation)};
		h.lane = 1;
		unknown_send(&s, w, &h, NULL);
		assert_int_equal(mine->lanes_up, 1);
		assert_int_not_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ATTACHED);
		mock_unknown_close(s.lane_ep);
		mock_run(2, MS, w, NULL);
	}
	assert_true(conn_counter(w, "wireup.drop.stale") >= 4);
	late = false;
	mock_run(3000, MS, w, b, NULL);
	assert_int_equal(mine->lanes_up & 2, 2);
	conn_message(ep, w, 100000, 1);
	conn_destroy(ctx, w, b);
}

/* @behaviour S1 */
static void an_interfaces_id_follows_from_the_address(void **state)
{
	(void)state;
	assert_true(weft_iface_id(1, 2, 3) == weft_iface_id(1, 2, 3));
	assert_true(weft_iface_id(1, 2, 3) != weft_iface_id(1, 2, 4));
	assert_true(weft_iface_id(1, 2, 3) != weft_iface_id(1, 3, 3));
	assert_true(weft_iface_id(1, 2, 3) != weft_iface_id(2, 2, 3));
}

/*
 * What is reserved for authentication: a reader that does not know a record with bit 15 drops the
 * message, and skips one without it.
 */
static void a_record_that_must_be_understood_drops_the_request(void **state)
{
	static const uint8_t offer[40] = {1};
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans;
	struct weft_records r;

	(void)state;
	unknown_good_req(&s, w, &r);
	weft_records_add(&r, 0x8009, offer, sizeof(offer));
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), 0);
	assert_int_equal(w->num_eps, 0);
	assert_int_equal(conn_counter(w, "wireup.drop.bad"), 1);
	unknown_good_req(&s, w, &r);
	weft_records_add(&r, 0x7009, offer, sizeof(offer));
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
	assert_int_equal(w->num_eps, 1);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_is_the_known_one),
		cmocka_unit_test(an_interfaces_id_follows_from_the_address),
		CONN_TEST(a_sender_without_an_address_is_refused),
		CONN_TEST(a_sender_at_another_address_than_its_own_is_refused),
		CONN_TEST(a_message_for_a_worker_does_not_go_to_an_impostor),
		CONN_TEST(a_forged_number_keeps_no_peer_away),
		CONN_TEST(a_request_from_no_interface_uses_no_number),
		CONN_TEST(a_request_from_no_interface_ends_no_endpoint_that_connects),
		CONN_TEST(a_record_is_that_of_a_worker_and_an_address),
		CONN_TEST(numbers_jump_to_what_is_free),
		CONN_TEST(new_numbers_are_requested_with_pauses),
		CONN_TEST(a_lane_is_attached_only_with_both_secrets_and_from_its_interface),
		CONN_TEST(a_record_that_must_be_understood_drops_the_request),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
