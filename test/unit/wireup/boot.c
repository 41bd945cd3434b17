/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot addresses: bytes, and endpoints that are made of them, alone, crossed, adopted, and where
 * no worker, or another one, answers.
 */

#include "core/address.h"
#include "mock/ep_pair.h"
#include "mock/link_util.h"

static size_t boot_of(struct weft_worker *w, uint8_t *buf)
{
	size_t length = WEFT_BOOT_ADDRESS_MAX;

	assert_int_equal(weft_worker_get_boot_address(w, buf, &length), 0);
	assert_true(length <= WEFT_BOOT_ADDRESS_MAX);
	return length;
}

static int boot_try(struct weft_worker *from, struct weft_worker *to, struct mock_err *err,
		    struct weft_ep **ep)
{
	uint8_t buf[WEFT_BOOT_ADDRESS_MAX];
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = buf,
					    .err_cb = mock_err_cb, .err_arg = err);

	p.address_length = boot_of(to, buf);
	return weft_ep_create(from, &p, ep);
}

static struct weft_ep *boot_connect(struct weft_worker *from, struct weft_worker *to,
				    struct mock_err *err)
{
	struct weft_ep *ep;

	assert_int_equal(boot_try(from, to, err, &ep), 0);
	return ep;
}

static struct weft_context *context(void)
{
	return mock_context("CONNECT_TIMEOUT=60s", "LOG_FILE=/dev/null", NULL);
}

/* ------------------------------------------------------------------ bytes */

static void room_and_attributes(void **state)
{
	struct weft_address_attr attr = WEFT_INIT(struct weft_address_attr);
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, two_nics);
	uint8_t buf[WEFT_BOOT_ADDRESS_MAX + 8];
	size_t length = 0, n;

	(void)state;
	assert_int_equal(weft_worker_get_boot_address(w, NULL, &length), -EMSGSIZE);
	n = length--;
	memset(buf, 0x77, sizeof(buf));
	assert_int_equal(weft_worker_get_boot_address(w, buf, &length), -EMSGSIZE);
	assert_int_equal(length, n);
	assert_int_equal(buf[0], 0x77);
	length = sizeof(buf);
	assert_int_equal(weft_worker_get_boot_address(w, buf, &length), 0);
	assert_int_equal(length, n);
	assert_int_equal(buf[n], 0x77);
	assert_int_equal(weft_worker_get_boot_address(NULL, buf, &length), -EINVAL);
	assert_int_equal(weft_worker_get_boot_address(w, buf, NULL), -EINVAL);
	assert_int_equal(weft_worker_get_boot_address(w, NULL, &length), -EINVAL);
	assert_int_equal(weft_address_query(buf, n, &attr), 0);
	assert_true(attr.worker_id == w->id);
	assert_int_equal(attr.version, WEFT_WIRE_MAJOR << 8);
	assert_int_equal(attr.num_ifaces, 1);
	assert_string_equal(attr.name, "");
	conn_destroy(ctx, w, NULL);
}

static void damage_is_found(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	uint8_t buf[WEFT_BOOT_ADDRESS_MAX + 1], bad[WEFT_BOOT_ADDRESS_MAX + 1];
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = bad);
	size_t n = boot_of(w, buf), i;
	struct weft_boot b;
	struct weft_ep *ep;
	char why[160];

	(void)state;
	assert_int_equal(weft_boot_unpack(&b, buf, n, NULL, 0), 0);
	for (i = 0; i < n; i++) {
		assert_int_not_equal(weft_boot_unpack(&b, buf, i, why, sizeof(why)), 0);
		memcpy(bad, buf, n);
		bad[i] ^= 0x40;
		p.address_length = n;
		/* The magic apart it is none, and no worker address either. */
		assert_int_equal(weft_ep_create(w, &p, &ep), i == 2 ? -EPROTONOSUPPORT : -EINVAL);
	}
	buf[n] = 0;
	assert_int_equal(weft_boot_unpack(&b, buf, n + 1, why, sizeof(why)), -EINVAL);
	/* Whole, and contradictory. */
	assert_int_equal(weft_boot_unpack(&b, buf, n, NULL, 0), 0);
	b.kind = WEFT_LANE_BOOT_HOST;
	n = weft_boot_pack(&b, bad);
	assert_int_equal(weft_boot_unpack(&b, bad, n, why, sizeof(why)), -EINVAL);
	conn_destroy(ctx, w, NULL);
}

/* What a boot address has, and nothing else, until the peer has sent its whole address. */
static void a_peer_is_known_by_its_boot_address(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *s = mock_worker(ctx, "mock:0");
	uint8_t buf[WEFT_BOOT_ADDRESS_MAX];
	struct weft_address a;
	struct weft_boot b;

	(void)state;
	assert_int_equal(weft_boot_unpack(&b, buf, boot_of(s, buf), NULL, 0), 0);
	b.host = 0x1234567;
	memset(&a, 0x77, sizeof(a));
	assert_int_equal(weft_learn_address(w, &b, &a), 0);
	assert_true(a.worker_id == s->id && a.secret == s->secret);
	assert_int_equal(a.host_id, 0x1234567);
	assert_int_equal(a.major, WEFT_WIRE_MAJOR);
	assert_int_equal(a.features, 0);
	assert_int_equal(a.num_ifaces, 1);
	assert_int_equal(a.ifaces[0].index, b.index);
	assert_int_equal(a.ifaces[0].domain, WEFT_NO_DOMAIN);
	assert_string_equal(a.ifaces[0].driver, "mock");
	assert_int_equal(strncmp(a.name, "worker ", 7), 0);
	b.kind = WEFT_LANE_BOOT_NONE;
	assert_int_equal(weft_learn_address(w, &b, &a), 0);
	assert_int_equal(a.num_ifaces, 0);
	conn_destroy(ctx, w, s);
}

/* ------------------------------------------------------------------ connecting */

static void talk(struct weft_worker *a, struct weft_ep *x, struct weft_worker *b)
{
	struct weft_completion c = WEFT_INIT(struct weft_completion);
	struct weft_request *req, *sent;
	uint64_t in = 0, out = 0x1234567;

	assert_true(weft_tag_send(x, &out, sizeof(out), 5, NULL, &sent) >= 0);
	assert_int_equal(weft_tag_recv(b, NULL, &in, sizeof(in), 5, UINT64_MAX, NULL, &req),
			 WEFT_INPROGRESS);
	mock_run(500, MS, a, b, NULL);
	assert_int_equal(weft_request_test(req, &c), 0);
	assert_true(in == out && c.source_id == a->id);
	weft_request_free(req);
	weft_request_free(sent);
}

static void either_end_connects(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		struct weft_context *ctx = context();
		struct weft_worker *a, *b;
		struct weft_ep *x;

		mock_seed(seed + 1);
		a = mock_worker(ctx, two_nics);
		b = mock_worker(ctx, "mock:0,lat=2e-6;mock:1,lat=1e-6");
		x = boot_connect(a, b, NULL);
		talk(a, x, b);
		assert_int_equal(x->state, WEFT_EP_UP);
		assert_int_equal(conn_lanes_up(x), 2);
		assert_string_equal(x->remote_name, ctx->name);
		conn_destroy(ctx, a, b);
	}
}

static void crossed_ones_meet(void **state)
{
	struct weft_context *ctx = context();
	unsigned int seed, i;

	(void)state;
	for (seed = 1; seed <= 120; seed++) {
		struct weft_worker *a, *b;
		struct weft_ep *x, *y;

		mock_seed(seed);
		mock_set_order(MOCK_RANDOM);
		mock_set_burst(1 + seed % 3);
		mock_set_eagain(NULL, seed % 5 * 100);
		a = mock_worker(ctx, two_nics);
		b = mock_worker(ctx, seed % 4 == 0 ? "mock:1,net=0" : two_nics);
		x = seed % 3 == 0 ? mock_connect(a, b) : boot_connect(a, b, NULL);
		for (i = 0; i < seed % 11; i++)
			mock_run(1, MS, seed % 2 ? a : b, NULL);
		y = boot_connect(b, a, NULL);
		for (i = 0; i < 6000; i++) {
			mock_run(1, MS, a, NULL);
			if (i % 3 != seed % 3)
				mock_run(1, MS, b, NULL);
		}
		if (x->state != WEFT_EP_UP || y->state != WEFT_EP_UP || a->num_eps != 1 ||
		    b->num_eps != 1 || x->lanes_up != y->lanes_up)
			fail_msg("seed %u: states %d %d, endpoints %u %u, lanes %x %x", seed,
				 x->state, y->state, a->num_eps, b->num_eps, x->lanes_up,
				 y->lanes_up);
		if (mock_num_lane_eps() != 2 * conn_lanes_up(x))
			fail_msg("seed %u: %u connections", seed, mock_num_lane_eps());
		mock_set_eagain(NULL, 0);
		talk(a, x, b);
		talk(b, y, a);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void an_endpoint_of_the_peer_is_adopted(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x = boot_connect(a, b, NULL), *y;

	(void)state;
	mock_run(100, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 1);
	y = boot_connect(b, a, NULL);
	assert_int_equal(b->num_eps, 1);
	assert_int_equal(y->state, WEFT_EP_UP);
	talk(b, y, a);
	talk(a, x, b);
	conn_destroy(ctx, a, b);
}

static void own_worker_and_no_network(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *s = mock_worker(ctx, "self");
	struct weft_ep *x = boot_connect(a, a, NULL), *y = boot_connect(s, s, NULL), *z;

	(void)state;
	talk(a, x, a);
	talk(s, y, s);
	assert_int_equal(boot_try(a, s, NULL, &z), -EHOSTUNREACH);
	assert_int_equal(boot_try(s, a, NULL, &z), -EHOSTUNREACH);
	conn_destroy(ctx, a, s);
}

static void over_a_control_channel(void **state)
{
	struct weft_context *ctx = mlink_context("CONNECT_TIMEOUT=60s", NULL);
	unsigned int seed;

	(void)state;
	for (seed = 1; seed < 30; seed++) {
		struct weft_worker *a, *b;
		struct weft_ep *x;

		mock_seed(seed);
		a = mock_worker(ctx, "mlink:0,dom=d;mctl:0,dom=d");
		b = mock_worker(ctx, "mlink:0,dom=d;mctl:0,dom=d");
		x = boot_connect(a, b, NULL);
		talk(a, x, b);
		assert_int_equal(x->state, WEFT_EP_UP);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static unsigned int sent[2][256]; /* by the sender, the initiator first, and by type */
static uint64_t initiator;

static bool note_sent(void *data, size_t *len, void *arg)
{
	struct weft_wire_wireup h;

	(void)arg;
	if (*len >= sizeof(h)) {
		memcpy(&h, data, sizeof(h));
		sent[weft_get64(h.src_worker) != initiator][h.type]++;
	}
	return true;
}

/* Without loss each message is sent once, and ACK only by an initiator that does not lead. */
static void each_message_over_a_control_channel_is_sent_once(void **state)
{
	struct weft_context *ctx = mlink_context("CONNECT_TIMEOUT=60s", NULL);

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct weft_worker *a = mock_worker(ctx, "mlink:0,dom=d;mctl:0,dom=d");
		struct weft_worker *b = mock_worker(ctx, "mlink:0,dom=d;mctl:0,dom=d");
		struct weft_ep *x;

		conn_order(&a, &b);
		memset(sent, 0, sizeof(sent));
		initiator = i == 0 ? a->id : b->id;
		mctl_set_filter(note_sent, NULL);
		x = i == 0 ? mock_connect(a, b) : mock_connect(b, a);
		mock_run(100, MS, a, b, NULL);
		mctl_set_filter(NULL, NULL);
		assert_int_equal(x->state, WEFT_EP_UP);
		assert_int_equal(sent[0][WEFT_WIREUP_REQ], 1);
		assert_int_equal(sent[1][WEFT_WIREUP_REP], 1);
		assert_int_equal(sent[0][WEFT_WIREUP_ACK], i);
		assert_int_equal(sent[1][WEFT_WIREUP_ACK], 0);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* ------------------------------------------------------------------ two drivers */

/* Two drivers with the same frames, as those of raw lanes over DPDK's ports and over sockets. */
static struct weft_lane_boot_ops half_boot[2];
static struct weft_lane_driver half[2];
static const struct weft_lane_driver *const halves[] = {&half[0], &half[1], NULL};

static int open_half(unsigned int i, const struct weft_lane_open *p, struct weft_lane_iface **iface,
		     char *why, size_t why_len)
{
	int rc = mock_driver.open(p, iface, why, why_len);

	if (rc == 0)
		(*iface)->driver = &half[i];
	return rc;
}

static int open_left(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	return open_half(0, p, iface, why, why_len);
}

static int open_right(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		      size_t why_len)
{
	return open_half(1, p, iface, why, why_len);
}

static struct weft_context *halves_context(int alike, ...)
{
	struct weft_context *ctx;
	va_list ap;

	for (unsigned int i = 0; i < 2; i++) {
		half_boot[i] = *mock_driver.boot;
		half_boot[i].kind = (uint8_t)(WEFT_LANE_BOOT_OTHER + i);
		half_boot[i].also = alike ? (uint8_t)(WEFT_LANE_BOOT_OTHER + !i) : 0;
		half[i] = mock_driver;
		half[i].name = i == 0 ? "left" : "right";
		half[i].counterpart = !alike ? NULL : i == 0 ? "right" : "left";
		half[i].open = i == 0 ? open_left : open_right;
		half[i].boot = &half_boot[i];
	}
	va_start(ap, alike);
	ctx = mock_context_with(halves, "LOG_FILE=/dev/null", ap);
	va_end(ap);
	return ctx;
}

/* By a boot address and by a worker address, and from either end. */
static void drivers_with_the_same_frames_reach_each_other(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct weft_context *ctx = halves_context(1, "CONNECT_TIMEOUT=60s", NULL);
		struct weft_worker *a = mock_worker(ctx, i % 2 ? "left:0" : "right:0");
		struct weft_worker *b = mock_worker(ctx, i % 2 ? "right:0" : "left:0");
		struct weft_ep *x = i < 2 ? boot_connect(a, b, NULL) : mock_connect(a, b);

		talk(a, x, b);
		assert_int_equal(x->state, WEFT_EP_UP);
		assert_int_equal(conn_lanes_up(x), 1);
		conn_destroy(ctx, a, b);
	}
}

static void drivers_with_other_frames_do_not(void **state)
{
	struct weft_context *ctx = halves_context(0, "CONNECT_TIMEOUT=60s", NULL);
	struct weft_worker *a = mock_worker(ctx, "left:0"), *b = mock_worker(ctx, "right:0");
	struct weft_ep *x;

	(void)state;
	assert_int_equal(boot_try(a, b, NULL, &x), -EHOSTUNREACH);
	conn_destroy(ctx, a, b);
}

/* ------------------------------------------------------------------ ends */

static void a_peer_that_is_gone_and_one_that_never_answers(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0,addr=77");
	uint8_t buf[WEFT_BOOT_ADDRESS_MAX];
	struct weft_ep_params p =
		WEFT_INIT(struct weft_ep_params, .address = buf, .err_cb = mock_err_cb);
	struct mock_err gone = {0}, mute = {0};
	struct weft_ep *x, *y;

	(void)state;
	p.address_length = boot_of(b, buf);
	p.err_arg = &gone;
	weft_worker_destroy(b);
	/* Another one is there now. */
	b = mock_worker(ctx, "mock:0,addr=77");
	assert_int_equal(weft_ep_create(a, &p, &x), 0);
	mock_run(100, MS, a, b, NULL);
	assert_int_equal(gone.calls, 1);
	assert_int_equal(gone.status, -ECONNREFUSED);
	y = boot_connect(a, b, &mute);
	mock_run(6000, MS, a, NULL);
	assert_int_equal(mute.calls, 1);
	assert_int_equal(mute.status, -EHOSTUNREACH);
	assert_non_null(strstr(mute.why, "worker "));
	weft_ep_close(x, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	weft_ep_close(y, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	conn_destroy(ctx, a, b);
}

static void a_wrong_secret_or_digest_leads_nowhere(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	uint8_t buf[WEFT_BOOT_ADDRESS_MAX];
	struct weft_ep_params p =
		WEFT_INIT(struct weft_ep_params, .address = buf, .err_cb = mock_err_cb);
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct mock_err err = {0};
		struct weft_boot boot;
		struct weft_ep *x;

		assert_int_equal(weft_boot_unpack(&boot, buf, boot_of(b, buf), NULL, 0), 0);
		if (i == 0)
			boot.secret ^= 1;
		else
			boot.digest ^= 1;
		p.address_length = weft_boot_pack(&boot, buf);
		p.err_arg = &err;
		assert_int_equal(weft_ep_create(a, &p, &x), 0);
		mock_run(200, MS, a, b, NULL);
		assert_int_equal(err.calls, 1);
		assert_int_equal(err.status, i == 0 ? -EACCES : -ECONNREFUSED);
		assert_int_equal(b->num_eps, 0);
		weft_ep_close(x, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	}
	conn_destroy(ctx, a, b);
}

static void many_and_again(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b[40];
	struct weft_ep *x[40];
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 40; i++)
		b[i] = mock_worker(ctx, "mock:0");
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 40; i++)
			x[i] = boot_connect(a, b[i], NULL);
		for (i = 0; i < 40; i++)
			talk(a, x[i], b[i]);
		for (i = 0; i < 40; i++)
			weft_ep_close(x[i], 0, NULL, NULL);
		for (i = 0; i < 40; i++)
			mock_run(20, MS, a, b[i], NULL);
		assert_int_equal(a->num_eps, 0);
	}
	for (i = 0; i < 40; i++)
		weft_worker_destroy(b[i]);
	conn_destroy(ctx, a, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(room_and_attributes),
		CONN_TEST(damage_is_found),
		CONN_TEST(a_peer_is_known_by_its_boot_address),
		CONN_TEST(either_end_connects),
		CONN_TEST(crossed_ones_meet),
		CONN_TEST(an_endpoint_of_the_peer_is_adopted),
		CONN_TEST(own_worker_and_no_network),
		cmocka_unit_test_setup_teardown(over_a_control_channel, link_setup, link_teardown),
		cmocka_unit_test_setup_teardown(each_message_over_a_control_channel_is_sent_once,
						link_setup, link_teardown),
		CONN_TEST(drivers_with_the_same_frames_reach_each_other),
		CONN_TEST(drivers_with_other_frames_do_not),
		CONN_TEST(a_peer_that_is_gone_and_one_that_never_answers),
		CONN_TEST(a_wrong_secret_or_digest_leads_nowhere),
		CONN_TEST(many_and_again),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("boot", tests, NULL, NULL);
}
