/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Many connections, at once and one after the other.
 */

#include <stdio.h>

#include "roce_footprint.h"
#include "roce_host.h"

static struct weft_lane_ep *many[300][2];

/* @p n pairs at the same time, and a message over each. */
static bool connect_many(unsigned int n)
{
	uint8_t dev[2][WEFT_LANE_ADDR_MAX], ep[2][WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops = a.iface->ops;
	size_t dev_len = a.iface->attr.dev_addr_len, ep_len = a.iface->attr.ep_addr_len;
	unsigned int i, up_a = a.up + n, up_b = b.up + n;
	uint64_t got = b.got + n;
	uint8_t buf[64];

	ops->get_address(a.iface, dev[0]);
	ops->get_address(b.iface, dev[1]);
	for (i = 0; i < n; i++) {
		CHECK(ops->ep_create(a.iface, NULL, &many[i][0]) == 0);
		CHECK(ops->ep_create(b.iface, NULL, &many[i][1]) == 0);
		ops->ep_get_address(many[i][0], ep[0]);
		ops->ep_get_address(many[i][1], ep[1]);
		CHECK(ops->ep_connect_ep(many[i][0], dev[1], dev_len, ep[1], ep_len) == 0);
		CHECK(ops->ep_connect_ep(many[i][1], dev[0], dev_len, ep[0], ep_len) == 0);
	}
	WITHIN(30, a.up == up_a && b.up == up_b);
	a.ordered = b.ordered = false;
	for (i = 0; i < n; i++) {
		fill(buf, i, 64);
		CHECK(ops->am_short(many[i][0], 5, buf, 4, buf + 4, 60) == 0);
	}
	WITHIN(20, b.got == got);
	return true;
}

/* @behaviour U85 */
static bool many_peers_connect_at_once_and_none_is_refused(void)
{
	CHECK(open_host(&a, &weft_roce_driver, name_a, ""));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	CHECK(connect_many(300));
	CHECK(b.wrong == 0);
	return true;
}

/* 50 connections, made and destroyed at both ends. */
static bool connect_and_destroy(void)
{
	uint64_t got = b.got + 50;
	unsigned int k;

	CHECK(connect_many(50));
	CHECK(b.got == got && b.wrong == 0);
	for (k = 0; k < 50; k++) {
		many[k][0]->ops->ep_destroy(many[k][0]);
		many[k][1]->ops->ep_destroy(many[k][1]);
	}
	WITHIN(10, LIST_EMPTY(&roce_iface_of(a.iface)->dying) &&
			   LIST_EMPTY(&roce_iface_of(b.iface)->dying));
	return true;
}

/* Pages of the table of queue pairs by number. */
static unsigned int num_pages(const struct roce_iface *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < sizeof(r->by_qpn) / sizeof(r->by_qpn[0]); i++)
		n += r->by_qpn[i] != NULL;
	return n;
}

static bool open_both(void)
{
	CHECK(open_host(&a, &weft_roce_driver, name_a, ""));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	return true;
}

/*
 * Pools are filled by the first connections and stay until the interface is closed; nothing may
 * grow after them.
 */
/* @behaviour U85 */
static bool a_thousand_connections_leave_nothing_behind(void)
{
	uint64_t exceeded = kernel_counter(name_a, "retry_exceeded_err") +
			    kernel_counter(name_b, "retry_exceeded_err");
	struct footprint_slack slack = {0};
	struct footprint closed, open, now;
	struct roce_iface *ra, *rb;
	unsigned int i;

	/* What libraries allocate once. */
	CHECK(open_both() && connect_and_destroy());
	close_host(&a);
	close_host(&b);
	CHECK(footprint_take(&closed));
	CHECK(open_both() && connect_and_destroy());
	CHECK(footprint_take(&open));
	for (i = 0; i < 20; i++)
		CHECK(connect_and_destroy());
	CHECK(footprint_take(&now));
	/* Less than a pointer for each. */
	slack.heap = 8000 + FOOTPRINT_THREADS_HEAP;
	slack.mapped = (512 << 10) + FOOTPRINT_THREADS_MAPPED;
	CHECK(footprint_same("interfaces open", &open, &now, slack));
	ra = roce_iface_of(a.iface);
	rb = roce_iface_of(b.iface);
	CHECK(ra->promised == 0 && rb->promised == 0);
	CHECK(ra->ring_pool.in_use == 0 && ra->tx_pool.in_use == 0);
	CHECK(ra->tx_room == rb->tx_room);
	CHECK(num_pages(ra) == 0 && num_pages(rb) == 0);
	/* Neither end left before the other one's final message was acknowledged. */
	CHECK(kernel_counter(name_a, "retry_exceeded_err") +
		      kernel_counter(name_b, "retry_exceeded_err") ==
	      exceeded);
	CHECK(a.down == 0 && b.down == 0);
	close_host(&a);
	close_host(&b);
	CHECK(footprint_take(&now));
	CHECK(footprint_same("interfaces closed", &closed, &now, slack));
	return true;
}

const struct behaviour roce_many[] = {
	BEHAVIOUR(many_peers_connect_at_once_and_none_is_refused),
	BEHAVIOUR(a_thousand_connections_leave_nothing_behind),
	{NULL, NULL},
};
