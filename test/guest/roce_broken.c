/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peers, links and addresses that go away.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "roce_host.h"

/* Network device below a RoCE device. */
static const char *netdev(const char *device)
{
	static char buf[64];
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", device);
	buf[0] = '\0';
	f = fopen(path, "r");
	if (f && fscanf(f, "%63s", buf) != 1)
		buf[0] = '\0';
	if (f)
		fclose(f);
	return buf;
}

static bool a_peer_that_vanishes_is_noticed_in_bounded_time(void)
{
	struct op op = {.comp.done = op_done};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	double begin;

	CHECK(open_host(&a, &weft_roce_driver, name_a, "timeout=14,retry=3"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	CHECK(connect_pair());
	/* Its queue pair answers no more. */
	CHECK(ibv_modify_qp(roce_lane_ep_of(b.lane_ep)->chans[0]->qp, &attr, IBV_QP_STATE) == 0);
	CHECK(send_one(&a, 0, 100));
	CHECK(a.lane_ep->ops->ep_flush(a.lane_ep, &op.comp) == 0);
	begin = now_s();
	WITHIN(20, a.down == 1 && op.done == 1);
	CHECK(now_s() - begin < 10);
	CHECK(a.status == -ETIMEDOUT && op.status == -ETIMEDOUT);
	CHECK(strstr(a.text, "gave no answer for") != NULL && strstr(a.text, "retry"));
	return true;
}

static bool an_idle_peer_that_vanished_is_noticed_by_keepalive(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	conf.keepalive_ns = 500000000;
	CHECK(open_host(&a, &weft_roce_driver, name_a, "timeout=14,retry=3"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	CHECK(connect_pair());
	CHECK(ibv_modify_qp(roce_lane_ep_of(b.lane_ep)->chans[0]->qp, &attr, IBV_QP_STATE) == 0);
	WITHIN(20, a.down == 1);
	return true;
}

static bool an_address_that_is_removed_ends_lanes_with_a_sentence(void)
{
	char dev[64];

	CHECK(open_pair("timeout=14,retry=3"));
	snprintf(dev, sizeof(dev), "%s", netdev(name_a));
	CHECK(shell("ip addr del 10.0.0.1/24 dev %s", dev) == 0);
	WITHIN(20, a.down == 1);
	CHECK(shell("ip addr add 10.0.0.1/24 dev %s", dev) == 0);
	CHECK(strstr(a.text, "10.0.0.1") != NULL && strstr(a.text, "removed"));
	sleep(1); /* the kernel fills its table in its own time */
	return true;
}

static bool own_link_going_down_ends_lanes_with_a_sentence(void)
{
	struct op op = {.comp.done = op_done};
	char dev[64];
	bool ok;

	CHECK(open_pair("timeout=14,retry=3"));
	snprintf(dev, sizeof(dev), "%s", netdev(name_a));
	CHECK(send_one(&a, 0, 100));
	WITHIN(10, b.got == 1);
	CHECK(shell("ip link set %s down", dev) == 0);
	send_one(&a, 1, 5000);
	a.lane_ep->ops->ep_flush(a.lane_ep, &op.comp);
	WITHIN(20, a.down == 1 && b.down == 1);
	ok = op.done == 1 && op.status < 0;
	CHECK(shell("ip link set %s up", dev) == 0);
	CHECK(ok);
	CHECK(strstr(a.text, name_a) != NULL && strstr(b.text, name_b));
	return true;
}

static bool an_address_that_vanished_before_connecting_ends_the_attempt_with_a_sentence(void)
{
	uint8_t dev[WEFT_LANE_ADDR_MAX], ep[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops;
	char own[64];
	bool ok;

	CHECK(open_host(&a, &weft_roce_driver, name_a, "timeout=14,retry=3"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	snprintf(own, sizeof(own), "%s", netdev(name_a));
	ops = a.iface->ops;
	CHECK(ops->ep_create(a.iface, &a, &a.lane_ep) == 0 &&
	      ops->ep_create(b.iface, &b, &b.lane_ep) == 0);
	ops->get_address(b.iface, dev);
	ops->ep_get_address(b.lane_ep, ep);
	CHECK(shell("ip addr del 10.0.0.1/24 dev %s", own) == 0);
	ok = ops->ep_connect_ep(a.lane_ep, dev, a.iface->attr.dev_addr_len, ep,
				a.iface->attr.ep_addr_len) == 0;
	for (double end = now_s() + 20; ok && a.down == 0 && now_s() < end;)
		turn();
	CHECK(shell("ip addr add 10.0.0.1/24 dev %s", own) == 0);
	sleep(1); /* the kernel fills its table in its own time */
	CHECK(ok && a.up == 0 && a.down == 1 && a.status < 0);
	CHECK(strstr(a.text, name_a) != NULL);
	return true;
}

const struct behaviour roce_broken[] = {
	BEHAVIOUR(a_peer_that_vanishes_is_noticed_in_bounded_time),
	BEHAVIOUR(an_idle_peer_that_vanished_is_noticed_by_keepalive),
	BEHAVIOUR(an_address_that_is_removed_ends_lanes_with_a_sentence),
	BEHAVIOUR(an_address_that_vanished_before_connecting_ends_the_attempt_with_a_sentence),
	BEHAVIOUR(own_link_going_down_ends_lanes_with_a_sentence),
	{NULL, NULL},
};
