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

static int no_resources(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	(void)add;
	(void)arg;
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

static struct weft_lane_driver good = DRIVER("extra_of_others"),
			       same_name = DRIVER("extra_of_others");

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
	struct weft_worker_params params =
		WEFT_INIT(struct weft_worker_params, .lanes = "extra_of_others:7");
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

#define RESOURCES 300

/* The texts of a resource end with the callback. */
static int many_resources(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	struct weft_lane_resource r = {0};
	char name[128], why[64];
	int rc = 0;

	(void)conf;
	for (int i = 0; i < RESOURCES && rc == 0; i++) {
		snprintf(name, sizeof(name), "resource-%0100d", i);
		snprintf(why, sizeof(why), "resource %d is broken", i);
		r.name = name;
		r.why = i == 1 ? why : NULL;
		rc = add(arg, &r);
		memset(name, 'x', sizeof(name) - 1);
		memset(why, 'x', sizeof(why) - 1);
	}
	return rc;
}

static int found_and_refused;

static int refuses_in_order(const struct weft_lane_open *params, struct weft_lane_iface **iface,
			    char *why, size_t why_len)
{
	char name[128];

	(void)iface;
	found_and_refused += found_and_refused == 1; /* the broken one is not opened */
	snprintf(name, sizeof(name), "resource-%0100d", found_and_refused++);
	assert_string_equal(params->resource, name);
	snprintf(why, why_len, "not today");
	return -ENODEV;
}

static struct weft_lane_driver many = {
	.name = "many", .abi = WEFT_LANE_ABI, .query = many_resources, .open = refuses_in_order};

static void resources_of_any_number_and_length_are_copied(void **state)
{
	struct weft_worker_params params = WEFT_INIT(struct weft_worker_params, .lanes = "many:*");
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params);
	struct weft_context_attr attr = WEFT_INIT(struct weft_context_attr);
	struct weft_config *config;
	struct weft_context *ctx;
	struct weft_worker *w;

	(void)state;
	assert_int_equal(weft_lane_driver_add(&many), 0);
	assert_int_equal(weft_config_read(&config), 0);
	assert_int_equal(weft_config_modify(config, "LANES", "many:*"), 0);
	assert_int_equal(weft_config_modify(config, "LOG_FILE", "/dev/null"), 0);
	cp.config = config;
	assert_int_equal(weft_context_create(&cp, &ctx), 0);
	assert_int_equal(weft_context_query(ctx, &attr), 0);
	assert_int_equal(attr.num_resources, RESOURCES - 1);
	assert_int_equal(weft_worker_create(ctx, &params, &w), -ENODEV);
	assert_int_equal(found_and_refused, RESOURCES);
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
		/* Two are there already. */
		assert_int_equal(weft_lane_driver_add(&d[i]),
				 i + 2 < WEFT_LANE_DRIVERS_MAX ? 0 : -ENOSPC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(it_is_opened_by_name),
		cmocka_unit_test(resources_of_any_number_and_length_are_copied),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
