/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control channel: what the device reports ends its connections with an error message, and what
 * unknown senders send is dropped, each reason with a counter.
 */

#include <errno.h>

#include "fake/roce_fake.h"
#include "roce/roce_dev.h"
#include "roce/ud.h"

static struct weft_lane_iface *iface;
static struct weft_lane_ep *up, *resolving;

static struct weft_lane_ep *connect_to_peer(void)
{
	static const uint8_t gid[16] = {[10] = 255, 255, 10, 0, 0, 2};
	struct weft_lane_ep *lane_ep = NULL;
	struct weft_roce_addr a;

	roce_addr_fill(&a, WEFT_ROCE_UD, gid, 5, 4096);
	a.qpn = weft_put32(77);
	a.qkey = weft_put32(0x1111);
	assert_int_equal(iface->ops->ep_connect(iface, &a, sizeof(a), NULL, &lane_ep), 0);
	return lane_ep;
}

/* One connection is up, one is still looked for. */
static int begin(void **state)
{
	fake_setup(state);
	iface = fake_open(&weft_roce_ud_driver, "");
	up = connect_to_peer();
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.up, 1);
	resolving = connect_to_peer();
	return 0;
}

static int end(void **state)
{
	fake.answers = true;
	fake_jobs();
	iface->ops->close(iface);
	fake.qps[0]->destroyed = true;
	fake.alive = 0;
	return fake_teardown(state);
}

static void expect_down(unsigned int num, int status, const char *words)
{
	assert_int_equal(fake.down, num);
	assert_int_equal(fake.status, status);
	assert_non_null(strstr(fake.text, "mlx5_0: "));
	assert_non_null(strstr(fake.text, "peer 10.0.0.2"));
	assert_non_null(strstr(fake.text, words));
	assert_false(up->up);
	assert_int_equal(fake.gone, 0);
}

/* @behaviour Y26: device events also end the connections of the control channel */
static void a_device_that_fails_ends_its_connections_at_once(void **state)
{
	(void)state;
	fake_event(IBV_EVENT_DEVICE_FATAL, 1);
	fake_turn(iface, 20 * FAKE_MS);
	expect_down(2, -ENODEV, "kernel log");
	assert_false(iface->ops->link_up(iface));
	assert_int_equal(up->ops->am_short(up, 1, "x", 1, NULL, 0), -ECONNRESET);
	/* A later sender gets the reply, too. */
	connect_to_peer();
	fake_turn(iface, 20 * FAKE_MS);
	expect_down(3, -ENODEV, "kernel log");
	fake_turn(iface, 2000 * FAKE_MS);
	assert_int_equal(fake.down, 3);
}

static void an_owner_that_destroys_its_connection_when_notified_is_served(void **state)
{
	(void)state;
	fake.destroys = true;
	fake_event(IBV_EVENT_DEVICE_FATAL, 1);
	fake_turn(iface, 20 * FAKE_MS);
	assert_int_equal(fake.down, 2);
}

/* @behaviour Y26 */
static void a_port_that_stays_down_ends_its_connections_and_one_that_comes_back_does_not(
	void **state)
{
	(void)state;
	fake_event(IBV_EVENT_PORT_ERR, 1);
	fake_turn(iface, 20 * FAKE_MS);
	assert_false(iface->ops->link_up(iface));
	fake_event(IBV_EVENT_PORT_ACTIVE, 1);
	fake_turn(iface, 1000 * FAKE_MS);
	fake_turn(iface, 3000 * FAKE_MS);
	assert_true(iface->ops->link_up(iface));
	assert_int_equal(fake.down, 0);
	fake_event(IBV_EVENT_PORT_ERR, 1);
	fake_turn(iface, 20 * FAKE_MS);
	fake_turn(iface, 1000 * FAKE_MS);
	assert_int_equal(fake.down, 0);
	fake_turn(iface, 1000 * FAKE_MS);
	expect_down(2, -ENETDOWN, "port 1 has been down for 2.0 s");
}

/* @behaviour Y26 */
static void an_address_that_vanishes_ends_its_connections(void **state)
{
	(void)state;
	fake_event(IBV_EVENT_GID_CHANGE, 1);
	fake_turn(iface, 20 * FAKE_MS);
	assert_int_equal(fake.down, 0); /* another one */
	fake.gid_gone = true;
	fake_event(IBV_EVENT_GID_CHANGE, 1);
	fake_turn(iface, 20 * FAKE_MS);
	expect_down(2, -EADDRNOTAVAIL, "10.0.0.1 (GID 1) was removed");
}

/* ------------------------------------------------------------------ unknown senders */

/* From 10.0.0.@p host, its queue pair @p qpn. */
static void datagram_of(uint8_t host, uint32_t qpn, const struct weft_roce_ud_head *h,
			size_t length)
{
	uint8_t buf[WEFT_ROCE_GRH + sizeof(*h) + 64] = {0}, *ip = buf + 20;
	uint32_t sum = 0;
	int i;

	memcpy(ip, (const uint8_t[20]){0x45, 0, 0,  60, 0, 0, 0,  0, 64, 17,
				       0,    0, 10, 0,  0, 2, 10, 0, 0,  1},
	       20);
	ip[15] = host;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	memcpy(buf + WEFT_ROCE_GRH, h, sizeof(*h));
	fake_datagram(fake.qps[0], qpn, buf, WEFT_ROCE_GRH + sizeof(*h) + length);
	fake_turn(iface, FAKE_MS);
}

/* The peer's. */
static void datagram(const struct weft_roce_ud_head *h, size_t length)
{
	datagram_of(2, 77, h, length);
}

static struct weft_roce_ud_head head(uint32_t src_conn, uint32_t dst_conn, size_t length)
{
	return (struct weft_roce_ud_head){
		.magic = weft_put16(WEFT_ROCE_UD_MAGIC),
		.version = WEFT_ROCE_VERSION,
		.am_id = 3,
		.src_conn = weft_put32(src_conn),
		.dst_conn = weft_put32(dst_conn),
		.src_qkey = weft_put32(0x1111),
		.length = weft_put16((uint16_t)length),
	};
}

/* The address of each sender is resolved, and used. */
static void found(void)
{
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	fake_complete(fake.qps[0], IBV_WC_SUCCESS);
	fake_turn(iface, FAKE_MS);
}

/* What the driver has just sent must be a RETRY for connection @p conn. @return its cookie */
static uint64_t cookie_for(uint32_t conn)
{
	struct weft_roce_ud_head h;

	memcpy(&h, fake.sent, sizeof(h));
	assert_int_equal(h.am_id, WEFT_ROCE_UD_RETRY);
	assert_int_equal(weft_get32(h.src_conn), 0);
	assert_int_equal(weft_get32(h.dst_conn), conn);
	assert_int_equal(weft_get16(h.length), 0);
	assert_true(weft_get64(h.cookie) != 0);
	return weft_get64(h.cookie);
}

/* A process at 10.0.0.@p host begins. */
static void begin_from(uint8_t host, uint32_t conn)
{
	struct weft_roce_ud_head h = head(conn, 0, 8);

	datagram_of(host, 77, &h, 8);
	found();
	h.cookie = weft_put64(cookie_for(conn));
	datagram_of(host, 77, &h, 8);
	found();
}

/*
 * @behaviour S9: over RoCE's control channel a sender is accepted only after a proof that it
 * receives at its address; forged source addresses do not block other peers, one host leaves slots
 * for others
 */
static void a_sender_that_has_not_shown_its_address_is_ignored(void **state)
{
	struct weft_roce_ud_head h = head(5, 0, 8), other;
	unsigned int before = fake.num_sent, i;
	uint64_t cookie;

	(void)state;
	datagram(&h, 8);
	found();
	assert_int_equal(fake.got, 0);
	assert_int_equal(fake.up, 2); /* the two that are ours */
	assert_int_equal(fake.num_sent, before + 1);
	cookie = cookie_for(5);
	assert_int_equal(fake_counter(iface, "tx.retry"), 1);
	/* It is of this queue pair, connection and key, and is no number to be guessed. */
	for (i = 0; i < 5; i++) {
		other = h;
		other.cookie = weft_put64(i == 3 ? cookie ^ 2 : cookie);
		if (i == 1)
			other.src_conn = weft_put32(6);
		if (i == 2)
			other.src_qkey = weft_put32(0x1112);
		datagram_of(i == 4 ? 3 : 2, i == 0 ? 78 : 77, &other, 8);
		found();
		assert_int_equal(fake.got, 0);
	}
	h.cookie = weft_put64(cookie);
	datagram(&h, 8);
	found();
	assert_int_equal(fake.got, 1);
	assert_int_equal(fake.up, 3);
	assert_true(fake.lane_ep->passive);
	/* What goes on needs none. */
	h.cookie = weft_put64(0);
	datagram(&h, 8);
	assert_int_equal(fake.got, 2);
}

/* @behaviour S9 */
static void a_cookie_ends(void **state)
{
	struct weft_roce_ud_head h = head(5, 0, 8);

	(void)state;
	datagram(&h, 8);
	found();
	h.cookie = weft_put64(cookie_for(5));
	fake_turn(iface, 17000 * FAKE_MS);
	datagram(&h, 8);
	found();
	assert_int_equal(fake.got, 0);
	begin_from(2, 5);
	assert_int_equal(fake.got, 1);
}

/* Senders with forged addresses exclude no peer, and leave nothing. */
/* @behaviour S9 */
static void made_up_addresses_keep_no_peer_away(void **state)
{
	struct weft_roce_ud_head h;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2000; i++) {
		h = head(1000 + i, 0, 8);
		datagram_of((uint8_t)(3 + i % 200), 77, &h, 8);
		found();
	}
	assert_int_equal(fake.got, 0);
	assert_int_equal(fake.up, 2);
	begin_from(2, 5);
	assert_int_equal(fake.got, 1);
	fake_turn(iface, 1500 * FAKE_MS);
	fake_turn(iface, FAKE_MS);
	assert_int_equal(((struct ud_iface *)iface)->resolving, 0);
	assert_true(LIST_EMPTY(&((struct ud_iface *)iface)->askers));
}

/*
 * Two hosts take all places for connections: a third one gets its own, and one more of theirs none.
 */
/* @behaviour S19 */
static void two_hosts_that_take_all_places_keep_no_peer_away(void **state)
{
	unsigned int i;

	(void)state;
	fake.destroys = true;
	for (i = 0; i < UD_PASSIVE_MAX; i++)
		begin_from((uint8_t)(3 + i % 2), 1000 + i);
	assert_int_equal(fake.got, UD_PASSIVE_MAX);
	begin_from(3, 5000);
	assert_int_equal(fake.got, UD_PASSIVE_MAX);
	begin_from(5, 6000);
	assert_int_equal(fake.got, UD_PASSIVE_MAX + 1);
	assert_int_equal(fake.gone, 1);
	begin_from(5, 6001);
	assert_int_equal(fake.got, UD_PASSIVE_MAX + 2);
	assert_int_equal(((struct ud_iface *)iface)->passive, UD_PASSIVE_MAX);
	assert_int_equal(fake.gone, 2);
}

/*
 * A host requests cookies faster than the device sends them: replies to others go all the
 * same.
 */
/* @behaviour S19 */
static void cookies_leave_room_for_messages(void **state)
{
	struct weft_roce_ud_head h;
	unsigned int i;

	(void)state;
	fake.answers = false;
	h = head(999, 0, 8);
	datagram_of(3, 77, &h, 8);
	fake_jobs();
	for (i = 0; i < 2 * UD_TX; i++) {
		h = head(1000 + i, 0, 8);
		datagram_of(3, 77, &h, 8);
	}
	for (i = 0; i < UD_TX_KEPT; i++)
		assert_int_equal(up->ops->am_short(up, 1, "x", 1, NULL, 0), 0);
}

/*
 * An initiator says what it has said again, with the cookie: once for each time that it was asked
 * to.
 */
/* @behaviour S9 */
static void an_opener_shows_the_cookie(void **state)
{
	struct weft_roce_ud_head h = {0}, sent;
	unsigned int before;

	(void)state;
	resolving->ops->ep_destroy(resolving);
	assert_int_equal(up->ops->am_short(up, 3, "hello", 5, " world", 6), 0);
	memcpy(&sent, fake.sent, sizeof(sent));
	assert_true(weft_get64(sent.cookie) == 0);
	h = head(0, weft_get32(sent.src_conn), 0);
	h.am_id = WEFT_ROCE_UD_RETRY;
	h.cookie = weft_put64(4711);
	before = fake.num_sent;
	datagram_of(3, 77, &h, 0); /* from elsewhere */
	assert_int_equal(fake.num_sent, before);
	datagram(&h, 0);
	datagram(&h, 0);
	assert_int_equal(fake.num_sent, before + 1);
	memcpy(&sent, fake.sent, sizeof(sent));
	assert_true(weft_get64(sent.cookie) == 4711);
	assert_int_equal(sent.am_id, 3);
	assert_memory_equal(fake.sent + sizeof(sent), "hello world", 11);
	assert_int_equal(fake.got, 0);
	assert_int_equal(up->ops->am_short(up, 4, "again", 5, NULL, 0), 0);
	memcpy(&sent, fake.sent, sizeof(sent));
	assert_true(weft_get64(sent.cookie) == 4711);
}

/* @behaviour Y25, S9 */
static void what_strangers_send_is_dropped_and_counted(void **state)
{
	struct weft_roce_ud_head h = head(5, 0, 8);
	uint64_t full;
	uint32_t i;

	(void)state;
	h.magic = weft_put16(1);
	datagram(&h, 8);
	h = head(5, 0, 9);
	datagram(&h, 8);
	assert_int_equal(fake_counter(iface, "drop.malformed"), 2);
	/* For no connection. */
	h = head(5, 0x12345678, 8);
	datagram(&h, 8);
	h = head(5, 0, 0);
	h.am_id = WEFT_ROCE_UD_BYE;
	datagram(&h, 0);
	assert_int_equal(fake_counter(iface, "drop.late"), 2);
	fake_datagram(fake.qps[0], 77, "x", 1);
	fake_spoil(IBV_WC_LOC_LEN_ERR);
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake_counter(iface, "drop.stray_completion"), 1);
	/* More than may begin. */
	for (i = 0; i < UD_PASSIVE_SHARE + 100; i++)
		begin_from(2, 1000 + i);
	assert_int_equal(fake_counter(iface, "drop.too_many_peers"), 100);
	assert_int_equal(fake.got, UD_PASSIVE_SHARE);
	for (i = 0; i < UD_PASSIVE_SHARE + 100; i++)
		begin_from((uint8_t)(3 + i % 10), 5000 + i);
	full = fake_counter(iface, "drop.too_many_peers");
	assert_int_equal(full, 100 + UD_PASSIVE_SHARE + 100 - (UD_PASSIVE_MAX - UD_PASSIVE_SHARE));
	assert_int_equal(fake.got, UD_PASSIVE_MAX);
	assert_int_equal(fake.down, 0);
}

/* Many have begun: whose datagram it is, is found without a walk over them. */
static void a_datagram_looks_at_no_other_connection(void **state)
{
	enum { N = 300 };
	struct weft_roce_ud_head h;
	uint64_t before;
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		begin_from(2, 1000 + i);
	assert_int_equal(fake.got, N);
	before = fake_counter(iface, "conn.looks");
	for (i = 0; i < N; i++) {
		h = head(1000 + i, 0, 8);
		datagram(&h, 8);
		/* Of no connection. */
		h = head(1000 + i, 0x12345678 + i, 8);
		datagram(&h, 8);
	}
	assert_int_equal(fake.got, 2 * N);
	assert_in_range(fake_counter(iface, "conn.looks") - before, N, 4 * N);
}

static void damaged_addresses_are_refused_and_counted(void **state)
{
	uint8_t junk[WEFT_LANE_ADDR_MAX];
	struct weft_lane_ep *lane_ep;

	(void)state;
	memset(junk, 0xee, sizeof(junk));
	assert_true(iface->ops->ep_connect(iface, junk, sizeof(struct weft_roce_addr), NULL,
					   &lane_ep) < 0);
	assert_int_equal(fake_counter(iface, "drop.bad_address"), 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		T(a_device_that_fails_ends_its_connections_at_once),
		T(an_owner_that_destroys_its_connection_when_notified_is_served),
		T(a_port_that_stays_down_ends_its_connections_and_one_that_comes_back_does_not),
		T(an_address_that_vanishes_ends_its_connections),
		T(a_sender_that_has_not_shown_its_address_is_ignored),
		T(a_cookie_ends),
		T(made_up_addresses_keep_no_peer_away),
		T(two_hosts_that_take_all_places_keep_no_peer_away),
		T(cookies_leave_room_for_messages),
		T(an_opener_shows_the_cookie),
		T(what_strangers_send_is_dropped_and_counted),
		T(a_datagram_looks_at_no_other_connection),
		T(damaged_addresses_are_refused_and_counted),
	};

	weft_log_level = WEFT_LOG_ERROR;
	return cmocka_run_group_tests_name("RoCE, the control channel", tests, NULL, NULL);
}
