/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoint addresses and messages over a control channel that are malformed, foreign, doubled or
 * late: dropped and counted; no other peer suffers.
 */

#include "mock/link_util.h"

#define BAD_TEST(f) cmocka_unit_test_setup_teardown(f, link_setup, link_teardown)

/*
 * The worker has mlink:0 as interface 0 and mctl:0 as 1; the unknown sender the same, and a lower
 * id.
 */
#define UNKNOWN_ID 42

static struct weft_address_iface unknown_iface(struct weft_worker *w, unsigned int i)
{
	struct weft_address_iface a;

	weft_address_from_iface(&a, i, mock_iface(w, i));
	a.addr[0] ^= 0x40; /* somewhere else in the same net */
	return a;
}

/* A REQ without LANES and EP_ADDR. */
static void begin(struct weft_worker *w, struct weft_records *r, unsigned int attempt)
{
	struct weft_wire_boot boot = {1, 1, weft_put16((uint16_t)attempt)};
	struct weft_wire_credit credit = {
		.bytes = weft_put64(1 << 20), .seq = weft_put32(4096), .small = weft_put32(1000)};
	struct weft_address a = {.worker_id = UNKNOWN_ID, .name = "stranger", .num_ifaces = 2};
	uint8_t buf[WEFT_ADDRESS_MAX];

	a.ifaces[0] = unknown_iface(w, 0);
	a.ifaces[1] = unknown_iface(w, 1);
	r->len = 0;
	weft_records_add(r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(&a, buf));
	weft_records_add(r, WEFT_RECORD_BOOT, &boot, sizeof(boot));
	weft_records_add(r, WEFT_RECORD_CREDIT, &credit, sizeof(credit));
}

static void add_lane(struct weft_records *r, unsigned int lane, unsigned int iface)
{
	struct weft_wire_lane wl = {.lane = (uint8_t)lane,
				    .lower_iface = (uint8_t)iface,
				    .higher_iface = (uint8_t)iface,
				    .max_frag = weft_put32(4096)};

	weft_records_add(r, WEFT_RECORD_LANES, &wl, sizeof(wl));
}

static void add_addr(struct weft_records *r, unsigned int lane, unsigned int fill, size_t len)
{
	uint8_t buf[2 + 80];

	memset(buf, (int)fill, sizeof(buf));
	buf[0] = (uint8_t)lane;
	buf[1] = 0;
	weft_records_add(r, WEFT_RECORD_EP_ADDR, buf, 2 + len);
}

static void send_one(struct weft_worker *w, uint32_t lane_ep, const struct weft_records *r)
{
	struct weft_wire_wireup h = {
		.type = WEFT_WIREUP_REQ,
		.major = WEFT_WIRE_MAJOR,
		.src_worker = weft_put64(UNKNOWN_ID),
		.dst_worker = weft_put64(w->id),
		.src_ep = {weft_put32(3), weft_put32(5)},
		.src_secret = weft_put64(99),
		.dst_secret = weft_put64(w->secret),
		.total = weft_put16((uint16_t)r->len),
	};
	uint8_t buf[4096];

	assert_true(sizeof(h) + r->len <= sizeof(buf));
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), r->buf, r->len);
	mctl_unknown(mock_iface(w, 1), lane_ep, WEFT_WIRE_WIREUP, buf, sizeof(h) + r->len);
	mock_run(2, MS, w, NULL);
}

static unsigned int answer(struct weft_wire_wireup *h)
{
	const void *data;

	if (mctl_unknown_last(&data) < sizeof(*h))
		return 0;
	memcpy(h, data, sizeof(*h));
	return h->type;
}

static struct weft_context *context(void)
{
	return mlink_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
}

static void finish(struct weft_context *ctx, struct weft_worker *w)
{
	const void *data;

	/* What unknown senders began ends with the connect timeout. */
	mock_run(200, 100 * MS, w, NULL);
	mctl_unknown_last(&data);
	assert_int_equal(w->num_eps, 0);
	assert_int_equal(mlink_num_lane_eps(), 0);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void the_longest_endpoint_address_is_taken(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mlink:0;mctl:0");
	struct weft_wire_wireup h = {.type = WEFT_WIREUP_REQ,
				     .src_worker = weft_put64(UNKNOWN_ID),
				     .src_secret = weft_put64(99)};
	struct weft_wireup_msg m;
	struct weft_records r;
	const char *why = "";

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		begin(w, &r, 1);
		add_lane(&r, 0, 0);
		add_addr(&r, 0, 1, WEFT_LANE_ADDR_MAX + more);
		assert_int_equal(weft_wireup_parse(&h, r.buf, r.len, &m, &why) < 0, more);
		if (!more)
			assert_int_equal(m.ep_addr[0].len, WEFT_LANE_ADDR_MAX);
	}
	assert_string_equal(why, "bad length of an endpoint address");
	finish(ctx, w);
}

/* @behaviour Y19: hostile endpoint addresses, copies of old requests, data on a control channel */
static void malformed_endpoint_addresses_are_dropped(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mlink:0;mctl:0");
	struct weft_wire_wireup h;
	struct weft_records r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 7; i++) {
		begin(w, &r, 1);
		if (i != 4)
			add_lane(&r, 0, 0);
		switch (i) {
		case 0: /* no byte of an address */
			add_addr(&r, 0, 1, 0);
			break;
		case 1: /* longer than any */
			add_addr(&r, 0, 1, WEFT_LANE_ADDR_MAX + 1);
			break;
		case 2: /* a lane that cannot be */
			add_addr(&r, WEFT_MAX_LANES, 1, 12);
			break;
		case 3: /* a lane that is not in the map */
			add_addr(&r, 3, 1, 12);
			break;
		case 4: /* no map at all */
			add_addr(&r, 0, 1, 12);
			break;
		case 5: /* two of one lane, the second one different */
			add_addr(&r, 0, 1, 12);
			add_addr(&r, 0, 2, 12);
			break;
		case 6: /* of another length than the interface's */
			add_addr(&r, 0, 1, 11);
			break;
		}
		send_one(w, 100 + i, &r);
		assert_int_equal(conn_counter(w, "wireup.drop.bad"), i + 1);
		assert_int_equal(answer(&h), 0);
		assert_int_equal(w->num_eps, 0);
	}
	/* Cut anywhere: what a datagram does not have is not read. */
	begin(w, &r, 1);
	add_lane(&r, 0, 0);
	add_addr(&r, 0, 1, 12);
	for (i = 1; i < 20; i++) {
		r.len--;
		send_one(w, 200 + i, &r);
		assert_int_equal(w->num_eps, 0);
	}
	finish(ctx, w);
}

/* Well-formed, and no lane can come of it: refused, with a reason for the sender. */
/* @behaviour Y19 */
static void requests_that_lead_to_no_lane_are_refused(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mlink:0;mctl:0");
	struct weft_wire_wireup h;
	struct weft_records r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		begin(w, &r, 1);
		if (i == 0)
			add_lane(&r, 0, 0); /* lane 0 without an address */
		else if (i == 1)
			add_lane(&r, 0, 1); /* the control channel as a lane */
		send_one(w, 300 + i, &r);
		assert_int_equal(answer(&h), WEFT_WIREUP_ERROR);
		assert_int_equal(h.lane, WEFT_WIREUP_ALL_LANES);
		assert_int_equal(w->num_eps, 0);
		/* The number is used up: begin anew with another worker. */
		weft_worker_destroy(w);
		w = mock_worker(ctx, "mlink:0;mctl:0");
	}
	finish(ctx, w);
}

/* Its place in memory says nothing: another one may have it by now. */
static uint32_t end_number(struct weft_lane_ep *lane_ep)
{
	uint8_t address[WEFT_LANE_ADDR_MAX];
	uint32_t number;

	lane_ep->iface->ops->ep_get_address(lane_ep, address);
	memcpy(&number, address, sizeof(number));
	return number;
}

/* @behaviour Y19 */
static void a_request_and_its_copies_make_one_endpoint(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mlink:0;mctl:0");
	struct weft_wire_wireup h;
	struct weft_records r;
	struct weft_lane_ep *lane_ep;
	uint32_t number;
	unsigned int i;

	(void)state;
	begin(w, &r, 2);
	add_lane(&r, 0, 0);
	add_addr(&r, 0, 1, 12);
	send_one(w, 400, &r);
	assert_int_equal(answer(&h), WEFT_WIREUP_REP);
	assert_int_equal(w->num_eps, 1);
	assert_int_equal(mlink_num_lane_eps(), 2);
	lane_ep = conn_first_ep(w)->lanes[0].lane_ep;
	number = end_number(lane_ep);
	/* The same again, and with another address of the lane: the same answer, nothing new. */
	begin(w, &r, 2);
	add_lane(&r, 0, 0);
	add_addr(&r, 0, 9, 12);
	send_one(w, 400, &r);
	assert_int_equal(answer(&h), WEFT_WIREUP_REP);
	assert_ptr_equal(conn_first_ep(w)->lanes[0].lane_ep, lane_ep);
	/* A copy over what looks like another connection; and one of an older attempt. */
	for (i = 0; i < 2; i++) {
		begin(w, &r, 2 - i);
		add_lane(&r, 0, 0);
		add_addr(&r, 0, 9, 12);
		send_one(w, 401 + i, &r);
		assert_ptr_equal(conn_first_ep(w)->lanes[0].lane_ep, lane_ep);
		assert_int_equal(conn_counter(w, "wireup.drop.stale"), i + 1);
		assert_int_equal(mlink_num_lane_eps(), 2);
	}
	/* A newer attempt of the same initiator takes its place. */
	begin(w, &r, 3);
	add_lane(&r, 0, 0);
	add_addr(&r, 0, 9, 12);
	send_one(w, 403, &r);
	assert_int_equal(answer(&h), WEFT_WIREUP_REP);
	assert_int_equal(w->num_eps, 1);
	assert_int_not_equal(end_number(conn_first_ep(w)->lanes[0].lane_ep), number);
	assert_int_equal(mlink_num_lane_eps(), 2);
	finish(ctx, w);
}

/* @behaviour Y19 */
static void a_control_channel_carries_nothing_but_wireup(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *w = mock_worker(ctx, "mlink:0;mctl:0");
	uint8_t buf[64] = {0};
	unsigned int id;

	(void)state;
	for (id = 2; id < WEFT_LANE_AM_MAX; id++)
		mctl_unknown(mock_iface(w, 1), 7, (uint8_t)id, buf, sizeof(buf));
	mock_run(2, MS, w, NULL);
	assert_int_equal(conn_counter(w, "wireup.drop.bad"), WEFT_LANE_AM_MAX - 2);
	assert_int_equal(conn_counter(w, "wireup.drop.unbound"), 0);
	finish(ctx, w);
}

/* Changes bits of what passes. */
static bool damage(void *data, size_t *len, void *arg)
{
	uint64_t *seed = arg;
	uint8_t *p = data;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	if (*seed >> 60 < 6) {
		p[(*seed >> 20) % *len] ^= (uint8_t)(1u << (*seed >> 50 & 7));
		if (*seed >> 57 & 1)
			*len = (*seed >> 30) % *len;
	}
	return true;
}

/*
 * A channel that damages a third of what it carries (which a real one's checksum catches): nothing
 * breaks, every attempt ends, and afterwards all is as before.
 */
/* @behaviour Y19 */
static void damage_on_the_channel_breaks_nothing(void **state)
{
	struct weft_context *ctx = context();
	struct weft_worker *a, *b;
	uint64_t seed = 1;
	unsigned int i, up = 0;
	struct weft_ep *ep;

	(void)state;
	for (i = 0; i < 200; i++) {
		mlink_reset(i + 1);
		mctl_set_filter(damage, &seed);
		mctl_set_faults(100, 300, 500);
		a = mock_worker(ctx, "mlink:0;mlink:1;mctl:0");
		b = mock_worker(ctx, "mlink:0;mlink:1;mctl:0");
		ep = mock_connect(i & 1 ? a : b, i & 1 ? b : a);
		mock_run(700, 10 * MS, a, b, NULL);
		assert_int_not_equal(ep->state, WEFT_EP_CONNECTING);
		up += ep->state == WEFT_EP_UP;
		/* No message: damage that no checksum catches may have changed what may be sent. */
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_true(up > 50);
	mlink_reset(1);
	mctl_set_filter(NULL, NULL);
	a = mock_worker(ctx, "mlink:0;mlink:1;mctl:0");
	b = mock_worker(ctx, "mlink:0;mlink:1;mctl:0");
	ep = mock_connect(a, b);
	mock_run(700, 10 * MS, a, b, NULL);
	assert_int_equal(ep->state, WEFT_EP_UP);
	conn_message(ep, b, 100, 1);
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BAD_TEST(the_longest_endpoint_address_is_taken),
		BAD_TEST(malformed_endpoint_addresses_are_dropped),
		BAD_TEST(requests_that_lead_to_no_lane_are_refused),
		BAD_TEST(a_request_and_its_copies_make_one_endpoint),
		BAD_TEST(a_control_channel_carries_nothing_but_wireup),
		BAD_TEST(damage_on_the_channel_breaks_nothing),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("link_bad", tests, NULL, NULL);
}
