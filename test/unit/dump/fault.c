/* SPDX-License-Identifier: BSD-3-Clause */
/* What is named of silent hosts; captures that memory is missing for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture_util.h"
#include "common/cli.h"
#include "dump/clock.h"
#include "dump/fault.h"
#include "dump/host.h"
#include "dump/trace.h"

#define BEGIN 1700000000000000000ull
#define MS 1000000ull

/* ---- silences ------------------------------------------------------------------------------- */

static struct trace_anomaly found[TRACE_ANOMALIES];

static const struct trace_anomaly *fault_of(struct trace *t, enum trace_fault fault)
{
	struct fault_list l = {.a = found};

	fault_hosts(t, &l);
	for (unsigned int i = 0; i < l.num; i++)
		if (found[i].fault == fault)
			return &found[i];
	return NULL;
}

/* A silence of 80 ms, and behind it @p num silences of 2 ms, in 1 s. */
static struct trace *with_silences(unsigned int num)
{
	struct trace *t = trace_make(1);
	struct trace_host *h;
	unsigned int i;

	assert_non_null(t);
	h = &t->host[0];
	*h = (struct trace_host){.first = BEGIN, .last = BEGIN + 1000 * MS, .seen = true};
	h->gap[0] = (struct trace_gap){BEGIN + 10 * MS, BEGIN + 90 * MS, 3};
	for (i = 1; i <= num; i++)
		h->gap[i] = (struct trace_gap){BEGIN + (100 + i * 10) * MS,
					       BEGIN + (102 + i * 10) * MS, 1};
	h->longest = h->gap[0];
	h->num_gaps = num + 1;
	h->silences = num + 1;
	h->silent = (80 + 2 * num) * MS;
	return t;
}

static void a_stop_is_none_of_the_other_silences(void **state)
{
	struct trace *t = with_silences(20);
	const struct trace_anomaly *a;

	(void)state;
	a = fault_of(t, FAULT_STOPPED_PEER);
	assert_non_null(a);
	assert_non_null(strstr(a->text, "silent for 80.000 ms while 3 frames"));
	a = fault_of(t, FAULT_SLOW_RECEIVER);
	assert_non_null(a);
	assert_non_null(strstr(a->text, "4.0 % of the time: 20 silences of up to 2.000 ms"));
	assert_int_equal(a->time, BEGIN + 110 * MS);
	trace_free(t);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Allocations until one fails; 0 = none does. */
static unsigned int until_failure;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return until_failure && --until_failure == 0 ? NULL : __real_malloc(size);
}

/* @param n  the allocation that fails. @return whether there was one */
static bool survey_without(unsigned int n, int *rc)
{
	static struct capture c;
	char path[] = "/tmp/weft-fault-XXXXXX", *names[1] = {path};
	struct trace_clock clock[1];
	struct survey survey = {0};
	int fd = mkstemp(path);
	bool failed;

	assert_true(fd >= 0);
	capture_begin(&c, "dpdk:0");
	assert_int_equal(write(fd, c.data, c.len), c.len);
	close(fd);
	cli_set_last_error("", "");
	until_failure = n;
	*rc = trace_clocks(names, 1, clock, &survey);
	failed = until_failure == 0;
	until_failure = 0;
	survey_free(&survey);
	unlink(path);
	return failed;
}

/* A file can be read without a buffer of its own. */
static void without_memory_there_is_a_message(void **state)
{
	unsigned int n, bad = 0;
	int rc;

	(void)state;
	for (n = 1; survey_without(n, &rc); n++) {
		bad += rc != APP_OK;
		assert_true(rc == APP_OK || strstr(cli_last_error(), "no memory"));
	}
	assert_int_equal(bad, 2);
	assert_int_equal(rc, APP_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_none_of_the_other_silences),
		cmocka_unit_test(without_memory_there_is_a_message),
	};

	return cmocka_run_group_tests_name("dump fault", tests, NULL, NULL);
}
