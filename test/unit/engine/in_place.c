/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that a port leaves where the peer can change them. The mock port overwrites their headers
 * as soon as it has copied them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "frame/frame.h"
#include "mock/raw_pair.h"

#define LANE_AT 42 /* the lane header in an untagged UDP frame */
#define NUM 400u

static struct pair pair;

static struct pair_end *A = &pair.end[0], *B = &pair.end[1];

static uint8_t seen[NUM];

static bool all_came(struct pair *p)
{
	(void)p;
	return B->messages >= NUM;
}

/* NUM messages of @p least bytes or more, each of which arrives once with its bytes. */
static void send_all(uint32_t least, uint32_t step)
{
	uint32_t n = 0;

	memset(seen, 0, sizeof(seen));
	B->seen = seen;
	B->seen_len = NUM;
	while (n < NUM) {
		if (pair_send(A, A->lane_ep, n, least + n * step % 4000) == 0)
			n++;
		else
			pair_step(&pair, 1000);
	}
	assert_true(pair_run(&pair, 3000000000ull, all_came));
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->bad, 0);
	assert_int_equal(B->messages, NUM);
	for (n = 0; n < NUM; n++)
		assert_int_equal(seen[n], 1);
}

static uint64_t in_place(void)
{
	return pair_counter(B, RAW_RX_IN_PLACE);
}

/* @behaviour S24: a peer that changes a frame in its ring changes payload of its own message */
static void messages_alone_in_their_frames(void **state)
{
	static const struct pair_params params[] = {
		{.in_place = true},
		{.in_place = true, .vlan = 7},
		{.in_place = true, .raw_ethertype = true, .csum = WEFT_CSUM_NONE},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(params); i++) {
		pair_open(&pair, &params[i], 3 + i);
		pair_connect(&pair);
		send_all(4600, 7);
		assert_int_equal(in_place(), NUM);
		assert_int_equal(pair_counter(B, RAW_RX_MESSAGES), NUM);
		assert_int_equal(pair_counter(B, RAW_RX_CHAINED), 0);
		pair_close(&pair);
	}
}

/* What the callback leaves is delivered from a private copy, which it may keep. */
/* @behaviour S24 */
static void messages_that_are_left(void **state)
{
	const struct pair_params pp = {.in_place = true};

	(void)state;
	for (unsigned int leave = 1; leave < 4; leave++) {
		pair_open(&pair, &pp, leave);
		pair_connect(&pair);
		B->leave = leave;
		B->keep = true;
		send_all(4600, 7);
		assert_int_equal(in_place(), NUM - NUM / leave);
		assert_true(B->kept_count > 0);
		pair_close(&pair);
	}
}

/* Several messages in a frame, and frames that have a checksum, leave the memory first. */
static void frames_that_are_copied(void **state)
{
	static const struct pair_params params[] = {
		{.in_place = true},
		{.in_place = true, .csum = WEFT_CSUM_UDP},
		{.in_place = true, .csum = WEFT_CSUM_CRC32C},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(params); i++) {
		pair_open(&pair, &params[i], 9 + i);
		pair_connect(&pair);
		send_all(i == 0 ? 60 : 4600, i == 0 ? 0 : 7);
		if (i > 0)
			assert_int_equal(in_place(), 0);
		else
			assert_true(in_place() < NUM / 8);
		pair_close(&pair);
	}
}

static void loss_duplicates_and_order(void **state)
{
	const struct pair_params pp = {.in_place = true};

	(void)state;
	for (uint64_t seed = 1; seed < 4; seed++) {
		pair_open(&pair, &pp, seed);
		pair_connect(&pair);
		A->wire.loss = A->wire.dup = A->wire.reorder = 0.1;
		B->leave = 5;
		send_all(2000, 11);
		assert_true(in_place() > 0);
		assert_true(pair_counter(B, RAW_DROP_DUPLICATE) > 0);
		pair_close(&pair);
	}
}

/* ---- hostile frames ---- */

static uint32_t (*change)(uint8_t *frame, uint32_t len);

static uint32_t changed(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	const struct weft_frame_hdr *h = (const struct weft_frame_hdr *)(frame + LANE_AT);

	if (from != A || len < 4000 || h->type != WEFT_FRAME_DATA)
		return len;
	return change(frame, len);
}

static struct weft_frame_msg *first_msg(uint8_t *frame)
{
	return (struct weft_frame_msg *)(frame + LANE_AT + sizeof(struct weft_frame_hdr));
}

static uint32_t longer_message(uint8_t *frame, uint32_t len)
{
	struct weft_frame_msg *msg = first_msg(frame);

	msg->length = weft_put16((uint16_t)(weft_get16(msg->length) + 1));
	return len;
}

static uint32_t longer_frame(uint8_t *frame, uint32_t len)
{
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(frame + LANE_AT);

	h->length = weft_put16((uint16_t)(weft_get16(h->length) + 1));
	return len;
}

static uint32_t unknown_id(uint8_t *frame, uint32_t len)
{
	first_msg(frame)->am_id = WEFT_LANE_AM_MAX;
	return len;
}

static uint32_t unknown_flag(uint8_t *frame, uint32_t len)
{
	first_msg(frame)->flags = 1;
	return len;
}

static uint32_t shorter_frame(uint8_t *frame, uint32_t len)
{
	(void)frame;
	return len - 1;
}

static uint32_t other_token(uint8_t *frame, uint32_t len)
{
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(frame + LANE_AT);

	h->token = weft_put32(weft_get32(h->token) ^ 1);
	return len;
}

static void frames_that_contradict_themselves(void **state)
{
	static const struct {
		uint32_t (*change)(uint8_t *frame, uint32_t len);
		enum raw_counter drop;
	} cases[] = {
		{longer_message, RAW_DROP_BAD_MESSAGE}, {longer_frame, RAW_DROP_BAD_LENGTH},
		{unknown_id, RAW_DROP_BAD_MESSAGE},     {unknown_flag, RAW_DROP_BAD_MESSAGE},
		{shorter_frame, RAW_DROP_BAD_LENGTH},   {other_token, RAW_DROP_UNKNOWN},
	};
	const struct pair_params pp = {.in_place = true};
	uint64_t before;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		pair_open(&pair, &pp, 30 + i);
		pair_connect(&pair);
		change = cases[i].change;
		before = pair_counter(B, cases[i].drop);
		A->wire.edit = changed;
		assert_int_equal(pair_send(A, A->lane_ep, 0, 5000), 0);
		A->iface->ops->tx_flush(A->iface);
		pair_run(&pair, 5000, NULL);
		assert_int_equal(pair_counter(B, cases[i].drop), before + 1);
		assert_int_equal(B->messages, 0);
		pair_close(&pair);
	}
}

/* A long frame whose message ends before the private bytes do. */
static uint32_t short_message(uint8_t *frame, uint32_t len)
{
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(frame + LANE_AT);

	first_msg(frame)->length = weft_put16(4);
	h->length = weft_put16((uint16_t)(sizeof(*h) + sizeof(struct weft_frame_msg) + 4));
	return len;
}

static void a_short_message_in_a_long_frame(void **state)
{
	const struct pair_params pp = {.in_place = true};

	(void)state;
	pair_open(&pair, &pp, 5);
	pair_connect(&pair);
	change = short_message;
	A->wire.edit = changed;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 5000), 0);
	A->iface->ops->tx_flush(A->iface);
	pair_run(&pair, 5000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(B->bytes, 4);
	assert_int_equal(in_place(), 0);
	pair_close(&pair);
}

/* ---- the end of a connection inside the callback ---- */

static void destroy(struct pair_end *e, struct weft_lane_ep *lane_ep)
{
	e->iface->ops->ep_destroy(lane_ep);
	e->accepted = NULL;
}

static void the_callback_ends_the_connection(void **state)
{
	const struct pair_params pp = {.in_place = true};

	(void)state;
	pair_open(&pair, &pp, 6);
	pair_connect(&pair);
	B->on_in_place = destroy;
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(pair_send(A, A->lane_ep, n, 5000), 0);
	A->iface->ops->tx_flush(A->iface);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(in_place(), 1);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_alone_in_their_frames),
		cmocka_unit_test(messages_that_are_left),
		cmocka_unit_test(frames_that_are_copied),
		cmocka_unit_test(loss_duplicates_and_order),
		cmocka_unit_test(frames_that_contradict_themselves),
		cmocka_unit_test(a_short_message_in_a_long_frame),
		cmocka_unit_test(the_callback_ends_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
