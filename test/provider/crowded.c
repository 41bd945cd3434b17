/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More ranks than cores: one that polls and finds nothing leaves the core to others. Its calls of
 * sched_yield() are counted, since times depend on what else runs on the machine.
 */

#include "world.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 100, LENGTH = 200000 };

static _Thread_local unsigned int yields; /* libfabric's own threads may yield, too */

/* In place of libc's, for the provider too. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

static void open_with(struct world *w, const char *ranks, const char *yield, bool counters)
{
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", ranks, 1);
	setenv("FI_WEFT_YIELD", yield, 1);
	world_open(w, &(struct world_params){.counters = counters});
	unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	unsetenv("FI_WEFT_YIELD");
}

/* @return calls of sched_yield() in this many calls that find nothing */
static unsigned int yields_in(struct world *w, unsigned int calls)
{
	struct fi_cq_tagged_entry entry;

	yields = 0;
	for (unsigned int i = 0; i < calls; i++) {
		if (w->cq)
			assert_int_equal(fi_cq_read(w->cq, &entry, 1), -FI_EAGAIN);
		else
			assert_int_equal(fi_cntr_read(w->received), 0);
	}
	return yields;
}

static void calls_that_find_nothing_are_counted(void **state)
{
	static const struct {
		const char *ranks, *yield;
		unsigned int least, most; /* yields in 1000 calls */
	} cases[] = {
		{"100000", "auto", 49, 51}, {"1", "auto", 0, 0}, {"100000", "never", 0, 0},
		{"1", "10", 99, 101},       {"", "auto", 0, 0},  {"100000", "1000000", 0, 0},
	};
	struct world w;

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		open_with(&w, cases[i / 2].ranks, cases[i / 2].yield, i % 2);
		assert_in_range(yields_in(&w, 1000), cases[i / 2].least, cases[i / 2].most);
		world_close(&w);
	}
}

/* Both sides on the first core that they may use. */
static void share_a_core(cpu_set_t *before)
{
	cpu_set_t one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
	while (!CPU_ISSET(cpu, before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static uint64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Messages that the receiver fetches: each end waits for the other several times a round. */
static void ranks_that_share_a_core_leave_it_to_each_other(void **state)
{
	static uint8_t out[LENGTH], in[LENGTH];
	cpu_set_t before;
	struct world w;
	uint64_t us;

	(void)state;
	open_with(&w, "100000", "auto", false);
	share_a_core(&before);
	yields = 0;
	us = cpu_us();
	for (unsigned int i = 0; i < ROUNDS; i++) {
		world_fill(out, LENGTH, i);
		if (world_side == 0)
			world_send(&w, out, LENGTH, 1);
		world_recv(&w, in, LENGTH, 1);
		world_compare(in, LENGTH, i);
		if (world_side == 1)
			world_send(&w, out, LENGTH, 1);
	}
	us = cpu_us() - us;
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	print_message("a round trip: %u.%u yields, %llu us of processor time\n", yields / ROUNDS,
		      yields * 10 / ROUNDS % 10, (unsigned long long)us / ROUNDS);
	/* Where others of the machine want the core, the end of a time slice replaces some. */
	assert_true(yields > ROUNDS / 10);
	world_close(&w);
}

static void a_value_that_is_wrong_is_refused(void **state)
{
	static const char *const wrong[] = {"sometimes", "0", "-1", "1000001", "3x", ""};
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *hints, *info;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("FI_WEFT_YIELD", wrong[i], 1);
		hints = world_hints(&(struct world_params){0});
		CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
		CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
		assert_int_equal(fi_domain(fabric, info, &domain, NULL), -FI_EINVAL);
		fi_close(&fabric->fid);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	unsetenv("FI_WEFT_YIELD");
	world_barrier();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_find_nothing_are_counted),
		cmocka_unit_test(ranks_that_share_a_core_leave_it_to_each_other),
		cmocka_unit_test(a_value_that_is_wrong_is_refused),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("more ranks than cores", tests, NULL, NULL));
}
