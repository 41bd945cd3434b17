/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates of a size, and forcing one of them. */

#include "mock/msg_util.h"
#include "weft_plan.h"

/* Id that the first message of a protocol has on the wire. */
static uint8_t first_id(const char *name)
{
	return strncmp(name, "rndv", 4) == 0      ? WEFT_WIRE_RTS
	       : strcmp(name, "multi-eager") == 0 ? WEFT_WIRE_FRAG
						  : WEFT_WIRE_EAGER;
}

static void send_one(struct pair *p, size_t len, const char *name)
{
	char *out = malloc(len), *in = malloc(len);
	struct op s, r;

	assert_non_null(out);
	assert_non_null(in);
	pattern_fill(9, 0, out, len);
	op_recv(&r, &p->w[1], in, len, 9, FULL);
	op_send(&s, &p->ep[0], out, len, 9);
	assert_true(pair_count(p, 1, first_id(name)) > 0);
	pair_run(p);
	op_end(&s, 0);
	op_end_recv(&r, in, len, 9, 9);
	free(out);
	free(in);
}

static void every_candidate_can_be_forced_and_carries_the_message(void **state)
{
	static const size_t sizes[] = {1, 100, 500, 900, 5000};
	struct weft_proto_info info = {.size = sizeof(info)}, now = {.size = sizeof(now)};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned int n = 0, chosen = 0;

		struct weft_plan *plan;

		assert_int_equal(weft_plan_of_ep(&p.ep[0], &plan), 0);
		for (unsigned int k = 0;
		     weft_plan_query(plan, WEFT_OP_TAG_SEND, sizes[i], k, &info) == 0; k++) {
			if (!info.usable) {
				assert_true(!info.chosen && !(info.time > 0));
				continue;
			}
			assert_true(info.min <= sizes[i] && sizes[i] <= info.max);
			assert_true(info.time > 0);
			chosen += info.chosen != 0;
			assert_int_equal(weft_ep_force_proto(&p.ep[0], info.name), 0);
			assert_int_equal(
				weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, sizes[i], &now), 0);
			assert_string_equal(now.name, info.name);
			send_one(&p, sizes[i], info.name);
			assert_int_equal(weft_ep_force_proto(&p.ep[0], NULL), 0);
			n++;
		}
		weft_plan_destroy(plan);
		assert_true(n >= 2);
		assert_int_equal(chosen, 1);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

static void what_a_forced_protocol_cannot_carry_goes_as_it_would_without(void **state)
{
	struct weft_proto_info info = {.size = sizeof(info)}, before = info;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, NULL);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 1 << 20, &before), 0);
	assert_int_equal(weft_ep_force_proto(&p.ep[0], "eager/bcopy"), 0);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 1 << 20, &info), 0);
	assert_string_equal(info.name, before.name);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 8, &info), 0);
	assert_string_equal(info.name, "eager/bcopy");
	assert_true(info.chosen);
	pair_close(&p);
}

static void forcing_before_the_connection_is_up_lasts_and_bad_names_change_nothing(void **state)
{
	struct weft_proto_info info = {.size = sizeof(info)};
	struct weft_plan *plan;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open_unconnected(&p, 2, NULL);
	assert_int_equal(weft_plan_of_ep(&p.ep[0], &plan), -ENOTCONN);
	assert_int_equal(weft_ep_force_proto(&p.ep[0], "no such"), -ENOENT);
	assert_int_equal(weft_ep_force_proto(&p.ep[0], "eager/bcopy"), 0);
	pair_connect(&p);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 8, &info), 0);
	assert_string_equal(info.name, "eager/bcopy");
	assert_int_equal(weft_ep_force_proto(&p.ep[0], ""), -ENOENT);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 8, &info), 0);
	assert_string_equal(info.name, "eager/bcopy");
	assert_int_equal(weft_plan_of_ep(&p.ep[0], &plan), 0);
	assert_int_equal(weft_plan_query(plan, (enum weft_op)99, 8, 0, &info), -EINVAL);
	weft_plan_destroy(plan);
	pair_close(&p);
}

/* The plan of a new endpoint whose copies have the rate @p bcopy_bw, 0 = this worker's. */
static bool copies_are_measured(double bcopy_bw)
{
	struct weft_plan *plan;
	struct pair p;
	char *text;
	size_t len;
	FILE *f;
	bool is;

	pair_defaults(&p);
	pair_open_unconnected(&p, 2, NULL);
	p.ep[0].bcopy_bw = bcopy_bw;
	pair_connect(&p);
	assert_int_equal(weft_plan_of_ep(&p.ep[0], &plan), 0);
	f = open_memstream(&text, &len);
	assert_non_null(f);
	assert_int_equal(weft_plan_print(plan, f, WEFT_OP_TAG_SEND, WEFT_PLAN_TABLE), 0);
	assert_int_equal(fclose(f), 0);
	is = strstr(text, "(measured here)") != NULL;
	assert_true(is || strstr(text, "or agreed with the peer)"));
	free(text);
	weft_plan_destroy(plan);
	pair_close(&p);
	return is;
}

static void the_rate_of_a_slower_peer_was_not_measured_here(void **state)
{
	(void)state;
	assert_true(copies_are_measured(0));
	assert_false(copies_are_measured(1e6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_candidate_can_be_forced_and_carries_the_message),
		cmocka_unit_test(what_a_forced_protocol_cannot_carry_goes_as_it_would_without),
		cmocka_unit_test(
			forcing_before_the_connection_is_up_lasts_and_bad_names_change_nothing),
		cmocka_unit_test(the_rate_of_a_slower_peer_was_not_measured_here),
	};

	return cmocka_run_group_tests_name("forced protocols", tests, NULL, NULL);
}
