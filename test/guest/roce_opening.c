/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What can be opened and reached, and what the refusals say.
 */

#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "roce_host.h"

static bool refused(const char *device, const char *options, const char *words)
{
	struct weft_lane_open params = {
		.resource = device,
		.options = options,
		.worker_id = 7,
		.platform = &weft_platform_host,
		.conf = &conf,
		.recv = on_recv,
		.event = on_event,
		.arg = &a,
	};
	struct weft_lane_iface *iface = NULL;
	char why[320] = "";
	int rc = weft_roce_driver.open(&params, &iface, why, sizeof(why));

	printf("# %s: %s\n", device, why);
	return rc < 0 && !iface && strstr(why, words) != NULL;
}

static bool what_can_not_be_opened_reports_why(void)
{
	CHECK(refused("rxe99", "", "there is no RDMA device 'rxe99'; there are"));
	CHECK(refused(name_a, "gid=200", "no GID with index 200; there are"));
	CHECK(refused(name_a, "subnet=172.16.0.0/12", "no RoCE v2 GID in the subnet 172.16.0.0"));
	CHECK(refused(name_a, "retry=7", "a number from 0 to 6"));
	CHECK(refused(name_a, "mtu=1500", "one of 256, 512, 1024"));
	CHECK(refused("rxe0a:9", "", "no port 9"));
	return true;
}

static bool peers_with_different_path_mtus_use_the_smaller(void)
{
	char text[160];

	CHECK(open_host(&a, &weft_roce_driver, name_a, "mtu=1024"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, "seg=2048"));
	CHECK(connect_pair());
	a.lane_ep->ops->ep_print(a.lane_ep, text, sizeof(text));
	CHECK(strstr(text, "path MTU 1024") != NULL);
	b.lane_ep->ops->ep_print(b.lane_ep, text, sizeof(text));
	CHECK(strstr(text, "path MTU 1024") != NULL);
	CHECK(a.lane_ep->max_msg == 2048 && b.lane_ep->max_msg == 2048);
	CHECK(send_one(&a, 0, 2048) && send_one(&b, 0, 2048));
	WITHIN(10, a.got == 1 && b.got == 1);
	CHECK(a.wrong == 0 && b.wrong == 0);
	return true;
}

static bool an_address_without_a_route_is_not_reachable(void)
{
	struct weft_roce_addr addr;
	char why[160] = "";

	CHECK(open_pair(""));
	b.iface->ops->get_address(b.iface, &addr);
	CHECK(a.iface->ops->is_reachable(a.iface, &addr, sizeof(addr), why, sizeof(why)) == 0);
	addr.gid[12] = 192;
	CHECK(a.iface->ops->is_reachable(a.iface, &addr, sizeof(addr), why, sizeof(why)) < 0);
	printf("# %s\n", why);
	CHECK(strstr(why, "no route") != NULL);
	memset(addr.gid, 0, 16);
	addr.gid[0] = 0xfe;
	addr.gid[1] = 0x80;
	addr.gid[15] = 1;
	CHECK(a.iface->ops->is_reachable(a.iface, &addr, sizeof(addr), why, sizeof(why)) < 0);
	CHECK(strstr(why, "IPv6") != NULL);
	return true;
}

const struct behaviour roce_opening[] = {
	BEHAVIOUR(what_can_not_be_opened_reports_why),
	BEHAVIOUR(peers_with_different_path_mtus_use_the_smaller),
	BEHAVIOUR(an_address_without_a_route_is_not_reachable),
	{NULL, NULL},
};
