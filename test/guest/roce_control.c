/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The control channel: roce_ud.
 */

#include <errno.h>
#include <string.h>

#include "roce_host.h"

static bool open_ud(void)
{
	return open_host(&a, &weft_roce_ud_driver, name_a, "") &&
	       open_host(&b, &weft_roce_ud_driver, name_b, "");
}

static bool ud_connect(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	unsigned int up = a.up;

	b.iface->ops->get_address(b.iface, addr);
	CHECK(a.iface->ops->ep_connect(a.iface, addr, a.iface->attr.dev_addr_len, &a, &a.lane_ep) ==
	      0);
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 1, "x", 1, NULL, 0) == -EAGAIN);
	WITHIN(10, a.up == up + 1);
	return true;
}

static bool the_control_channel_carries_messages_both_ways(void)
{
	char text[64];

	CHECK(open_ud());
	CHECK(ud_connect());
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 1, "hello", 5, " world", 6) == 0);
	WITHIN(10, b.got == 1);
	CHECK(b.up == 1 && b.passive && b.passive->passive && b.last_len == 11);
	CHECK(memcmp(b.last, "hello world", 11) == 0);
	CHECK(b.passive->ops->am_short(b.passive, 1, "answer", 6, NULL, 0) == 0);
	WITHIN(10, a.got == 1);
	CHECK(a.last_len == 6 && !a.passive);
	b.passive->ops->ep_print(b.passive, text, sizeof(text));
	CHECK(strstr(text, "10.0.0.1") != NULL);
	/* The longest. */
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 1, "", 0, b.last, a.lane_ep->max_msg) == 0);
	WITHIN(10, b.got == 2);
	CHECK(b.last_len == a.lane_ep->max_msg);
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 1, "", 0, b.last, a.lane_ep->max_msg + 1) ==
	      -EMSGSIZE);
	a.lane_ep->ops->ep_destroy(a.lane_ep);
	WITHIN(10, b.gone == 1);
	b.passive->ops->ep_destroy(b.passive);
	return true;
}

static bool strangers_and_garbage_on_the_control_channel_are_dropped_and_counted(void)
{
	struct weft_roce_addr addr;
	unsigned int i;
	uint64_t before;

	CHECK(open_ud());
	/* A wrong key: the device drops it. */
	b.iface->ops->get_address(b.iface, &addr);
	addr.qkey = weft_put32(weft_get32(addr.qkey) ^ 1);
	CHECK(a.iface->ops->ep_connect(a.iface, &addr, sizeof(addr), &a, &a.lane_ep) == 0);
	WITHIN(10, a.up == 1);
	for (i = 0; i < 5; i++)
		CHECK(a.lane_ep->ops->am_short(a.lane_ep, 1, "hello", 5, NULL, 0) == 0);
	turn_for(1);
	CHECK(b.got == 0 && b.up == 0);
	/* The right key, but an id that does not exist. */
	CHECK(ud_connect());
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 99, "hello", 5, NULL, 0) == 0);
	before = counter(&b, "drop.malformed");
	WITHIN(10,
	       counter(&b, "drop.malformed") == before + 1 || counter(&b, "drop.malformed") == 1);
	CHECK(b.got == 0 && b.up == 0);
	return true;
}

static bool no_host_at_the_address_is_an_error_after_the_kernels_timeout(void)
{
	struct weft_roce_addr addr;
	double begin = now_s();
	unsigned int turns = 0;

	CHECK(open_ud());
	b.iface->ops->get_address(b.iface, &addr);
	addr.gid[15] = 77;
	CHECK(a.iface->ops->ep_connect(a.iface, &addr, sizeof(addr), &a, &a.lane_ep) == 0);
	while (a.down == 0 && now_s() < begin + 20) {
		turn_host(&a);
		turns++;
	}
	CHECK(a.down == 1 && a.status == -EHOSTUNREACH);
	CHECK(strstr(a.text, "10.0.0.77") != NULL && strstr(a.text, "address resolution"));
	/* No caller slept meanwhile: the kernel takes a second and more. */
	CHECK(turns > 50);
	return true;
}

const struct behaviour roce_control[] = {
	BEHAVIOUR(the_control_channel_carries_messages_both_ways),
	BEHAVIOUR(strangers_and_garbage_on_the_control_channel_are_dropped_and_counted),
	BEHAVIOUR(no_host_at_the_address_is_an_error_after_the_kernels_timeout),
	{NULL, NULL},
};
