/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting with the raw-DPDK engine: the path to the peer, its frame size, and the host that
 * answers.
 */

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "mock/raw_util.h"

static void frame_size_is_the_smaller_one(void **state)
{
	struct pair_params pp = {.frame_size = {9018, 1518}};

	(void)state;
	pair_open(&pair, &pp, 10);
	pair_connect(&pair);
	assert_int_equal(A->status, 0);
	assert_int_equal(A->lane_ep->max_msg, B->accepted->max_msg);
	assert_true(A->lane_ep->max_msg < 1500);
	stream(500, A->lane_ep->max_msg - 8, 1000000000);
	pair_close(&pair);
}

/* @behaviour X7 */
static void narrow_way_is_found_and_named(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 11);
	A->wire.max_frame = 1518;
	B->wire.max_frame = 1518;
	pair_connect(&pair);
	assert_int_equal(A->status, 1);
	assert_non_null(strstr(A->text, "9018"));
	assert_true(A->lane_ep->max_msg < 1500 && A->lane_ep->max_msg > 1380);
	stream(500, A->lane_ep->max_msg - 8, 1000000000);
	pair_close(&pair);

	pair_open(&pair, NULL, 11);
	A->wire.max_frame = 1000;
	B->iface->ops->get_address(B->iface, A->text);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, A->text, B->iface->attr.dev_addr_len,
						   A, &A->lane_ep),
			 0);
	pair_run(&pair, 3000000000ull, NULL);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -EMSGSIZE);
	assert_non_null(strstr(A->text, "MTU"));
	pair_close(&pair);
}

static void peer_that_does_not_poll_keeps_its_frame_size(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 12);
	B->iface->ops->get_address(B->iface, addr);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lane_ep),
			 0);
	for (int i = 0; i < 1000; i++) {
		A->iface->ops->progress(A->iface, pair.now);
		pair.now += 1000000;
	}
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	assert_int_equal(A->status, 0);
	assert_true(A->lane_ep->max_msg > 8900);
	pair_close(&pair);
}

/* @behaviour X7 */
static void a_path_that_becomes_too_narrow_is_logged(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 116);
	pair_connect(&pair);
	A->wire.max_frame = 400; /* less than what every path must carry */
	done_count = 0;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8000), 0);
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), 0);
	for (int i = 0; i < 40000 && A->downs == 0; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_non_null(strstr(A->text, "answers, but a frame of"));
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ETIMEDOUT);
	pair_close(&pair);
}

/* @behaviour X7 */
static void a_path_that_carries_nothing_any_more_is_logged(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 116);
	pair_connect(&pair);
	((struct raw_iface *)B->iface)->conf.peer_timeout_ns *= 10;
	A->wire.max_frame = 1; /* what B sends still arrives */
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8000), 0);
	for (int i = 0; i < 40000 && A->downs == 0; i++) {
		if (i % 1000 == 0)
			pair_send(B, B->accepted, 0, 8);
		pair_step(&pair, 1000000);
	}
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_non_null(strstr(A->text, "has acknowledged none, not even small ones"));
	pair_close(&pair);
}

static void connects_through_a_gateway(void **state)
{
	struct pair_params pp = {.off_subnet = true};
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct raw_iface *b;

	(void)state;
	pair_open(&pair, &pp, 25);
	/* B's wire end plays the router: it answers for the gateway's address. */
	b = (struct raw_iface *)B->iface;
	b->arp.ip = 0x0a000002;
	B->iface->ops->get_address(B->iface, addr);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lane_ep),
			 0);
	/* No host answers B's own request for it: its answer comes after a second. */
	assert_true(pair_run(&pair, 3000000000, pair_both_up));
	stream(10, 100, 100000000);
	pair_close(&pair);
}

static void no_answer_names_the_step(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 26);
	B->iface->ops->get_address(B->iface, addr);
	B->wire.blackhole = true;
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lane_ep),
			 0);
	for (int i = 0; i < 4000; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_non_null(strstr(A->text, "ARP"));
	assert_non_null(strstr(A->text, "10.0.0.2"));
	pair_close(&pair);
}

static void address_of_a_former_life_is_refused(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 27);
	B->iface->ops->get_address(B->iface, addr);
	addr[24] ^= 0x10;
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lane_ep),
			 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ECONNREFUSED);
	assert_non_null(strstr(A->text, "gone"));
	pair_close(&pair);
}

static void restarted_peer_is_known_at_once(void **state)
{
	struct raw_iface *b;

	(void)state;
	pair_open(&pair, NULL, 16);
	pair_connect(&pair);
	b = (struct raw_iface *)B->iface;
	/* The peer forgets everything, as a new process would. */
	raw_conn_free(raw_conn_of(B->accepted));
	(void)b;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ECONNRESET);
	assert_int_equal(B->messages, 0);
	assert_true(pair_counter(B, RAW_DROP_UNKNOWN) > 0);
	pair_close(&pair);
}

/* Life goes on under the port's address as another process, which has generations of its own. */
static void b_is_another_process(void)
{
	struct raw_iface *b = (struct raw_iface *)B->iface;

	raw_conn_free(raw_conn_of(B->accepted));
	b->generation = 0;
	b->key.k0 ^= 1;
}

static void generations_are_a_permutation_of_numbers(void **state)
{
	const struct weft_siphash_key key = {0x0123456789abcdef, 0xfedcba9876543210};
	static bool seen[65536];
	unsigned int steps = 0;

	(void)state;
	for (unsigned int i = 0; i < 65536; i++) {
		uint16_t g = raw_generation(&key, (uint16_t)i);

		assert_int_equal(raw_generation_number(&key, g), i);
		assert_false(seen[g]);
		seen[g] = true;
		steps += (uint16_t)(g - raw_generation(&key, (uint16_t)(i + 1))) == 0xffff;
	}
	assert_true(steps < 16); /* the next one is not the next number */
}

/* Two processes that receive the same frames: what one does not know may be the other's. */
static void a_host_that_shares_a_port_ends_no_others_connections(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 17);
	pair_connect(&pair);
	b_is_another_process();
	B->port.flags |= WEFT_FRAME_PORT_SHARED;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8), 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(A->downs, 0);
	assert_int_equal(pair_counter(B, RAW_TX_RESET), 0);
	assert_true(pair_counter(B, RAW_RESET_NOT_OURS) > 0);
	/* Alone again, it says so. */
	B->port.flags &= ~WEFT_FRAME_PORT_SHARED;
	pair_run(&pair, 100000000, NULL);
	assert_int_equal(A->status, -ECONNRESET);
	pair_close(&pair);
}

static void hello_to_a_host_that_shares_a_port_is_not_refused(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 18);
	B->iface->ops->get_address(B->iface, addr);
	addr[24] ^= 0x55; /* the iface id: another's, with the same MAC, IP and UDP port */
	B->port.flags |= WEFT_FRAME_PORT_SHARED;
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lane_ep),
			 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(A->downs, 0);
	assert_int_equal(pair_counter(B, RAW_TX_RESET), 0);
	assert_true(pair_counter(B, RAW_RESET_NOT_OURS) > 0);
	pair_close(&pair);
}

/* Of its own connections it knows the end. */
static void a_host_that_shares_a_port_reports_its_own_connections(void **state)
{
	(void)state;
	for (unsigned int type = 0; type < 2; type++) {
		const struct pair_params params = {.raw_ethertype = type};

		pair_open(&pair, &params, 19);
		B->port.flags |= WEFT_FRAME_PORT_SHARED;
		pair_connect(&pair);
		raw_conn_free(raw_conn_of(B->accepted));
		assert_int_equal(pair_send(A, A->lane_ep, 0, 8), 0);
		pair_run(&pair, 1000000, NULL);
		assert_int_equal(A->status, -ECONNRESET);
		pair_close(&pair);
	}
}

/* The halves of the sender's IP address change places, which no checksum sees. */
static uint32_t from_another_ip(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	uint8_t half[2];

	(void)from;
	memcpy(half, frame + 26, 2);
	memcpy(frame + 26, frame + 28, 2);
	memcpy(frame + 28, half, 2);
	return len;
}

static uint32_t from_another_mac(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	frame[11] ^= 0x55;
	return len;
}

/* Else anybody could try which connections there were. */
static void a_host_that_shares_a_port_notifies_no_third_party(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 20);
	B->port.flags |= WEFT_FRAME_PORT_SHARED;
	pair_connect(&pair);
	raw_conn_free(raw_conn_of(B->accepted));
	A->wire.edit = from_another_ip;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(pair_counter(B, RAW_TX_RESET), 0);
	assert_true(pair_counter(B, RAW_RESET_NOT_OURS) > 0);
	/* Nor a neighbour that only says it is there. */
	A->wire.edit = from_another_mac;
	pair_run(&pair, 100000000, NULL);
	assert_true(pair_counter(B, RAW_TX_RESET) > 0);
	assert_int_equal(A->status, -ECONNRESET);
	pair_close(&pair);
}

enum { MANY = 600 };

static bool many_up(struct pair *p)
{
	return p->end[0].ups == MANY && p->end[1].ups == MANY;
}

/* More than may be half-open at a time: some must try again, all come up, each exactly once.
 */
/* @behaviour U85 */
static void six_hundred_connects_at_once(void **state)
{
	static struct weft_lane_ep *lane_ep[MANY];
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 31);
	B->iface->ops->get_address(B->iface, addr);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(A->iface->ops->ep_connect(A->iface, addr,
							   B->iface->attr.dev_addr_len, A,
							   &lane_ep[i]),
				 0);
	assert_true(pair_run(&pair, 2000000000, many_up));
	assert_int_equal(A->downs + B->downs, 0);
	assert_int_equal(((struct raw_iface *)B->iface)->half.count, 0);
	/*
	 * A cookie is hashed when it is sent and once when it is shown; some show it without result
	 * at first.
	 */
	assert_in_range(pair_counter(B, RAW_COOKIE_HASHES), 2,
			pair_counter(B, RAW_HELLO_RETRY) + MANY +
				pair_counter(B, RAW_DROP_HALF_OPEN_FULL));
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(pair_send(A, lane_ep[i], i, 10), 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, MANY);
	assert_int_equal(B->bad, 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_size_is_the_smaller_one),
		cmocka_unit_test(narrow_way_is_found_and_named),
		cmocka_unit_test(peer_that_does_not_poll_keeps_its_frame_size),
		cmocka_unit_test(a_path_that_becomes_too_narrow_is_logged),
		cmocka_unit_test(a_path_that_carries_nothing_any_more_is_logged),
		cmocka_unit_test(restarted_peer_is_known_at_once),
		cmocka_unit_test(generations_are_a_permutation_of_numbers),
		cmocka_unit_test(a_host_that_shares_a_port_ends_no_others_connections),
		cmocka_unit_test(hello_to_a_host_that_shares_a_port_is_not_refused),
		cmocka_unit_test(a_host_that_shares_a_port_reports_its_own_connections),
		cmocka_unit_test(a_host_that_shares_a_port_notifies_no_third_party),
		cmocka_unit_test(connects_through_a_gateway),
		cmocka_unit_test(no_answer_names_the_step),
		cmocka_unit_test(address_of_a_former_life_is_refused),
		cmocka_unit_test(six_hundred_connects_at_once),
	};

	return cmocka_run_group_tests_name("raw_connect", tests, NULL, NULL);
}
