/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "weft.h"

static void version_begins_with_the_project_version(void **state)
{
	char text[16];

	(void)state;
	assert_int_equal(weft_version(), WEFT_VERSION);
	snprintf(text, sizeof(text), "%d.%d.%d ", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
		 WEFT_VERSION_PATCH);
	assert_int_equal(strncmp(weft_version_string(), text, strlen(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_begins_with_the_project_version),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
