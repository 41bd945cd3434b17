/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lanes whose ends need each other's address, and exchanges over a control channel that loses and
 * doubles: RoCE only, raw only, mixed, and what goes wrong on the way.
 */

#include "mem/mem.h"
#include "mock/link_util.h"
#include "mock/rounds.h"
#include "self/self_lane.h"

static const char roce_only[] = "mlink:0;mctl:0";
static const char two_rails[] = "mlink:0,net=1;mlink:1,net=2;mctl:0,net=1;mctl:1,net=2";
static const char mixed[] = "mock:0;mlink:0;mctl:0";

#define LINK_TEST(f) cmocka_unit_test_setup_teardown(f, link_setup, link_teardown)

static struct weft_context *context(void)
{
	return mlink_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
}

/*
 * ------------------------------------------------------------------ which end connects over what
 */

/*
 * @behaviour Y14: RoCE only, raw only, mixed, one host with RoCE, unequal rails: all connect over
 * the lanes that both ends have
 */
static void hosts_with_control_channels_only_connect(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, roce_only), *b = mock_worker(ctx, roce_only);
	struct weft_ep *ep, *back;
	int turn;

	(void)state;
	/* The lower id connects, then the higher one. */
	conn_order(&a, &b);
	for (turn = 0; turn < 2; turn++) {
		ep = mock_connect(turn ? b : a, turn ? a : b);
		conn_message(ep, turn ? a : b, 100, 1);
		back = mock_connect(turn ? a : b, turn ? b : a);
		assert_int_equal(a->num_eps, 1);
		assert_int_equal(b->num_eps, 1);
		conn_message(back, turn ? b : a, 100000, 2);
		mock_run(100, MS, a, b, NULL);
		assert_null(ep->wireup);
		assert_null(back->wireup);
		assert_int_equal(ep->lanes_up, 1);
		assert_string_equal(ep->lanes[0].lane_ep->iface->name, "mlink:0");
		/* The control channel was for wire-up: its connections are gone. */
		assert_int_equal(mlink_num_lane_eps(), 2);
		assert_int_equal(conn_close(ep, turn ? a : b), 0);
		mock_run(10, MS, a, b, NULL);
		assert_int_equal(weft_ep_close(back, 0, NULL, NULL), 0);
		assert_int_equal(mlink_num_lane_eps(), 0);
	}
	assert_int_equal(conn_counter(a, "wireup.drop.bad"), 0);
	conn_destroy(ctx, a, b);
}

/* @behaviour Y14 */
static void a_real_lane_boots_before_a_control_channel(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, mixed), *b = mock_worker(ctx, mixed);
	struct weft_ep *ep;
	int turn;

	(void)state;
	conn_order(&a, &b);
	for (turn = 0; turn < 2; turn++) {
		ep = mock_connect(turn ? b : a, turn ? a : b);
		conn_message(ep, turn ? a : b, 100000, 1);
		mock_run(100, MS, a, b, NULL);
		assert_int_equal(mctl_sent(), 0);
		assert_int_equal(ep->lanes_up, 3);
		assert_int_equal(conn_first_ep(turn ? a : b)->lanes_up, 3);
		assert_string_equal(ep->lanes[0].lane_ep->iface->name, "mock:0");
		assert_string_equal(ep->lanes[1].lane_ep->iface->name, "mlink:0");
		assert_null(ep->wireup);
		assert_int_equal(conn_close(ep, turn ? a : b), 0);
	}
	conn_destroy(ctx, a, b);
}

/* Each of four kinds of hosts with each other. */
/* @behaviour Y14 */
static void hosts_with_different_lanes_use_what_both_have(void **state)
{
	static const struct {
		const char *lanes;
		int raw, roce;
	} host[] = {{"mock:0", 1, 0},
		    {"mlink:0;mctl:0", 0, 1},
		    {"mock:0;mlink:0;mctl:0", 1, 1},
		    {"mock:0;mctl:0", 1, 0},
		    {"mock:0;mlink:0;mlink:1;mctl:0;mctl:1", 1, 2}};
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .err_cb = mock_err_cb);
	struct weft_context *ctx = context();
	struct weft_worker *a, *b;
	unsigned int i, k, want;
	struct weft_ep *ep;
	void *address;

	(void)state;
	for (i = 0; i < 25; i++) {
		a = mock_worker(ctx, host[i / 5].lanes);
		b = mock_worker(ctx, host[i % 5].lanes);
		k = (unsigned int)(host[i / 5].roce < host[i % 5].roce ? host[i / 5].roce
								       : host[i % 5].roce);
		want = (unsigned int)(host[i / 5].raw & host[i % 5].raw) + k;
		assert_int_equal(weft_worker_get_address(b, &address, &p.address_length), 0);
		p.address = address;
		if (want == 0) {
			assert_int_equal(weft_ep_create(a, &p, &ep), -EHOSTUNREACH);
		} else {
			assert_int_equal(weft_ep_create(a, &p, &ep), 0);
			conn_message(ep, b, 50000, i);
			mock_run(100, MS, a, b, NULL);
			if (conn_lanes_up(ep) != want || conn_lanes_up(conn_first_ep(b)) != want)
				fail_msg("hosts %u and %u: %u lanes, not %u", i / 5, i % 5,
					 conn_lanes_up(ep), want);
		}
		weft_worker_release_address(b, address);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour Y14 */
static void unequal_rails_use_each_device_once(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, "mlink:0;mlink:1;mlink:2;mctl:0"),
			   *b = mock_worker(ctx, "mlink:0;mlink:1;mctl:0");
	struct weft_ep *ep;

	(void)state;
	ep = mock_connect(a, b);
	conn_message(ep, b, 100000, 1);
	mock_run(100, MS, a, b, NULL);
	assert_int_equal(conn_lanes_up(ep), 2);
	assert_true(ep->lane_info[0].local_iface != ep->lane_info[1].local_iface);
	assert_true(ep->lane_info[0].remote_iface != ep->lane_info[1].remote_iface);
	assert_int_equal(mlink_num_lane_eps(), 4);
	conn_destroy(ctx, a, b);
}

static void a_worker_reaches_itself_over_its_loopback(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, roce_only);
	struct weft_ep *ep = mock_connect(a, a);

	(void)state;
	conn_message(ep, a, 1000, 1);
	assert_int_equal(mctl_sent(), 0);
	assert_int_equal(mlink_num_lane_eps(), 0);
	weft_worker_destroy(a);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void lanes_have_the_domain_of_their_remote_end(void **state)
{
	struct weft_context *ctx = context(), *other = context();
	struct weft_worker *a = mock_worker(ctx, "mlink:0,net=1,dom=x;mlink:1,net=2,dom=y;mctl:0"),
			   *b = mock_worker(other,
					    "mlink:0,net=2,dom=p;mlink:1,net=1,dom=q;mctl:0");
	struct weft_mem_params mp = {.size = sizeof(mp)};
	struct weft_mem_key keys[WEFT_MAX_IFACES];
	struct weft_ep *ep = mock_connect(a, b);
	struct weft_mem *mem;
	unsigned int i, k, n;
	char buf[77];

	(void)state;
	mock_run(300, MS, a, b, NULL);
	assert_int_equal(conn_lanes_up(ep), 2);
	assert_int_equal(weft_mem_register(other, buf, sizeof(buf), &mp, &mem), 0);
	n = weft_mem_keys(mem, keys, WEFT_MAX_IFACES);
	assert_int_equal(n, 2);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < n && keys[k].domain != ep->lanes[i].remote_domain; k++)
			;
		assert_true(k < n);
		assert_true(keys[k].driver == &mlink_driver);
		/* The mock's keys say which iface made them. */
		assert_int_equal(keys[k].key & UINT32_MAX, sizeof(buf));
		assert_string_equal(mock_iface(b, ep->lane_info[i].remote_iface)->attr.domain,
				    other->domains[keys[k].domain].name);
	}
	assert_int_equal(weft_mem_deregister(mem), 0);
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	assert_int_equal(weft_context_destroy(ctx), 0);
	assert_int_equal(weft_context_destroy(other), 0);
}

/* A domain's text may have any length; a context has a limited number of domains. */
static void each_worker_has_the_domain_of_a_long_name(void **state)
{
	static const char lanes[] = "mlink:0,dom=a-domain-with-more-than-32-characters-1;"
				    "mlink:1,dom=a-domain-with-more-than-32-characters-2";
	struct weft_context *ctx = context();
	struct weft_worker *w;

	(void)state;
	for (unsigned int i = 0; i < WEFT_MAX_DOMAINS; i++) {
		w = mock_worker(ctx, lanes);
		assert_int_equal(mock_iface(w, 0)->mem_domain, 1);
		assert_int_equal(mock_iface(w, 1)->mem_domain, 2);
		weft_worker_destroy(w);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

#define LONG_NAME "a-resource-whose-name-has-more-than-forty-characters"

static const char *long_listed;
static unsigned int long_opened;

static int long_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	return add(arg, &(struct weft_lane_resource){.name = long_listed});
}

static int long_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len);

static const struct weft_lane_driver long_driver = {
	.name = "long", .abi = WEFT_LANE_ABI, .query = long_query, .open = long_open};

/* Its interfaces have a shorter name than their resources. */
static int long_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	int rc = mock_driver.open(p, iface, why, why_len);

	if (rc < 0)
		return rc;
	(*iface)->driver = &long_driver;
	(*iface)->name = "long:short";
	long_opened++;
	return 0;
}

static struct weft_context *context_of(const struct weft_lane_driver *const *drivers, ...)
{
	struct weft_context *ctx;
	va_list ap;

	va_start(ap, drivers);
	ctx = mock_context_with(drivers, "LOG_FILE=/dev/null", ap);
	va_end(ap);
	return ctx;
}

static void open_named_and_all(const char *listed, const char *lanes, unsigned int opened)
{
	static const struct weft_lane_driver *const drivers[] = {&long_driver, &weft_self_driver,
								 NULL};
	struct weft_context *ctx = context_of(drivers, NULL);
	struct weft_worker *w;

	long_opened = 0;
	long_listed = listed;
	w = mock_worker(ctx, lanes);
	assert_int_equal(long_opened, opened);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void a_named_resource_is_not_opened_again_by_a_wildcard(void **state)
{
	(void)state;
	open_named_and_all(LONG_NAME, "long:" LONG_NAME ";long:*", 1);
	/* A port may be named by its device, and is listed by its number. */
	open_named_and_all("short", "long:of-the-device;long:*", 1);
	open_named_and_all("another", "long:of-the-device;long:*", 2);
}

/* ------------------------------------------------------------------ loss, copies, order */

/* One seed: both connect at once or one after the other, over channels that lose and double. */
static void meet(struct weft_context *ctx, unsigned int seed, const char *la, const char *lb,
		 unsigned int lanes)
{
	struct weft_worker *a, *b;
	struct weft_ep *x, *y;
	unsigned int i;

	mock_seed(seed);
	mlink_reset(seed);
	mctl_set_faults(seed % 5 * 100, seed % 3 * 200, 500);
	mlink_set_random(seed % 2);
	mlink_set_eagain(seed % 4 * 100);
	mlink_set_up_delay(seed % 6 * 3 * MS);
	a = mock_worker(ctx, la);
	b = mock_worker(ctx, lb);
	x = mock_connect(a, b);
	for (i = 0; i < seed % 11 * 5; i++)
		mock_run(1, MS, seed % 2 ? a : b, NULL);
	y = mock_connect(b, a);
	for (i = 0; i < 6000; i++) {
		mock_run(1, MS, a, NULL);
		if (i % 3 != seed % 3)
			mock_run(1, MS, b, NULL);
	}
	if (x->state != WEFT_EP_UP || y->state != WEFT_EP_UP || a->num_eps != 1 || b->num_eps != 1)
		fail_msg("seed %u: states %d %d, endpoints %u %u", seed, x->state, y->state,
			 a->num_eps, b->num_eps);
	if (x->lanes_up != y->lanes_up || conn_lanes_up(x) != lanes || x->wireup || y->wireup)
		fail_msg("seed %u: lanes %x %x", seed, x->lanes_up, y->lanes_up);
	/* Copies that came late have left connections without an owner; they end in time. */
	mctl_set_faults(0, 0, 0);
	mock_run(320, 100 * MS, a, b, NULL);
	if (mlink_num_lane_eps() + mock_num_lane_eps() != 2 * lanes)
		fail_msg("seed %u: %u connections for %u lanes", seed,
			 mlink_num_lane_eps() + mock_num_lane_eps(), lanes);
	conn_message(x, b, 70000, 1);
	conn_message(y, a, 70000, 2);
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	if (mlink_num_messages() != 0)
		fail_msg("seed %u: %u messages are left", seed, mlink_num_messages());
}

/* @behaviour Y15: bootstrap over a channel that loses, duplicates and reorders; crossed connects */
static void connects_meet_whatever_the_channel_does(void **state)
{
	struct weft_context *ctx = context();
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= test_rounds(400); seed++)
		meet(ctx, seed, seed % 3 ? roce_only : two_rails, seed % 3 ? roce_only : two_rails,
		     seed % 3 ? 1 : 2);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour Y15 */
static void mixed_hosts_meet_in_any_order_of_events(void **state)
{
	struct weft_context *ctx = context();
	unsigned int seed;

	(void)state;
	mock_set_order(MOCK_RANDOM);
	for (seed = 1; seed <= test_rounds(150); seed++)
		meet(ctx, seed, mixed, mixed, 2);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* Sends queue until lane 0 is there: all of them arrive, once, in order. */
/* @behaviour Y16: the switch from the bootstrap connection loses and reorders nothing */
static void what_is_sent_early_arrives_in_order(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, two_rails), *b = mock_worker(ctx, two_rails);
	struct weft_request *r[200], *s;
	uint32_t in[200], out[200];
	struct weft_ep *ep;
	unsigned int i;

	(void)state;
	mctl_set_faults(300, 300, 500);
	mlink_set_random(true);
	ep = mock_connect(a, b);
	for (i = 0; i < 200; i++) {
		assert_true(weft_tag_recv(b, NULL, &in[i], sizeof(in[i]), 7, WEFT_TAG_MASK_FULL,
					  NULL, &r[i]) >= 0);
		out[i] = i;
		assert_true(weft_tag_send(ep, &out[i], sizeof(out[i]), 7, NULL, &s) >= 0);
		weft_request_free(s);
		mock_run(i % 3, MS, a, i % 2 ? b : NULL, NULL);
	}
	mock_run(2000, MS, a, b, NULL);
	for (i = 0; i < 200; i++) {
		assert_int_equal(weft_request_test(r[i], NULL), 0);
		assert_int_equal(in[i], i);
		weft_request_free(r[i]);
	}
	conn_destroy(ctx, a, b);
}

/* @behaviour Y17 */
static void a_peer_that_does_not_poll_is_waited_for(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, two_rails), *b = mock_worker(ctx, two_rails);
	struct weft_ep *ep;
	int turn;

	(void)state;
	conn_order(&a, &b);
	for (turn = 0; turn < 2; turn++) {
		ep = mock_connect(turn ? b : a, turn ? a : b);
		mock_run(20000, MS, turn ? b : a, NULL);
		assert_int_equal(ep->state, WEFT_EP_CONNECTING);
		mock_run(5000, MS, a, b, NULL);
		assert_int_equal(ep->state, WEFT_EP_UP);
		assert_int_equal(conn_lanes_up(ep), 2);
		conn_message(ep, turn ? a : b, 100, 1);
		assert_int_equal(conn_close(ep, turn ? a : b), 0);
		mock_run(400, 100 * MS, a, b, NULL);
		assert_int_equal(mlink_num_lane_eps(), 0);
	}
	conn_destroy(ctx, a, b);
}

/* ------------------------------------------------------------------ what fails */

/*
 * @behaviour Y17: a firewall before the raw lane, a peer that does not poll, no host at the
 * address, an end that never comes up
 */
static void a_raw_lane_without_answer_gives_way_to_the_control_channel(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, mixed), *b = mock_worker(ctx, mixed);
	struct weft_ep *ep;

	(void)state;
	mock_refuse(NULL, NULL, 0, ""); /* a firewall */
	ep = mock_connect(a, b);
	mock_run(10000, MS, a, b, NULL);
	assert_int_equal(ep->state, WEFT_EP_UP);
	assert_string_equal(ep->lanes[0].lane_ep->iface->name, "mlink:0");
	conn_message(ep, b, 1000, 1);
	/* The raw lane was proposed as a further one, and is left out in time. */
	mock_run(300, 200 * MS, a, b, NULL);
	assert_int_equal(ep->lanes_up, 1);
	assert_null(ep->wireup);
	assert_int_equal(mock_num_lane_eps(), 0);
	conn_destroy(ctx, a, b);
}

/* Lane 0 does not come up at the one side or the other: both ends end, with a reason. */
/* @behaviour Y17 */
static void a_lane_0_that_does_not_come_up_ends_the_attempt(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, roce_only), *b = mock_worker(ctx, roce_only);
	struct mock_err err;
	int turn;

	(void)state;
	conn_order(&a, &b);
	for (turn = 0; turn < 4; turn++) {
		struct weft_worker *from = turn & 1 ? b : a, *to = turn & 1 ? a : b;
		struct weft_ep *ep;

		err = (struct mock_err){0};
		mlink_block(mock_iface(turn & 2 ? b : a, 0));
		ep = conn_create(from, to, &err);
		mock_run(3500, 10 * MS, a, b, NULL);
		assert_int_equal(err.calls, 1);
		assert_true(err.status == -ETIMEDOUT || err.status == -EHOSTUNREACH);
		assert_true(strlen(err.why) > 10);
		assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
		mlink_block(NULL);
		mock_run(700, 100 * MS, a, b, NULL);
		assert_int_equal(a->num_eps + b->num_eps, 0);
		assert_int_equal(mlink_num_lane_eps(), 0);
	}
	conn_destroy(ctx, a, b);
}

/* @behaviour Y17 */
static void a_further_lane_that_cannot_be_is_left_out(void **state)
{
	static const char *const lists[] = {
		"mlink:0,net=1,lat=1e-6;mlink:1,net=2,maxep=0;mctl:0,net=1",
		"mock:0;mlink:1,net=2,maxep=0;mctl:0,net=1",
	};
	static const char *const full[] = {"mlink:0,net=1,lat=1e-6;mlink:1,net=2;mctl:0,net=1",
					   "mock:0;mlink:1,net=2;mctl:0,net=1"};
	struct weft_context *ctx = context();
	struct weft_worker *a, *b;
	struct weft_ep *ep;
	unsigned int i;

	(void)state;
	for (i = 0; i < 16; i++) {
		mock_seed(i / 8 + 1);
		a = mock_worker(ctx, i & 1 ? lists[i >> 2 & 1] : full[i >> 2 & 1]);
		b = mock_worker(ctx, i & 1 ? full[i >> 2 & 1] : lists[i >> 2 & 1]);
		ep = mock_connect(i & 2 ? a : b, i & 2 ? b : a);
		mock_run(300, MS, a, b, NULL);
		assert_int_equal(ep->lanes_up, 1);
		assert_int_equal(conn_first_ep(i & 2 ? b : a)->lanes_up, 1);
		assert_null(ep->wireup);
		conn_message(ep, i & 2 ? b : a, 10000, 1);
		assert_int_equal(mlink_num_lane_eps() + mock_num_lane_eps(), 2);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	/* The driver does not take the peer's address; or the second rail fails on the way up. */
	for (i = 0; i < 8; i++) {
		mock_seed(i + 1);
		a = mock_worker(ctx, i & 1 ? full[1] : two_rails);
		b = mock_worker(ctx, i & 1 ? full[1] : two_rails);
		ep = mock_connect(i & 2 ? a : b, i & 2 ? b : a);
		if (i & 1)
			mlink_refuse_addresses(-EINVAL);
		else
			mlink_block(mock_iface(i & 4 ? a : b, 1));
		mock_run(3500, 10 * MS, a, b, NULL);
		assert_int_equal(ep->state, WEFT_EP_UP);
		assert_int_equal(conn_lanes_up(ep), 1);
		assert_int_equal(ep->lanes_up, conn_first_ep(i & 2 ? b : a)->lanes_up);
		assert_null(ep->wireup);
		assert_null(conn_first_ep(i & 2 ? b : a)->wireup);
		mlink_refuse_addresses(0);
		mlink_block(NULL);
		conn_message(ep, i & 2 ? b : a, 10000, 1);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void no_endpoint_for_lane_0_is_reported(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, "mlink:0,maxep=0;mctl:0"),
			   *b = mock_worker(ctx, roce_only);
	struct mock_err err = {0}, err2 = {0};
	struct weft_ep *x = conn_create(a, b, &err), *y = conn_create(b, a, &err2);

	(void)state;
	mock_run(4000, 10 * MS, a, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err2.calls, 1);
	assert_non_null(strstr(err.why, "mlink:0"));
	assert_int_equal(weft_ep_close(x, 0, NULL, NULL), 0);
	assert_int_equal(weft_ep_close(y, 0, NULL, NULL), 0);
	mock_run(400, 100 * MS, a, b, NULL);
	conn_destroy(ctx, a, b);
}

/* @behaviour Y17 */
static void no_peer_at_the_other_end_is_distinguished_from_a_slow_one(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, roce_only), *b = mock_worker(ctx, roce_only);
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(a, b, &err);

	(void)state;
	weft_worker_destroy(b);
	mock_run(3100, 10 * MS, a, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err.status, -ETIMEDOUT);
	assert_non_null(strstr(err.why, "mctl:0"));
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	weft_worker_destroy(a);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* In use: every request ends with the driver's message, at once. */
/* @behaviour Y18: a native lane that fails fails its endpoint at once, with the driver's message */
static void a_lane_that_fails_fails_its_endpoint_with_the_drivers_words(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, two_rails), *b = mock_worker(ctx, two_rails);
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(a, b, &err);
	struct weft_request *r;
	char buf[10];

	(void)state;
	conn_message(ep, b, 10, 1);
	mock_run(200, MS, a, b, NULL);
	assert_int_equal(conn_lanes_up(ep), 2);
	assert_true(weft_tag_recv(a, ep, buf, 10, 1, WEFT_TAG_MASK_FULL, NULL, &r) >= 0);
	mlink_fail(mock_iface(a, 1), -ETIMEDOUT, "rxe1: peer 10.0.0.2 gave no answer in 1.2 s");
	mock_run(2, MS, a, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_int_equal(err.status, -ETIMEDOUT);
	assert_non_null(strstr(err.why, "rxe1: peer 10.0.0.2 gave no answer in 1.2 s"));
	assert_int_equal(weft_request_test(r, NULL), -ETIMEDOUT);
	weft_request_free(r);
	/* The other end hears of it over the lane that is left. */
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 0);
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
}

/* @behaviour G4 */
static void a_peer_that_restarts_is_connected_anew(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, roce_only), *b = mock_worker(ctx, roce_only);
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(a, b, &err), *again;

	(void)state;
	conn_message(ep, b, 10, 1);
	weft_worker_destroy(b);
	b = mock_worker(ctx, roce_only);
	again = mock_connect(b, a);
	conn_message(again, a, 10, 2);
	/* Sends to the old one end in bounded time. */
	weft_tag_send(ep, "x", 1, 1, NULL, NULL);
	mock_run(2000, MS, a, b, NULL);
	assert_int_equal(err.calls, 1);
	conn_message(again, a, 10, 3);
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LINK_TEST(hosts_with_control_channels_only_connect),
		LINK_TEST(a_real_lane_boots_before_a_control_channel),
		LINK_TEST(hosts_with_different_lanes_use_what_both_have),
		LINK_TEST(unequal_rails_use_each_device_once),
		LINK_TEST(a_worker_reaches_itself_over_its_loopback),
		LINK_TEST(lanes_have_the_domain_of_their_remote_end),
		LINK_TEST(each_worker_has_the_domain_of_a_long_name),
		LINK_TEST(a_named_resource_is_not_opened_again_by_a_wildcard),
		LINK_TEST(connects_meet_whatever_the_channel_does),
		LINK_TEST(mixed_hosts_meet_in_any_order_of_events),
		LINK_TEST(what_is_sent_early_arrives_in_order),
		LINK_TEST(a_peer_that_does_not_poll_is_waited_for),
		LINK_TEST(a_raw_lane_without_answer_gives_way_to_the_control_channel),
		LINK_TEST(a_lane_0_that_does_not_come_up_ends_the_attempt),
		LINK_TEST(a_further_lane_that_cannot_be_is_left_out),
		LINK_TEST(no_endpoint_for_lane_0_is_reported),
		LINK_TEST(no_peer_at_the_other_end_is_distinguished_from_a_slow_one),
		LINK_TEST(a_lane_that_fails_fails_its_endpoint_with_the_drivers_words),
		LINK_TEST(a_peer_that_restarts_is_connected_anew),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
