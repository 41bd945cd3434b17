/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a ring, without processes: order, wrap, and what a hostile side may write. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "shm/shm_mem.h"

static struct shm_dir *dir;
static struct shm_tx tx;
static struct shm_rx rx;

static int setup(void **state)
{
	(void)state;
	dir = aligned_alloc(4096, sizeof(*dir));
	assert_non_null(dir);
	memset(dir, 0, sizeof(*dir));
	tx = (struct shm_tx){.dir = dir};
	rx = (struct shm_rx){.dir = dir};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(dir);
	return 0;
}

static bool put(uint8_t am_id, const void *data, size_t length)
{
	unsigned int num = shm_record_lines(length);
	uint64_t *line = shm_tx_reserve(&tx, num);

	if (!line)
		return false;
	memcpy(line + 1, data, length);
	shm_tx_publish(&tx, line, num, length, am_id, 0);
	return true;
}

static uint32_t seed = 1;

static uint32_t roll(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

/* Each line of the message begins with what would be the next laps' valid word of a record. */
static void make_forged(uint64_t *data, size_t length, uint32_t tail)
{
	size_t i;

	for (i = 0; i < length / 8; i++)
		data[i] = shm_word(tail + (uint32_t)((i + 1) / 8) + SHM_LINES, 40, 3, 0);
}

static void records_come_once_and_in_order(void **state)
{
	uint64_t data[SHM_RECORD_LINES * 8], sent = 0, got = 0;
	size_t lengths[1024];
	struct shm_record r;

	(void)state;
	while (got < 200000) {
		size_t length = 8 + roll() % (SHM_SHORT_MAX - 7);

		make_forged(data, sizeof(data), tx.tail);
		data[0] = sent;
		while (sent - got < 1000 && put((uint8_t)(sent % 32), data, length)) {
			lengths[sent++ % 1024] = length;
			length = 8 + roll() % (roll() % 4 ? 48 : SHM_SHORT_MAX - 7);
			make_forged(data, sizeof(data), tx.tail);
			data[0] = sent;
		}
		for (unsigned int n = 1 + roll() % 100; n > 0; n--) {
			int rc = shm_rx_next(&rx, 32, &r);

			assert_true(rc >= 0);
			if (rc == 0)
				break;
			assert_int_equal(r.length, lengths[got % 1024]);
			assert_int_equal(r.am_id, got % 32);
			assert_int_equal(r.data[0], got);
			shm_rx_taken(&rx, &r);
			got++;
		}
		shm_rx_publish(&rx);
	}
}

static void a_full_ring_takes_nothing(void **state)
{
	struct shm_record r;
	uint64_t x = 7;
	unsigned int n = 0;

	(void)state;
	while (put(0, &x, 8))
		n++;
	assert_int_equal(n, SHM_LINES);
	assert_int_equal(shm_rx_next(&rx, 32, &r), 1);
	shm_rx_taken(&rx, &r);
	assert_false(put(0, &x, 8));
	shm_rx_publish(&rx);
	assert_true(put(0, &x, 8));
	assert_false(put(0, &x, 8));
	assert_false(tx.broken);
}

static void positions_wrap(void **state)
{
	struct shm_record r;
	uint64_t x;

	(void)state;
	tx.tail = tx.head = rx.head = rx.published = UINT32_MAX - 5;
	atomic_store(&dir->ctl.head, rx.head);
	for (x = 0; x < 2000; x++) {
		assert_true(put(1, &x, 8));
		assert_int_equal(shm_rx_next(&rx, 32, &r), 1);
		assert_int_equal(r.data[0], x);
		shm_rx_taken(&rx, &r);
		assert_int_equal(shm_rx_next(&rx, 32, &r), 0);
		shm_rx_publish(&rx);
	}
	assert_false(tx.broken);
}

static void chunks_are_used_again_when_read(void **state)
{
	struct shm_record r;
	uint64_t *line;
	int chunk, n;

	(void)state;
	for (n = 0; n < 1000; n++) {
		chunk = shm_tx_chunk(&tx);
		assert_int_equal(chunk, 0);
		line = shm_tx_reserve(&tx, 1);
		assert_non_null(line);
		shm_tx_publish_chunk(&tx, line, 0, n % 2 ? SHM_CHUNK_SIZE : 1, 2);
		assert_int_equal(shm_tx_chunk(&tx), 1);
		assert_int_equal(shm_rx_next(&rx, 32, &r), 1);
		assert_int_equal(r.length, n % 2 ? SHM_CHUNK_SIZE : 1);
		assert_ptr_equal(r.data, dir->chunks[0]);
		shm_rx_taken(&rx, &r);
		shm_rx_publish(&rx);
	}
	for (n = 0; (chunk = shm_tx_chunk(&tx)) >= 0; n++)
		shm_tx_publish_chunk(&tx, shm_tx_reserve(&tx, 1), (unsigned int)chunk, 9, 2);
	assert_int_equal(n, SHM_CHUNKS);
	/* The receiver reads all, and each of them is free. */
	while (shm_rx_next(&rx, 32, &r) == 1)
		shm_rx_taken(&rx, &r);
	shm_rx_publish(&rx);
	for (n = 0; (chunk = shm_tx_chunk(&tx)) >= 0; n++) {
		assert_int_equal(chunk, n);
		shm_tx_publish_chunk(&tx, shm_tx_reserve(&tx, 1), (unsigned int)chunk, 9, 2);
	}
	assert_int_equal(n, SHM_CHUNKS);
}

/* ------------------------------------------------------------------ hostile */

static void impossible_records_are_refused(void **state)
{
	struct shm_record r;
	uint64_t *line;

	(void)state;
	/* am_id, length, more lines than the ring has left, a chunk that is none, a lone filler */
	shm_tx_put_word(dir->lines[0], shm_word(0, 8, 32, 0));
	assert_int_equal(shm_rx_next(&rx, 32, &r), -1);
	shm_tx_put_word(dir->lines[0], shm_word(0, SHM_SHORT_MAX + 1, 0, 0));
	assert_int_equal(shm_rx_next(&rx, 32, &r), -1);
	shm_tx_put_word(dir->lines[0], shm_word(0, 8, 0, SHM_F_FILLER));
	assert_int_equal(shm_rx_next(&rx, 32, &r), -1);
	line = dir->lines[0];
	line[1] = SHM_CHUNKS;
	rx.head = 0;
	shm_tx_put_word(line, shm_word(0, 8, 0, SHM_F_CHUNK));
	assert_int_equal(shm_rx_next(&rx, 32, &r), -1);
	line[1] = 0;
	shm_tx_put_word(line, shm_word(0, SHM_CHUNK_SIZE, 0, SHM_F_CHUNK));
	assert_int_equal(shm_rx_next(&rx, 32, &r), -1);
	rx.head = SHM_LINES - 1;
	shm_tx_put_word(dir->lines[SHM_LINES - 1], shm_word(SHM_LINES - 1, 57, 0, 0));
	assert_int_equal(shm_rx_next(&rx, 32, &r), -1);
}

static void an_impossible_head_is_seen(void **state)
{
	uint64_t x = 1;

	(void)state;
	assert_true(put(0, &x, 8));
	atomic_store(&dir->ctl.head, 2);
	shm_tx_look(&tx);
	assert_true(tx.broken);
	assert_int_equal(tx.head, 0);
	tx.broken = false;
	atomic_store(&dir->ctl.head, UINT32_MAX);
	shm_tx_look(&tx);
	assert_true(tx.broken);
	assert_int_equal(shm_tx_room(&tx), SHM_LINES - 1);
}

static void random_words_stay_inside(void **state)
{
	const char *begin = (const char *)dir, *end = begin + sizeof(*dir), *from;
	struct shm_record r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint32_t at = rx.head % SHM_LINES;

		/* Likely enough to be believed. */
		dir->lines[at][0] =
			shm_word(rx.head, roll() % 2048, (uint8_t)(roll() % 34), roll() % 8);
		dir->lines[at][1] = roll() % 32;
		if (shm_rx_next(&rx, 32, &r) != 1) {
			rx.head++;
			continue;
		}
		from = (const char *)r.data;
		assert_true(r.am_id < 32);
		assert_true(from >= begin && from + r.length <= end);
		shm_rx_taken(&rx, &r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_come_once_and_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_ring_takes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(positions_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(chunks_are_used_again_when_read, setup, teardown),
		cmocka_unit_test_setup_teardown(impossible_records_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(an_impossible_head_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(random_words_stay_inside, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
