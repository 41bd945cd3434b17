/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mutate.py compiles this file into the library of its copy. By the environment:
 *
 *	WEFT_MUTANT=N          mutation N is on
 *	WEFT_MUTANT_CASES=A,B  only these cases of a cmocka program run
 *	WEFT_MUTANT_COVER=FILE record what each case reaches, and its processor time
 *	WEFT_MUTANT_ROW=N      this process is a child of case N - 1
 *
 * FILE is mapped, so it keeps what a killed program and its children have reached.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "weft_mutant.h"

/* mutate_run.py knows the layout. Row 0 is what runs outside of cases. */
#define ROWS 1024
struct cover {
	uint32_t cases;
	float cpu[ROWS];
	unsigned char seen[ROWS][WEFT_MUTANTS];
};

typedef int (*run_group)(const char *, const struct CMUnitTest *, size_t, CMFixtureFunction,
			 CMFixtureFunction);

static unsigned char none[WEFT_MUTANTS];
int weft_mutant = -1;
unsigned char *weft_mutant_seen = none;

static struct cover *cover;
static char *wanted;                   /* "3,17", or NULL: all */
static const struct CMUnitTest **real; /* the program's structs of the cases that run */
static unsigned int *rows;
static unsigned int running;
static double began;

__attribute__((constructor(101))) static void weft_mutant_init(void)
{
	const char *number = getenv("WEFT_MUTANT"), *file = getenv("WEFT_MUTANT_COVER");
	const char *row = getenv("WEFT_MUTANT_ROW"), *cases = getenv("WEFT_MUTANT_CASES");
	int fd;

	if (number)
		weft_mutant = atoi(number);
	if (cases) {
		wanted = strdup(cases);
		unsetenv("WEFT_MUTANT_CASES"); /* children run all of theirs */
	}
	if (!file)
		return;
	fd = open(file, O_RDWR | O_CLOEXEC);
	cover = mmap(NULL, sizeof(*cover), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cover == MAP_FAILED)
		abort();
	close(fd);
	weft_mutant_seen = cover->seen[row ? atoi(row) % ROWS : 0];
}

static double cpu(void)
{
	struct rusage own, children;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec +
			children.ru_stime.tv_sec) +
	       (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + children.ru_utime.tv_usec +
			children.ru_stime.tv_usec) /
		       1e6;
}

static int before_case(void **state)
{
	char text[16];

	running++;
	if (cover) {
		snprintf(text, sizeof(text), "%u", rows[running]);
		setenv("WEFT_MUTANT_ROW", text, 1);
		weft_mutant_seen = cover->seen[rows[running]];
		began = cpu();
	}
	return real[running]->setup_func ? real[running]->setup_func(state) : 0;
}

static int after_case(void **state)
{
	int ret = real[running]->teardown_func ? real[running]->teardown_func(state) : 0;

	if (cover) {
		cover->cpu[rows[running]] = (float)(cpu() - began);
		weft_mutant_seen = cover->seen[0];
		unsetenv("WEFT_MUTANT_ROW");
	}
	return ret;
}

static int is_wanted(unsigned int number)
{
	const char *at = wanted;

	while (at && *at) {
		char *end;

		if (strtoul(at, &end, 10) == number)
			return 1;
		at = *end ? end + 1 : end;
	}
	return !wanted;
}

/* Replaces cmocka's function. The cases of a program's groups are numbered consecutively. */
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t n,
			    CMFixtureFunction setup, CMFixtureFunction teardown)
{
	static unsigned int first;
	run_group run = (run_group)dlsym(RTLD_NEXT, "_cmocka_run_group_tests");
	struct CMUnitTest *own = calloc(n + 1, sizeof(*own));
	unsigned int count = 0;
	int ret;

	if (first + n >= ROWS)
		abort();
	real = calloc(n + 1, sizeof(*real));
	rows = calloc(n + 1, sizeof(*rows));
	running = 0;
	for (size_t i = 0; i < n; i++) {
		if (!is_wanted(first + (unsigned int)i))
			continue;
		own[count] = tests[i];
		own[count].setup_func = before_case;
		own[count++].teardown_func = after_case;
		real[count] = &tests[i];
		rows[count] = first + (unsigned int)i + 1;
	}
	first += (unsigned int)n;
	if (cover)
		cover->cases = first;
	ret = count ? run(name, own, count, setup, teardown) : 0;
	free(own);
	free(real);
	free(rows);
	return ret;
}
