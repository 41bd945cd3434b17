/* SPDX-License-Identifier: BSD-3-Clause */
/* Mock lanes that wake their owner: only while armed, as devices with interrupts do. */

#include <errno.h>
#include <unistd.h>

#include "mock/mock_priv.h"

void mock_on_arm(void (*fn)(struct weft_lane_iface *iface, enum mock_arm_moment moment, void *arg),
		 void *arg)
{
	mock_net.on_arm = fn;
	mock_net.on_arm_arg = arg;
}

unsigned int mock_num_arms(const struct weft_lane_iface *iface)
{
	return ((const struct mock_iface *)iface)->arms;
}

void mock_ring(struct mock_iface *f)
{
	uint64_t one = 1;

	if (f && f->armed && f->wake >= 0)
		assert_int_equal(write(f->wake, &one, sizeof(one)), sizeof(one));
}

int mock_wait_fd(struct weft_lane_iface *base)
{
	return to_iface(base)->wake >= 0 ? to_iface(base)->wake : -ENOTSUP;
}

static void moment(struct mock_iface *f, enum mock_arm_moment m)
{
	if (mock_net.on_arm)
		mock_net.on_arm(&f->base, m, mock_net.on_arm_arg);
}

static bool has_something(const struct mock_iface *f)
{
	const struct mock_lane_ep *lane_ep;

	if (f->held || mock_net.held)
		return false;
	LIST_FOREACH(lane_ep, &f->lane_eps, entry)
		if (lane_ep->up_due || lane_ep->gone_due || lane_ep->down_due)
			return true;
	return !TAILQ_EMPTY(&f->inbox) || !STAILQ_EMPTY(&f->done);
}

int mock_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct mock_iface *f = to_iface(base);
	const struct mock_lane_ep *lane_ep;

	assert_false(f->armed);
	assert_false(f->in_progress);
	assert_true(now_ns == mock_now);
	f->arms++;
	moment(f, MOCK_ARM_BEGINS);
	f->armed = true;
	moment(f, MOCK_ARM_ON);
	if (has_something(f)) {
		mock_disarm(base);
		return -EBUSY;
	}
	LIST_FOREACH(lane_ep, &f->lane_eps, entry)
		if (lane_ep->deadline < *due_ns)
			*due_ns = lane_ep->deadline;
	moment(f, MOCK_ARM_ENDS);
	return 0;
}

void mock_disarm(struct weft_lane_iface *base)
{
	struct mock_iface *f = to_iface(base);
	uint64_t count;

	assert_true(f->armed);
	f->armed = false;
	if (f->wake >= 0 && read(f->wake, &count, sizeof(count)) < 0)
		assert_int_equal(errno, EAGAIN);
}
