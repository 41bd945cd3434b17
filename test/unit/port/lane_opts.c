/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "port/lane_opts.h"

static struct weft_lane_opts o;
static char why[256];

static void good(const char *text)
{
	why[0] = '\0';
	if (weft_lane_opts_parse(text, &o, why, sizeof(why)))
		fail_msg("'%s' was refused: %s", text ? text : "", why);
}

/* Refused, and the message has @p part in it. */
static void bad(const char *text, const char *part)
{
	why[0] = '\0';
	assert_int_equal(weft_lane_opts_parse(text, &o, why, sizeof(why)), -EINVAL);
	if (!strstr(why, part))
		fail_msg("'%s' was refused with \"%s\", which lacks \"%s\"", text, why, part);
}

static void nothing_given_means_defaults(void **state)
{
	(void)state;
	good(NULL);
	good("");
	assert_int_equal(o.ip, 0);
	assert_int_equal(o.prefix, 0);
	assert_int_equal(o.mtu, 0);
	assert_int_equal(o.encap, -1);
	assert_int_equal(o.csum, -1);
}

static void all_options_are_read(void **state)
{
	(void)state;
	good("ip=10.1.2.3/20,gw=10.1.15.254,port=4000,mtu=9000,vlan=7,paths=8,encap=udp,"
	     "csum=crc32c,queues=4");
	assert_int_equal(o.ip, 0x0a010203);
	assert_int_equal(o.prefix, 20);
	assert_int_equal(o.gw, 0x0a010ffe);
	assert_int_equal(o.udp_port, 4000);
	assert_int_equal(o.mtu, 9000);
	assert_int_equal(o.vlan, 7);
	assert_int_equal(o.paths, 8);
	assert_int_equal(o.encap, WEFT_ENCAP_UDP);
	assert_int_equal(o.csum, WEFT_CSUM_CRC32C);
	assert_int_equal(o.queues, 4);
	good("encap=ether,csum=none");
	assert_int_equal(o.encap, WEFT_ENCAP_ETHER);
	assert_int_equal(o.csum, WEFT_CSUM_NONE);
	good("dscp=46,ecn=0");
	assert_true(o.dscp == 46 && o.no_ecn);
	good("dscp=0,ecn=1");
	assert_true(o.dscp == 0 && !o.no_ecn);
	good("encap=ether,ecn=0");
	assert_int_equal(o.role, -1);
	good("role=server,id=999999999,bsize=4096,rsize=9");
	assert_true(o.role == WEFT_MEMIF_SERVER && o.id == 999999999 && o.bsize == 4096 &&
		    o.rsize == 9);
	good("role=client");
	assert_int_equal(o.role, WEFT_MEMIF_CLIENT);
	good("csum=auto");
	assert_int_equal(o.csum, WEFT_CSUM_AUTO);
	good("csum=udp");
	assert_int_equal(o.csum, WEFT_CSUM_UDP);
}

static void limits_are_inclusive(void **state)
{
	(void)state;
	good("mtu=1280");
	good("mtu=65517");
	bad("mtu=1279", "1280 to 65517");
	bad("mtu=65518", "1280 to 65517");
	good("vlan=1");
	good("vlan=4094");
	bad("vlan=0", "1 to 4094");
	bad("vlan=4095", "1 to 4094");
	good("port=1");
	good("port=65535");
	bad("port=0", "1 to 65535");
	bad("port=65536", "1 to 65535");
	good("paths=16");
	bad("paths=17", "1 to 16");
	bad("paths=0", "1 to 16");
	bad("queues=0", "1 to 64");
	bad("dscp=64", "0 to 63");
	bad("ecn=2", "0 to 1");
	bad("encap=ether,dscp=8", "dscp");
	bad("role=master", "server, client");
	bad("bsize=1535", "1536 to 65535");
	bad("rsize=15", "1 to 14");
	bad("rsize=0", "1 to 14");
}

static void numbers_are_decimal_and_whole(void **state)
{
	(void)state;
	bad("mtu=", "mtu=");
	bad("mtu=9000B", "mtu=9000B");
	bad("mtu=0x2328", "mtu=0x2328");
	bad("mtu=-9000", "mtu=-9000");
	bad("mtu= 9000", "mtu= 9000");
	bad("mtu=99999999999999999999", "1280 to 65517");
}

/* @behaviour X3 */
static void unknown_names_list_the_known(void **state)
{
	(void)state;
	bad("mut=9000", "no lane option 'mut'; there are ip, gw, neigh, port, mtu");
	bad("ip=10.0.0.1/24,mtus=9000", "no lane option 'mtus'");
	bad("i=1", "no lane option 'i'");
	bad("mtu", "'mtu' is not of the form name=value");
	bad("=3", "not of the form");
	bad(",", "not of the form");
	bad("mtu=1500,,vlan=3", "not of the form");
	bad("mtu=1500,", "end with a comma");
	bad("mtu=1500,mtu=1500", "'mtu' is given twice");
}

static void addresses(void **state)
{
	static const char *const wrong[] = {
		"ip=10.0.0/24",
		"ip=10.0.0.0.1/24",
		"ip=10.0.0.256/24",
		"ip=10..0.1/24",
		"ip=10.0.0.01/24",
		"ip=a.b.c.d/24",
		"ip=",
		"ip=/24",
		"ip=0.0.0.1/24",
		"ip=127.0.0.1/8",
		"ip=224.0.0.1/24",
		"ip=255.255.255.255/32",
		"ip=10.0.0.0/24",
		"ip=10.0.0.255/24",
		"ip=10.0.0.1/33",
		"ip=10.0.0.1/0",
		"ip=10.0.0.1/",
		"ip=10.0.0.1/24x",
		"ip=10.0.0.1.",
		"ip=10.0.0./24",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		bad(wrong[i], "ip=");
	bad("ip=10.0.0.1", "has no prefix length; write it as in ip=10.0.0.1/24");
	good("ip=10.0.0.1/32");
	good("ip=10.0.0.0/31");
	good("ip=10.0.0.1/31");
	good("ip=192.168.255.254/16");
	assert_int_equal(o.ip, 0xc0a8fffe);
}

static void gateways(void **state)
{
	(void)state;
	bad("gw=10.0.0.254", "'gw' needs 'ip'");
	bad("ip=10.0.0.1/24,gw=10.0.0.1", "own address");
	bad("ip=10.0.0.1/24,gw=gw", "gateway's address");
	bad("ip=10.0.0.1/24,gw=10.0.0.254/24", "gateway's address");
	bad("ip=10.0.0.1/24,gw=10.0.0.255", "first or the last address");
	bad("ip=10.0.0.1/24,gw=10.0.0.0", "first or the last address");
	bad("ip=10.0.0.1/24,gw=224.0.0.1", "gateway's address");
	good("gw=10.0.0.254,ip=10.0.0.1/24");
}

/* As clouds give addresses: the gateway is outside the prefix, and on the link all the same. */
static void gateways_on_the_link(void **state)
{
	(void)state;
	good("ip=10.128.0.2/32,gw=10.128.0.1");
	assert_int_equal(o.prefix, 32);
	assert_int_equal(o.gw, 0x0a800001);
	good("ip=10.0.0.1/24,gw=10.0.1.254");
	good("ip=10.0.0.1/24,gw=10.0.1.255");
	bad("ip=10.128.0.2/32,gw=10.128.0.2", "own address");
}

static void static_neighbours(void **state)
{
	static const uint8_t first[6] = {2, 0, 0, 0, 0, 0x0a},
			     second[6] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc};

	(void)state;
	good("ip=10.0.0.1/24,neigh=10.0.0.2-02:00:00:00:00:0A+10.9.0.3-12:34:56:78:9a:bc");
	assert_int_equal(o.num_neigh, 2);
	assert_int_equal(o.neigh[0].ip, 0x0a000002);
	assert_memory_equal(o.neigh[0].mac, first, 6);
	assert_int_equal(o.neigh[1].ip, 0x0a090003);
	assert_memory_equal(o.neigh[1].mac, second, 6);
	good("neigh=169.254.7.8-02:00:00:00:00:0a");
	bad("ip=10.0.0.1/24,neigh=10.0.0.1-02:00:00:00:00:0a", "own address");
	bad("neigh=10.0.0.2-02:00:00:00:00:0a,encap=ether", "encap=ether");
}

static void neighbours_that_are_none(void **state)
{
	static const char *const wrong[] = {
		"",
		"-",
		"+",
		"10.0.0.2",
		"10.0.0.2-",
		"-02:00:00:00:00:0a",
		"10.0.0.2-02:00:00:00:00",
		"10.0.0.2-02:00:00:00:00:0a:0b",
		"10.0.0.2-02:00:00:00:00:0g",
		"10.0.0.2-02-00-00-00-00-0a",
		"10.0.0.2-2:0:0:0:0:a",
		"10.0.0.2-02:00:00:00:00:0a+",
		"10.0.0-02:00:00:00:00:0a",
		"224.0.0.1-02:00:00:00:00:0a",
		"0.0.0.0-02:00:00:00:00:0a",
		"10.0.0.2-01:00:5e:00:00:01",
		"10.0.0.2-ff:ff:ff:ff:ff:ff",
		"10.0.0.2-00:00:00:00:00:00",
		"10.0.0.2-02:00:00:00:00:0a++10.0.0.3-02:00:00:00:00:0b",
	};
	char text[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "neigh=%s", wrong[i]);
		bad(text, "neigh=10.0.0.1-02:00:00:00:00:0a");
	}
	bad("neigh=10.0.0.2-02:00:00:00:00:0a+10.0.0.2-02:00:00:00:00:0b",
	    "10.0.0.2 is given twice");
	snprintf(text, sizeof(text), "neigh=");
	for (i = 0; i < WEFT_LANE_NEIGH_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s10.0.0.%zu-02:00:00:00:00:0%zu", i ? "+" : "", i + 2, i);
	good(text);
	assert_int_equal(o.num_neigh, WEFT_LANE_NEIGH_MAX);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "+10.0.1.1-02:00:00:00:01:01");
	bad(text, "more than 8 neighbours");
}

static void ipv6_takes_the_place_of_ipv4(void **state)
{
	static const uint8_t ip[16] = {0xfd, [15] = 1}, gw[16] = {0xfe, 0x80, [15] = 0xff},
			     link_local[16] = {0xfe, 0x80}, neigh[16] = {0xfd, [15] = 2};

	(void)state;
	good("ip=fd00::1/64,gw=fe80::ff,neigh=fd00::2-02:00:00:00:00:0a");
	assert_true(o.six);
	assert_int_equal(o.ip, 0);
	assert_int_equal(o.prefix, 64);
	assert_memory_equal(o.ip6, ip, sizeof(ip));
	assert_memory_equal(o.gw6, gw, sizeof(gw));
	assert_memory_equal(o.neigh[0].ip6, neigh, sizeof(neigh));
	assert_int_equal(o.neigh[0].mac[5], 0x0a);
	good("ip=fe80::/64");
	assert_memory_equal(o.ip6, link_local, sizeof(link_local));
	good("ip=10.0.0.1/24");
	assert_false(o.six);
	bad("ip=fd00::1", "as in ip=fd00::1/64");
	bad("ip=fd00::1/129", "as in ip=fd00::1/64");
	bad("ip=ff02::1/64", "an IPv6 address that a host can have");
	bad("ip=::1/64", "an IPv6 address that a host can have");
	bad("ip=::ffff:10.0.0.1/96", "an IPv6 address that a host can have");
	bad("ip=fd00::1/64,gw=10.0.0.1", "'gw' needs 'ip' with an address of the same kind");
	bad("ip=10.0.0.1/24,gw=fe80::1", "'gw' needs 'ip' with an address of the same kind");
	bad("ip=fd00::1/64,gw=fd00::1", "the lane's own address");
	bad("ip=fd00::1/64,neigh=10.0.0.2-02:00:00:00:00:0a", "another kind than 'ip'");
	bad("ip=fd00::1/64,neigh=fd00::1-02:00:00:00:00:0a", "the lane's own address");
	bad("ip=fd00::1/64,queues=2", "'queues' needs an IPv4 address");
	bad("ip=fd00::1/64,encap=ether", "encap=ether");
}

static void words_are_listed_when_wrong(void **state)
{
	(void)state;
	bad("encap=vxlan", "one of udp, ether is wanted");
	bad("csum=crc", "one of auto, none, udp, crc32c is wanted");
	bad("csum=", "one of auto");
	bad("encap=udpx", "one of udp, ether");
}

static void raw_ethertype_excludes_ip_and_udp(void **state)
{
	(void)state;
	bad("encap=ether,ip=10.0.0.1/24", "encap=ether");
	bad("port=4000,encap=ether", "encap=ether");
	bad("encap=ether,paths=2", "encap=ether");
	bad("encap=ether,csum=udp", "csum=udp");
	good("encap=ether,vlan=5,mtu=9000,paths=1");
}

static void why_may_be_short_or_absent(void **state)
{
	char tiny[8];

	(void)state;
	assert_int_equal(weft_lane_opts_parse("mut=1", &o, NULL, 0), -EINVAL);
	assert_int_equal(weft_lane_opts_parse("mut=1", &o, tiny, sizeof(tiny)), -EINVAL);
	assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
}

static void link_local_is_stable_and_in_range(void **state)
{
	uint8_t mac[6] = {2, 0, 0, 0, 0, 0};
	uint32_t ip, last = 0;
	unsigned int i, same = 0;

	(void)state;
	for (i = 0; i < 65536; i++) {
		mac[4] = (uint8_t)(i >> 8);
		mac[5] = (uint8_t)i;
		ip = weft_lane_link_local(mac);
		assert_int_equal(ip, weft_lane_link_local(mac));
		assert_in_range(ip, 0xa9fe0100u, 0xa9fefeffu);
		same += ip == last;
		last = ip;
	}
	/* Neighbouring MACs, as ports of one card have, must not fall together. */
	assert_true(same < 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_given_means_defaults),
		cmocka_unit_test(all_options_are_read),
		cmocka_unit_test(limits_are_inclusive),
		cmocka_unit_test(numbers_are_decimal_and_whole),
		cmocka_unit_test(unknown_names_list_the_known),
		cmocka_unit_test(addresses),
		cmocka_unit_test(gateways),
		cmocka_unit_test(gateways_on_the_link),
		cmocka_unit_test(static_neighbours),
		cmocka_unit_test(neighbours_that_are_none),
		cmocka_unit_test(ipv6_takes_the_place_of_ipv4),
		cmocka_unit_test(words_are_listed_when_wrong),
		cmocka_unit_test(raw_ethertype_excludes_ip_and_udp),
		cmocka_unit_test(why_may_be_short_or_absent),
		cmocka_unit_test(link_local_is_stable_and_in_range),
	};

	return cmocka_run_group_tests_name("lane_opts", tests, NULL, NULL);
}
