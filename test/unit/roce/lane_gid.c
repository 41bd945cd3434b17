/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE lanes and their addresses: entries of the GID table that move, vanish and come back, and
 * versions that do not fit.
 */

#include "fake/roce_world.h"

#include <errno.h>
#include <string.h>

static const uint8_t own[4] = {10, 0, 0, 1}, other[4] = {10, 0, 0, 9};
static struct rw_iface *f, *g;
static struct rw_end a, b;

static void open_pair(const char *options)
{
	f = rw_open(&weft_roce_driver, "mlx5_0", options, 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "", 0);
}

static void message_arrives(void)
{
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(1000000);
	assert_int_equal(b.received, a.sent);
	assert_int_equal(a.downs + b.downs, 0);
}

static void an_address_that_moves_in_the_table_is_used_where_it_is_now(void **state)
{
	open_pair("");
	rw_connect(f, g, &a, &b);
	message_arrives();
	/* The network device went down and up again: the entry is another one now. */
	fake_gid_clear(&fake.device[0], 0);
	fake_gid_set(&fake.device[0], 1, other, true);
	fake_gid_set(&fake.device[0], 4, own, false);
	fake_gid_set(&fake.device[0], 5, own, true);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(20000000);
	/* Its queue pairs name the old entry. */
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.status, -EADDRNOTAVAIL);
	assert_non_null(strstr(a.text, "GID 5, was 1"));
	rw_destroy(&a);
	rw_connect(f, g, &a, &b);
	message_arrives();
}

static void an_address_that_is_gone_refuses_new_lanes_until_it_is_back(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct rw_end more = {0};
	char why[320] = "";

	open_pair("");
	rw_connect(f, g, &a, &b);
	g->lane->ops->get_address(g->lane, addr);
	fake_gid_clear(&fake.device[0], 0);
	fake_gid_clear(&fake.device[0], 1);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(20000000);
	assert_int_equal(a.downs, 1);
	assert_false(f->lane->ops->link_up(f->lane));
	assert_int_equal(f->lane->ops->ep_create(f->lane, &more, &more.lane_ep), -EADDRNOTAVAIL);
	assert_int_equal(f->lane->ops->is_reachable(f->lane, addr, f->lane->attr.dev_addr_len, why,
						    sizeof(why)),
			 -EADDRNOTAVAIL);
	assert_non_null(strstr(why, "10.0.0.1 (GID 1) was removed"));
	fake_gid_set(&fake.device[0], 3, own, true);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(20000000);
	assert_true(f->lane->ops->link_up(f->lane));
	rw_destroy(&a);
	rw_connect(f, g, &a, &b);
	message_arrives();
}

static void the_same_address_as_roce_v1_is_not_the_same(void **state)
{
	open_pair("");
	rw_connect(f, g, &a, &b);
	fake_gid_set(&fake.device[0], 1, other, true); /* entry 0 still has it, as v1 */
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(20000000);
	assert_int_equal(a.downs, 1);
	assert_non_null(strstr(a.text, "was removed"));
}

static void another_address_that_comes_or_goes_disturbs_no_lane(void **state)
{
	open_pair("");
	rw_connect(f, g, &a, &b);
	fake_gid_set(&fake.device[0], 6, other, true);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(20000000);
	fake_gid_clear(&fake.device[0], 6);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(20000000);
	message_arrives();
}

static void lanes_of_different_roce_versions_are_refused_with_the_reason(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	char why[320] = "";

	open_pair("gid=0"); /* asked for v1 */
	f->lane->ops->get_address(f->lane, addr);
	assert_true(g->lane->ops->is_reachable(g->lane, addr, g->lane->attr.dev_addr_len, why,
					       sizeof(why)) < 0);
	assert_non_null(strstr(why, "the peer uses RoCE v1 and this lane v2"));
	assert_non_null(strstr(why, "gid=N"));
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(an_address_that_moves_in_the_table_is_used_where_it_is_now),
		T(an_address_that_is_gone_refuses_new_lanes_until_it_is_back),
		T(the_same_address_as_roce_v1_is_not_the_same),
		T(another_address_that_comes_or_goes_disturbs_no_lane),
		T(lanes_of_different_roce_versions_are_refused_with_the_reason),
	};

	return cmocka_run_group_tests_name("RoCE lanes and their addresses", tests, NULL, NULL);
}
