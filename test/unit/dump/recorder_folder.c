/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of the flight recorder's files: no file in it stops the next, and few stay. */

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

#include "capture/recorder.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_differ_and_a_file_is_its_owners_alone),
		cmocka_unit_test(the_newest_files_stay),
		cmocka_unit_test(their_bytes_are_bounded),
		cmocka_unit_test(a_foreign_folder_is_refused),
	};

	return cmocka_run_group_tests(tests, make_tmp, remove_tmp);
}
