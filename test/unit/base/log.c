/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's file: its readers, and its owner. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define OTHER_UID 12345

static char dir[] = "/tmp/weft-test-log-XXXXXX";
static char path[64], other[64];

static int setup(void **state)
{
	(void)state;
	umask(0);
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weft_log_setup(WEFT_LOG_WARN, NULL);
	return rmdir(dir);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return st.st_mode & 0777;
}

static void make(const char *name, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, mode);

	assert_true(fd >= 0);
	close(fd);
}

/* @behaviour S18: only its owner can read the log */
static void a_new_file_is_its_owners_alone(void **state)
{
	(void)state;
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, NULL), 0);
	unlink(path);
	/* Its earlier creator has chosen. */
	make(path, 0640);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	assert_int_equal(mode_of(path), 0640);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, NULL), 0);
	unlink(path);
}

/* @behaviour S18 */
static void links_of_our_own_are_followed(void **state)
{
	(void)state;
	make(other, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, "/dev/stderr"), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, "/dev/null"), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, NULL), 0);
	unlink(path);
	unlink(other);
}

static void a_pipe_without_a_reader_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(symlink(path, other), 0);
	alarm(10); /* it would wait */
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), -ENXIO);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, other), -ENXIO);
	alarm(0);
	unlink(other);
	unlink(path);
}

/* @return bytes */
static size_t drain(int reader, char *text, size_t size)
{
	size_t n = 0;
	ssize_t k;

	while ((k = read(reader, text + n, size - 1 - n)) > 0)
		n += (size_t)k;
	text[n] = '\0';
	return n;
}

static void a_reader_that_stops_or_ends_does_not_hold_the_process(void **state)
{
	static char text[1 << 20];
	char filler[800];
	int reader;

	(void)state;
	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	alarm(20); /* it would wait */
	for (int i = 0; i < 1000; i++)
		weft_warn("%d %s", i, filler);
	assert_true(drain(reader, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, ": 0 x"));
	assert_null(strstr(text, ": 999 x"));
	weft_warn("the reader is back");
	drain(reader, text, sizeof(text));
	assert_non_null(strstr(text, " lines of the log were lost"));
	assert_non_null(strstr(text, "the reader is back\n"));
	/* It would end the process by SIGPIPE. */
	close(reader);
	weft_warn("without a reader");
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	drain(reader, text, sizeof(text));
	assert_non_null(strstr(text, "without a reader"));
	assert_null(strstr(text, "were lost"));
	alarm(0);
	close(reader);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, NULL), 0);
	unlink(path);
}

/* As when the program that reads stderr is stopped. Each table goes in whole lines. */
static void a_reader_of_stderr_that_stops_does_not_hold_the_process(void **state)
{
	static char text[1 << 20], block[9000];
	int fds[2], saved = dup(STDERR_FILENO);
	size_t n;

	(void)state;
	memset(block, 'y', sizeof(block));
	for (size_t i = 99; i < sizeof(block); i += 100)
		block[i] = '\n';
	assert_true(saved >= 0);
	assert_int_equal(pipe(fds), 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	alarm(20); /* it would wait */
	for (int i = 0; i < 100; i++)
		weft_log_block(block, sizeof(block));
	weft_warn("nothing has been read");
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	n = drain(fds[0], text, sizeof(text));
	weft_warn("the reader is back");
	drain(fds[0], text + n, sizeof(text) - n);
	alarm(0);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[0]);
	close(fds[1]);
	assert_true(n >= sizeof(block));
	assert_true(n % 100 == 0);
	assert_null(strstr(text, "nothing has been read"));
	assert_non_null(strstr(text + n, " lines of the log were lost"));
	assert_non_null(strstr(text + n, "the reader is back\n"));
}

static void a_disk_is_refused(void **state)
{
	int fd = open("/dev/loop0", O_WRONLY);

	(void)state;
	if (fd < 0)
		skip();
	close(fd);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, "/dev/loop0"), -EINVAL);
	assert_int_equal(symlink("/dev/loop0", path), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), -EINVAL);
	unlink(path);
}

/* @behaviour S18 */
static void files_of_another_user_are_refused(void **state)
{
	int reader;

	(void)state;
	if (geteuid() != 0)
		skip();
	make(path, 0666);
	assert_int_equal(chown(path, OTHER_UID, OTHER_UID), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), -EPERM);
	unlink(path);
	/* A pipe: its reader would have the log. */
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, OTHER_UID, OTHER_UID), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), -EPERM);
	close(reader);
	unlink(path);
	make(other, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(lchown(path, OTHER_UID, OTHER_UID), 0);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), -EPERM);
	unlink(path);
	unlink(other);
}

struct captured {
	unsigned int lines;
	enum weft_log_level level;
	char source[64], text[64];
	bool handled;
};

static bool on_line(enum weft_log_level level, const char *source, const char *text, void *arg)
{
	struct captured *h = arg;

	h->lines++;
	h->level = level;
	snprintf(h->source, sizeof(h->source), "%s", source);
	snprintf(h->text, sizeof(h->text), "%s", text);
	return h->handled;
}

static off_t size_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return st.st_size;
}

static void a_callback_gets_each_line_and_may_keep_it(void **state)
{
	struct captured h = {.handled = true};

	(void)state;
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	weft_log_set_callback(on_line, &h);
	weft_log_write(WEFT_LOG_ERROR, "[worker 1\x1b]", "port %d\n is gone", 7);
	assert_int_equal(h.lines, 1);
	assert_int_equal(h.level, WEFT_LOG_ERROR);
	assert_string_equal(h.source, "[worker 1?]");
	assert_string_equal(h.text, "port 7? is gone");
	weft_info("not of the level that is written");
	assert_int_equal(h.lines, 1);
	assert_int_equal(size_of(path), 0);

	h.handled = false;
	weft_warn("slow");
	assert_int_equal(h.lines, 2);
	assert_string_equal(h.source, "");
	assert_true(size_of(path) > 4);

	weft_log_set_callback(NULL, NULL);
	weft_warn("slow");
	assert_int_equal(h.lines, 2);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, NULL), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_file_is_its_owners_alone),
		cmocka_unit_test(a_callback_gets_each_line_and_may_keep_it),
		cmocka_unit_test(links_of_our_own_are_followed),
		cmocka_unit_test(a_pipe_without_a_reader_is_an_error),
		cmocka_unit_test(a_reader_that_stops_or_ends_does_not_hold_the_process),
		cmocka_unit_test(a_reader_of_stderr_that_stops_does_not_hold_the_process),
		cmocka_unit_test(a_disk_is_refused),
		cmocka_unit_test(files_of_another_user_are_refused),
	};

	return cmocka_run_group_tests_name("log", tests, setup, teardown);
}
