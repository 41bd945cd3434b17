/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cc_path.h
 * A path of the delay algorithm without a network: rounds of one sample, whose delay the test sets.
 */
#ifndef UNIT_CC_PATH_H
#define UNIT_CC_PATH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cc.h"
#include "engine/cc_delay.h"
#include "lane.h"

#define FRAME 1536u
#define RTT 100000u
#define TARGET 150000u /* 1.5 round trips of a small frame */
#define WINDOW (1u << 24)
#define SECOND 1000000000ull

struct path {
	struct weft_cc cc;
	struct weft_cc_ack a;
};

/* A round with one sample, @p late ns beyond the least round trip of @p rtt ns. */
static inline void ack_late(struct path *p, uint32_t rtt, uint32_t late, uint32_t acked)
{
	p->a.rtt = rtt + late;
	p->a.now += p->a.rtt;
	p->a.acked = acked;
	p->cc.ops->on_ack(&p->cc, &p->a);
}

static inline uint32_t after_round(struct path *p, uint32_t late, uint32_t acked)
{
	ack_late(p, RTT, late, acked);
	return p->cc.window;
}

/* In mode delay, which a mark begins without a queue. Growth is that of a settled path. */
static inline void path_open(struct path *p, uint32_t rtt, uint32_t window)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1u << 28, .rtt = rtt};

	weft_cc_init(&p->cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	p->a = (struct weft_cc_ack){.now = SECOND, .size = FRAME, .limited = true};
	assert_string_equal(weft_cc_mode_name(&p->cc), "start");
	ack_late(p, rtt, 0, 0);
	p->a.marked = 1;
	ack_late(p, rtt, 0, FRAME);
	p->a.marked = 0;
	assert_string_equal(weft_cc_mode_name(&p->cc), "delay");
	assert_int_equal(p->cc.window, 15000);
	weft_cc_apply(&p->cc, window);
}

static inline void lose(struct path *p, uint32_t bytes)
{
	p->cc.ops->on_loss(&p->cc, bytes, p->a.now);
}

#endif /* UNIT_CC_PATH_H */
