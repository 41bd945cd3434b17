/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flight recorder: what its marks make of times and of damaged frames; the folder of its files,
 * in which no file stops the next one, and few stay.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host.h"
#include "capture/capture.h"
#include "capture/recorder.h"
#include "dump/file.h"
#include "eal.h"
#include "frame/arp.h"
#include "lane_tap.h"

#define MANY 50u

static char tmp[] = "/tmp/weft-folder-XXXXXX", folder[256];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int make_tmp(void **state)
{
	(void)state;
	if (!mkdtemp(tmp))
		return -1;
	setenv("TMPDIR", tmp, 1);
	return weft_recorder_folder_find(folder, sizeof(folder));
}

static int remove_tmp(void **state)
{
	(void)state;
	return nftw(tmp, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* @p age_s ago; @p name as weft_recorder_folder_create() has it */
static void make_file(char *name, size_t size, off_t bytes, time_t age_s)
{
	const struct timespec when[2] = {{.tv_sec = time(NULL) - age_s},
					 {.tv_sec = time(NULL) - age_s}};
	int fd = weft_recorder_folder_create(folder, name, size);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(futimens(fd, when), 0);
	close(fd);
}

static void names_differ_and_a_file_is_its_owners_alone(void **state)
{
	char a[512], b[512];
	struct stat st;

	(void)state;
	make_file(a, sizeof(a), 10, 0);
	make_file(b, sizeof(b), 10, 0);
	assert_string_not_equal(a, b);
	assert_int_equal(stat(a, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	unlink(a);
	unlink(b);
}

static void the_newest_files_stay(void **state)
{
	char name[MANY][512], other[512];

	(void)state;
	for (unsigned int i = 0; i < MANY; i++)
		make_file(name[i], sizeof(name[i]), 10, 10 + i);
	snprintf(other, sizeof(other), "%s/shm-0123456789abcdef", folder);
	close(open(other, O_CREAT | O_WRONLY, 0600));
	weft_recorder_folder_prune(folder, 20, UINT64_MAX);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(access(name[i], F_OK), i < 20 ? 0 : -1);
	assert_int_equal(access(other, F_OK), 0);
	weft_recorder_folder_prune(folder, 0, 0);
	assert_int_equal(access(name[0], F_OK), 0); /* the newest one always */
	unlink(name[0]);
}

static void their_bytes_are_bounded(void **state)
{
	char name[4][512];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		make_file(name[i], sizeof(name[i]), 1000, 10 + i);
	weft_recorder_folder_prune(folder, 20, 2999);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(access(name[i], F_OK), i < 2 ? 0 : -1);
	weft_recorder_folder_prune(folder, 20, 1);
	assert_int_equal(access(name[0], F_OK), 0);
	assert_int_equal(access(name[1], F_OK), -1);
	unlink(name[0]);
}

/* Another user may have made the folder, or a link in its place. */
static void a_foreign_folder_is_refused(void **state)
{
	char away[300], why[256];

	(void)state;
	snprintf(away, sizeof(away), "%s.away", folder);
	assert_int_equal(rename(folder, away), 0);
	assert_int_equal(symlink(away, folder), 0);
	assert_int_equal(weft_recorder_folder_find(why, sizeof(why)), -EACCES);
	assert_non_null(strstr(why, "TMPDIR"));
	unlink(folder);
	assert_int_equal(rename(away, folder), 0);
	assert_int_equal(weft_recorder_folder_find(why, sizeof(why)), 0);
	assert_string_equal(why, folder);
	assert_int_equal(weft_recorder_folder_create("/nowhere", why, sizeof(why)), -ENOENT);
}

/* ---- marks ---------------------------------------------------------------------------------- */

#define LEN 90u

static struct rte_mempool *pool;
static const struct weft_lane_conf conf = {.recorder = 128, .recorder_file = ""};

static int make_pool(void **state)
{
	test_eal_init("64");
	pool = rte_pktmbuf_pool_create("recorder", 64, 0, 0, 2048, SOCKET_ID_ANY);
	return pool ? make_tmp(state) : -1;
}

static struct weft_tap *open_tap_with(const struct weft_lane_conf *options)
{
	static struct weft_frame_port port = {
		.name = "7", .device = "net_test", .frame_size = 1514, .mac = {2, 0, 0, 0, 0, 1}};

	return weft_tap_open(&port, &weft_platform_host, 1, options);
}

static struct weft_tap *open_tap(void)
{
	return open_tap_with(&conf);
}

static unsigned int files_left(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	unsigned int n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += strncmp(e->d_name, "recorder-", 9) == 0;
	closedir(dir);
	return n;
}

/* weft-info requests as many as its user likes. */
static void a_file_by_command_takes_the_place_of_the_oldest(void **state)
{
	struct weft_tap *tap = open_tap();
	char name[MANY][512], new[512];

	(void)state;
	for (unsigned int i = 0; i < MANY; i++)
		make_file(name[i], sizeof(name[i]), 10, 10 + i);
	assert_int_equal(weft_capture_messages.record_command("a test", new, sizeof(new)), 0);
	assert_int_equal(files_left(), WEFT_RECORDER_FILES);
	assert_int_equal(access(new, F_OK), 0);
	assert_int_equal(access(name[0], F_OK), 0);
	assert_int_equal(access(name[MANY - 1], F_OK), -1);
	weft_recorder_folder_prune(folder, 0, 0);
	unlink(new);
	weft_tap_close(tap);
}

static bool count_line(enum weft_log_level level, const char *source, const char *text, void *arg)
{
	(void)level;
	(void)source;
	*(unsigned int *)arg += strncmp(text, "WEFT_CAPTURE: ", 14) == 0;
	return true;
}

/* However long the reason is. */
static void lanes_that_fail_for_one_reason_report_it_once(void **state)
{
	struct weft_lane_conf captured = conf;
	unsigned int lines = 0;
	char name[480];

	(void)state;
	captured.capture = name;
	weft_log_set_callback(count_line, &lines);
	for (size_t len = 40; len < sizeof(name); len += 100) {
		memset(name, 'a', len);
		memcpy(name, "/nowhere/", 9);
		name[len] = '\0';
		lines = 0;
		for (unsigned int i = 0; i < 3; i++)
			weft_tap_close(open_tap_with(&captured));
		assert_int_equal(lines, 1);
	}
	weft_log_set_callback(NULL, NULL);
}

static struct rte_mbuf *frame_of(uint8_t content)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	memset(rte_pktmbuf_append(m, LEN), content, LEN);
	return m;
}

static struct dump_file *recorded(void)
{
	char name[512], why[400];
	struct dump_file *f;

	assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
	f = dump_file_open(name, 0, why, sizeof(why));
	assert_non_null(f);
	unlink(name);
	return f;
}

static void send_at(struct weft_tap *tap, struct rte_mbuf *m, uint64_t call)
{
	weft_tap_offer(tap, &m, 1, WEFT_PCAPNG_OUT, call);
	weft_tap_taken(tap, 1);
}

/*
 * A worker loses its core for 3 ms in a progress call. A frame that it received then may have come
 * at the end of that time, and one that it sent may have left then.
 */
static void a_pause_bounds_the_times_of_its_call(void **state)
{
	static const struct {
		uint8_t content, way;
		uint64_t after, within;
	} want[] = {
		{1, DUMP_IN, 0, 0},
		{3, DUMP_OUT, 500000, 3000000},
		{2, DUMP_IN, 3500000, 3000000},
		{4, DUMP_OUT, 3500000, 100000},
	};
	uint64_t begin = weft_platform_host.now(NULL) - 1000000000, first = 0;
	struct rte_mbuf *m[5];
	struct weft_tap *tap = open_tap();
	struct dump_frame frame;
	struct dump_file *f;
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 1; i < 5; i++)
		m[i] = frame_of((uint8_t)i);
	weft_tap_arrived(tap, &m[1], 1, begin);
	weft_tap_arrived(tap, &m[2], 1, begin + 500000);
	send_at(tap, m[3], begin + 500000);
	weft_tap_pause(tap, begin + 500000, 3000000);
	send_at(tap, m[4], begin + 3500000);
	f = recorded();
	while (dump_file_next(f, &frame) && n < 4) {
		first = n ? first : frame.time;
		assert_int_equal(frame.data[0], want[n].content);
		assert_int_equal(frame.way, want[n].way);
		assert_int_equal(frame.time - first, want[n].after);
		assert_int_equal(frame.within, want[n].within);
		n++;
	}
	assert_int_equal(n, 4);
	assert_int_equal(f->host, weft_platform_host.host_id(NULL));
	dump_file_close(f);
	rte_pktmbuf_free_bulk(&m[1], 4);
	weft_tap_close(tap);
}

/* A frame with the same beginning came before, in an earlier call and in this one's answers. */
static void a_damaged_frame_is_marked(void **state)
{
	struct rte_mbuf *m[3] = {frame_of(0x81), frame_of(0x82), frame_of(0x83)};
	uint64_t begin = weft_platform_host.now(NULL) - 1000000000;
	struct weft_tap *tap = open_tap();
	unsigned int damaged = 0, all = 0;
	struct dump_frame frame;
	struct dump_file *f;

	(void)state;
	weft_tap_arrived(tap, m, 3, begin);
	weft_tap_arrived(tap, m, 3, begin + 1000);
	send_at(tap, m[1], begin + 1000);
	weft_tap_damaged(tap, m[1], begin + 1000);
	weft_tap_pause(tap, begin + 1000, 200000);
	weft_tap_arrived(tap, m, 1, begin + 201000);
	f = recorded();
	while (dump_file_next(f, &frame)) {
		all += frame.data[0] >= 0x81;
		damaged += frame.damaged;
		if (frame.damaged) {
			assert_int_equal(frame.data[0], 0x82);
			assert_int_equal(frame.way, DUMP_IN);
			assert_int_equal(frame.within, 200000);
		}
	}
	assert_int_equal(damaged, 1);
	assert_int_equal(all, 8);
	dump_file_close(f);
	rte_pktmbuf_free_bulk(m, 3);
	weft_tap_close(tap);
}

/*
 * Lanes are copied one after another. What one of them receives in the meantime is not in the file,
 * as the file has no frames of that time of the lanes before it.
 */
static void all_lanes_of_a_file_end_at_one_time(void **state)
{
	struct rte_mbuf *m[2] = {frame_of(1), frame_of(2)};
	uint64_t now = weft_platform_host.now(NULL);
	struct weft_tap *tap = open_tap();
	struct dump_frame frame;
	struct dump_file *f;

	(void)state;
	weft_tap_arrived(tap, &m[0], 1, now);
	weft_tap_arrived(tap, &m[1], 1, now + 60000000000);
	f = recorded();
	assert_true(dump_file_next(f, &frame));
	assert_int_equal(frame.data[0], 1);
	assert_false(dump_file_next(f, &frame));
	dump_file_close(f);
	rte_pktmbuf_free_bulk(m, 2);
	weft_tap_close(tap);
}

/* ---- the last minute ------------------------------------------------------------------------ */

#define SLOT (1ull << WEFT_HISTORY_FINE)
#define LONG_SLOT (1ull << WEFT_HISTORY_COARSE)
#define CONN 0x1122334400000007ull

/* The slots of a line in which a frame came, of short or of long slots. */
static const struct history_series *series_of(const struct dump_file *f, bool counts, uint64_t each,
					      uint64_t conn, unsigned int path)
{
	const struct history_series *s;

	for (s = f->history.series; s && s < f->history.series + f->history.num; s++)
		if (s->counts == counts && s->each == each &&
		    (counts ||
		     (s->conn == (uint32_t)conn && s->token == conn >> 32 && s->path == path)))
			return s;
	return NULL;
}

static struct dump_file *read_all(void)
{
	struct dump_file *f = recorded();
	struct dump_frame frame;

	while (dump_file_next(f, &frame))
		;
	assert_string_equal(f->why, "");
	return f;
}

/* Delays of 3 s: the first one is only in long slots. The difference of the clocks wraps. */
static void a_file_has_the_least_delay_of_each_slot(void **state)
{
	/* Slots have whole numbers, so the test begins with one. */
	uint64_t begin = (weft_platform_host.now(NULL) / LONG_SLOT + 1) * LONG_SLOT, i;
	struct weft_tap *tap = open_tap();
	struct weft_history *h = weft_tap_history(tap);
	const struct history_series *s;
	struct dump_file *f;
	uint32_t late;

	(void)state;
	for (i = 0; i < 192; i++) {
		late = i < 160 ? 0 : 5000000;
		weft_history_sample(h, CONN, 3, begin + i * SLOT, 200 + late);
		weft_history_sample(h, CONN, 3, begin + i * SLOT + 1, late - 100);
		weft_history_sample(h, CONN, 3, begin + i * SLOT + 2, 300 + late);
	}
	f = read_all();
	s = series_of(f, false, SLOT, CONN, 3);
	assert_non_null(s);
	assert_int_equal(s->num, WEFT_HISTORY_SLOTS);
	for (i = 1; i < WEFT_HISTORY_SLOTS; i++) {
		assert_true(s->slot[i].known);
		assert_int_equal(s->slot[i].samples, 3);
		assert_int_equal(s->slot[i].delay - s->slot[0].delay, i < 96 ? 0 : 5000000);
	}
	s = series_of(f, false, LONG_SLOT, CONN, 3);
	assert_non_null(s);
	assert_int_equal(s->num, 3);
	assert_int_equal(s->slot[0].samples, 192);
	assert_int_equal(s->slot[1].delay - s->slot[0].delay, 0);
	assert_int_equal(s->slot[2].delay - s->slot[0].delay, 0);
	assert_int_equal(s->slot[2].samples, 3 * 63); /* its last short slot is not over */
	dump_file_close(f);
	weft_tap_close(tap);
}

/* A row of the table is one path's until that pauses for a second. */
static void paths_share_a_table(void **state)
{
	uint64_t begin = weft_platform_host.now(NULL), other = CONN + WEFT_HISTORY_PATHS;
	struct weft_tap *tap = open_tap();
	struct weft_history *h = weft_tap_history(tap);
	struct dump_file *f;

	(void)state;
	weft_history_sample(h, CONN, 0, begin, 10);
	weft_history_sample(h, other, 0, begin + SLOT, 20);
	weft_history_sample(h, CONN, 1, begin + SLOT, 30);
	f = read_all();
	assert_non_null(series_of(f, false, SLOT, CONN, 0));
	assert_non_null(series_of(f, false, SLOT, CONN, 1));
	assert_null(series_of(f, false, SLOT, other, 0));
	dump_file_close(f);
	weft_history_sample(h, other, 0, begin + 2000000000, 20);
	f = read_all();
	assert_null(series_of(f, false, SLOT, CONN, 0));
	assert_non_null(series_of(f, false, SLOT, other, 0));
	dump_file_close(f);
	weft_tap_close(tap);
	/* The next lane takes the recorder, and begins with no counts. */
	tap = open_tap();
	f = read_all();
	assert_int_equal(f->history.num, 0);
	dump_file_close(f);
	weft_tap_close(tap);
}

static void a_file_has_what_was_counted_in_each_slot(void **state)
{
	uint64_t begin = (weft_platform_host.now(NULL) / LONG_SLOT + 1) * LONG_SLOT;
	struct weft_tap *tap = open_tap();
	struct weft_history *h = weft_tap_history(tap);
	uint32_t count[WEFT_HISTORY_COUNTS] = {
		[WEFT_HISTORY_SENT] = UINT32_MAX - 9, [WEFT_HISTORY_CONNS] = 2};
	const struct history_series *s;
	struct dump_file *f;

	(void)state;
	assert_true(weft_history_is_due(h, begin));
	weft_history_note(h, begin, count);
	assert_false(weft_history_is_due(h, begin + SLOT - 1));
	assert_true(weft_history_is_due(h, begin + SLOT));
	count[WEFT_HISTORY_SENT] += 30;
	count[WEFT_HISTORY_TWICE] = 4;
	count[WEFT_HISTORY_LATE] = 400000;
	count[WEFT_HISTORY_STOPPED] = 300000;
	weft_history_note(h, begin + 2 * SLOT, count);
	f = read_all();
	s = series_of(f, true, SLOT, 0, 0);
	assert_non_null(s);
	assert_int_equal(s->num, 3);
	assert_false(s->slot[1].known);
	assert_true(s->slot[2].known);
	assert_int_equal(s->slot[2].count[HISTORY_SENT], 30);
	assert_int_equal(s->slot[2].count[HISTORY_TWICE], 4);
	assert_int_equal(s->slot[2].count[HISTORY_CONNS], 2);
	assert_int_equal(s->slot[2].count[HISTORY_LATE], 400000);
	assert_int_equal(s->slot[2].count[HISTORY_STOPPED], 300000);
	dump_file_close(f);
	weft_tap_close(tap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_bounds_the_times_of_its_call),
		cmocka_unit_test(a_damaged_frame_is_marked),
		cmocka_unit_test(lanes_that_fail_for_one_reason_report_it_once),
		cmocka_unit_test(all_lanes_of_a_file_end_at_one_time),
		cmocka_unit_test(a_file_has_the_least_delay_of_each_slot),
		cmocka_unit_test(paths_share_a_table),
		cmocka_unit_test(a_file_has_what_was_counted_in_each_slot),
		cmocka_unit_test(names_differ_and_a_file_is_its_owners_alone),
		cmocka_unit_test(the_newest_files_stay),
		cmocka_unit_test(a_file_by_command_takes_the_place_of_the_oldest),
		cmocka_unit_test(their_bytes_are_bounded),
		cmocka_unit_test(a_foreign_folder_is_refused),
	};

	return cmocka_run_group_tests(tests, make_pool, remove_tmp);
}
