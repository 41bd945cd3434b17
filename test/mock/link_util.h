/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/link_util.h
 * Before and after each test of lanes whose ends need each other's address: nothing may be left.
 */
#ifndef LINK_UTIL_H
#define LINK_UTIL_H

#include "mock/conn_util.h"
#include "mock/mock_link.h"

static inline int link_setup(void **state)
{
	(void)state;
	mock_reset();
	mlink_reset(1);
	return 0;
}

static inline int link_teardown(void **state)
{
	conn_teardown(state);
	assert_int_equal(mlink_num_ifaces(), 0);
	assert_int_equal(mlink_num_lane_eps(), 0);
	assert_int_equal(mlink_num_messages(), 0);
	assert_int_equal(mlink_num_mems(), 0);
	return 0;
}

#endif /* LINK_UTIL_H */
