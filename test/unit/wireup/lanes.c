/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting: which lanes come of it, and what happens when some of them can't be had.
 */

#include "mock/conn_util.h"
#include "msg/msg.h"
#include "mock/rounds.h"
#include "wireup/rails.h"

static const char two_nics[] = "mock:0;mock:1";

/* ------------------------------------------------------------------ which lanes */

static void two_nics_in_one_subnet_make_two_lanes(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x = mock_connect(a, b), *y;
	struct weft_worker *alone = mock_worker(ctx, "mock:0");
	struct weft_lane_info info = {.size = sizeof(info)};

	(void)state;
	assert_true(a->ifaces[0]->beside && a->ifaces[1]->beside && !alone->ifaces[0]->beside);
	weft_worker_destroy(alone);
	mock_run(100, MS, a, b, NULL);
	y = conn_first_ep(b);
	assert_int_equal(x->lanes_up, 3);
	assert_int_equal(y->lanes_up, 3);
	assert_int_not_equal(x->lane_info[0].local_iface, x->lane_info[1].local_iface);
	assert_int_not_equal(x->lane_info[0].remote_iface, x->lane_info[1].remote_iface);
	assert_int_equal(x->lane_info[0].local_iface, y->lane_info[0].remote_iface);
	assert_int_equal(x->lane_info[1].local_iface, y->lane_info[1].remote_iface);
	assert_int_equal(weft_ep_query_lane(x, 1, &info), 0);
	assert_int_equal(info.state, WEFT_LANE_STATE_UP);
	assert_string_equal(weft_lane_state_name(info.state), "up");
	assert_string_equal(weft_lane_state_name((enum weft_lane_state)99), "?");
	assert_string_equal(info.name, "mock:1");
	assert_int_equal(weft_ep_query_lane(x, 2, &info), -ENOENT);
	conn_destroy(ctx, a, b);
}

/* Rails: how many lanes come of L interfaces here and R there, whichever end connects. */
/*
 * The numbers cross the wire in single precision: the end that computed them must not find another
 * lane the fastest than the end that has read them.
 */
static void equal_lanes_are_equal_at_both_ends(void **state)
{
	static const char *const latency[] = {"1e-6", "3e-7", "7e-7", "3e-6", "5e-6"};
	char lanes[64];

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
		struct weft_worker *a, *b;
		struct weft_ep *x, *y;

		snprintf(lanes, sizeof(lanes), "mock:0,lat=%s;mock:1,lat=%s", latency[i / 2],
			 latency[i / 2]);
		a = mock_worker(ctx, lanes);
		b = mock_worker(ctx, lanes);
		x = i % 2 ? mock_connect(a, b) : mock_connect(b, a);
		mock_run(1000, MS, a, b, NULL);
		y = i % 2 ? mock_connect(b, a) : mock_connect(a, b);
		mock_run(1000, MS, a, b, NULL);
		assert_int_equal(x->lanes_up, 3);
		assert_int_equal(y->lanes_up, 3);
		assert_int_equal(x->am_lane, y->am_lane);
		assert_true(x->lanes[0].latency == x->lanes[1].latency);
		conn_destroy(ctx, a, b);
	}
}

static void check_rails(const char *left, const char *right, unsigned int lanes)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, left), *b = mock_worker(ctx, right);
	struct weft_ep *x = mock_connect(a, b), *y;

	mock_run(200, MS, a, b, NULL);
	y = conn_first_ep(b);
	assert_int_equal(x->state, WEFT_EP_UP);
	assert_int_equal(conn_lanes_up(x), lanes);
	assert_int_equal(x->lanes_up, y->lanes_up);
	conn_message(x, b, 300000, 1);
	conn_destroy(ctx, a, b);
	mock_reset();
}

/* @behaviour U59 */
static void unequal_rail_counts_use_each_device_once(void **state)
{
	(void)state;
	check_rails("mock:0;mock:1;mock:2", "mock:0", 1);
	check_rails("mock:0", "mock:0;mock:1", 1);
	check_rails("mock:0;mock:1", "mock:0;mock:1;mock:2;mock:3", 2);
	check_rails("mock:0;mock:1;mock:2;mock:3", "mock:0;mock:1;mock:2;mock:3", 4);
	/* A port with four times the bandwidth takes four lanes. */
	check_rails("mock:0,bw=4e9", "mock:0;mock:1;mock:2;mock:3", 4);
	check_rails("mock:0;mock:1;mock:2", "mock:0,bw=2e9", 2);
	/* Different networks are not mixed. */
	check_rails("mock:0,net=1;mock:1,net=2", "mock:0,net=2;mock:1,net=1", 2);
	check_rails("mock:0,net=1;mock:1,net=2", "mock:0,net=2;mock:1,net=3", 1);
}

/* @behaviour U50 */
static void lanes_that_differ_in_size_take_what_both_can(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0,short=300,bcopy=2000,zcopy=0");
	struct weft_worker *b = mock_worker(ctx, "mock:0,short=200,bcopy=1000,zcopy=8000");
	struct weft_ep *x = mock_connect(a, b);

	(void)state;
	mock_run(100, MS, a, b, NULL);
	assert_int_equal(x->lanes[0].max_frag, 2000);
	assert_int_equal(conn_first_ep(b)->lanes[0].max_frag, 2000);
	conn_message(x, b, 100000, 1);
	conn_message(conn_first_ep(b), a, 100000, 1);
	conn_destroy(ctx, a, b);
}

/*
 * An address of 16 interfaces does not fit into a message of 200 bytes, nor into 1200: it goes in
 * pieces.
 */
/* @behaviour Y12: wire-up through messages of 100 bytes */
static void a_request_fits_any_mtu(void **state)
{
	static const char *const lists[] = {
		"mock:0,short=100,bcopy=0,zcopy=0",
		"mock:*,short=100,bcopy=200,zcopy=0",
		"mock:*,short=100,bcopy=1200,zcopy=0",
	};
	unsigned int i, order;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (order = MOCK_FIFO; order <= MOCK_REVERSE; order++) {
			struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
			struct weft_worker *a = mock_worker(ctx, lists[i]),
					   *b = mock_worker(ctx, lists[i]);
			struct weft_ep *x = mock_connect(a, b);

			mock_set_order((enum mock_order)order);
			mock_set_eagain(NULL, 300);
			/* An answer that finds no room is asked for again after 0.5 s. */
			mock_run(5000, MS, a, b, NULL);
			assert_int_equal(x->state, WEFT_EP_UP);
			assert_int_equal(conn_lanes_up(x), i == 0 ? 1 : 15);
			assert_int_equal(conn_lanes_up(conn_first_ep(b)), conn_lanes_up(x));
			conn_destroy(ctx, a, b);
			mock_reset();
		}
	}
}

/*
 * The first connection dies between REQ and REP: the other pair is used, and nothing is lost or
 * doubled.
 */
/*
 * What protocols are chosen by is the same at both ends, though each end knows only its own numbers
 * at first.
 */
/* @behaviour U59 */
static void both_ends_choose_by_the_same_numbers(void **state)
{
	static const char mine[] = "mock:0,bw=3e9,lat=1e-6,so=2e-7,ro=1e-7;mock:1,so=3e-8";
	static const char theirs[] = "mock:0,bw=2e9,lat=3e-6,so=1e-7,ro=3e-7;mock:1,ro=5e-7";

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct weft_context *c = mock_context("BCOPY_BW=5GBs", NULL);
		struct weft_context *d = mock_context("BCOPY_BW=3GBs", NULL);
		struct weft_worker *a = mock_worker(c, mine), *b = mock_worker(d, theirs);
		struct weft_ep *x = i % 2 ? mock_connect(a, b) : mock_connect(b, a), *y;

		mock_run(1000, MS, a, b, NULL);
		y = i % 2 ? mock_connect(b, a) : mock_connect(a, b);
		mock_run(1000, MS, a, b, NULL);
		assert_int_equal(x->lanes_up, 3);
		assert_int_equal(y->lanes_up, 3);
		assert_true(x->msg->config->model.conf.bcopy_bw == 3e9);
		assert_memory_equal(&x->msg->config->model, &y->msg->config->model,
				    sizeof(x->msg->config->model));
		assert_true(x->msg->config->model.lanes[0].send_overhead == (double)2e-7f ||
			    x->msg->config->model.lanes[1].send_overhead == (double)2e-7f);
		/*
		 * Own ends share their configuration only with equal ones: there are two workers.
		 */
		assert_ptr_not_equal(x->msg->config, y->msg->config);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
		assert_int_equal(weft_context_destroy(c), 0);
		assert_int_equal(weft_context_destroy(d), 0);
	}
}

/* ------------------------------------------------------------------ what cannot be had */

/*
 * @behaviour Y9: a pair of interfaces that does not reply, or refuses, is skipped; crossed cables
 * are detected
 */
static void crossed_cables_are_found_out(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x;

	(void)state;
	conn_order(&a, &b);
	/* 0 here is cabled to 1 there; a request to the wrong one gets no answer. */
	mock_refuse(mock_iface(a, 0), mock_iface(b, 0), 0, NULL);
	mock_refuse(mock_iface(a, 1), mock_iface(b, 1), 0, NULL);
	x = mock_connect(a, b);
	mock_run(6000, MS, a, b, NULL);
	assert_int_equal(x->state, WEFT_EP_UP);
	assert_int_equal(x->lanes_up, 3);
	assert_int_equal(conn_first_ep(b)->lanes_up, 3);
	conn_message(x, b, 100000, 1);
	conn_destroy(ctx, a, b);
}

/* @behaviour U68 */
static void a_further_lane_that_cannot_attach_is_left_out(void **state)
{
	unsigned int variant;

	(void)state;
	for (variant = 0; variant < 4; variant++) {
		struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", NULL);
		struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
		struct weft_ep *x, *y;

		conn_order(&a, &b);
		/* Refused at once, or never answered; the connection begun by either side. */
		mock_refuse(mock_iface(a, 1), mock_iface(b, 1), variant & 1 ? -EHOSTUNREACH : 0,
			    "no ARP answer");
		x = variant & 2 ? mock_connect(b, a) : mock_connect(a, b);
		mock_run(7000, MS, a, b, NULL);
		y = conn_first_ep(variant & 2 ? a : b);
		assert_int_equal(x->state, WEFT_EP_UP);
		assert_int_equal(y->state, WEFT_EP_UP);
		assert_int_equal(x->lanes_up, 1);
		assert_int_equal(y->lanes_up, 1);
		assert_null(x->wireup);
		assert_null(y->wireup);
		conn_message(x, variant & 2 ? a : b, 100000, 1);
		conn_destroy(ctx, a, b);
		mock_reset();
	}
}

/* @behaviour Y9 */
static void unreachable_peer_is_refused_at_creation(void **state)
{
	struct weft_context *ctx =
		mock_context("CONNECT_TIMEOUT=30s", "LOG_LEVEL=error", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0,net=1"),
			   *b = mock_worker(ctx, "mock:0,net=2");
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct weft_ep *ep;
	void *address;

	(void)state;
	assert_int_equal(weft_worker_get_address(b, &address, &p.address_length), 0);
	p.address = address;
	assert_int_equal(weft_ep_create(a, &p, &ep), -EHOSTUNREACH);
	assert_int_equal(a->num_eps, 0);
	weft_worker_release_address(b, address);
	conn_destroy(ctx, a, b);
}

/* @behaviour Y9 */
static void connect_fails_after_the_last_pair_with_its_reason(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct mock_err err = {0};
	struct weft_ep *ep;

	(void)state;
	mock_refuse(NULL, NULL, -EHOSTUNREACH, "mock says no ARP answer");
	ep = conn_create(a, b, &err);
	mock_run(20, MS, a, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err.status, -EHOSTUNREACH);
	assert_non_null(strstr(err.why, "no ARP answer"));
	assert_non_null(strstr(err.why, "test")); /* the peer's name */
	assert_int_equal(weft_tag_send(ep, "x", 1, 1, NULL, NULL), -EHOSTUNREACH);
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
}

/* @return what the endpoint failed with, for the reason @p why */
static int failed_with(struct weft_context *ctx, struct weft_worker *a, struct weft_worker *b,
		       const char *why)
{
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(a, b, &err);

	mock_run(20, MS, a, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_non_null(strstr(err.why, why));
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
	mock_reset();
	return err.status;
}

/* The longest reason, and one that is longer: no byte is lost before its end, none comes after. */
static void a_long_reason_arrives_whole(void **state)
{
	static const size_t lengths[] = {200, 255, 256, 257, sizeof(struct weft_reason) - 1, 480};
	char text[512], all[512];
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct weft_context *ctx =
			mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
		struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
		struct mock_err err = {0};
		struct weft_ep *ep;

		/* It begins with the interface, so nothing is put before it. */
		memset(text, 'r', sizeof(text));
		memcpy(text, "mock:0 ", 7);
		text[lengths[i]] = '\0';
		mock_refuse(NULL, NULL, -EHOSTUNREACH, text);
		ep = conn_create(a, b, &err);
		mock_run(20, MS, a, b, NULL);
		assert_int_equal(err.calls, 1);
		n = lengths[i] < sizeof(struct weft_reason) ? lengths[i]
							    : sizeof(struct weft_reason) - 1;
		snprintf(all, sizeof(all), "no connection to test: %.*s", (int)n, text);
		assert_string_equal(err.why, all);
		assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
		conn_destroy(ctx, a, b);
		mock_reset();
	}
}

/* In a network the end of a close may get lost; a process of the same host that resets has died. */
static void a_peer_that_died_while_connecting_has_not_closed(void **state)
{
	(void)state;
	for (unsigned int host = 0; host < 2; host++) {
		struct weft_context *ctx =
			mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
		struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");

		if (host) {
			mock_iface(a, 0)->attr.features |= WEFT_LANE_F_HOST;
			mock_iface(b, 0)->attr.features |= WEFT_LANE_F_HOST;
		}
		mock_refuse(NULL, NULL, -ECONNRESET, "reset");
		assert_int_equal(failed_with(ctx, a, b, "reset"),
				 host ? -EHOSTUNREACH : -ECONNRESET);
	}
}

/* As the reason says. */
static void the_error_of_the_last_pair_is_what_connecting_fails_with(void **state)
{
	(void)state;
	for (unsigned int last = 0; last < 2; last++) {
		struct weft_context *ctx =
			mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
		struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);

		mock_refuse(mock_iface(a, !last), NULL, -ECONNRESET, "reset");
		mock_refuse(mock_iface(a, last), NULL, -EHOSTUNREACH, "unheard");
		assert_int_equal(failed_with(ctx, a, b, last ? "unheard" : "reset"),
				 last ? -EHOSTUNREACH : -ECONNRESET);
	}
}

/* @behaviour Y9 */
static void connect_timeout_names_lane_and_peer(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct mock_err err = {0};
	struct weft_ep *ep;

	(void)state;
	mock_refuse(NULL, NULL, 0, NULL);
	ep = conn_create(a, b, &err);
	mock_run(3000, MS, a, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_non_null(strstr(err.why, "mock:0"));
	assert_non_null(strstr(err.why, "mock-102"));
	assert_int_equal(weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
}

/* @behaviour Y11: a peer that does not poll is waited for */
static void a_peer_that_does_not_poll_is_waited_for(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x = mock_connect(a, b);

	(void)state;
	mock_run(10000, MS, a, NULL);
	assert_int_equal(x->state, WEFT_EP_CONNECTING);
	mock_run(8000, MS, a, b, NULL);
	assert_int_equal(x->state, WEFT_EP_UP);
	assert_int_equal(conn_lanes_up(x), 2);
	assert_int_equal(mock_num_lane_eps(), 4);
	conn_message(x, b, 100, 1);
	conn_destroy(ctx, a, b);
}

/* @behaviour Y10: connections lost at any moment of the exchange */
static void bootstrap_fails_over_before_the_answer(void **state)
{
	unsigned int round, swap;

	(void)state;
	for (swap = 0; swap < 2; swap++) {
		for (round = 0; round < 12; round++) {
			struct weft_context *ctx =
				mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
			struct weft_worker *a = mock_worker(ctx, two_nics),
					   *b = mock_worker(ctx, two_nics);
			struct mock_err err = {0};
			struct weft_ep *x;

			conn_order(&a, &b);
			if (swap) {
				struct weft_worker *t = a;

				a = b;
				b = t;
			}
			x = conn_create(a, b, &err);
			mock_run(round / 2, MS, a, b, NULL);
			if (round % 2)
				mock_run(1, MS, a, NULL);
			mock_kill(mock_iface(a, 0), NULL, -ENETDOWN, "cable pulled");
			mock_run(3000, MS, a, b, NULL);
			/*
			 * Either it got over to the other pair, or it had been in use and says so.
			 */
			if (x->state == WEFT_EP_UP)
				conn_message(x, b, 5000, 1);
			else
				assert_int_equal(err.calls, 1);
			if (round < 3)
				assert_int_equal(x->state, WEFT_EP_UP);
			conn_destroy(ctx, a, b);
			mock_reset();
		}
	}
}

/* Crossed requests, and the winning connection dies: the other one is answered. */
/* @behaviour Y10 */
static void crossed_requests_survive_the_loss_of_one_connection(void **state)
{
	unsigned int round;

	(void)state;
	for (round = 0; round < 10; round++) {
		struct weft_context *ctx =
			mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
		struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
		struct mock_err ea = {0}, eb = {0};
		struct weft_ep *x, *y;

		x = conn_create(a, b, &ea);
		y = conn_create(b, a, &eb);
		mock_run(round / 2, MS, a, b, NULL);
		if (round % 2)
			mock_run(1, MS, b, NULL);
		mock_kill(mock_iface(a, 0), mock_iface(b, 0), -ENETDOWN, "cable pulled");
		mock_run(5000, MS, a, b, NULL);
		if (ea.calls == 0 && eb.calls == 0) {
			assert_int_equal(x->state, WEFT_EP_UP);
			assert_int_equal(y->state, WEFT_EP_UP);
			assert_int_equal(x->lanes_up, y->lanes_up);
			conn_message(x, b, 5000, 1);
			conn_message(y, a, 5000, 1);
		} else {
			assert_true(ea.calls <= 1 && eb.calls <= 1);
			assert_true(round > 2);
		}
		conn_destroy(ctx, a, b);
		mock_reset();
	}
}

/* A lane that is attached stays, however long ago it was connected. */
/* @behaviour Y11 */
static void attached_lanes_outlive_the_connect_timeout(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0;mock:1;mock:2"),
			   *b = mock_worker(ctx, "mock:0;mock:1;mock:2");
	struct weft_ep *x = mock_connect(a, b);

	(void)state;
	mock_run(100, 200 * MS, a, b, NULL);
	assert_int_equal(x->state, WEFT_EP_UP);
	assert_int_equal(x->lanes_up, 7);
	assert_int_equal(conn_first_ep(b)->lanes_up, 7);
	assert_int_equal(conn_counter(a, "wireup.pending") + conn_counter(b, "wireup.pending"), 0);
	conn_message(x, b, 100000, 1);
	conn_destroy(ctx, a, b);
}

/* ------------------------------------------------------------------ what is logged */

static char summary[256];

static bool take_summary(enum weft_log_level level, const char *source, const char *text, void *arg)
{
	(void)level, (void)source, (void)arg;
	if (strstr(text, "more of its lanes"))
		snprintf(summary, sizeof(summary), "%s", text);
	return true;
}

static unsigned int lines_of(struct weft_worker *w, unsigned int n, bool back)
{
	unsigned int lines = 0;

	for (unsigned int i = 0; i < n; i++)
		lines += weft_iface_lane_line(w, w->ifaces[0], back);
	return lines;
}

/*
 * @behaviour U92: of many lanes that are given up or come back within 10 s, five have a line of the
 * log, and the others one line with their numbers
 */
static void many_lanes_that_change_have_one_line(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *w = mock_worker(ctx, two_nics);

	(void)state;
	weft_log_level = WEFT_LOG_WARN;
	weft_log_set_callback(take_summary, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		summary[0] = '\0';
		assert_int_equal(lines_of(w, 8, false), 5);
		assert_int_equal(lines_of(w, 2, true), 0);
		mock_run(900, MS, w, NULL);
		assert_string_equal(summary, "");
		mock_run(200, MS, w, NULL);
		assert_non_null(strstr(summary, "3 more of its lanes were given up, 2 came back"));
		mock_run(10000, MS, w, NULL);
	}
	weft_log_set_callback(NULL, NULL);
	weft_log_level = WEFT_LOG_ERROR;
	conn_destroy(ctx, w, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(two_nics_in_one_subnet_make_two_lanes),
		CONN_TEST(equal_lanes_are_equal_at_both_ends),
		CONN_TEST(both_ends_choose_by_the_same_numbers),
		CONN_TEST(unequal_rail_counts_use_each_device_once),
		CONN_TEST(lanes_that_differ_in_size_take_what_both_can),
		CONN_TEST(a_request_fits_any_mtu),
		CONN_TEST(crossed_cables_are_found_out),
		CONN_TEST(a_further_lane_that_cannot_attach_is_left_out),
		CONN_TEST(unreachable_peer_is_refused_at_creation),
		CONN_TEST(connect_fails_after_the_last_pair_with_its_reason),
		CONN_TEST(a_long_reason_arrives_whole),
		CONN_TEST(a_peer_that_died_while_connecting_has_not_closed),
		CONN_TEST(the_error_of_the_last_pair_is_what_connecting_fails_with),
		CONN_TEST(connect_timeout_names_lane_and_peer),
		CONN_TEST(a_peer_that_does_not_poll_is_waited_for),
		CONN_TEST(bootstrap_fails_over_before_the_answer),
		CONN_TEST(crossed_requests_survive_the_loss_of_one_connection),
		CONN_TEST(many_lanes_that_change_have_one_line),
		CONN_TEST(attached_lanes_outlive_the_connect_timeout),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("wireup_lanes", tests, NULL, NULL);
}
