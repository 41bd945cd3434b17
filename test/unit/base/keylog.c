/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a key log into a pipe: a file whose writes block until the test reads. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define LINE 100 /* bytes of a line of mode auth with its newline */
#define LIMIT_S 30

static const uint8_t secret[32] = {0xab, 1};

static void open_pipe(int fd[2])
{
	assert_int_equal(pipe(fd), 0);
	assert_true(fcntl(fd[1], F_SETPIPE_SZ, 4096) >= 4096);
}

/* Read a line and compare. @return its connection */
static unsigned int read_line(int fd)
{
	static const char rest[] =
		" 89abcdef "
		"ab01000000000000000000000000000000000000000000000000000000000000"
		"\n";
	char line[LINE + 1] = "";
	unsigned int conn = 0;
	size_t have = 0;
	ssize_t n;

	while (have < LINE) {
		n = read(fd, line + have, LINE - have);
		assert_true(n > 0);
		have += (size_t)n;
	}
	assert_int_equal(sscanf(line, "WEFT_SEAL_1 auth %8x", &conn), 1);
	assert_string_equal(line + strlen("WEFT_SEAL_1 auth ") + 8, rest);
	return conn;
}

/* A caller never waits for a file that is not written. What exceeds the bound is counted. */
static void a_blocked_file_blocks_no_caller(void **state)
{
	unsigned int taken = 0, rejected = 0, seen[2 * WEFT_KEYLOG_LINES + 100] = {0};
	int fd[2], rc;

	(void)state;
	open_pipe(fd);
	alarm(LIMIT_S); /* a caller that waits would wait for ever */
	for (unsigned int i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		rc = weft_keylog_write(fd[1], 1, i, 0x89abcdef, secret);
		if (rc == 0)
			seen[i] = 1;
		else
			assert_int_equal(rc, -ENOBUFS);
		taken += rc == 0;
		rejected += rc != 0;
	}
	assert_true(rejected > 0);
	assert_true(taken >= WEFT_KEYLOG_LINES);
	/* The lines have a descriptor of their own. */
	close(fd[1]);
	assert_true(weft_keylog_flush() >= rejected);
	for (unsigned int i = 0; i < taken; i++) {
		unsigned int conn = read_line(fd[0]);

		assert_true(conn < sizeof(seen) / sizeof(seen[0]));
		assert_int_equal(seen[conn], 1);
		seen[conn] = 2;
	}
	assert_int_equal(weft_keylog_flush(), 0);
	assert_int_equal(read(fd[0], seen, 1), 0);
	close(fd[0]);
	alarm(0);
}

static void a_full_disk_is_counted(void **state)
{
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(weft_keylog_write(fd, 2, 1, 2, secret), 0);
	assert_int_equal(weft_keylog_write(fd, 2, 3, 4, secret), 0);
	close(fd);
	assert_int_equal(weft_keylog_flush(), 2);
	assert_int_equal(weft_keylog_flush(), 0);
	assert_int_equal(weft_keylog_write(-1, 2, 1, 2, secret), -EBADF);
	assert_int_equal(weft_keylog_flush(), 1);
}

/* A child neither writes nor waits for the lines of its parent. */
static void a_child_begins_anew(void **state)
{
	int fd[2], own[2], status;
	pid_t child;

	(void)state;
	open_pipe(fd);
	open_pipe(own);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(weft_keylog_write(fd[1], 1, i, 0x89abcdef, secret), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(LIMIT_S);
		weft_keylog_write(own[1], 1, 1000, 0x89abcdef, secret);
		_exit(weft_keylog_flush() == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read_line(own[0]), 1000);
	for (unsigned int i = 0; i < 100; i++)
		assert_true(read_line(fd[0]) < 100);
	assert_int_equal(weft_keylog_flush(), 0);
	for (unsigned int i = 0; i < 2; i++) {
		close(fd[i]);
		close(own[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blocked_file_blocks_no_caller),
		cmocka_unit_test(a_full_disk_is_counted),
		cmocka_unit_test(a_child_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
