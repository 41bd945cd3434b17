/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a raw lane's connection, each one: what is chosen, and nothing beyond the last. */

#include <sys/mman.h>
#include <unistd.h>

#include "engine/conn.h"
#include "engine/ep.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "mock/raw_util.h"

#define MS 1000000u

/* Memory that ends with the last path: a read behind it ends the test. */
struct guarded {
	struct raw_conn *c;
	struct raw_path *before;
	uint8_t *pages;
	size_t len;
};

static void guard(struct guarded *g, struct raw_conn *c)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = c->path_count * sizeof(*c->path);

	assert_int_equal(c->path_room, c->path_count);
	assert_true(bytes <= 2 * page);
	g->c = c;
	g->before = c->path;
	g->len = 3 * page;
	g->pages = mmap(NULL, g->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->pages != MAP_FAILED);
	assert_int_equal(mprotect(g->pages + 2 * page, page, PROT_NONE), 0);
	c->path = (struct raw_path *)(g->pages + 2 * page - bytes);
	memcpy(c->path, g->before, bytes);
}

static void unguard(struct guarded *g)
{
	memcpy(g->before, g->c->path, g->c->path_count * sizeof(*g->before));
	g->c->path = g->before;
	munmap(g->pages, g->len);
}

static void count(const char *name, uint64_t value, void *arg)
{
	(void)name;
	(void)value;
	++*(unsigned int *)arg;
}

static void print(const char *text, void *arg)
{
	assert_true(strlen(text) > 0);
	++*(unsigned int *)arg;
}

/* Traffic with losses, a path that dies and returns, and reports. */
static void nothing_behind_the_last_path_is_used(void **state)
{
	static const unsigned int cc[] = {WEFT_CC_FIXED, WEFT_CC_DELAY};
	unsigned int counters = 0, lines = 0;
	struct guarded g[2];

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(cc); i++) {
		const struct pair_params params = {
			.paths = 4, .cc = cc[i], .network = true, .csum = WEFT_CSUM_CRC32C};

		pair_open(&pair, &params, 61);
		pair_connect(&pair);
		pair_run(&pair, 10 * MS, NULL);
		guard(&g[0], raw_conn_of(A->lane_ep));
		guard(&g[1], raw_conn_of(B->accepted));
		assert_int_equal(raw_conn_of(A->lane_ep)->path_count, 4);
		A->wire.loss = B->wire.loss = 0.02;
		stream(400, 8000, 5000000000);
		A->iface->ops->counters(A->iface, count, &counters);
		raw_paths_print(raw_iface_of(A->iface), print, &lines);
		pair_run(&pair, 1000 * MS, NULL);
		unguard(&g[0]);
		unguard(&g[1]);
		pair_close(&pair);
	}
	assert_true(counters > 0);
	assert_int_equal(lines, 4 + 2 * 4); /* congestion control adds one for each path */
}

/* A retransmission takes another path in use, then one in reserve, then any open one. */
static void another_path_is_one_in_use_that_is_good(void **state)
{
	const struct pair_params params = {.paths = 4};
	struct raw_multi *mp;
	struct raw_conn *c;

	(void)state;
	pair_open(&pair, &params, 62);
	pair_connect(&pair);
	c = raw_conn_of(A->lane_ep);
	mp = c->multi;
	assert_non_null(mp);
	mp->open = 0xf;
	mp->active = 0x7;
	mp->bad = 0;
	assert_int_equal(raw_multi_other(c, 0, false), 1);
	assert_int_equal(raw_multi_other(c, 1, false), 2);
	assert_int_equal(raw_multi_other(c, 2, false), 0);
	assert_int_equal(raw_multi_other(c, 2, true), 3);
	/* A path that is not in use itself: any open one. */
	assert_int_equal(raw_multi_other(c, 3, false), 0);
	mp->bad = 0x2;
	assert_int_equal(raw_multi_other(c, 0, false), 2);
	assert_int_equal(raw_multi_other(c, 0, true), 2);
	assert_int_equal(raw_multi_other(c, 1, false), 2);
	/* Its own path is the only good one. */
	mp->open = 0x3;
	assert_int_equal(raw_multi_other(c, 0, true), 1);
	mp->bad = 0x3;
	assert_int_equal(raw_multi_other(c, 0, true), 1);
	mp->open = mp->active = 0xf;
	mp->bad = 0;
	pair_close(&pair);
}

/* Frames taken for lost are those before `gone`, on a path that is late, and no others. */
static void frames_of_a_late_path_are_lost_up_to_a_limit(void **state)
{
	const struct pair_params params = {.paths = 4};
	struct raw_slot slot = {.path = 2, .order = 10, .tries = 1, .bytes = 100};
	struct raw_multi_path *m;
	struct raw_conn *c;

	(void)state;
	pair_open(&pair, &params, 63);
	pair_connect(&pair);
	c = raw_conn_of(A->lane_ep);
	m = &c->multi->path[2];
	m->gone = 11;
	assert_false(raw_multi_lost(c, &slot));
	m->is_late = true;
	assert_true(raw_multi_lost(c, &slot));
	m->gone = 10;
	assert_false(raw_multi_lost(c, &slot));
	slot.path = 1;
	m->gone = 11;
	assert_false(raw_multi_lost(c, &slot));

	/* An acknowledged frame proves the path. */
	slot = (struct raw_slot){.path = 2, .order = 10, .tries = 1, .bytes = 100, .sent = 5000};
	c->path[2].inflight = 300;
	c->path[2].acked = 0;
	m->proved = 4000;
	m->strikes = 2;
	raw_multi_slot_acked(c, &slot);
	assert_int_equal(m->proved, 5000);
	assert_int_equal(m->strikes, 0);
	assert_true(m->is_late);
	assert_int_equal(c->path[2].inflight, 200);
	assert_int_equal(c->path[2].acked, 100);
	/* Which transmission came of a repeated one is not known. A lost one is not in flight. */
	slot.tries = 2;
	slot.sent = 6000;
	slot.order = 11;
	slot.lost = true;
	m->strikes = 2;
	raw_multi_slot_acked(c, &slot);
	assert_int_equal(m->proved, 5000);
	assert_int_equal(m->strikes, 2);
	assert_true(m->is_late);
	assert_int_equal(c->path[2].inflight, 200);
	assert_int_equal(c->path[2].acked, 200);
	slot.tries = 1;
	slot.sent = 4500;
	raw_multi_slot_acked(c, &slot);
	assert_int_equal(m->proved, 5000);
	assert_false(m->is_late);
	c->path[2].inflight = c->path[2].acked = 0;
	pair_close(&pair);
}

static const struct weft_frame_hdr *data_hdr(const uint8_t *frame)
{
	const struct weft_frame_hdr *h = (const struct weft_frame_hdr *)(frame + 42);

	return frame[12] == 8 && frame[13] == 0 ? h : NULL;
}

static uint8_t dead_paths;

static uint32_t lose_dead(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	const struct weft_frame_hdr *h = data_hdr(frame);

	(void)from;
	return h && dead_paths >> h->path & 1 ? 0 : len;
}

static void steady(uint32_t *n, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++) {
		if (pair_send(A, A->lane_ep, *n, 5000) == 0)
			++*n;
		A->iface->ops->tx_flush(A->iface);
		pair_step(&pair, 20000);
	}
}

/* The last path that works is never left, and a path that works again is used again. */
static void silent_paths_are_left_but_the_last_one(void **state)
{
	const struct pair_params params = {.paths = 3, .window = 1u << 20};
	const struct raw_conn *c;
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, &params, 64);
	pair_connect(&pair);
	pair_run(&pair, 10 * MS, NULL);
	c = raw_conn_of(A->lane_ep);
	A->wire.edit = B->wire.edit = lose_dead;
	dead_paths = 1 << 1;
	steady(&n, 3000);
	assert_int_equal(c->multi->bad, 1 << 1);
	assert_int_equal(pair_counter(A, RAW_PATH_BAD), 1);
	dead_paths = 1 << 1 | 1 << 2;
	steady(&n, 3000);
	assert_int_equal(c->multi->bad, 1 << 1 | 1 << 2);
	assert_int_equal(c->next_path, 0);
	assert_int_equal(pair_counter(A, RAW_PATH_BAD), 2);
	assert_false(c->path_watch & RAW_WATCH_MANY);
	dead_paths = 7;
	steady(&n, 500);
	assert_int_equal(c->multi->bad, 1 << 1 | 1 << 2);
	dead_paths = 0;
	steady(&n, 60000);
	assert_int_equal(c->multi->bad, 0);
	assert_int_equal(pair_counter(A, RAW_PATH_BACK), 2);
	assert_true(c->path_watch & RAW_WATCH_MANY);
	pair_run(&pair, 1000 * MS, NULL);
	assert_int_equal(B->messages, n);
	assert_int_equal(B->bad, 0);
	for (unsigned int k = 0; k < 3; k++)
		assert_int_equal(c->path[k].inflight, 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_behind_the_last_path_is_used),
		cmocka_unit_test(another_path_is_one_in_use_that_is_good),
		cmocka_unit_test(frames_of_a_late_path_are_lost_up_to_a_limit),
		cmocka_unit_test(silent_paths_are_left_but_the_last_one),
	};

	return cmocka_run_group_tests_name("paths of a raw connection", tests, NULL, NULL);
}
