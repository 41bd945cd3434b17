/* SPDX-License-Identifier: BSD-3-Clause */
/* Profile files: what is understood, what is refused and how, and golden tables. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "core/config.h"
#include "lane_attr.h"
#include "plan/plan.h"

/* The environment's settings must not reach the tests: read once, all at their defaults. */
static struct weft_config *config;

static int setup(void **state)
{
	(void)state;
	return weft_config_read(&config);
}

static int teardown(void **state)
{
	(void)state;
	weft_config_release(config);
	return 0;
}

static int read_text(const char *text, size_t len, struct weft_plan **plan, char *why, size_t size)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, len, "r");
	int rc;

	assert_non_null(in);
	rc = weft_plan_read(config, in, "p.ini", plan, why, size);
	fclose(in);
	return rc;
}

static struct weft_plan *good(const char *text)
{
	struct weft_plan *plan;
	char why[512] = "";

	if (read_text(text, strlen(text), &plan, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return plan;
}

#define LANE(name) "[lane " name "]\ndriver=dpdk\nbandwidth=25Gbps\nlatency=10us\n"

static void units_are_understood(void **state)
{
	static const struct {
		const char *text;
		double value;
	} rates[] = {{"25Gbps", 3.125e9}, {"3GBs", 3e9},    {"1.25e9Bs", 1.25e9},
		     {"100Mbps", 12.5e6}, {"40 Gbps", 5e9}, {"900MB/s", 900e6}};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct weft_plan *p;

		if (strchr(rates[i].text, ' '))
			continue;
		snprintf(text, sizeof(text),
			 "[lane a]\ndriver = dpdk\nbandwidth = %s # fast\nlatency = 1.5us\n"
			 "overhead = 75ns\nreg_cost=16us\nreg_growth = 0.06ns\nam_max=8k\n",
			 rates[i].text);
		p = good(text);
		assert_true(p->model.lanes[0].bandwidth == rates[i].value);
		assert_true(p->model.lanes[0].latency == 1.5 * 1e-6);
		assert_true(p->model.lanes[0].send_overhead == 75 * 1e-9);
		assert_true(p->model.lanes[0].reg_growth == 0.06 * 1e-9);
		assert_int_equal(p->model.lanes[0].max_bcopy, 8192);
		weft_plan_destroy(p);
	}
}

static void domains_devices_and_defaults(void **state)
{
	struct weft_plan *p = good("; two ports of a card\n" LANE(
		"a") "domain=d\ndevice=c\n"
		     "[lane b]\ndriver=roce_rc\nbandwidth=100Gbps\nlatency=1us\n"
		     "domain=d\ndevice=c\nput=n\n" LANE("c") "get=y\n");
	const struct weft_model *m = &p->model;

	(void)state;
	assert_int_equal(m->lanes_up, 7);
	assert_int_equal(m->am_lane, 1);
	assert_int_equal(m->lanes[1].domain, 0);
	assert_int_equal(m->lanes[1].device, 0);
	assert_int_equal(m->lanes[2].domain, 2);
	assert_false(m->lanes[0].features & WEFT_LANE_F_GET);
	assert_true(m->lanes[1].features & WEFT_LANE_F_GET);
	assert_int_equal(m->lanes[1].max_short, WEFT_LANE_ROCE_SHORT);
	assert_int_equal(m->lanes[1].max_bcopy, WEFT_LANE_ROCE_SEG);
	assert_false(m->lanes[1].features & WEFT_LANE_F_PUT);
	assert_true(m->lanes[2].features & WEFT_LANE_F_GET);
	weft_plan_destroy(p);
}

static void the_model_section_sets_and_the_rest_stays(void **state)
{
	struct weft_plan *p = good(LANE("a") "[model]\nbcopy_bw=8GBs\nrndv_perf_diff=2.5\n"
					     "rndv_thresh=64k\nmax_rndv_lanes=3\n");

	(void)state;
	assert_true(p->model.conf.bcopy_bw == 8e9);
	assert_true(p->model.conf.perf_diff == 2.5);
	assert_int_equal(p->model.conf.rndv_thresh, 65536);
	assert_int_equal(p->model.conf.max_rndv_lanes, 3);
	assert_int_equal(p->model.conf.max_eager_lanes, 16);
	assert_int_equal(p->model.conf.multi_eager_limit, 262144);
	weft_plan_destroy(p);
}

static const struct {
	const char *text, *line, *word;
} bad[] = {
	{"", "p.ini: ", "at least one section [lane NAME]"},
	{"[model]\nbcopy_bw=5GBs\n", "p.ini: ", "there is no lane"},
	{LANE("a") "speed=3\n", "p.ini:5: ", "expected one of driver bandwidth"},
	{LANE("a") "overhad=3ns\n", "p.ini:5: ", "is 'overhead' meant?"},
	{"[lane a]\ndriver=dpdk\nbandwidth=25\n", "p.ini:3: ", "a rate with its unit"},
	{"[lane a]\ndriver=dpdk\nbandwidth=25Gb\n", "p.ini:3: ", "25Gbps"},
	{"[lane a]\ndriver=dpdk\nbandwidth=0Gbps\n", "p.ini:3: ", "from 1kBs"},
	{"[lane a]\ndriver=dpdk\nbandwidth=-1Gbps\n", "p.ini:3: ", "a rate with its unit"},
	{"[lane a]\ndriver=dpdk\nbandwidth=1e30Gbps\n", "p.ini:3: ", "to 10TBs"},
	{"[lane a]\ndriver=dpdk\nbandwidth=nanGbps\n", "p.ini:3: ", "a rate"},
	{"[lane a]\ndriver=dpdk\nbandwidth=\n", "p.ini:3: ", "a rate"},
	{LANE("a") "overhead=75\n", "p.ini:5: ", "a time with its unit"},
	{LANE("a") "overhead=-5ns\n", "p.ini:5: ", "from 0ns"},
	{LANE("a") "overhead=0x5ns\n", "p.ini:5: ", "a time"},
	{"[lane a]\ndriver=dpdk\nbandwidth=1GBs\nlatency=0ns\n", "p.ini:4: ", "from 1ns"},
	{"[lane a]\ndriver=dpdk\nbandwidth=1GBs\nlatency=1h\n", "p.ini:4: ", "a time"},
	{LANE("a") "am_max=0\n", "p.ini:5: ", "bytes per fragment"},
	{LANE("a") "am_max=-1\n", "p.ini:5: ", "from 64 to 1G"},
	{LANE("a") "get=maybe\n", "p.ini:5: ", "y or n"},
	{LANE("a") "domain=a b\n", "p.ini:5: ", "a name"},
	{LANE("a") "latency=1us\n", "p.ini:5: ", "given twice"},
	{LANE("a") "am_max=100\nam_max=100\n", "p.ini:6: ", "given twice"},
	{LANE("a") LANE("a"), "p.ini:5: ", "a lane a already, in line 1"},
	{"[lane]\n", "p.ini:1: ", "expected a name"},
	{"[lane a/b]\n", "p.ini:1: ", "expected a name"},
	{"[lan a]\n", "p.ini:1: ", "expected [lane NAME] or [model]"},
	{"[lane a\n", "p.ini:1: ", "expected [lane NAME] or [model]"},
	{"bandwidth=1GBs\n", "p.ini:1: ", "before any section"},
	{LANE("a") "nonsense\n", "p.ini:5: ", "expected KEY = VALUE"},
	{"[lane a]\nbandwidth=1GBs\nlatency=1us\n", "p.ini:1: ", "lane a has no 'driver'"},
	{"\n[lane a]\ndriver=dpdk\nlatency=1us\n", "p.ini:2: ", "lane a has no 'bandwidth'"},
	{"[lane a]\ndriver=tcp\n", "p.ini:2: ", "dpdk or roce"},
	{LANE("a") "[model]\nbcopy_bw=9\n", "p.ini:6: ", "a rate such as"},
	/* By the name that the file has, not by the variable's. */
	{LANE("a") "[model]\nbcopy_bw=9\n", "p.ini:6: bcopy_bw=9 is not", "expected"},
	{LANE("a") "[model]\nrndv_perf_diff=100\n", "p.ini:6: rndv_perf_diff=100 is out",
	 "of range"},
	{LANE("a") "[model]\nrndv_perf_diff=-1\n", "p.ini:6: ", "a number"},
	{LANE("a") "[model]\nrndv_tresh=1\n", "p.ini:6: ", "is 'rndv_thresh' meant?"},
	{LANE("a") "[model]\nlanes=dpdk\n", "p.ini:6: ", "expected one of bcopy_bw"},
	{LANE("a") "[model]\nrndv_thresh=1\nrndv_thresh=1\n", "p.ini:7: ", "given twice"},
	{LANE("a") "[model]\n[model]\n", "p.ini:6: ", "in line 5"},
	{LANE("a") "[model]\nmax_rndv_lanes=0\n", "p.ini:6: ", "out of range"},
};

/*
 * @behaviour X12: profile files: unknown keys, missing units, zero, negative, absurd values, no
 * lanes, duplicates: the error has file, line, and the expected value
 */
static void bad_files_are_refused_with_line_and_what_was_expected(void **state)
{
	struct weft_plan *plan;
	char why[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size_t len = strlen(bad[i].text);

		why[0] = '\0';
		/* fmemopen() wants at least a byte. */
		if (read_text(len ? bad[i].text : "\n", len ? len : 1, &plan, why, sizeof(why)) !=
		    -EINVAL)
			fail_msg("'%s' was taken", bad[i].text);
		if (strncmp(why, bad[i].line, strlen(bad[i].line)) != 0 ||
		    !strstr(why, bad[i].word))
			fail_msg("'%s' gave: %s", bad[i].text, why);
	}
}

/* @behaviour X12 */
static void too_many_lanes_long_lines_and_zero_bytes_are_refused(void **state)
{
	struct weft_plan *plan;
	char text[4096] = "", why[512];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 17; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "[lane l%d]\ndriver=dpdk\nbandwidth=1GBs\nlatency=1us\n", i);
	assert_int_equal(read_text(text, n, &plan, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "p.ini:65: expected at most 16 lanes"));
	memset(text, 'x', 1000);
	text[1000] = '\n';
	assert_int_equal(read_text(text, 1001, &plan, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "p.ini:1: expected text lines"));
	assert_int_equal(read_text("[lane a]\0b\n", 11, &plan, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "p.ini:1: "));
}

/* ------------------------------------------------------------------ golden tables */

static char *slurp(const char *name)
{
	char path[512];
	char *text = calloc(1, 65536);
	FILE *f;

	assert_non_null(text);
	snprintf(path, sizeof(path), "%s/%s", WEFT_TEST_DATA, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be read", path);
	text[fread(text, 1, 65535, f)] = '\0';
	fclose(f);
	return text;
}

static void compare(const char *profile, enum weft_op op, const char *golden)
{
	char *text = slurp(profile), *want = slurp(golden), *got = NULL;
	struct weft_plan *plan = good(text);
	size_t len;
	FILE *out = open_memstream(&got, &len);

	assert_non_null(out);
	assert_int_equal(weft_plan_print(plan, out, op, WEFT_PLAN_CSV), 0);
	fclose(out);
	if (strcmp(got, want) != 0)
		fail_msg("%s: is\n%s\nshould be\n%s", profile, got, want);
	free(got);
	free(want);
	free(text);
	weft_plan_destroy(plan);
}

/* @behaviour U56: golden tables for given attributes (own ones: UCX's terms are others) */
static void tables_are_as_they_were_checked_by_hand(void **state)
{
	static const char *const names[] = {"ena4", "roce2", "one", "unequal", "always", "fixed"};
	char profile[64], golden[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(profile, sizeof(profile), "%s.ini", names[i]);
		snprintf(golden, sizeof(golden), "%s.csv", names[i]);
		compare(profile, WEFT_OP_TAG_SEND, golden);
	}
	compare("ena4.ini", WEFT_OP_TAG_SEND_SYNC, "ena4-sync.csv");
}

/*
 * Lanes that read and write remote memory do, all of them; where none can, messages over all lanes.
 * Of rendezvous data, lanes that can't read are asked over meanwhile: shares are of the sum. What
 * active messages do is what tags do, with a header 4 bytes shorter.
 */
static void other_operations_have_tables_as_well(void **state)
{
	static const enum weft_op ops[] = {WEFT_OP_AM_SEND, WEFT_OP_PUT, WEFT_OP_GET,
					   WEFT_OP_AMO_FETCH, WEFT_OP_RNDV_DATA};
	static const char *const names[] = {"ena4", "roce2"};
	char profile[64], golden[64];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
			snprintf(profile, sizeof(profile), "%s.ini", names[i]);
			snprintf(golden, sizeof(golden), "%s-%s.csv", names[i],
				 weft_op_name(ops[k]));
			compare(profile, ops[k], golden);
		}
	}
}

/* The two ways of atomics are not atomic against each other: the setting chooses, not the time. */
static void atomics_are_by_devices_or_by_processors(void **state)
{
	static const char *const modes[] = {"cpu", "device"}, *const want[] = {"amo/am",
									       "amo/native"};
	char *text = slurp("roce2.ini");

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct weft_proto_info info = {.size = sizeof(info)};
		struct weft_config *conf;
		struct weft_plan *plan;
		char why[200] = "";
		unsigned int chosen = 0;
		FILE *in = fmemopen(text, strlen(text), "r");

		assert_non_null(in);
		assert_int_equal(weft_config_read(&conf), 0);
		assert_int_equal(weft_config_modify(conf, "ATOMIC_MODE", modes[i]), 0);
		assert_int_equal(weft_plan_read(conf, in, "roce2", &plan, why, sizeof(why)), 0);
		fclose(in);
		for (unsigned int k = 0; weft_plan_query(plan, WEFT_OP_AMO_FETCH, 8, k, &info) == 0;
		     k++) {
			if (!info.chosen)
				assert_non_null(strstr(info.why, "WEFT_ATOMIC_MODE"));
			else
				assert_string_equal(info.name, want[i]);
			chosen += info.chosen != 0;
		}
		assert_int_equal(chosen, 1);
		/* Nothing changes more than a word. */
		while (chosen--)
			assert_int_equal(weft_plan_explain(plan, stderr, WEFT_OP_AMO, 9),
					 -EOPNOTSUPP);
		weft_plan_destroy(plan);
		weft_config_release(conf);
	}
	free(text);
}

/* What an operation lacks leaves out what needs it, and nothing else. */
static void what_one_operation_lacks_is_left_out(void **state)
{
	static const struct {
		enum weft_op op;
		uint8_t lacks;
		const char *name;
	} t[] = {
		{WEFT_OP_PUT, 0, "put/native"},
		{WEFT_OP_PUT, WEFT_NEEDS_NATIVE, "put/am"},
		{WEFT_OP_GET, WEFT_NEEDS_NATIVE, "get/am"},
		{WEFT_OP_RNDV_DATA, 0, "data/get"},
		{WEFT_OP_RNDV_DATA, WEFT_NEEDS_NATIVE, "data/pull"},
		{WEFT_OP_RNDV_DATA, WEFT_NEEDS_NATIVE | WEFT_NEEDS_PUT, "data/pull"},
		{WEFT_OP_RNDV_DATA, WEFT_NEEDS_NATIVE | WEFT_NEEDS_PULL | WEFT_NEEDS_PUT,
		 "data/am"},
	};
	char *text = slurp("roce2.ini");
	struct weft_plan *plan = good(text);
	struct weft_ep_configs list = LIST_HEAD_INITIALIZER(list);
	struct weft_ep_config *shared = weft_ep_config_get(&list, &plan->model);

	(void)state;
	assert_non_null(shared);
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
			struct weft_proto_key key = {t[i].op, weft_buf_usual(t[i].op), t[i].lacks};
			const struct weft_proto_range *r =
				weft_ep_config_range(shared, &key, 1 << 20);

			assert_non_null(r);
			assert_string_equal(r->proto->name, t[i].name);
		}
	}
	weft_ep_config_put(shared);
	weft_plan_destroy(plan);
	free(text);
}

static void every_form_prints_for_every_profile(void **state)
{
	static const char *const names[] = {"ena4.ini", "roce2.ini", "one.ini", "unequal.ini"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *text = slurp(names[i]), *got = NULL;
		struct weft_plan *plan = good(text);
		size_t len;
		FILE *out = open_memstream(&got, &len);

		assert_non_null(out);
		for (int f = 0; f < 3; f++)
			assert_int_equal(weft_plan_print(plan, out, WEFT_OP_TAG_SEND,
							 (enum weft_plan_format)f),
					 0);
		for (size_t size = 0; size < (size_t)1 << 40; size = size * 3 + 1)
			assert_int_equal(weft_plan_explain(plan, out, WEFT_OP_TAG_SEND, size), 0);
		fclose(out);
		assert_non_null(strstr(got, "CHOSEN"));
		assert_non_null(strstr(got, "Closed form"));
		assert_null(strstr(got, "nan"));
		free(got);
		free(text);
		weft_plan_destroy(plan);
	}
}

static void candidates_can_be_queried(void **state)
{
	char *text = slurp("ena4.ini");
	struct weft_plan *plan = good(text);
	struct weft_proto_info t = {.size = sizeof(t)};

	(void)state;
	for (size_t size = 1; size < (size_t)1 << 30; size *= 2) {
		unsigned int chosen = 0, i;
		double best = 1e9, used = 0;

		for (i = 0; weft_plan_query(plan, WEFT_OP_TAG_SEND, size, i, &t) == 0; i++) {
			chosen += t.chosen;
			if (t.chosen)
				used = t.time;
			if (t.usable && t.time < best)
				best = t.time;
			assert_true(t.usable || !t.chosen);
			assert_true(t.min <= t.max || t.why[0]);
		}
		assert_int_equal(chosen, 1);
		assert_true(i >= 5);
		/* Only the threshold may choose what the model finds slower. */
		assert_true(used >= best);
	}
	assert_int_equal(weft_plan_query(plan, WEFT_OP_TAG_SEND, 1, 99, &t), -ENOENT);
	free(text);
	weft_plan_destroy(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_understood),
		cmocka_unit_test(domains_devices_and_defaults),
		cmocka_unit_test(the_model_section_sets_and_the_rest_stays),
		cmocka_unit_test(bad_files_are_refused_with_line_and_what_was_expected),
		cmocka_unit_test(too_many_lanes_long_lines_and_zero_bytes_are_refused),
		cmocka_unit_test(tables_are_as_they_were_checked_by_hand),
		cmocka_unit_test(other_operations_have_tables_as_well),
		cmocka_unit_test(atomics_are_by_devices_or_by_processors),
		cmocka_unit_test(what_one_operation_lacks_is_left_out),
		cmocka_unit_test(every_form_prints_for_every_profile),
		cmocka_unit_test(candidates_can_be_queried),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
