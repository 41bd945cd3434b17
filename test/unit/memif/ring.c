/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Both ends of memif rings over one memory, and a peer that writes what no peer should.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memif/control.h"

#define LOG2 3u
#define SIZE (1u << LOG2)
#define BSIZE 2048u
#define BUFS 4096u
#define LEN (BUFS + SIZE * BSIZE)

struct rings {
	struct weft_mregion region;
	struct weft_mring client, server;
};

static struct rings *make(bool client_sends)
{
	struct rings *r = calloc(1, sizeof(*r));

	r->region = (struct weft_mregion){aligned_alloc(64, LEN), LEN};
	memset(r->region.at, 0, LEN);
	weft_mring_make(&r->client, &r->region, 0, BUFS, BSIZE, LOG2, client_sends);
	assert_int_equal(weft_mring_attach(&r->server, &r->region, 1, 0, 0, LOG2), 0);
	weft_mring_open(&r->client);
	return r;
}

static void end(struct rings *r)
{
	free(r->region.at);
	free(r);
}

static void send_one(struct weft_mring *tx, uint32_t number, uint32_t len)
{
	struct weft_mring_buf b;

	assert_true(weft_mring_poll(tx) > 0);
	b = weft_mring_room(tx, 0);
	assert_non_null(b.at);
	assert_int_equal(b.len, BSIZE);
	memset(b.at, (int)number, len);
	weft_mring_fill(tx, 0, len);
	weft_mring_done(tx, 1);
}

static void take_one(struct weft_mring *rx, uint32_t number, uint32_t len)
{
	struct weft_mring_buf b;

	assert_int_equal(weft_mring_poll(rx), 1);
	b = weft_mring_frame(rx, 0);
	assert_non_null(b.at);
	assert_int_equal(b.len, len);
	assert_false(b.more);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(b.at[i], number & 0xff);
	weft_mring_return(rx, 1);
}

/* More frames than an index counts to, in both directions; each is what was sent. */
static void frames_arrive_in_order(void **state)
{
	struct rings *r;

	(void)state;
	for (int client_sends = 0; client_sends < 2; client_sends++) {
		r = make(client_sends);
		for (uint32_t i = 0; i < 70000; i++) {
			send_one(client_sends ? &r->client : &r->server, i, 1 + i % 61);
			take_one(client_sends ? &r->server : &r->client, i, 1 + i % 61);
		}
		end(r);
	}
}

/* A sender has the ring's entries, and no more until the receiver has returned some. */
static void full_ring_has_no_room(void **state)
{
	struct weft_mring *tx, *rx;
	struct rings *r;

	(void)state;
	for (int client_sends = 0; client_sends < 2; client_sends++) {
		r = make(client_sends);
		tx = client_sends ? &r->client : &r->server;
		rx = client_sends ? &r->server : &r->client;
		assert_int_equal(weft_mring_poll(rx), 0);
		assert_int_equal(weft_mring_poll(tx), SIZE);
		for (uint32_t i = 0; i < SIZE; i++)
			weft_mring_fill(tx, i, 60);
		weft_mring_done(tx, SIZE);
		assert_int_equal(weft_mring_poll(tx), 0);
		assert_int_equal(weft_mring_poll(rx), SIZE);
		weft_mring_return(rx, 3);
		assert_int_equal(weft_mring_poll(tx), 3);
		/* A returned buffer has all its bytes again. */
		assert_int_equal(weft_mring_room(tx, 2).len, BSIZE);
		end(r);
	}
}

static void invalid_indices_are_refused(void **state)
{
	struct rings *r = make(true);

	(void)state;
	for (uint32_t at = 0; at <= UINT16_MAX; at++) {
		atomic_store(&r->client.shm->head, (uint16_t)at);
		assert_int_equal(weft_mring_poll(&r->server), at <= SIZE ? (int)at : -EPROTO);
	}
	atomic_store(&r->client.shm->head, 0);
	for (uint32_t at = 0; at <= UINT16_MAX; at++) {
		atomic_store(&r->client.shm->tail, (uint16_t)at);
		/* The client has sent nothing, so the server can have returned nothing. */
		assert_int_equal(weft_mring_poll(&r->client), (uint16_t)(at + SIZE) <= SIZE
								      ? (int)(uint16_t)(at + SIZE)
								      : -EPROTO);
	}
	end(r);
}

/* The server names no byte outside the client's regions. */
static void invalid_descriptors_are_refused(void **state)
{
	static const struct {
		uint16_t region;
		uint32_t offset, length;
		bool good;
	} cases[] = {
		{0, BUFS, 60, true},
		{0, 0, LEN, true},
		{0, LEN, 0, true},
		{0, LEN - 1, 1, true},
		{0, LEN - 1, 2, false},
		{0, LEN + 1, 0, false},
		{0, 1, LEN, false},
		{0, UINT32_MAX, UINT32_MAX, false},
		{0, 16, UINT32_MAX - 8, false},
		{1, BUFS, 60, false},
		{UINT16_MAX, BUFS, 60, false},
	};
	struct rings *r = make(true);
	struct weft_mring_desc *d = &r->client.shm->desc[0];
	struct weft_mring_buf frame, room;

	(void)state;
	weft_mring_done(&r->client, 1);
	assert_int_equal(weft_mring_poll(&r->server), 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		atomic_store(&d->region, cases[i].region);
		atomic_store(&d->offset, cases[i].offset);
		atomic_store(&d->length, cases[i].length);
		frame = weft_mring_frame(&r->server, 0);
		room = weft_mring_room(&r->server, 0);
		assert_int_equal(frame.at != NULL, cases[i].good);
		assert_int_equal(room.at != NULL, cases[i].good);
		if (cases[i].good) {
			assert_ptr_equal(frame.at, r->region.at + cases[i].offset);
			assert_int_equal(frame.len, cases[i].length);
		}
	}
	end(r);
}

/* A client uses its own layout, whatever the server writes. */
static void client_ignores_places(void **state)
{
	struct rings *r = make(false);
	struct weft_mring_desc *d = &r->client.shm->desc[0];

	(void)state;
	send_one(&r->server, 7, 60);
	atomic_store(&d->offset, UINT32_MAX);
	atomic_store(&d->region, 9);
	take_one(&r->client, 7, 60);
	assert_int_equal(weft_mring_poll(&r->server), SIZE);
	weft_mring_done(&r->server, SIZE);
	assert_int_equal(weft_mring_poll(&r->client), SIZE);
	for (uint32_t len = BSIZE - 1; len < BSIZE + 2; len++) {
		atomic_store(&weft_mring_desc(&r->client, 0)->length, len);
		assert_int_equal(weft_mring_frame(&r->client, 0).at != NULL, len <= BSIZE);
	}
	end(r);
	r = make(true);
	atomic_store(&r->client.shm->desc[0].offset, UINT32_MAX);
	atomic_store(&r->client.shm->desc[0].length, UINT32_MAX);
	assert_ptr_equal(weft_mring_room(&r->client, 0).at, r->region.at + BUFS);
	assert_int_equal(weft_mring_room(&r->client, 0).len, BSIZE);
	end(r);
}

static void malformed_rings_are_refused(void **state)
{
	struct rings *r = make(true);
	struct weft_mring other = {.size = 77};
	struct weft_mregion small = {r->region.at, weft_mring_bytes(LOG2)};

	(void)state;
	assert_int_equal(weft_mring_attach(&other, &small, 1, 0, 0, LOG2), 0);
	other.size = 77;
	small.len--;
	assert_int_equal(weft_mring_attach(&other, &small, 1, 0, 0, LOG2), -EINVAL);
	assert_int_equal(weft_mring_attach(&other, &r->region, 1, 1, 0, LOG2), -EINVAL);
	assert_int_equal(weft_mring_attach(&other, &r->region, 0, 0, 0, LOG2), -EINVAL);
	assert_int_equal(weft_mring_attach(&other, &r->region, 1, 0, 4, LOG2), -EINVAL);
	assert_int_equal(weft_mring_attach(&other, &r->region, 1, 0, UINT64_MAX - 7, LOG2),
			 -EINVAL);
	assert_int_equal(weft_mring_attach(&other, &r->region, 1, 0, LEN, LOG2), -EINVAL);
	for (unsigned int log2 = WEFT_MRING_LOG2_MAX + 1; log2 < 256; log2++)
		assert_int_equal(weft_mring_attach(&other, &r->region, 1, 0, 0, log2), -EINVAL);
	atomic_store(&r->client.shm->cookie, 0);
	assert_int_equal(weft_mring_attach(&other, &r->region, 1, 0, 0, LOG2), -EINVAL);
	assert_int_equal(other.size, 77);
	end(r);
}

static void sender_sees_a_sleeper(void **state)
{
	struct rings *r = make(false);

	(void)state;
	assert_false(weft_mring_sleeps(&r->server));
	assert_int_equal(weft_mring_arm(&r->client), 0);
	assert_true(weft_mring_sleeps(&r->server));
	weft_mring_disarm(&r->client);
	assert_false(weft_mring_sleeps(&r->server));
	send_one(&r->server, 1, 60);
	assert_int_equal(weft_mring_arm(&r->client), -EBUSY);
	assert_false(weft_mring_sleeps(&r->server));
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_arrive_in_order),
		cmocka_unit_test(full_ring_has_no_room),
		cmocka_unit_test(invalid_indices_are_refused),
		cmocka_unit_test(invalid_descriptors_are_refused),
		cmocka_unit_test(client_ignores_places),
		cmocka_unit_test(malformed_rings_are_refused),
		cmocka_unit_test(sender_sees_a_sleeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
