/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes without frames, as captures and the flight recorder see them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host.h"
#include "capture/capture.h"
#include "capture_util.h"

#define LARGE 8000u

static struct weft_lane_conf conf = {.recorder = 128, .recorder_file = ""};
static char folder[] = "/tmp/weft-records-XXXXXX", file[64], recorder_file[128];

static bool wanted;

/* The time of day as the test sets it; of all that this program links. */
static time_t step;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	long rc = syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_REALTIME)
		ts->tv_sec += step;
	return (int)rc;
}

/* The test's folder in place of the kernel's RoCE devices. */
static char devices[128];

DIR *opendir(const char *path)
{
	static const char kernel[] = "/sys/class/infiniband";
	char other[400];
	int fd;

	snprintf(other, sizeof(other), "%s", path);
	if (devices[0] && !strncmp(path, kernel, sizeof(kernel) - 1))
		snprintf(other, sizeof(other), "%s%s", devices, path + sizeof(kernel) - 1);
	fd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopendir(fd);
}

static void want(void *arg, bool yes)
{
	(void)arg;
	wanted = yes;
}

static struct weft_lane_tap *named_lane_of(const char *name, const char *capture)
{
	const struct weft_lane_tap_open params = {
		.name = name,
		.about = "messages",
		.platform = &weft_platform_host,
		.conf = &conf,
		.want = want,
	};

	conf.capture = capture;
	return weft_capture_messages.open(&params);
}

static struct weft_lane_tap *lane_of(const char *capture)
{
	return named_lane_of("shm:host", capture);
}

static void show_record(struct weft_lane_tap *lane, size_t len, bool taken)
{
	static uint8_t head[32] = "head", body[LARGE];
	const struct iovec iov[] = {{head, sizeof(head)}, {body, len}};

	lane->ops->offer(lane, WEFT_LANE_TAP_OUT, iov, 2, weft_platform_host.now(NULL));
	lane->ops->taken(lane, taken);
}

/* Without a capture the worker makes none. */
/*
 * @behaviour Y29: the messages of lanes without frames are also in captures, on the same time line:
 * shm and RoCE
 */
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
	/* The recorder has them if its option requests them. */
	conf.recorder_file = recorder_file;
	lane = lane_of(NULL);
	assert_true(wanted);
	for (unsigned int i = 0; i < 5; i++)
		show_record(lane, 200, i != 2);
	assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
	seen = capture_seen(name);
	assert_int_equal(seen.records, 4);
	assert_int_equal(seen.caplen, WEFT_RECORDER_BYTES);
	lane->ops->close(lane);
	assert_false(wanted);
}

/* Their clock in the file is set by the time of day once, whenever they are opened. */
static void lanes_of_a_file_have_one_clock(void **state)
{
	struct weft_lane_tap *lane[2];
	struct weft_capture_state end;
	struct seen seen;
	char why[300];

	(void)state;
	conf.recorder_file = "";
	lane[0] = lane_of(NULL);
	assert_int_equal(weft_capture_start(file, why, sizeof(why)), 0);
	show_record(lane[0], 200, true);
	step = 5;
	lane[1] = lane_of(NULL);
	show_record(lane[1], 200, true);
	show_record(lane[0], 200, true);
	step = 0;
	assert_int_equal(weft_capture_stop(&end, why, sizeof(why)), 0);
	seen = capture_seen(file);
	assert_int_equal(seen.records, 3);
	assert_int_equal(seen.interfaces, 2);
	assert_true(seen.last - seen.first < 4000000000ull);
	lane[0]->ops->close(lane[0]);
	lane[1]->ops->close(lane[1]);
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

static void set_counter(const char *name, const char *value)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/mlx5_0/ports/1/hw_counters/%s", devices, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(value, f);
	fclose(f);
}

/* What the device counts while the capture runs, at its begin and end, and each second. */
static void counters_of_a_roce_device_are_in_the_file(void **state)
{
	struct timespec pause = {.tv_sec = 1, .tv_nsec = 300000000};
	struct weft_capture_state end;
	struct weft_lane_tap *lane;
	struct dump_frame frame;
	const struct dump_device_counter *c;
	struct dump_file *f;
	char command[300], why[300];

	(void)state;
	snprintf(devices, sizeof(devices), "%s/devices", folder);
	snprintf(command, sizeof(command), "mkdir -p %s/mlx5_0/ports/1/hw_counters", devices);
	assert_int_equal(system(command), 0);
	set_counter("out_of_sequence", "5\n");
	set_counter("np_cnp_sent", "0\n");
	set_counter("lifespan", "10\n");
	set_counter("broken", "no number\n");
	lane = named_lane_of("roce:mlx5_0:1", file);
	show_record(lane, 100, true);
	set_counter("out_of_sequence", "7\n");
	nanosleep(&pause, NULL);
	set_counter("out_of_sequence", "9\n");
	assert_int_equal(weft_capture_stop(&end, why, sizeof(why)), 0);
	lane->ops->close(lane);
	devices[0] = '\0';

	f = dump_file_open(file, 0, why, sizeof(why));
	assert_non_null(f);
	while (dump_file_next(f, &frame))
		;
	assert_string_equal(f->why, "");
	assert_true(f->closed);
	assert_int_equal(f->devices.num, 2);
	for (c = f->devices.of; c < f->devices.of + 2; c++) {
		assert_string_equal(c->device, "mlx5_0");
		assert_string_equal(c->port, "1");
		if (!strcmp(c->name, "np_cnp_sent")) {
			assert_int_equal(c->last - c->first, 0);
			assert_int_equal(c->since, 0);
			continue;
		}
		assert_string_equal(c->name, "out_of_sequence");
		assert_int_equal(c->first, 5);
		assert_int_equal(c->last, 9);
		/* By the reading of the first second, not by that at the end. */
		assert_in_range(f->end - c->since, 100000000, 1300000000);
	}
	dump_file_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_lanes_without_frames_are_in_the_file),
		cmocka_unit_test(lanes_of_a_file_have_one_clock),
		cmocka_unit_test(counters_of_a_roce_device_are_in_the_file),
	};

	return cmocka_run_group_tests_name("records", tests, set_up, tear_down);
}
