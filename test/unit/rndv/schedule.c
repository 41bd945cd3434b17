/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is at a port: peers that deliver next to nothing delay no other. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/worker.h"
#include "rndv/rndv.h"

#define US 1000ull
#define MS 1000000ull
#define PEERS 3
#define LANES 2

/* A worker with one port, and peers whose lanes are all over it. */
static struct {
	struct weft_worker worker;
	struct weft_msg_worker mw;
	struct weft_rndv_worker rw;
	struct {
		struct weft_msg_ep me;
		struct weft_msg_lane lanes[LANES];
		struct weft_lane_load load[LANES][2];
		struct weft_lane_ep lane_ep[LANES];
		struct weft_rndv rndv;
		struct weft_fetch fetch;
		struct weft_pull_range range[LANES];
	} peer[PEERS];
} t;

static void setup(void)
{
	struct weft_rndv_port *port = &t.rw.ports[0];

	memset(&t, 0, sizeof(t));
	t.worker.num_ifaces = 1;
	t.worker.now = MS;
	t.mw.worker = &t.worker;
	t.mw.rndv = &t.rw;
	TAILQ_INIT(&t.rw.fetching);
	TAILQ_INIT(&t.rw.fetching_later);
	TAILQ_INIT(&port->line[WEFT_RNDV_IS_SHORT]);
	TAILQ_INIT(&port->line[WEFT_RNDV_IS_LONG]);
	TAILQ_INIT(&port->ranges);
	weft_pull_port_init(&port->pull, 1e9);
	for (int i = 0; i < PEERS; i++) {
		t.peer[i].me.mw = &t.mw;
		t.peer[i].me.rndv = &t.peer[i].rndv;
		t.peer[i].me.lanes = t.peer[i].lanes;
		t.peer[i].me.rndv_lanes = (1u << LANES) - 1;
		t.peer[i].rndv.me = &t.peer[i].me;
		t.peer[i].fetch.me = &t.peer[i].me;
		TAILQ_INIT(&t.peer[i].rndv.fetches[WEFT_RNDV_IS_SHORT]);
		TAILQ_INIT(&t.peer[i].rndv.fetches[WEFT_RNDV_IS_LONG]);
		for (int lane = 0; lane < LANES; lane++) {
			t.peer[i].rndv.lanes[lane].port = port;
			t.peer[i].lanes[lane].lane_ep = &t.peer[i].lane_ep[lane];
			t.peer[i].lanes[lane].load = t.peer[i].load[lane];
		}
	}
}

static void requested(int i, uint8_t lane, uint64_t bytes)
{
	struct weft_pull_range *a = &t.peer[i].range[lane];

	*a = (struct weft_pull_range){
		.fetch = &t.peer[i].fetch, .lane = lane, .left = bytes, .given = t.worker.now};
	weft_rndv_port_requested(&t.peer[i].rndv, a);
}

static void came(int i, uint8_t lane, uint64_t bytes)
{
	struct weft_pull_range *a = &t.peer[i].range[lane];

	t.peer[i].me.lanes[lane].load[WEFT_DIR_RX].moved = t.worker.now;
	weft_rndv_port_came(&t.peer[i].rndv, a, bytes, true);
	a->left -= bytes;
}

/* With something left to ask for, in the port's line. */
static struct weft_rndv *waits(int i)
{
	struct weft_rndv *r = &t.peer[i].rndv;

	TAILQ_INSERT_TAIL(&r->fetches[WEFT_RNDV_IS_LONG], &t.peer[i].fetch, link);
	weft_rndv_want_port(r, &t.rw.ports[0]);
	return r;
}

/* Two peers have the port's window and all else that is for endpoints without a request. */
/* @behaviour R84 */
static void a_byte_now_and_then_holds_nothing(void **state)
{
	struct weft_rndv *third;
	uint64_t begin;

	(void)state;
	setup();
	begin = t.worker.now;
	requested(0, 0, 1 << 20);
	requested(1, 0, 1 << 20);
	third = waits(2);
	assert_null(weft_rndv_next(&t.mw, NULL));
	while (weft_rndv_next(&t.mw, NULL) != third) {
		t.worker.now += 100 * US;
		assert_in_range(t.worker.now - begin, 0, 40 * MS);
		came(0, 0, 1);
		came(1, 0, 1);
	}
	/* And so it is until it has come: then they are as others. */
	assert_int_equal(t.rw.ports[0].pull.users, 0);
	came(0, 0, 1000);
	assert_int_equal(t.rw.ports[0].pull.out, 0);
	assert_int_equal(t.peer[0].rndv.lanes[0].late, 1);
	came(0, 0, t.peer[0].range[0].left);
	assert_int_equal(t.peer[0].rndv.lanes[0].late, 0);
	requested(0, 0, 5000);
	assert_int_equal(t.rw.ports[0].pull.out, 5000);
	came(0, 0, 5000);
	assert_int_equal(t.rw.ports[0].pull.out, 0);
	assert_int_equal(t.rw.ports[0].pull.users, 0);
}

/* A lane that is silent is not idle: it would get its turn for ever, and take none. */
/* @behaviour R84 */
static void a_late_lane_has_no_turn(void **state)
{
	struct weft_rndv *r;

	(void)state;
	setup();
	requested(0, 0, 10);
	t.worker.now += 10 * MS;
	requested(0, 1, 1 << 20);
	r = waits(0);
	assert_null(weft_rndv_next(&t.mw, NULL));
	assert_int_equal(r->lanes[0].late, 1);
	assert_null(weft_rndv_next(&t.mw, NULL));
	came(0, 1, 1 << 20);
	assert_ptr_equal(weft_rndv_next(&t.mw, NULL), r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_byte_now_and_then_holds_nothing),
		cmocka_unit_test(a_late_lane_has_no_turn),
	};

	return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
