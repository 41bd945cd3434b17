/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory limits of control groups: files of both versions, in a folder of the test. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host.h"

static char dir[] = "/tmp/weft-memory-XXXXXX";
static char groups[64];

static void write_file(const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int open_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(groups, sizeof(groups), "%s/groups", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static size_t limit_of(const char *text)
{
	write_file("groups", text);
	return weft_memory_group_limit(groups, dir);
}

static void the_least_limit_of_all_groups_above_counts(void **state)
{
	(void)state;
	write_file("job/memory.max", "300000000\n");
	write_file("job/step/memory.max", "max\n");
	write_file("job/step/task/memory.max", "500000000\n");
	assert_int_equal(limit_of("0::/job/step/task\n"), 300000000);
	assert_int_equal(limit_of("0::/job/step\n"), 300000000);
}

static void version_1_has_a_folder_for_each_controller(void **state)
{
	(void)state;
	write_file("memory/job/memory.limit_in_bytes", "200000000\n");
	write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(limit_of("5:cpu,memory:/job\n3:cpuset:/other\n"), 200000000);
	/* Another controller's name that contains the word is not the memory controller. */
	assert_true(limit_of("5:memorylike:/job\n") == SIZE_MAX);
}

static void without_a_limit_there_is_none(void **state)
{
	(void)state;
	write_file("free/memory.max", "max\n");
	assert_true(limit_of("0::/free\n") == SIZE_MAX);
	assert_true(limit_of("0::/absent\n") == SIZE_MAX);
	assert_true(limit_of("") == SIZE_MAX);
	assert_true(limit_of("damaged\n::::\n0:\n") == SIZE_MAX);
	assert_true(weft_memory_group_limit("/absent", dir) == SIZE_MAX);
	assert_true(weft_memory_limit() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_limit_of_all_groups_above_counts),
		cmocka_unit_test(version_1_has_a_folder_for_each_controller),
		cmocka_unit_test(without_a_limit_there_is_none),
	};

	return cmocka_run_group_tests(tests, open_dir, remove_dir);
}
