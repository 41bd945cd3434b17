/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How lanes end when a program closes them.
 */

#include <errno.h>

#include "roce_host.h"

static bool closing_notifies_the_peer(void)
{
	struct op op = {.comp.done = op_done}, late = {.comp.done = op_done};

	CHECK(open_pair(""));
	CHECK(send_one(&a, 0, 100));
	CHECK(a.lane_ep->ops->ep_flush(a.lane_ep, &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(send_one(&b, 0, 500));
	CHECK(b.lane_ep->ops->ep_flush(b.lane_ep, &late.comp) == 0);
	/* a has not taken b's message when it closes. */
	a.lane_ep->ops->ep_destroy(a.lane_ep);
	a.lane_ep = NULL;
	WITHIN(10, b.gone == 1);
	CHECK(late.done == 1 && late.status == -ECONNRESET && a.got == 0);
	CHECK(send_one(&b, 1, 100) == false);
	b.lane_ep->ops->ep_destroy(b.lane_ep);
	CHECK(a.down == 0 && b.down == 0);
	return true;
}

static bool what_was_sent_before_closing_arrives(void)
{
	uint32_t i;

	CHECK(open_pair(""));
	for (i = 0; i < 40; i++)
		CHECK(send_one(&a, i, 3000));
	a.lane_ep->ops->ep_destroy(a.lane_ep);
	WITHIN(10, b.gone == 1);
	CHECK(b.got == 40 && b.wrong == 0);
	return true;
}

/* @behaviour Y22 */
static bool an_attempt_that_the_peer_gave_up_ends_soon_and_nothing_is_sent_twice(void)
{
	uint8_t dev[WEFT_LANE_ADDR_MAX], ep[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops;
	uint64_t retries, exceeded;
	double begin;

	conf.keepalive_ns = 20000000000ull;
	CHECK(open_host(&a, &weft_roce_driver, name_a, ""));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	retries = kernel_counter(name_a, "completer_retry_err");
	exceeded = kernel_counter(name_a, "retry_exceeded_err");
	ops = a.iface->ops;
	CHECK(ops->ep_create(a.iface, &a, &a.lane_ep) == 0);
	CHECK(ops->ep_create(b.iface, &b, &b.lane_ep) == 0);
	ops->get_address(b.iface, dev);
	ops->ep_get_address(b.lane_ep, ep);
	CHECK(ops->ep_connect_ep(a.lane_ep, dev, a.iface->attr.dev_addr_len, ep,
				 a.iface->attr.ep_addr_len) == 0);
	ops->ep_destroy(b.lane_ep);
	WITHIN(10, LIST_EMPTY(&roce_iface_of(b.iface)->dying));
	WITHIN(10, a.up == 1);
	/* No request has been sent to it yet. */
	begin = now_s();
	WITHIN(10, now_s() - begin > 0.05);
	CHECK(counter(&a, "tx.counts") == 0);
	ops->ep_destroy(a.lane_ep);
	a.lane_ep = NULL;
	WITHIN(10, LIST_EMPTY(&roce_iface_of(a.iface)->dying));
	/*
	 * Each time that the machine stops for a quarter of a second in here makes one retry; six
	 * were the rule.
	 */
	CHECK(kernel_counter(name_a, "completer_retry_err") - retries <= 3);
	CHECK(kernel_counter(name_a, "retry_exceeded_err") == exceeded);
	return true;
}

static bool a_lane_can_be_destroyed_in_any_state(void)
{
	uint8_t dev[WEFT_LANE_ADDR_MAX], ep[WEFT_LANE_ADDR_MAX];
	struct roce_iface *r;
	struct weft_lane_ep *lane_ep;

	CHECK(open_pair(""));
	r = roce_iface_of(a.iface);
	CHECK(a.iface->ops->ep_create(a.iface, NULL, &lane_ep) == 0);
	lane_ep->ops->ep_destroy(lane_ep);
	CHECK(a.iface->ops->ep_create(a.iface, NULL, &lane_ep) == 0);
	b.iface->ops->get_address(b.iface, dev);
	b.lane_ep->ops->ep_get_address(b.lane_ep, ep);
	CHECK(lane_ep->ops->ep_connect_ep(lane_ep, dev, b.iface->attr.dev_addr_len, ep,
					  b.iface->attr.ep_addr_len) == 0);
	lane_ep->ops->ep_destroy(lane_ep);
	WITHIN(10, LIST_EMPTY(&r->dying));
	/* Damaged addresses. */
	CHECK(a.iface->ops->ep_create(a.iface, NULL, &lane_ep) == 0);
	CHECK(lane_ep->ops->ep_connect_ep(lane_ep, dev, 31, ep, b.iface->attr.ep_addr_len) ==
	      -EINVAL);
	ep[1] = 0;
	CHECK(lane_ep->ops->ep_connect_ep(lane_ep, dev, b.iface->attr.dev_addr_len, ep,
					  b.iface->attr.ep_addr_len) == -EINVAL);
	lane_ep->ops->ep_destroy(lane_ep);
	CHECK(send_one(&a, 0, 100));
	WITHIN(10, b.got == 1);
	return true;
}

const struct behaviour roce_closing[] = {
	BEHAVIOUR(closing_notifies_the_peer),
	BEHAVIOUR(what_was_sent_before_closing_arrives),
	BEHAVIOUR(an_attempt_that_the_peer_gave_up_ends_soon_and_nothing_is_sent_twice),
	BEHAVIOUR(a_lane_can_be_destroyed_in_any_state),
	{NULL, NULL},
};
