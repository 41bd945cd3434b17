/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of frames, put together: in any order, twice, cut differently, and from hostile peers. */

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/mtu.h"
#include "mock/raw_util.h"

#define BODY 5000u

static uint8_t message[BODY];

static struct raw_conn *conn(void)
{
	return (struct raw_conn *)B->accepted;
}

static void open_pair(void)
{
	struct weft_frame_msg msg = {.length = weft_put16(BODY - sizeof(msg)), .am_id = 5};

	pair_open(&pair, NULL, 601);
	pair_connect(&pair);
	for (unsigned int i = 0; i < BODY; i++)
		message[i] = (uint8_t)(i * 31 + i / 256);
	memcpy(message, &msg, sizeof(msg));
}

/* Bytes [at, at + len) of the message, as a part of frame @p seq. @return it is whole, and right */
static bool part(struct raw_conn *c, uint32_t seq, uint32_t total, uint32_t at, uint32_t len)
{
	struct weft_frame_hdr hdr = {.seq = weft_put32(seq), .type = WEFT_FRAME_PART};
	struct weft_frame_part p = {.offset = weft_put16((uint16_t)at),
				    .total = weft_put16((uint16_t)total)};
	uint8_t *body = malloc(sizeof(p) + len);
	struct weft_frame_view v = {
		.hdr = &hdr, .body = body, .body_len = (uint32_t)sizeof(p) + len};
	struct weft_frame_view whole;
	struct raw_part *done;

	assert_non_null(body);
	memcpy(body, &p, sizeof(p));
	memcpy(body + sizeof(p), message + at, len);
	done = raw_part_take(c, &v, &whole);
	free(body);
	if (!done)
		return false;
	assert_int_equal(whole.body_len, BODY);
	assert_memory_equal(whole.body, message, BODY);
	/* As in a frame: what is behind the first message's header. */
	assert_int_equal(((uintptr_t)whole.body + sizeof(struct weft_frame_msg)) % 8, 0);
	free(done);
	return true;
}

/* @behaviour X21 */
static void parts_come_as_they_like(void **state)
{
	(void)state;
	open_pair();
	/* backwards */
	for (uint32_t at = 4800; at > 0; at -= 1200)
		assert_false(part(conn(), 1, BODY, at, RTE_MIN(1200u, BODY - at)));
	assert_true(part(conn(), 1, BODY, 0, 1200));
	/* twice, and cut anew in between */
	for (uint32_t at = 0; at < 3600; at += 1200)
		for (int k = 0; k < 2; k++)
			assert_false(part(conn(), 2, BODY, at, 1200));
	assert_false(part(conn(), 2, BODY, 2400, 2000));
	assert_true(part(conn(), 2, BODY, 4000, 1000));
	assert_int_equal(conn()->num_parts, 0);
	pair_close(&pair);
}

/* @behaviour X21 */
static void what_contradicts_itself_begins_anew(void **state)
{
	(void)state;
	open_pair();
	assert_false(part(conn(), 1, BODY, 0, 1200));
	assert_false(part(conn(), 1, BODY - 8, 1200, 1200));
	assert_int_equal(conn()->num_parts, 1);
	assert_int_equal(pair_counter(B, RAW_DROP_PARTS), 1);
	/* longer than any frame that we said we take */
	assert_false(part(conn(), 2, 9500, 0, 1200));
	assert_int_equal(conn()->num_parts, 1);
	/* no messages in it */
	message[0] ^= 1;
	assert_false(part(conn(), 3, BODY, 0, BODY));
	assert_int_equal(pair_counter(B, RAW_DROP_BAD_MESSAGE), 1);
	pair_close(&pair);
}

/* Beginnings of many frames: a connection has a share, and all have a bound. */
/* @behaviour X21 */
static void beginnings_have_a_bound(void **state)
{
	struct raw_iface *iface;

	(void)state;
	open_pair();
	iface = conn()->iface;
	for (uint32_t seq = 0; seq < 1000; seq++)
		assert_false(part(conn(), seq, BODY, 0, 1200));
	assert_int_equal(conn()->num_parts, RAW_PARTS_OF_CONN);
	assert_int_equal(iface->num_parts, RAW_PARTS_OF_CONN);
	/* The newest ones are there still. */
	assert_true(part(conn(), 999, BODY, 1200, BODY - 1200));
	assert_false(part(conn(), 1, BODY, 1200, BODY - 1200));
	pair_close(&pair);
	assert_int_equal(B->bad, 0);
}

/* Many that begin and never end take no other's place. */
/* Its number comes again one day, with other bytes. */
static void what_came_whole_leaves_no_beginning(void **state)
{
	uint32_t seq;

	(void)state;
	open_pair();
	seq = conn()->rx.win.next;
	assert_false(part(conn(), seq, BODY, 0, 1200));
	weft_rxwin_mark(&conn()->rx.win, seq);
	assert_false(part(conn(), seq + 1, BODY, 0, 1200));
	assert_int_equal(conn()->num_parts, 1);
	assert_false(part(conn(), seq, BODY, 1200, BODY - 1200));
	pair_close(&pair);
}

/* @behaviour X21 */
static void a_peer_with_many_makes_room_for_one_with_none(void **state)
{
	enum { CONNS = RAW_PARTS_OF_IFACE / RAW_PARTS_OF_CONN };
	static struct raw_conn many[CONNS];
	struct raw_iface *iface;

	(void)state;
	open_pair();
	iface = conn()->iface;
	for (unsigned int i = 0; i < CONNS; i++) {
		many[i].iface = iface;
		LIST_INIT(&many[i].parts);
		for (uint32_t seq = 0; seq < RAW_PARTS_OF_CONN; seq++)
			assert_false(part(&many[i], seq, BODY, 0, 1200));
	}
	assert_int_equal(iface->num_parts, RAW_PARTS_OF_IFACE);
	assert_false(part(conn(), 7, BODY, 0, 1200));
	assert_int_equal(iface->num_parts, RAW_PARTS_OF_IFACE);
	for (unsigned int i = 0; i < CONNS; i++)
		for (uint32_t seq = 100; seq < 120; seq++)
			assert_false(part(&many[i], seq, BODY, 0, 1200));
	assert_true(part(conn(), 7, BODY, 1200, BODY - 1200));
	for (unsigned int i = 0; i < CONNS; i++)
		raw_parts_forget(&many[i]);
	assert_int_equal(iface->num_parts, 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_come_as_they_like),
		cmocka_unit_test(what_contradicts_itself_begins_anew),
		cmocka_unit_test(beginnings_have_a_bound),
		cmocka_unit_test(what_came_whole_leaves_no_beginning),
		cmocka_unit_test(a_peer_with_many_makes_room_for_one_with_none),
	};

	return cmocka_run_group_tests_name("raw_parts", tests, NULL, NULL);
}
