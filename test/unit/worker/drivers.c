/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers that are not part of Weft: weft_lane_driver_add(), by installed headers alone. */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "lane.h"

static int queries;

static int no_resources(const struct weft_lane_conf *conf, struct weft_lane_resource **list)
{
	(void)conf;
	*list = NULL;
	queries++;
	return 0;
}

static int refuses(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		   size_t why_len)
{
	(void)iface;
	snprintf(why, why_len, "%s is not there", params->resource);
	return -ENODEV;
}

#define DRIVER(n)                                                                          \
	{                                                                                  \
		.name = (n), .abi = WEFT_LANE_ABI, .query = no_resources, .open = refuses, \
	}

static struct weft_lane_driver good = DRIVER("extra"), same_name = DRIVER("extra");

static void what_is_wrong_is_refused(void **state)
{
	struct weft_lane_driver d = DRIVER("other");

	(void)state;
	assert_int_equal(weft_lane_driver_add(NULL), -EINVAL);
	d.abi = WEFT_LANE_ABI + 1;
	assert_int_equal(weft_lane_driver_add(&d), -EPROTONOSUPPORT);
	d.abi = WEFT_LANE_ABI;
	d.open = NULL;
	assert_int_equal(weft_lane_driver_add(&d), -EINVAL);
	d.open = refuses;
	d.query = NULL;
	assert_int_equal(weft_lane_driver_add(&d), -EINVAL);
	d.query = no_resources;
	d.name = "";
	assert_int_equal(weft_lane_driver_add(&d), -EINVAL);
	d.name = "a:b";
	assert_int_equal(weft_lane_driver_add(&d), -EINVAL);
	d.name = "sixteencharacter";
	assert_int_equal(weft_lane_driver_add(&d), -EINVAL);
	d.name = "roce_rc"; /* no program could open it by that name */
	assert_int_equal(weft_lane_driver_add(&d), -EINVAL);
	d.name = "self";
	assert_int_equal(weft_lane_driver_add(&d), -EEXIST);
}

/* WEFT_LANES finds it, and contexts that were there before do not know it. */
static void it_is_opened_by_name(void **state)
{
	struct weft_context *before, *ctx;
	struct weft_config *config;
	struct weft_worker_params params = WEFT_INIT(struct weft_worker_params, .lanes = "extra:7");
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params);
	struct weft_worker *w;

	(void)state;
	setenv("WEFT_LANES", "self", 1);
	assert_int_equal(weft_config_read(&config), 0);
	cp.config = config;
	assert_int_equal(weft_context_create(&cp, &before), 0);
	assert_int_equal(weft_lane_driver_add(&good), 0);
	assert_int_equal(weft_lane_driver_add(&good), 0);
	assert_int_equal(weft_lane_driver_add(&same_name), -EEXIST);
	assert_int_equal(weft_context_create(&cp, &ctx), 0);
	assert_int_equal(weft_worker_create(before, &params, &w), -EINVAL);
	assert_int_equal(queries, 0);
	assert_int_equal(weft_worker_create(ctx, &params, &w), -ENODEV);
	assert_int_equal(queries, 1);
	assert_int_equal(weft_context_destroy(before), 0);
	assert_int_equal(weft_context_destroy(ctx), 0);
	weft_config_release(config);
}

static void there_is_a_limit(void **state)
{
	static struct weft_lane_driver d[WEFT_LANE_DRIVERS_MAX];
	static char name[WEFT_LANE_DRIVERS_MAX][8];
	unsigned int i;

	(void)state;
	for (i = 0; i < WEFT_LANE_DRIVERS_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "d%u", i);
		d[i] = (struct weft_lane_driver)DRIVER(name[i]);
		/* One is there already. */
		assert_int_equal(weft_lane_driver_add(&d[i]),
				 i + 1 < WEFT_LANE_DRIVERS_MAX ? 0 : -ENOSPC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(it_is_opened_by_name),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
