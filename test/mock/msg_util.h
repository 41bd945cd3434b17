/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/msg_util.h What the tests of messages share: operations on a pair, and its end.
 */
#ifndef WEFT_TEST_MSG_UTIL_H
#define WEFT_TEST_MSG_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op.h"
#include "mock/pair.h"

/** Nothing is left behind on either side. */
static inline void pair_check_empty(struct pair *p)
{
	for (int s = 0; s < 2; s++) {
		const struct weft_msg_worker *mw = p->w[s].msg;

		assert_int_equal(mw->reqs.in_use, 0);
		assert_int_equal(mw->tag->messages.num, 0);
		assert_int_equal(mw->tag->messages.bytes, 0);
		assert_int_equal(mw->tag->match.num_recvs, 0);
		assert_int_equal(p->ep[s].msg->tag->open.num, 0);
		assert_int_equal(mw->count.overlap + mw->count.mismatch + mw->count.bad_ref +
					 mw->count.old_seq,
				 0);
	}
}

#endif /* WEFT_TEST_MSG_UTIL_H */
