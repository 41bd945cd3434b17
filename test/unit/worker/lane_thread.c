/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The prototype of lanes that a thread of their own polls (mock/lane_thread.h), with a real thread
 * over the loopback driver. The test command runs this under ThreadSanitizer too. test/sim/
 * sys_threads.c has order and failover, in virtual time.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/platform.h"
#include "common/pattern.h"
#include "mock/lane_thread.h"
#include "mock/rounds.h"
#include "self/self_lane.h"

#define MESSAGES ((uint32_t)(test_rounds(20) * 250))
#define PLAIN 1 /* am_id: for the receive callback */
#define DATA 2  /* with a destination */
#define SIZE_MAX_ 8000u
#define KEPT 64u
#define BUFS 32u

struct head {
	uint64_t id;
	uint32_t offset, len;
};

struct send {
	struct weft_lane_comp comp; /* first */
	bool busy;
	uint8_t bytes[SIZE_MAX_];
};

static struct {
	struct weft_lane_iface *iface;
	struct weft_lane_ep *ep;
	struct lane_places places;
	struct send sends[BUFS];
	uint8_t *seen;
	void *kept[KEPT];
	unsigned int num_kept, ups, downs, flushes, comps;
	uint32_t got, placed, wrong;
	uint8_t dest[4][SIZE_MAX_];
	uint64_t dest_id[4]; /* that is open there; 0 = none */
	uint32_t dest_got[4];
	uint64_t rng;
} t;

static uint64_t dice(uint64_t n)
{
	return sim_mix64(++t.rng) % n;
}

static uint64_t now(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static const struct weft_platform platform = {.now = now};

/* ---- callbacks ------------------------------------------------------------------------------ */

/* @p bytes: NULL = they are in their destination already */
static void data_came(const struct head *h, const uint8_t *bytes)
{
	if (t.dest_id[h->id % 4] != h->id)
		return; /* given up */
	if (bytes)
		memcpy(t.dest[h->id % 4] + h->offset, bytes, h->len);
	t.dest_got[h->id % 4] += h->len;
}

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t length, void *desc)
{
	struct head h;

	(void)arg;
	t.wrong += lane_ep != t.ep || length < sizeof(h);
	memcpy(&h, data, sizeof(h));
	if (am_id == DATA) { /* its destination is closed, or the iface is at home */
		data_came(&h, (const uint8_t *)data + sizeof(h));
		return 0;
	}
	t.got++;
	t.wrong += am_id != PLAIN || h.id >= MESSAGES || length != sizeof(h) + h.len ||
		   pattern_check(h.id, 0, (const uint8_t *)data + sizeof(h), h.len) != h.len;
	if (h.id < MESSAGES)
		t.seen[h.id]++;
	if (!desc || t.num_kept == KEPT || dice(3))
		return 0;
	t.kept[t.num_kept++] = desc;
	return WEFT_LANE_KEEP;
}

static size_t where(uint8_t am_id, const void *msg, size_t length, uint64_t *id, uint64_t *offset)
{
	struct head h;

	if (am_id != DATA || length < sizeof(h))
		return 0;
	memcpy(&h, msg, sizeof(h));
	*id = h.id;
	*offset = h.offset;
	return sizeof(h);
}

static void on_placed(void *arg, struct weft_lane_ep *lane_ep, const void *hdr, size_t hdr_len,
		      size_t length)
{
	struct head h;

	(void)arg;
	t.wrong += lane_ep != t.ep || hdr_len != sizeof(h);
	memcpy(&h, hdr, sizeof(h));
	t.wrong += h.len != length;
	t.placed++;
	data_came(&h, NULL);
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	(void)arg;
	(void)lane_ep;
	(void)status;
	(void)text;
	t.ups += ev == WEFT_LANE_EV_UP;
	t.downs += ev == WEFT_LANE_EV_DOWN;
}

static void on_comp(struct weft_lane_comp *comp, int status)
{
	t.wrong += status != 0 && status != -ECANCELED;
	t.comps++;
	((struct send *)comp)->busy = false;
}

static void on_flush(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	t.wrong += status != 0;
	t.flushes++;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void progress(void)
{
	t.iface->ops->progress(t.iface, now(NULL));
	if (t.iface->tx_open)
		t.iface->ops->tx_flush(t.iface);
}

static void until_away(bool away)
{
	lane_thread_hold(t.iface, !away);
	while (lane_thread_is_away(t.iface) != away)
		progress();
}

static void connect_ep(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	unsigned int ups = t.ups;

	t.iface->ops->get_address(t.iface, addr);
	assert_int_equal(t.iface->ops->ep_connect(t.iface, addr, t.iface->attr.dev_addr_len, NULL,
						  &t.ep),
			 0);
	while (t.ups == ups)
		progress();
	assert_true(t.ep->up);
}

static int setup(void **state)
{
	const struct lane_thread_conf conf = {
		.cpu = -1, .home_id = -1, .places = &t.places, .where = where, .placed = on_placed};
	const struct weft_lane_open open = {.resource = "self",
					    .options = "",
					    .worker_id = 4711,
					    .platform = &platform,
					    .recv = on_recv,
					    .event = on_event};
	char why[100];

	(void)state;
	memset(&t, 0, sizeof(t));
	t.seen = calloc(1, MESSAGES);
	assert_non_null(t.seen);
	assert_int_equal(
		lane_thread_open(&weft_self_driver, &open, &conf, &t.iface, why, sizeof(why)), 0);
	connect_ep();
	return 0;
}

static void release_kept(void)
{
	while (t.num_kept > 0)
		t.iface->ops->release(t.iface, t.kept[--t.num_kept]);
}

static int teardown(void **state)
{
	(void)state;
	release_kept();
	t.iface->ops->ep_destroy(t.ep);
	t.iface->ops->close(t.iface);
	for (unsigned int i = 0; i < BUFS; i++)
		assert_false(t.sends[i].busy);
	assert_int_equal(t.wrong, 0);
	assert_int_equal(t.downs, 0);
	free(t.seen);
	return 0;
}

/* ---- messages ------------------------------------------------------------------------------- */

struct pack {
	struct head h;
	const uint8_t *bytes;
};

static ssize_t pack(void *dst, size_t max, void *arg)
{
	const struct pack *p = arg;

	if (max < sizeof(p->h) + p->h.len)
		return -EMSGSIZE;
	memcpy(dst, &p->h, sizeof(p->h));
	memcpy((uint8_t *)dst + sizeof(p->h), p->bytes, p->h.len);
	return (ssize_t)(sizeof(p->h) + p->h.len);
}

/* By one of the three calls. @return false: no room, or no memory that is free */
static bool send_one(uint32_t id)
{
	uint32_t len = (uint32_t)(dice(2) ? dice(SIZE_MAX_) : dice(100));
	const struct weft_lane_ops *ops = t.ep->ops;
	struct send *s = &t.sends[dice(BUFS)];
	struct pack p = {.h = {.id = id, .len = len}, .bytes = s->bytes};
	struct iovec iov = {s->bytes, len};
	ssize_t rc;

	if (s->busy)
		return false;
	pattern_fill(id, 0, s->bytes, len);
	switch (dice(3)) {
	case 0:
		rc = ops->am_short(t.ep, PLAIN, &p.h, sizeof(p.h), s->bytes, len);
		break;
	case 1:
		rc = ops->am_bcopy(t.ep, PLAIN, pack, &p);
		break;
	default:
		s->comp.done = on_comp;
		s->busy = true;
		rc = ops->am_zcopy(t.ep, PLAIN, &p.h, sizeof(p.h), &iov, 1, NULL, &s->comp);
		if (rc < 0)
			s->busy = false;
	}
	t.wrong += rc < 0 && rc != -EAGAIN;
	return rc >= 0;
}

static void each_message_comes_once(void **state)
{
	struct weft_lane_comp flush = {.done = on_flush};
	int rc;

	(void)state;
	until_away(true);
	for (uint32_t id = 0; id < MESSAGES;) {
		id += send_one(id);
		if (dice(4) == 0)
			progress();
		if (dice(50) == 0)
			release_kept();
		if (dice(400) == 0)
			lane_thread_hold(t.iface, dice(2));
	}
	until_away(false);
	until_away(true);
	while ((rc = t.ep->ops->ep_flush(t.ep, &flush)) == -EAGAIN)
		progress();
	while (rc == 0 && t.flushes == 0)
		progress();
	while (t.got < MESSAGES)
		progress();
	for (uint32_t i = 0; i < MESSAGES; i++)
		assert_int_equal(t.seen[i], 1);
	assert_true(lane_thread_count(t.iface)->away > 1);
	assert_true(lane_thread_count(t.iface)->sends > 0);
}

/* ---- destinations --------------------------------------------------------------------------- */

static bool send_data(uint64_t id, uint32_t offset, uint32_t len)
{
	struct head h = {.id = id, .offset = offset, .len = len};
	uint8_t bytes[1000];

	pattern_fill(id, offset, bytes, len);
	return t.ep->ops->am_short(t.ep, DATA, &h, sizeof(h), bytes, len) == 0;
}

/* Some are closed while data for them is under way: the thread writes no byte into them then. */
static void data_goes_to_its_destination(void **state)
{
	uint32_t given_up = 0;

	(void)state;
	until_away(true);
	for (uint64_t id = 1; id < 12ull * (uint64_t)test_rounds(10); id++) {
		uint8_t *dest = t.dest[id % 4];
		bool give_up = dice(2);

		t.dest_got[id % 4] = 0;
		while (!lane_place_open(&t.places, id, dest, SIZE_MAX_))
			progress();
		t.dest_id[id % 4] = id;
		for (uint32_t off = 0; off < SIZE_MAX_;) {
			if (send_data(id, off, 1000))
				off += 1000;
			else
				progress();
		}
		while (!give_up && t.dest_got[id % 4] < SIZE_MAX_)
			progress();
		t.dest_id[id % 4] = 0;
		while (!lane_place_close(&t.places, id))
			progress();
		if (!give_up)
			assert_int_equal(pattern_check(id, 0, dest, SIZE_MAX_), SIZE_MAX_);
		memset(dest, 0, SIZE_MAX_); /* a write of the thread would be a race */
		given_up += give_up;
	}
	assert_true(t.placed > 0 && given_up > 0);
}

/* A destination has its memory only: no bytes beyond it, and none for another id. */
static void a_destination_takes_its_bytes_only(void **state)
{
	uint8_t memory[48], bytes[32];

	(void)state;
	memset(memory, 7, sizeof(memory));
	memset(bytes, 9, sizeof(bytes));
	assert_true(lane_place_open(&t.places, 3, memory, 40));
	assert_false(lane_place_open(&t.places, 3 + LANE_PLACES, memory, 40));
	assert_false(lane_place_copy(&t.places, 0, 4, 0, bytes, 8));
	assert_false(lane_place_copy(&t.places, 0, 3, 9, bytes, 32));
	assert_false(lane_place_copy(&t.places, 0, 3, UINT64_MAX, bytes, 1));
	assert_false(lane_place_copy(&t.places, 0, 3, 0, bytes, 41));
	assert_true(lane_place_copy(&t.places, 0, 3, 8, bytes, 32));
	for (unsigned int i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], i >= 8 && i < 40 ? 9 : 7);
	assert_true(lane_place_close(&t.places, 3));
	assert_false(lane_place_copy(&t.places, 0, 3, 0, bytes, 8));
	/* While a thread uses the memory it is not free, and the place gets no other. */
	assert_true(lane_place_open(&t.places, 5, memory, 40));
	atomic_store(&t.places.pin[2].id, 5);
	assert_false(lane_place_close(&t.places, 5));
	assert_false(lane_place_open(&t.places, 5 + LANE_PLACES, memory, 40));
	atomic_store(&t.places.pin[2].id, 0);
	assert_true(lane_place_close(&t.places, 5));
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Calls that need the iface at home, while the thread has it. */
static void lanes_come_and_go(void **state)
{
	struct weft_lane_ep *first = t.ep;
	uint32_t id = 0;

	(void)state;
	for (unsigned int k = 0; k < 20; k++) {
		until_away(true);
		for (unsigned int i = 0; i < 20; i++)
			id += send_one(id);
		if (k % 2)
			progress();
		t.ep->ops->ep_destroy(t.ep);
		memset(t.seen, 0, MESSAGES);
		connect_ep();
		assert_ptr_not_equal(first, NULL);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_message_comes_once),
		TEST(data_goes_to_its_destination),
		TEST(a_destination_takes_its_bytes_only),
		TEST(lanes_come_and_go),
	};

	return cmocka_run_group_tests_name("lane_thread", tests, NULL, NULL);
}
