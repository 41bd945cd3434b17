/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the kernel: this machine's loopback interface, its routes, and errors. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host.h"

struct seen {
	unsigned int messages;
	uint32_t mtu, device;
};

static void take_link(const struct nlmsghdr *msg, void *arg)
{
	struct seen *s = arg;
	struct rtattr *a;
	int left;

	s->messages++;
	for (a = weft_netlink_attrs(msg, sizeof(struct ifinfomsg), &left); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_MTU)
			s->mtu = weft_netlink_u32(a);
}

static void take_route(const struct nlmsghdr *msg, void *arg)
{
	struct seen *s = arg;
	struct rtattr *a;
	int left;

	s->messages++;
	for (a = weft_netlink_attrs(msg, sizeof(struct rtmsg), &left); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_OIF)
			s->device = weft_netlink_u32(a);
}

struct listed {
	uint32_t inode;
	unsigned int found;
};

static void take_socket(const struct nlmsghdr *msg, void *arg)
{
	const struct unix_diag_msg *m = NLMSG_DATA(msg);
	struct listed *l = arg;

	l->found += m->udiag_ino == l->inode;
}

static int link_of(unsigned int if_index, struct seen *s)
{
	const struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_index};
	struct weft_netlink n;

	*s = (struct seen){0};
	weft_netlink_init(&n, RTM_GETLINK, 0, &info, sizeof(info));
	return weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWLINK, sizeof(info), take_link, s);
}

static void the_loopback_interface_has_an_mtu(void **state)
{
	struct seen s;

	(void)state;
	assert_int_equal(link_of(if_nametoindex("lo"), &s), 0);
	assert_int_equal(s.messages, 1);
	assert_true(s.mtu >= 1280);
}

static void the_error_of_the_kernel_is_returned(void **state)
{
	struct seen s;

	(void)state;
	assert_int_equal(link_of(0x7fff0000, &s), -ENODEV);
	assert_int_equal(s.messages, 0);
}

static void the_route_to_this_host_is_the_loopback_interface(void **state)
{
	const struct rtmsg rt = {.rtm_family = AF_INET, .rtm_dst_len = 32};
	uint32_t dst = htonl(INADDR_LOOPBACK);
	struct weft_netlink n;
	struct seen s = {0};

	(void)state;
	weft_netlink_init(&n, RTM_GETROUTE, 0, &rt, sizeof(rt));
	weft_netlink_add(&n, RTA_DST, &dst, sizeof(dst));
	assert_int_equal(
		weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWROUTE, sizeof(rt), take_route, &s), 0);
	assert_int_equal(s.device, if_nametoindex("lo"));
}

/* The local table has routes of each address, and the answer consists of several messages. */
static void a_dump_ends(void **state)
{
	const struct rtmsg rt = {.rtm_family = AF_INET};
	struct weft_netlink n;
	struct seen s = {0};

	(void)state;
	weft_netlink_init(&n, RTM_GETROUTE, NLM_F_DUMP, &rt, sizeof(rt));
	assert_int_equal(
		weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWROUTE, sizeof(rt), take_route, &s), 0);
	assert_true(s.messages >= 2);
}

static void other_messages_and_short_ones_are_dropped(void **state)
{
	const struct ifinfomsg info = {.ifi_index = (int)if_nametoindex("lo")};
	struct weft_netlink n;
	struct seen s = {0};

	(void)state;
	weft_netlink_init(&n, RTM_GETLINK, 0, &info, sizeof(info));
	assert_int_equal(weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWROUTE, sizeof(info), take_link,
					   &s),
			 -EPROTO);
	assert_int_equal(weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWLINK, 65536, take_link, &s),
			 -EPROTO);
	assert_int_equal(s.messages, 0);
}

/* Each protocol has its own list; a protocol that the kernel lacks has none. */
static void the_list_of_sockets_has_ours(void **state)
{
	const struct unix_diag_req req = {
		.sdiag_family = AF_UNIX,
		.udiag_states = ~0u,
		.udiag_show = UDIAG_SHOW_UID,
	};
	struct listed l = {0};
	struct weft_netlink n;
	struct stat st;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(fstat(ends[0], &st), 0);
	l.inode = (uint32_t)st.st_ino;
	weft_netlink_init(&n, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &req, sizeof(req));
	assert_int_equal(weft_netlink_call(NETLINK_SOCK_DIAG, &n, SOCK_DIAG_BY_FAMILY,
					   sizeof(struct unix_diag_msg), take_socket, &l),
			 0);
	assert_int_equal(l.found, 1);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(weft_netlink_call(1000, &n, SOCK_DIAG_BY_FAMILY,
					   sizeof(struct unix_diag_msg), take_socket, &l),
			 -EPERM);
}

static void a_short_attribute_is_zero(void **state)
{
	struct {
		struct rtattr a;
		uint16_t value;
	} a = {.a = {.rta_len = RTA_LENGTH(2)}, .value = 5};

	(void)state;
	assert_int_equal(weft_netlink_u32(&a.a), 0);
}

/* ------------------------------------------------------------------ routes */

/* In a network of our own: two interfaces, and routes over them. @return 0, or no such rights */
static int make_network(void)
{
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return -1;
	return system("set -e; ip link set lo up; "
		      "for n in 1 2; do "
		      "ip link add w$n type veth peer name x$n; "
		      "ip address add 10.77.$n.1/24 dev w$n; "
		      "ip address add fd77:$n::1/64 dev w$n nodad; "
		      "ip link set w$n up; ip link set x$n up; done; "
		      "ip route add 10.78.0.0/24 via 10.77.2.2; "
		      "ip route add 10.79.0.0/24 via 10.77.2.2; "
		      "ip route add 10.79.0.0/24 via 10.77.1.2 metric 100; "
		      "ip route add unreachable 10.80.0.0/24; "
		      "ip route add prohibit 10.81.0.0/24; "
		      "ip route add blackhole 10.82.0.0/24; "
		      "ip -6 route add fd78::/64 via fd77:2::2; "
		      "ip -6 route add fd79::/64 via fd77:1::2; "
		      "ip -6 route add unreachable fd80::/64; "
		      "ip -6 route add blackhole fd82::/64");
}

static bool leads(const char *name, int family, const char *src, const char *dst)
{
	struct in6_addr from, to;

	assert_int_equal(inet_pton(family, src, &from), 1);
	assert_int_equal(inet_pton(family, dst, &to), 1);
	return weft_netlink_has_route(if_nametoindex(name), family, &from, &to);
}

/* The last test: the process stays in its network. */
static void a_route_leads_by_its_own_interface(void **state)
{
	static const struct {
		int family;
		const char *src, *dst;
		bool first, second; /* by w1, by w2 */
	} rows[] = {
		{AF_INET, "10.77.1.1", "10.77.1.9", true, false},
		{AF_INET, "10.77.1.1", "10.78.0.9", false, true},
		{AF_INET, "10.77.1.1", "10.79.0.9", true, true},
		{AF_INET, "10.77.1.1", "10.80.0.9", false, false},
		{AF_INET, "10.77.1.1", "10.81.0.9", false, false},
		{AF_INET, "10.77.1.1", "10.82.0.9", false, false},
		{AF_INET, "10.77.1.1", "10.99.0.9", false, false},
		{AF_INET6, "fd77:1::1", "fd77:1::9", true, false},
		{AF_INET6, "fd77:1::1", "fd77:2::9", false, true},
		{AF_INET6, "fd77:1::1", "fd78::9", false, true},
		{AF_INET6, "fd77:1::1", "fd79::9", true, false},
		{AF_INET6, "fd77:1::1", "fd80::9", false, false},
		{AF_INET6, "fd77:1::1", "fd82::9", false, false},
		{AF_INET6, "fd77:1::1", "fd99::9", false, false},
	};

	(void)state;
	if (make_network() != 0)
		skip();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s\n", rows[i].dst);
		assert_int_equal(leads("w1", rows[i].family, rows[i].src, rows[i].dst),
				 rows[i].first);
		assert_int_equal(leads("w2", rows[i].family, rows[i].src, rows[i].dst),
				 rows[i].second);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loopback_interface_has_an_mtu),
		cmocka_unit_test(the_error_of_the_kernel_is_returned),
		cmocka_unit_test(the_route_to_this_host_is_the_loopback_interface),
		cmocka_unit_test(a_dump_ends),
		cmocka_unit_test(other_messages_and_short_ones_are_dropped),
		cmocka_unit_test(the_list_of_sockets_has_ours),
		cmocka_unit_test(a_short_attribute_is_zero),
		cmocka_unit_test(a_route_leads_by_its_own_interface),
	};

	return cmocka_run_group_tests_name("netlink", tests, NULL, NULL);
}
