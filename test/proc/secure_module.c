/* SPDX-License-Identifier: BSD-3-Clause */

/* A module that a user would like to run with the rights of a program. */

#include <stdio.h>
#include <unistd.h>

static __attribute__((constructor)) void report(void)
{
	fprintf(stderr, "module runs as user %d\n", (int)geteuid());
}
