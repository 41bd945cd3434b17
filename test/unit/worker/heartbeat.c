/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WEFT_HEARTBEAT: the lanes of a program that computes send heartbeats, those of one that polls do
 * not; and nothing of it races with what the owner does. The test command runs this under
 * ThreadSanitizer too.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/config.h"
#include "context.h"
#include "core/worker.h"
#include "lane.h"
#include "self/self_lane.h"
#include "weft.h"

#define EVERY_MS 10

static const struct weft_lane_driver *const drivers[] = {&weft_self_driver, NULL};
static struct weft_lane_ops ops; /* the loopback's, and a beat */
static atomic_uint beats;
static unsigned int inside; /* of the owner's calls and of beats: never both */

static void count(struct weft_lane_iface *iface)
{
	(void)iface;
	inside++;
	atomic_fetch_add(&beats, 1);
	inside--;
}

static void sleep_ms(unsigned int ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

	nanosleep(&t, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct weft_context *context(const char *heartbeat)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "heartbeat");
	struct weft_config *config;
	struct weft_context *ctx;

	assert_int_equal(weft_config_read(&config), 0);
	assert_int_equal(weft_config_modify(config, "HEARTBEAT", heartbeat), 0);
	p.config = config;
	assert_int_equal(weft_context_create_in(&p, NULL, drivers, &ctx), 0);
	weft_config_release(config);
	return ctx;
}

static struct weft_worker *worker(struct weft_context *ctx)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_worker *w;

	assert_int_equal(weft_worker_create(ctx, &p, &w), 0);
	weft_worker_lock(w);
	if (!ops.beat) { /* once: the thread reads it */
		ops = *w->ifaces[0]->ops;
		ops.beat = count;
	}
	w->ifaces[0]->ops = &ops;
	weft_worker_unlock(w);
	return w;
}

/* At most 5 s. */
static bool beats_reach(unsigned int n)
{
	for (unsigned int i = 0; i < 500 && atomic_load(&beats) < n; i++)
		sleep_ms(EVERY_MS);
	return atomic_load(&beats) >= n;
}

/*
 * @behaviour X23: a process that computes sends heartbeats, if this is enabled; otherwise there is
 * no thread and no lock
 * @behaviour R44
 */
static void a_computing_process_lives(void **state)
{
	struct weft_context *ctx = context("10ms");
	struct weft_worker *w = worker(ctx), *other;
	bool polled = false;
	uint64_t end;

	(void)state;
	atomic_store(&beats, 0);
	assert_true(beats_reach(5));
	/*
	 * A worker that polls needs none: but for the times that the machine takes the processor
	 * away. A busy machine does that for most of some rounds.
	 */
	for (int round = 0; round < 50 && !polled; round++) {
		atomic_store(&beats, 0);
		for (end = now_ms() + 200; now_ms() < end;) {
			weft_worker_progress(w);
			weft_worker_lock(w);
			assert_int_equal(inside, 0);
			weft_worker_unlock(w);
		}
		polled = atomic_load(&beats) < 10;
	}
	assert_true(polled);
	/* Several workers, and none at all in between. */
	other = worker(ctx);
	weft_worker_destroy(w);
	atomic_store(&beats, 0);
	assert_true(beats_reach(3));
	weft_worker_destroy(other);
	atomic_store(&beats, 0);
	sleep_ms(5 * EVERY_MS);
	assert_int_equal(atomic_load(&beats), 0);
	w = worker(ctx);
	assert_true(beats_reach(3));
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour X23 */
static void without_it_there_is_no_thread_and_no_lock(void **state)
{
	struct weft_context *ctx = context("off");
	struct weft_worker *w = worker(ctx);

	(void)state;
	atomic_store(&beats, 0);
	sleep_ms(5 * EVERY_MS);
	assert_int_equal(atomic_load(&beats), 0);
	assert_false(w->multi);
	assert_false(w->beats);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_computing_process_lives),
		cmocka_unit_test(without_it_there_is_no_thread_and_no_lock),
	};

	return cmocka_run_group_tests_name("heartbeat", tests, NULL, NULL);
}
