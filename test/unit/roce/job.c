/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of a device: calls that sleep keep no others waiting, and can be taken back before
 * they begin.
 */

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "roce/roce.h"
#include "roce/roce_async.h"

static struct roce_dev dev;
static sem_t asleep, wake;

static void sleeps(struct roce_job *job)
{
	sem_post(&asleep);
	while (sem_wait(&wake) != 0)
		;
	job->err = ETIMEDOUT;
}

static void answers(struct roce_job *job)
{
	job->err = 0;
}

static bool done_soon(const struct roce_job *job)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < 20000 && !roce_job_done(job); i++)
		nanosleep(&ms, NULL);
	return roce_job_done(job);
}

static int begin(void **state)
{
	(void)state;
	dev = (struct roce_dev){.num_threads = 0};
	pthread_mutex_init(&dev.lock, NULL);
	pthread_cond_init(&dev.wake, NULL);
	STAILQ_INIT(&dev.jobs);
	sem_init(&asleep, 0, 0);
	return sem_init(&wake, 0, 0);
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++)
		sem_post(&wake);
	roce_jobs_end(&dev);
	return 0;
}

static void silent_hosts_keep_no_others_waiting(void **state)
{
	struct roce_job silent[ROCE_THREADS - 1] = {0}, live = {.run = answers};

	(void)state;
	for (size_t i = 0; i < ROCE_THREADS - 1; i++) {
		silent[i].run = sleeps;
		assert_int_equal(roce_job_start(&dev, &silent[i]), 0);
	}
	for (size_t i = 0; i < ROCE_THREADS - 1; i++)
		sem_wait(&asleep);
	assert_int_equal(roce_job_start(&dev, &live), 0);
	assert_true(done_soon(&live));
	assert_int_equal(live.err, 0);
	/* All of them before any is woken: which one is woken is not specified. */
	for (size_t i = 0; i < ROCE_THREADS - 1; i++)
		assert_false(roce_job_done(&silent[i]));
	for (size_t i = 0; i < ROCE_THREADS - 1; i++)
		sem_post(&wake);
	for (size_t i = 0; i < ROCE_THREADS - 1; i++) {
		assert_true(done_soon(&silent[i]));
		assert_int_equal(silent[i].err, ETIMEDOUT);
	}
}

static void what_has_not_begun_is_taken_back_at_once(void **state)
{
	struct roce_job silent[ROCE_THREADS] = {0}, late = {.run = answers},
			next = {.run = answers};

	(void)state;
	for (size_t i = 0; i < ROCE_THREADS; i++) {
		silent[i].run = sleeps;
		assert_int_equal(roce_job_start(&dev, &silent[i]), 0);
	}
	for (size_t i = 0; i < ROCE_THREADS; i++)
		sem_wait(&asleep);
	assert_int_equal(roce_job_start(&dev, &late), 0);
	assert_int_equal(roce_job_start(&dev, &next), 0);
	roce_job_cancel(&dev, &late);
	assert_true(roce_job_done(&late));
	assert_int_equal(late.err, ECANCELED);
	/* What runs goes on. */
	roce_job_cancel(&dev, &silent[0]);
	assert_false(roce_job_done(&silent[0]));
	for (size_t i = 0; i < ROCE_THREADS; i++)
		sem_post(&wake);
	assert_true(done_soon(&next));
	assert_int_equal(next.err, 0);
	for (size_t i = 0; i < ROCE_THREADS; i++)
		assert_true(done_soon(&silent[i]));
}

/* A host with many lanes that is silent keeps two threads, not all; the rest of its calls wait. */
static void one_silent_host_keeps_two_threads_at_most(void **state)
{
	struct roce_job silent[3 * ROCE_THREADS] = {0}, live = {.run = answers, .host = {2}};
	int n;

	(void)state;
	for (size_t i = 0; i < 3 * ROCE_THREADS; i++) {
		silent[i].run = sleeps;
		silent[i].host[0] = 1;
		assert_int_equal(roce_job_start(&dev, &silent[i]), 0);
	}
	for (size_t i = 0; i < ROCE_THREADS_HOST; i++)
		sem_wait(&asleep);
	assert_int_equal(roce_job_start(&dev, &live), 0);
	assert_true(done_soon(&live));
	sem_getvalue(&asleep, &n);
	assert_int_equal(n, 0);
	/* All are done in the end, two at a time. */
	for (size_t i = 0; i < 3 * ROCE_THREADS; i++)
		sem_post(&wake);
	for (size_t i = 0; i < 3 * ROCE_THREADS; i++)
		assert_true(done_soon(&silent[i]));
}

static void one_thread_serves_one_call_after_another(void **state)
{
	struct roce_job job = {.run = answers};

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(roce_job_start(&dev, &job), 0);
		assert_true(done_soon(&job));
	}
	assert_int_equal(dev.num_threads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(silent_hosts_keep_no_others_waiting, begin, end),
		cmocka_unit_test_setup_teardown(what_has_not_begun_is_taken_back_at_once, begin,
						end),
		cmocka_unit_test_setup_teardown(one_silent_host_keeps_two_threads_at_most, begin,
						end),
		cmocka_unit_test_setup_teardown(one_thread_serves_one_call_after_another, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
