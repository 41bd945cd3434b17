/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes without frames, as captures and the flight recorder see them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/platform_host.h"
#include "capture/capture.h"
#include "capture_util.h"

#define LARGE 8000u

static struct weft_lane_conf conf = {.recorder = 128, .recorder_file = "", .recorder_signal = ""};
static char folder[] = "/tmp/weft-records-XXXXXX", file[64], recorder_file[128];

static bool wanted;

static void want(void *arg, bool yes)
{
	(void)arg;
	wanted = yes;
}

static struct weft_lane_tap *lane_of(const char *capture)
{
	static const struct weft_lane_tap_open params = {
		.name = "shm:host",
		.about = "messages",
		.platform = &weft_platform_host,
		.conf = &conf,
		.want = want,
	};

	conf.capture = capture;
	return weft_capture_messages.open(&params);
}

static void show_record(struct weft_lane_tap *lane, size_t len, bool taken)
{
	static uint8_t head[32] = "head", body[LARGE];
	const struct iovec iov[] = {{head, sizeof(head)}, {body, len}};

	lane->ops->offer(lane, WEFT_LANE_TAP_OUT, iov, 2, weft_platform_host.now(NULL));
	lane->ops->taken(lane, taken);
}

/* While nobody wants them the worker is not asked for any. */
static void messages_of_lanes_without_frames_are_in_the_file(void **state)
{
	struct weft_lane_tap *lane = lane_of(NULL);
	char name[512], command[128], why[300];
	struct weft_capture_state end;
	struct seen seen;

	(void)state;
	assert_false(wanted);
	snprintf(command, sizeof(command), "%s,snaplen=1000", file);
	assert_int_equal(weft_capture_start(command, why, sizeof(why)), 0);
	assert_true(wanted);
	show_record(lane, 5000, true);
	show_record(lane, 10, false); /* the lane had no room */
	show_record(lane, 20, true);
	/* An expression is of frames. */
	assert_int_equal(weft_capture_refilter("greater 10", why, sizeof(why)), 0);
	show_record(lane, 20, true);
	assert_int_equal(weft_capture_stop(&end, why, sizeof(why)), 0);
	assert_false(wanted);
	assert_int_equal(end.frames, 2);
	seen = capture_seen(file);
	assert_int_equal(seen.frames, 2);
	assert_int_equal(seen.longest, 32 + 5000);
	assert_int_equal(seen.caplen, 1000);
	lane->ops->close(lane);
	/* The recorder has them if it is told to. */
	conf.recorder_file = recorder_file;
	lane = lane_of(NULL);
	assert_true(wanted);
	for (unsigned int i = 0; i < 5; i++)
		show_record(lane, 200, i != 2);
	assert_int_equal(weft_recorder_write("a test", name, sizeof(name)), 0);
	seen = capture_seen(name);
	assert_int_equal(seen.records, 4);
	assert_int_equal(seen.caplen, WEFT_RECORDER_BYTES);
	lane->ops->close(lane);
	assert_false(wanted);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/c.pcapng", folder);
	snprintf(recorder_file, sizeof(recorder_file), "%s/rec-%%p-%%n.pcapng,messages", folder);
	return 0;
}

static int tear_down(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_lanes_without_frames_are_in_the_file),
	};

	return cmocka_run_group_tests_name("records", tests, set_up, tear_down);
}
