/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Wire-up messages that are malformed, foreign, late or hostile: dropped and counted; no other peer
 * suffers.
 */

#include <math.h>

#include "mock/unknown_sender.h"
#include "wireup/peer.h"

static void fill(uint8_t *p, size_t n, uint32_t *r)
{
	while (n-- > 0) {
		*r = *r * 1664525u + 1013904223u;
		*p++ = (uint8_t)(*r >> 24);
	}
}

/* @behaviour X11 */
static void garbage_is_dropped_and_counted(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *good = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_ep *ep = mock_connect(good, w);
	struct weft_wire_wireup h;
	uint8_t buf[400];
	uint32_t r = 7;
	unsigned int i;
	size_t n;

	(void)state;
	for (i = 0; i < 20000; i++) {
		fill(buf, sizeof(buf), &r);
		n = r % sizeof(buf);
		if (i % 2) {
			/* A plausible head, so that the records are looked at. */
			h = unknown_head(&s, w, (enum weft_wireup_type)(r >> 8 & 7), 0);
			h.total = weft_put16((uint16_t)(n > sizeof(h) ? n - sizeof(h) : 0));
			memcpy(buf, &h, sizeof(h));
		}
		mock_unknown_send(s.lane_ep, WEFT_WIRE_WIREUP, buf, n);
		if (i % 16 == 0)
			mock_run(1, 0, w, NULL);
	}
	mock_run(3, MS, w, NULL);
	assert_int_equal(conn_counter(w, "ep.accepted"), 0);
	assert_true(conn_counter(w, "wireup.drop.bad") + conn_counter(w, "wireup.drop.stale") >
		    10000);
	conn_message(ep, w, 5000, 1);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	conn_destroy(ctx, w, good);
}

/* An address of another worker than the sender's: no answer, no endpoint. */
static void a_request_with_an_address_of_another_worker_is_dropped(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans;
	struct weft_records r;

	(void)state;
	unknown_good_req(&s, w, &r);
	h.src_worker = weft_put64(43);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(conn_counter(w, "wireup.drop.bad"), 1);
	assert_int_equal(unknown_answer(&s, &ans), 0);
	assert_int_equal(w->num_eps, 0);
	h.src_worker = weft_put64(42);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
	assert_int_equal(w->num_eps, 1);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* The first of two requests that cross ours is kept. The other endpoint learns that it is late. */
static void of_two_requests_that_cross_ours_the_first_is_kept(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct unknown_sender s[2];
	struct weft_wire_wireup h, ans;
	struct weft_address a;
	struct weft_records r;
	struct weft_ep *ep;

	(void)state;
	conn_order(&w, &b);
	ep = mock_connect(w, b);
	for (unsigned int i = 0; i < 10 && ep->wireup->step != WEFT_STEP_REQUESTED; i++) {
		mock_run(1, MS, b, NULL);
		mock_run(1, MS, w, NULL);
	}
	assert_int_equal(ep->wireup->step, WEFT_STEP_REQUESTED);
	weft_address_of_worker(b, &a);
	for (unsigned int i = 0; i < 2; i++) {
		s[i] = (struct unknown_sender){
			.lane_ep = mock_unknown(mock_iface(w, 0)), .id = b->id, .secret = 70 + i};
		memcpy(&s[i].net_addr, a.ifaces[0].addr, sizeof(s[i].net_addr));
		unknown_req(&a, a.ifaces[0].index, w, &r);
		h = unknown_head(&s[i], w, WEFT_WIREUP_REQ, ep->conn_sn);
		unknown_send(&s[i], w, &h, &r);
		assert_int_equal(unknown_answer(&s[i], &ans), i == 0 ? 0 : WEFT_WIREUP_ERROR);
		assert_non_null(ep->wireup->deferred);
		assert_ptr_not_equal(ep->wireup->boot, ep->wireup->deferred_lane_ep);
	}
	assert_int_equal(weft_get16(ans.status), ESTALE);
	h = *(struct weft_wire_wireup *)ep->wireup->deferred;
	assert_int_equal(weft_get64(h.src_secret), 70);
	assert_int_equal(ep->state, WEFT_EP_CONNECTING);
	mock_run(300, MS, w, b, NULL);
	assert_int_equal(ep->state, WEFT_EP_UP);
	conn_message(ep, b, 1000, 1);
	mock_unknown_close(s[0].lane_ep);
	mock_unknown_close(s[1].lane_ep);
	mock_run(3, MS, w, b, NULL);
	conn_destroy(ctx, w, b);
}

/*
 * Every truncation and every single changed byte of a good REQ: accepted as another good one,
 * refused, or dropped.
 */
static void damaged_requests_do_no_harm(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct weft_records r, bad;
	struct weft_wire_wireup h;
	struct unknown_sender s;
	unsigned int side;
	size_t i;

	(void)state;
	for (side = 0; side < 2; side++) {
		for (i = 0; i < 400; i++) {
			s = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 0)),
						    .id = side ? w->id - 1 : w->id + 1};
			unknown_good_req(&s, w, &r);
			bad = r;
			h = unknown_head(&s, w, WEFT_WIREUP_REQ, (uint32_t)i);
			if (i < r.len)
				bad.len = i;
			else
				bad.buf[i % r.len] ^= (uint8_t)(1u << i % 8);
			unknown_send(&s, w, &h, &bad);
			mock_unknown_close(s.lane_ep);
			mock_run(3, MS, w, NULL);
			assert_int_equal(w->num_eps, 0);
		}
	}
	assert_int_equal(mock_num_lane_eps(), 0);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void a_good_request_is_answered_and_repeated_ones_change_nothing(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct weft_wire_wireup h, ans = {0};
	struct weft_records r;
	struct unknown_sender s;
	unsigned int side;

	(void)state;
	for (side = 0; side < 2; side++) {
		s = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 0)),
					    .id = side ? w->id - 1 : w->id + 1};
		unknown_good_req(&s, w, &r);
		h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0);
		unknown_send(&s, w, &h, &r);
		assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
		unknown_send(&s, w, &h, &r);
		unknown_send(&s, w, &h, &r);
		assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
		assert_int_equal(w->num_eps, 1);
		s.remote = weft_get64(ans.src_secret);
		h = unknown_head(&s, w, WEFT_WIREUP_ACK, 0);
		h.dst_ep = ans.src_ep;
		unknown_send(&s, w, &h, NULL);
		unknown_send(&s, w, &h, NULL);
		assert_int_equal(conn_first_ep(w)->state, WEFT_EP_UP);
		/*
		 * The number is used: after the end a late copy of the REQ is refused, not accepted
		 * anew.
		 */
		h = unknown_head(&s, w, WEFT_WIREUP_CLOSE, 0);
		h.dst_ep = ans.src_ep;
		unknown_send(&s, w, &h, NULL);
		assert_int_equal(w->num_eps, 0);
		mock_unknown_close(s.lane_ep);
		s.lane_ep = mock_unknown(mock_iface(w, 0));
		h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0);
		unknown_send(&s, w, &h, &r);
		assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ERROR);
		assert_int_equal(weft_get16(ans.status), ESTALE);
		assert_int_equal(w->num_eps, 0);
		mock_unknown_close(s.lane_ep);
		mock_run(3, MS, w, NULL);
	}
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void an_unanswered_rep_is_repeated_and_then_given_up(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0);
	struct weft_records r;

	(void)state;
	unknown_good_req(&s, w, &r);
	unknown_send(&s, w, &h, &r);
	mock_run(4000, MS, w, NULL);
	assert_in_range(mock_unknown_received(s.lane_ep), 4, 8);
	mock_run(1100, MS, w, NULL);
	assert_int_equal(w->num_eps, 0);
	assert_int_equal(conn_counter(w, "ep.unclaimed"), 0);
	mock_unknown_close(s.lane_ep);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/*
 * @behaviour U67: a refusal reaches the other end; wrong parameters are refused (no listener:
 * workers connect by address)
 */
static void unclaimed_endpoints_are_bounded(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=500s", "LOG_FILE=/dev/null",
						"MAX_UNCLAIMED_EPS=10", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s[20];
	struct weft_wire_wireup h, ans;
	struct weft_records r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		s[i] = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 0)),
					       .id = 100 + i,
					       .net_addr = 500 + i};
		unknown_good_req(&s[i], w, &r);
		h = unknown_head(&s[i], w, WEFT_WIREUP_REQ, 0);
		unknown_send(&s[i], w, &h, &r);
		assert_int_equal(unknown_answer(&s[i], &ans),
				 i < 10 ? WEFT_WIREUP_REP : WEFT_WIREUP_ERROR);
		if (i >= 10)
			assert_int_equal(weft_get16(ans.status), EUSERS);
	}
	assert_int_equal(w->num_eps, 10);
	for (i = 0; i < 20; i++)
		mock_unknown_close(s[i].lane_ep);
	mock_run(50, MS, w, NULL);
	assert_int_equal(w->num_eps, 0);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour Y4 */
static void connections_that_send_nothing_are_bounded_and_end(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	static struct weft_lane_ep *s[WEFT_MAX_PENDING + 100];
	unsigned int i, n = WEFT_MAX_PENDING + 100;

	(void)state;
	for (i = 0; i < n; i++)
		s[i] = mock_unknown(mock_iface(w, 0));
	mock_run(5, MS, w, NULL);
	assert_int_equal(conn_counter(w, "wireup.pending"), WEFT_MAX_PENDING);
	mock_run(6, S, w, NULL);
	assert_int_equal(conn_counter(w, "wireup.pending"), 0);
	for (i = 0; i < n; i++)
		mock_unknown_close(s[i]);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* A host that fills the table excludes no peer that sends its REQ at once. */
static void a_table_full_of_silent_connections_keeps_no_peer_out(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	static struct weft_lane_ep *s[WEFT_MAX_PENDING + 10];
	struct unknown_sender good = {.id = 1000, .net_addr = 500};
	unsigned int i, n = WEFT_MAX_PENDING + 10;
	struct weft_wire_wireup h, ans;
	struct weft_records r;

	(void)state;
	for (i = 0; i < n; i++)
		s[i] = mock_unknown(mock_iface(w, 0));
	mock_run(5, MS, w, NULL);
	good.lane_ep = mock_unknown(mock_iface(w, 0));
	unknown_good_req(&good, w, &r);
	h = unknown_head(&good, w, WEFT_WIREUP_REQ, 0);
	unknown_send(&good, w, &h, &r);
	assert_int_equal(unknown_answer(&good, &ans), WEFT_WIREUP_REP);
	assert_int_equal(w->num_eps, 1);
	mock_unknown_close(good.lane_ep);
	for (i = 0; i < n; i++)
		mock_unknown_close(s[i]);
	mock_run(6, S, w, NULL);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour Y4 */
static void records_of_past_peers_are_bounded(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct weft_wire_wireup h, ans;
	struct weft_records r;
	struct unknown_sender s;
	unsigned int i;

	(void)state;
	for (i = 0; i < WEFT_MAX_IDLE_PEERS + 200; i++) {
		s = (struct unknown_sender){
			.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 1000 + i, .net_addr = 500};
		unknown_good_req(&s, w, &r);
		h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0);
		unknown_send(&s, w, &h, &r);
		assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
		mock_unknown_close(s.lane_ep);
		mock_run(2, 0, w, NULL);
	}
	assert_int_equal(w->num_eps, 0);
	assert_int_equal(w->conns->num_idle, WEFT_MAX_IDLE_PEERS);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void data_on_a_connection_without_endpoint_ends_it(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct weft_lane_ep *s = mock_unknown(mock_iface(w, 0));
	struct weft_wire_eager e = {0};

	(void)state;
	mock_unknown_send(s, WEFT_WIRE_EAGER, &e, sizeof(e));
	mock_run(3, MS, w, NULL);
	assert_int_equal(conn_counter(w, "wireup.drop.unbound"), 1);
	assert_int_equal(mock_num_lane_eps(), 1); /* the unknown sender's own */
	mock_unknown_close(s);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/*
 * The build of the version before, 1.0, whose PUTs are shorter: neither end may take the other for
 * its like.
 */
static void a_build_of_version_1_is_refused_and_refuses(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_ep_params params = {.size = sizeof(params)};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans;
	uint8_t buf[WEFT_ADDRESS_MAX];
	struct weft_address a = {.worker_id = 42}, out;
	struct weft_records r;
	struct weft_ep *ep;
	char why[160];
	uint8_t id;
	const void *data;
	size_t len;

	(void)state;
	/* It asks: the answer has the number by which it knows, too, and says both. */
	unknown_good_req(&s, w, &r);
	h.major = 1;
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ERROR);
	assert_int_equal(ans.major, 3);
	assert_int_equal(weft_get16(ans.status), EPROTONOSUPPORT);
	len = mock_unknown_last(s.lane_ep, &id, &data);
	assert_non_null(memmem(data, len, "3.0 here, 1.0 there", 19));
	/* Its address is not even tried. */
	len = weft_address_pack(&a, buf);
	buf[4] = 1;
	weft_address_seal(buf, len);
	assert_int_equal(weft_address_unpack(&out, buf, len, why, sizeof(why)), -EPROTONOSUPPORT);
	assert_non_null(strstr(why, "version 1.0, this is 3.0"));
	params.address = buf;
	params.address_length = len;
	assert_int_equal(weft_ep_create(w, &params, &ep), -EPROTONOSUPPORT);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void impossible_figures_of_a_lane_are_refused_and_counted(void **state)
{
	static const struct {
		float bandwidth, latency;
		bool good;
	} tries[] = {
		{1e9f, 1e-6f, true},
		{0, 0, true},
		{1, 0, true},
		{WEFT_WIRE_RATE_MAX, WEFT_WIRE_LATENCY_MAX, true},
		{1e-40f, 1e-6f, false},
		{0.9f, 1e-6f, false},
		{1.1e14f, 1e-6f, false},
		{1e9f, 3e38f, false},
		{1e9f, 101, false},
		{1e9f, -1e-9f, false},
		{-1, 1e-6f, false},
		{INFINITY, 1e-6f, false},
		{1e9f, NAN, false},
	};
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct weft_wire_wireup h, ans;
	struct weft_wire_lane lane;
	struct weft_records r;
	uint64_t bad = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)),
					   .id = w->id - 1};

		h = unknown_head(&s, w, WEFT_WIREUP_REQ, i);
		unknown_good_req(&s, w, &r);
		memcpy(&lane, r.buf + r.len - sizeof(lane), sizeof(lane)); /* the last record */
		lane.bandwidth = weft_put_single(tries[i].bandwidth);
		lane.latency = weft_put_single(tries[i].latency);
		memcpy(r.buf + r.len - sizeof(lane), &lane, sizeof(lane));
		unknown_send(&s, w, &h, &r);
		bad += !tries[i].good;
		if (conn_counter(w, "wireup.drop.bad") != bad)
			fail_msg("try %u: %g bytes/s, %g s", i, (double)tries[i].bandwidth,
				 (double)tries[i].latency);
		assert_int_equal(unknown_answer(&s, &ans), tries[i].good ? WEFT_WIREUP_REP : 0);
		mock_unknown_close(s.lane_ep);
		mock_run(3, MS, w, NULL);
	}
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour U67, X6 */
static void another_version_is_refused_with_both_numbers(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans;
	struct mock_err err = {0};
	struct weft_records r;
	struct weft_ep *ep;

	(void)state;
	unknown_good_req(&s, w, &r);
	h.major = WEFT_WIRE_MAJOR + 1;
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_ERROR);
	assert_int_equal(weft_get16(ans.status), EPROTONOSUPPORT);
	mock_unknown_close(s.lane_ep);
	/* And the one that is refused: its endpoint fails with an error message. */
	ep = conn_create(b, w, &err);
	mock_hold(mock_iface(b, 0));
	mock_run(5, MS, b, w, NULL);
	h = (struct weft_wire_wireup){.type = WEFT_WIREUP_ERROR,
				      .major = WEFT_WIRE_MAJOR + 1,
				      .lane = 0xff,
				      .status = weft_put16(EPROTONOSUPPORT)};
	mock_release(mock_iface(b, 0));
	mock_set_order(MOCK_REVERSE);
	mock_inject(ep->wireup->boot, WEFT_WIRE_WIREUP, &h, sizeof(h));
	mock_run(1, MS, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err.status, -EPROTONOSUPPORT);
	assert_non_null(strstr(err.why, "3.0 here, 4.0 there"));
	conn_destroy(ctx, w, b);
}

/*
 * @behaviour G4: an address removed and used again
 * @behaviour S5: a process that connects from the address of an existing worker does not end that
 * worker's connections; after a restart the replies of the new process at that address end the old
 * connections
 * @behaviour F7
 */
static void a_restarted_peer_ends_the_old_endpoint(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0"),
			   *old = mock_worker(ctx, "mock:0,addr=7"), *new;
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(w, old, &err), *back;

	(void)state;
	mock_run(50, MS, w, old, NULL);
	assert_int_equal(ep->state, WEFT_EP_UP);
	/* The old process dies silently; its successor has the same network address. */
	mock_mute(mock_iface(old, 0));
	new = mock_worker(ctx, "mock:0,addr=7");
	back = mock_connect(new, w);
	mock_run(100, MS, w, new, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err.status, -ECONNRESET);
	assert_non_null(strstr(err.why, "restarted"));
	assert_int_equal(back->state, WEFT_EP_UP);
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	conn_message(back, w, 1000, 1);
	weft_worker_destroy(old);
	weft_worker_destroy(new);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour U67, G4 */
static void an_address_of_an_earlier_life_is_refused(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0"),
			   *old = mock_worker(ctx, "mock:0,addr=7"), *new;
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(w, old, &err);

	(void)state;
	weft_worker_destroy(old);
	new = mock_worker(ctx, "mock:0,addr=7");
	mock_run(100, MS, w, new, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err.status, -ECONNREFUSED);
	assert_non_null(strstr(err.why, "not here any more"));
	assert_true(conn_counter(new, "wireup.drop.stale") > 0);
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	conn_destroy(ctx, w, new);
}

/* A properly connected peer sends messages about endpoints that are not its own. */
/* @behaviour S3 */
static void no_peer_sends_for_another_peer(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0;mock:1"),
			   *b = mock_worker(ctx, "mock:0;mock:1");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_ep *ep = mock_connect(b, w), *mine;
	struct weft_wire_wireup h;
	unsigned int type;

	(void)state;
	mock_run(100, MS, w, b, NULL);
	mine = conn_first_ep(w);
	assert_int_equal(mine->lanes_up, 3);
	for (type = WEFT_WIREUP_REP; type <= WEFT_WIREUP_ACK; type++) {
		h = unknown_head(&s, w, (enum weft_wireup_type)type, mine->conn_sn);
		h.dst_ep = (struct weft_wire_ref){weft_put32(mine->slot),
						  weft_put32(mine->generation)};
		h.lane = type == WEFT_WIREUP_ERROR ? 0xff : 1;
		h.status = weft_put16(EIO);
		unknown_send(&s, w, &h, NULL);
		h.src_worker = weft_put64(b->id); /* a lie */
		unknown_send(&s, w, &h, NULL);
	}
	assert_int_equal(mine->state, WEFT_EP_UP);
	assert_int_equal(mine->lanes_up, 3);
	assert_int_equal(ep->lanes_up, 3);
	conn_message(ep, w, 100000, 1);
	mock_unknown_close(s.lane_ep);
	mock_run(2, MS, w, NULL);
	conn_destroy(ctx, w, b);
}

/* Which numbers of endpoints were used: out of order, with gaps, and over the wrap of 32 bits. */
static void connection_numbers_wrap(void **state)
{
	struct weft_peer peer = {.next_sn = 0};
	uint32_t sn;
	unsigned int i;

	(void)state;
	assert_false(weft_peer_sn_used(&peer, 0));
	weft_peer_sn_use(&peer, 2); /* 0 and 1 are still on their way */
	assert_int_equal(peer.next_sn, 3);
	assert_false(weft_peer_sn_used(&peer, 0));
	assert_false(weft_peer_sn_used(&peer, 1));
	assert_true(weft_peer_sn_used(&peer, 2));
	weft_peer_sn_use(&peer, 0);
	assert_true(weft_peer_sn_used(&peer, 0));
	assert_false(weft_peer_sn_used(&peer, 1));
	assert_int_equal(peer.next_sn, 3);
	peer = (struct weft_peer){.next_sn = UINT32_MAX - 100};
	for (i = 0, sn = UINT32_MAX - 100; i < 300; i++, sn++) {
		assert_false(weft_peer_sn_used(&peer, sn));
		weft_peer_sn_use(&peer, sn);
		assert_true(weft_peer_sn_used(&peer, sn));
		assert_true(peer.next_sn == sn + 1);
	}
	/* What is further back than the record reaches counts as used. */
	assert_true(weft_peer_sn_used(&peer, UINT32_MAX - 50));
	assert_false(weft_peer_sn_used(&peer, sn));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(garbage_is_dropped_and_counted),
		CONN_TEST(a_request_with_an_address_of_another_worker_is_dropped),
		CONN_TEST(of_two_requests_that_cross_ours_the_first_is_kept),
		CONN_TEST(damaged_requests_do_no_harm),
		CONN_TEST(a_good_request_is_answered_and_repeated_ones_change_nothing),
		CONN_TEST(an_unanswered_rep_is_repeated_and_then_given_up),
		CONN_TEST(unclaimed_endpoints_are_bounded),
		CONN_TEST(connections_that_send_nothing_are_bounded_and_end),
		CONN_TEST(a_table_full_of_silent_connections_keeps_no_peer_out),
		CONN_TEST(records_of_past_peers_are_bounded),
		CONN_TEST(data_on_a_connection_without_endpoint_ends_it),
		CONN_TEST(another_version_is_refused_with_both_numbers),
		CONN_TEST(a_build_of_version_1_is_refused_and_refuses),
		CONN_TEST(impossible_figures_of_a_lane_are_refused_and_counted),
		CONN_TEST(a_restarted_peer_ends_the_old_endpoint),
		CONN_TEST(an_address_of_an_earlier_life_is_refused),
		CONN_TEST(no_peer_sends_for_another_peer),
		CONN_TEST(connection_numbers_wrap),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("wireup_bad", tests, NULL, NULL);
}
