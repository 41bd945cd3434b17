/* SPDX-License-Identifier: BSD-3-Clause */
/* States of paths in captures: how a lane records them, their text, and what is kept of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/capture.h"
#include "dump/file.h"
#include "dump/state.h"
#include "eal.h"

#define GOOD                                                                              \
	"path 3 of 00000007 11223344: window 65536 in_flight 1200 rtt 51234 least 50000 " \
	"base 50100 noise 100 target 60000 mode delay"

static bool reads(struct states *s, const char *text, uint64_t time)
{
	return state_read(s, 1, text, strlen(text), time);
}

static void a_state_is_read(void **state)
{
	struct states s = {0};

	(void)state;
	assert_false(reads(&s, "hw_counters mlx5_0 1/x=3", 1));
	assert_true(reads(&s, GOOD, 1700));
	assert_int_equal(s.num, 1);
	assert_int_equal(s.path[0].iface, 1);
	assert_int_equal(s.path[0].conn, 7);
	assert_int_equal(s.path[0].token, 0x11223344);
	assert_int_equal(s.path[0].path, 3);
	assert_int_equal(s.path[0].num, 1);
	assert_int_equal(s.path[0].point[0].time, 1700);
	assert_int_equal(s.path[0].last.window, 65536);
	assert_int_equal(s.path[0].last.in_flight, 1200);
	assert_int_equal(s.path[0].last.rtt, 51234);
	assert_int_equal(s.path[0].last.least, 50000);
	assert_int_equal(s.path[0].last.base, 50100);
	assert_int_equal(s.path[0].last.noise, 100);
	assert_int_equal(s.path[0].last.target, 60000);
	assert_string_equal(state_mode_name(s.path[0].last.mode), "delay");
	state_free(&s);
}

/* What an author of a file may write. */
static void other_texts_are_left_out(void **state)
{
	static const char *const bad[] = {
		"path to nowhere",
		GOOD " ",
		GOOD "ed",
		"path 99 of 7 8: window 1 in_flight 1 rtt 1 least 1 base 1 noise 1 target 1 mode -",
		"path -1 of 7 8: window 1 in_flight 1 rtt 1 least 1 base 1 noise 1 target 1 mode -",
		"path 1 of 7 8: window 1 in_flight 1 rtt 1 least 1 base 1 noise 1 target 1 mode x",
		"path 1 of 7 8: window 1 in_flight 1 rtt 1 least 1 base 1 noise 1 target 1 mode ",
		"path 1 of 7 8: window 4294967296 in_flight 1 rtt 1 least 1 base 1 noise 1 "
		"target 1 mode -",
		"path 1 of 7 8: window -1 in_flight 1 rtt 1 least 1 base 1 noise 1 target 1 mode -",
		"path 1 of 7 8: window 99999999999 in_flight 1 rtt 1 least 1 base 1 noise 1 "
		"target 1 mode -",
		"path 1 of 7 8: window 1 in_flight 1 rtt 1 least 1 base 1 noise 1 target 1 mode "
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	char text[4096];
	struct states s = {0};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_true(reads(&s, bad[i], 1));
	memset(text, 'a', sizeof(text));
	memcpy(text, "path ", 5);
	assert_true(state_read(&s, 1, text, sizeof(text), 1));
	/* A NUL inside. */
	memcpy(text, GOOD, sizeof(GOOD));
	assert_true(state_read(&s, 1, text, sizeof(GOOD) + 1, 1));
	assert_int_equal(s.num, 0);
	state_free(&s);
}

static void memory_is_bounded(void **state)
{
	struct states s = {0};
	uint64_t time;
	char text[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < 2 * STATE_PATHS; i++) {
		snprintf(text, sizeof(text),
			 "path 0 of %08x 1: window 1 in_flight 1 rtt 1 least 1 base 1 noise 1 "
			 "target 1 mode -",
			 i);
		assert_true(reads(&s, text, 1));
	}
	assert_int_equal(s.num, STATE_PATHS);
	state_free(&s);
	for (time = 0; time < 10 * STATE_POINTS; time++)
		reads(&s, GOOD, time);
	reads(&s, GOOD, 5); /* the past */
	assert_int_equal(s.path[0].seen, 10 * STATE_POINTS);
	assert_in_range(s.path[0].num, STATE_POINTS / 2, STATE_POINTS);
	for (i = 0; i < s.path[0].num; i++)
		assert_int_equal(s.path[0].point[i].time, i * s.path[0].each);
	assert_int_equal(s.path[0].last.time, 10 * STATE_POINTS - 1);
	state_free(&s);
}

/* ---- a lane ---- */

static uint64_t fake_now = 1;

static uint64_t fake_clock(void *arg)
{
	(void)arg;
	return fake_now;
}

static unsigned int three_paths(const void *arg, struct weft_tap *tap, unsigned int from)
{
	struct weft_tap_path p = {.conn = 7, .token = 8, .mode = "delay"};

	weft_tap_missed(tap, fake_now < 50000000 ? 2 : 9);
	if (arg)
		weft_tap_missed(tap, 12);
	for (; from < 3; from++) {
		p.path = from;
		p.window = 1000 + from;
		weft_tap_path(tap, &p);
	}
	return 0;
}

/* A frame each ms for 100 ms, and the states of three paths. */
static void capture(const char *file, struct weft_capture_state *end)
{
	static const struct weft_platform fake = {.now = fake_clock};
	struct weft_frame_port port = {.name = "7", .device = "net_test", .frame_size = 9014};
	struct weft_lane_conf conf = {.capture = file, .recorder_file = ""};
	struct rte_mempool *pool = rte_pktmbuf_pool_create("state", 63, 0, 0, 2000, SOCKET_ID_ANY);
	struct rte_mbuf *m;
	struct weft_tap *tap;
	char why[400];

	assert_non_null(pool);
	m = rte_pktmbuf_alloc(pool);
	memset(rte_pktmbuf_append(m, 90), 0, 90);
	tap = weft_tap_open(&port, &fake, 1, &conf);
	tap->paths = three_paths;
	for (unsigned int i = 0; i < 100; i++) {
		fake_now += 1000000;
		weft_tap_arrived(tap, &m, 1, fake_now);
	}
	tap->paths_arg = tap;
	weft_tap_end(tap);
	weft_tap_close(tap);
	assert_int_equal(weft_capture_stop(end, why, sizeof(why)), 0);
	rte_pktmbuf_free(m);
	rte_mempool_free(pool);
}

static void states_are_recorded_and_are_no_frames(void **state)
{
	char file[] = "/tmp/weft-state-XXXXXX", why[400];
	int fd = mkstemp(file);
	struct weft_capture_state end;
	const struct state_path *p;
	struct dump_frame frame;
	struct dump_file *f;
	unsigned int i;

	(void)state;
	test_eal_init("64");
	assert_true(fd >= 0);
	close(fd);
	capture(file, &end);
	assert_int_equal(end.frames, 100);
	assert_int_equal(end.dropped, 0);
	f = dump_file_open(file, 0, why, sizeof(why));
	assert_non_null(f);
	for (i = 0; dump_file_next(f, &frame); i++)
		assert_int_equal(frame.dropped, 0);
	assert_int_equal(i, 100);
	assert_int_equal(f->states.num, 3);
	for (i = 0; i < 3; i++) {
		p = &f->states.path[i];
		assert_int_equal(p->num, 11); /* the last is of the end */
		assert_int_equal(p->path, i);
		assert_int_equal(p->last.window, 1000 + i);
		assert_int_equal(p->last.mode, STATE_DELAY);
		assert_int_equal(p->point[9].time - p->point[0].time, 90000000);
	}
	assert_int_equal(f->history.num_missed, 3);
	assert_int_equal(f->history.missed[0].count, 2);
	assert_int_equal(f->history.missed[1].count, 7);
	assert_int_equal(f->history.missed[2].count, 3);
	dump_file_close(f);
	unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_is_read),
		cmocka_unit_test(other_texts_are_left_out),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(states_are_recorded_and_are_no_frames),
	};

	return cmocka_run_group_tests_name("dump state", tests, NULL, NULL);
}
