/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hosts of an IPv6 lane: numbers and addresses belong together, also in a flood of addresses.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame/arp.h"

static struct in6_addr address(uint32_t i)
{
	struct in6_addr a = {.s6_addr = {0xfd}};

	memcpy(&a.s6_addr[12], &i, sizeof(i));
	return a;
}

static void expect_ip(struct weft_hosts *h, uint32_t number, uint32_t i)
{
	const struct in6_addr a = address(i), *ip = weft_hosts_ip(h, number);

	assert_non_null(ip);
	assert_memory_equal(ip, &a, sizeof(a));
}

static void send_from(struct weft_hosts *h, uint32_t i)
{
	const struct in6_addr a = address(i);

	weft_hosts_number(h, &a);
}

static void each_host_has_a_number_of_its_own(void **state)
{
	const struct in6_addr own = address(0);
	struct weft_hosts *h = weft_hosts_new(&own);
	uint32_t number[500];
	struct in6_addr a;

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		a = address(i);
		number[i] = weft_hosts_number(h, &a);
		assert_int_equal(number[i] >> 24, 10);
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(number[i], number[k]);
	}
	for (uint32_t i = 0; i < 500; i++) {
		a = address(i);
		assert_int_equal(weft_hosts_number(h, &a), number[i]);
		expect_ip(h, number[i], i);
	}
	assert_null(weft_hosts_ip(h, 0x7f000001));
	free(h);
}

/*
 * A flood of other addresses, each with more frames than the peers: those in use stay, and those
 * with connections that are idle, and the lane's own in any case. A number of a host that was
 * replaced leads to no other host. After its connections a host can be replaced.
 */
static void a_flood_replaces_no_host_with_a_connection(void **state)
{
	enum { FLOOD = 20 * WEFT_HOSTS, EVERY = 16, FRAMES = 5 };
	const struct in6_addr own = address(0), peer = address(1), idle = address(2),
			      silent = address(3);
	struct weft_hosts *h = weft_hosts_new(&own);
	uint32_t ours = weft_hosts_number(h, &own), used = weft_hosts_number(h, &peer),
		 lost = weft_hosts_number(h, &idle), connected = weft_hosts_number(h, &silent);

	(void)state;
	weft_hosts_hold(h, connected, true);
	weft_hosts_hold(h, connected, true);
	weft_hosts_hold(h, connected, false);
	for (uint32_t i = 0; i < FLOOD; i++) {
		for (int k = 0; k < FRAMES; k++)
			send_from(h, 1000 + i);
		if (i % EVERY == 0)
			assert_int_equal(weft_hosts_number(h, &peer), used);
	}
	expect_ip(h, ours, 0);
	expect_ip(h, connected, 3);
	assert_int_equal(weft_hosts_number(h, &own), ours);
	assert_null(weft_hosts_ip(h, lost));
	assert_int_not_equal(weft_hosts_number(h, &idle), lost);

	weft_hosts_hold(h, connected, false);
	for (uint32_t i = 0; i < FLOOD; i++)
		send_from(h, 1000 + i);
	assert_null(weft_hosts_ip(h, connected));
	weft_hosts_hold(h, connected, false); /* of no host now */
	free(h);
}

/* Connections with many hosts: each keeps its number, and a host without room gets none. */
static void held_hosts_are_never_replaced(void **state)
{
	enum { HOSTS = 2 * WEFT_HOSTS };
	static uint32_t number[HOSTS];
	const struct in6_addr own = address(0);
	struct weft_hosts *h = weft_hosts_new(&own);
	uint32_t refused = 0;
	struct in6_addr a;

	(void)state;
	for (uint32_t i = 1; i < HOSTS; i++) {
		a = address(i);
		number[i] = weft_hosts_number(h, &a);
		weft_hosts_hold(h, number[i], true);
		refused += number[i] == 0;
		assert_true(refused == 0 || i > WEFT_HOSTS / 8);
	}
	assert_true(refused >= HOSTS - WEFT_HOSTS);
	for (uint32_t i = 1; i < HOSTS; i++)
		if (number[i] != 0)
			expect_ip(h, number[i], i);
	assert_null(weft_hosts_ip(h, 0));
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_host_has_a_number_of_its_own),
		cmocka_unit_test(a_flood_replaces_no_host_with_a_connection),
		cmocka_unit_test(held_hosts_are_never_replaced),
	};

	return cmocka_run_group_tests_name("frame_hosts", tests, NULL, NULL);
}
