/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting the EAL, as the library does it, leaves the caller's thread on the cores it had; so do
 * threads that it makes afterwards. And it is not started before a worker wants ports.
 */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/dpdk/port/eal.h"
#include "lane.h"
#include "weft.h"

static cpu_set_t before;

/* The library takes it if it is there. */
extern const struct weft_lane_driver weft_dpdk_driver;
static const struct weft_lane_driver *const volatile driver = &weft_dpdk_driver;

static void *cores_of_thread(void *arg)
{
	sched_getaffinity(0, sizeof(cpu_set_t), arg);
	return NULL;
}

static void config(struct weft_config **conf)
{
	assert_int_equal(weft_config_read(conf), 0);
	assert_int_equal(weft_config_modify(*conf, "EAL_ARGS",
					    "--no-huge --no-pci --no-telemetry --no-shconf "
					    "--iova-mode=va --log-level=lib.eal:error -m 64"),
			 0);
	assert_int_equal(weft_config_modify(*conf, "LANES", ""), 0);
}

/* @behaviour T20 */
static void a_worker_of_the_loopback_starts_no_eal(void **state)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_context_params p = WEFT_INIT(struct weft_context_params);
	struct weft_config *conf;
	struct weft_context *ctx;
	struct weft_worker *w;

	(void)state;
	config(&conf);
	p.config = conf;
	assert_int_equal(weft_context_create(&p, &ctx), 0);
	assert_false(weft_eal_is_up());
	assert_int_equal(weft_worker_create(ctx, &wp, &w), 0);
	assert_false(weft_eal_is_up());
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
	weft_config_release(conf);
}

/* @behaviour T20: the caller's CPU affinity is unchanged; `lanes="self"` starts no EAL */
static void the_callers_thread_keeps_its_cores(void **state)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params);
	struct weft_context_attr attr = WEFT_INIT(struct weft_context_attr);
	struct weft_config *conf;
	struct weft_context *ctx;
	cpu_set_t after, thread;
	pthread_t t;

	(void)state;
	assert_non_null(driver);
	if (CPU_COUNT(&before) < 2)
		skip();
	config(&conf);
	p.config = conf;
	assert_int_equal(weft_context_create(&p, &ctx), 0);
	/* It asks the drivers. */
	assert_int_equal(weft_context_query(ctx, &attr), 0);
	assert_true(weft_eal_is_up());
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	assert_int_equal(pthread_create(&t, NULL, cores_of_thread, &thread), 0);
	pthread_join(t, NULL);
	assert_true(CPU_EQUAL(&before, &thread));
	assert_int_equal(weft_context_destroy(ctx), 0);
	weft_config_release(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_of_the_loopback_starts_no_eal),
		cmocka_unit_test(the_callers_thread_keeps_its_cores),
	};

	sched_getaffinity(0, sizeof(before), &before);
	return cmocka_run_group_tests_name("cores of the EAL", tests, NULL, NULL);
}
