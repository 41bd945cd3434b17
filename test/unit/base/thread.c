/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft's own threads: signals, stack, policy and cores are the same for all callers. */

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "base/thread.h"

/* What a thread finds. */
struct facts {
	sigset_t blocked;
	size_t stack;
	int policy;
	cpu_set_t cores;
};

static void *look(void *arg)
{
	struct facts *f = arg;
	pthread_attr_t attr;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, &f->stack);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_BLOCK, NULL, &f->blocked);
	f->policy = sched_getscheduler(0);
	sched_getaffinity(0, sizeof(f->cores), &f->cores);
	return NULL;
}

static struct facts facts(const cpu_set_t *avoid)
{
	struct facts f = {.policy = -1};
	pthread_t t;

	assert_int_equal(weft_thread_start("weft-test", look, &f, avoid, &t), 0);
	pthread_join(t, NULL);
	return f;
}

/* The caller's core, and all the caller may have. */
static int pin(cpu_set_t *all)
{
	cpu_set_t one;
	int core = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(*all), all), 0);
	while (!CPU_ISSET(core, all))
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	return core;
}

static void unpin(const cpu_set_t *all)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*all), all), 0);
}

static void all_signals_are_blocked_and_the_callers_mask_stays(void **state)
{
	sigset_t before, after;
	struct facts f;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	f = facts(NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
		/* The two between are libc's own. */
		if (sig != SIGKILL && sig != SIGSTOP && (sig < 32 || sig >= SIGRTMIN))
			assert_int_equal(sigismember(&f.blocked, sig), 1);
	}
}

static void *wait_for_name(void *arg)
{
	sem_wait(arg);
	return NULL;
}

static void a_thread_has_its_name(void **state)
{
	char name[16] = "";
	pthread_t t;
	sem_t end;

	(void)state;
	sem_init(&end, 0, 0);
	assert_int_equal(weft_thread_start("weft-test", wait_for_name, &end, NULL, &t), 0);
	assert_int_equal(pthread_getname_np(t, name, sizeof(name)), 0);
	assert_string_equal(name, "weft-test");
	sem_post(&end);
	pthread_join(t, NULL);
	sem_destroy(&end);
}

static void *post(void *arg)
{
	sem_post(arg);
	return NULL;
}

static void a_thread_may_be_detached(void **state)
{
	static sem_t ran; /* the thread may use it after the return */

	(void)state;
	sem_init(&ran, 0, 0);
	assert_int_equal(weft_thread_start("weft-test", post, &ran, NULL, NULL), 0);
	assert_int_equal(sem_wait(&ran), 0);
}

static void the_callers_core_is_not_inherited(void **state)
{
	struct facts f;
	cpu_set_t all;

	(void)state;
	pin(&all);
	f = facts(NULL);
	unpin(&all);
	assert_true(CPU_COUNT(&f.cores) >= CPU_COUNT(&all));
}

static void cores_to_avoid_are_left_out_while_others_remain(void **state)
{
	cpu_set_t all, avoid;
	struct facts f;
	int core;

	(void)state;
	core = pin(&all);
	unpin(&all);
	CPU_ZERO(&avoid);
	CPU_SET(core, &avoid);
	f = facts(&avoid);
	if (CPU_COUNT(&all) > 1)
		assert_false(CPU_ISSET(core, &f.cores));
	memset(&avoid, 0xff, sizeof(avoid));
	f = facts(&avoid);
	assert_true(CPU_ISSET(core, &f.cores));
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static long locked_kb(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %ld kB", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

static void locked_memory_grows_by_little(void **state)
{
	long before, after;
	pthread_t t;
	sem_t end;

	(void)state;
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		print_message("mlockall() is refused: RLIMIT_MEMLOCK\n");
		skip();
	}
	sem_init(&end, 0, 0);
	before = locked_kb();
	assert_int_equal(weft_thread_start("weft-test", wait_for_name, &end, NULL, &t), 0);
	sleep_ms(1);
	after = locked_kb();
	sem_post(&end);
	pthread_join(t, NULL);
	munlockall();
	sem_destroy(&end);
	assert_in_range(after - before, 0, 1024);
}

static void *count(void *arg)
{
	*(volatile unsigned int *)arg = 1;
	return NULL;
}

/* The caller keeps its core: it does not sleep while it waits for the thread. */
static unsigned int runs_beside(unsigned int ms)
{
	volatile unsigned int ran = 0;
	struct timespec begin, now;
	pthread_t t;

	assert_int_equal(weft_thread_start("weft-test", count, (void *)&ran, NULL, &t), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!ran &&
		 (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	pthread_join(t, NULL);
	return ran;
}

/* @behaviour X23 */
static void a_real_time_caller_on_one_core_does_not_starve_it(void **state)
{
	const struct sched_param prio = {.sched_priority = 10};
	struct facts f;
	cpu_set_t all;
	int core, rc;

	(void)state;
	core = pin(&all);
	rc = CPU_COUNT(&all) > 1 ? sched_setscheduler(0, SCHED_FIFO, &prio) : -1;
	if (rc) {
		unpin(&all);
		print_message("two cores and CAP_SYS_NICE are needed\n");
		skip();
	}
	f = facts(NULL);
	/* The kernel gives other policies a part of each second, but not of the first 900 ms. */
	rc = (int)runs_beside(800);
	unpin(&all);
	assert_int_equal(f.policy, SCHED_OTHER);
	assert_false(CPU_ISSET(core, &f.cores));
	assert_int_equal(rc, 1);
}

static void the_stack_is_small(void **state)
{
	(void)state;
	assert_in_range(facts(NULL).stack, 1, 2 * WEFT_THREAD_STACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_signals_are_blocked_and_the_callers_mask_stays),
		cmocka_unit_test(a_thread_has_its_name),
		cmocka_unit_test(a_thread_may_be_detached),
		cmocka_unit_test(the_callers_core_is_not_inherited),
		cmocka_unit_test(cores_to_avoid_are_left_out_while_others_remain),
		cmocka_unit_test(locked_memory_grows_by_little),
		cmocka_unit_test(a_real_time_caller_on_one_core_does_not_starve_it),
		cmocka_unit_test(the_stack_is_small),
	};

	return cmocka_run_group_tests_name("threads of Weft's own", tests, NULL, NULL);
}
