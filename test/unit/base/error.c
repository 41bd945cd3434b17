/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weft.h"
#include "weft_build.h"

static void version_begins_with_the_project_version(void **state)
{
	(void)state;
	assert_int_equal(strncmp(weft_version_string(), WEFT_VERSION, strlen(WEFT_VERSION)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_begins_with_the_project_version),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
