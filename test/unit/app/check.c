/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-info --check: texts of the other end, and the verdict. */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "info/check_facts.h"

static struct check_end here, there;

static struct check_end end_of(const char *host, uint32_t ip)
{
	struct check_end e = {
		.facts = {.version = "0.2.0", .kinds = CHECK_UDP, .nonce = 7, .num = 1},
	};

	snprintf(e.facts.host, sizeof(e.facts.host), "%s", host);
	e.facts.iface[0] = (struct check_iface){
		.name = "eth0",
		.ip = ip,
		.prefix = 24,
		.mtu = 1500,
		.port = 9,
		.speed = -1,
	};
	e.seen.pair[0][0] = (struct check_pair){
		.route = true,
		.arp = CHECK_ARP_KNOWN,
		.small = true,
		.large = true,
	};
	return e;
}

static int reset(void **state)
{
	(void)state;
	here = end_of("a", 0x0a000001);
	there = end_of("b", 0x0a000002);
	return 0;
}

static enum check_fault fault(struct check_verdict *v)
{
	check_decide(&here, &there, v);
	return v->fault;
}

static void each_fault_has_a_verdict(void **state)
{
	struct check_pair *in = &here.seen.pair[0][0], *out = &there.seen.pair[0][0];
	struct check_verdict v;

	(void)state;
	assert_int_equal(fault(&v), CHECK_FINE);
	assert_int_equal(v.rails, 1);
	in->large = false;
	assert_int_equal(fault(&v), CHECK_MTU);
	assert_non_null(strstr(v.remedy, "between has a smaller MTU"));
	there.facts.iface[0].mtu = 9000;
	assert_int_equal(fault(&v), CHECK_MTU);
	assert_non_null(strstr(v.remedy, "mtu 9000"));
	in->small = false;
	assert_int_equal(fault(&v), CHECK_ONE_WAY);
	assert_non_null(strstr(v.text, "from b (eth0, 10.0.0.2) to a (eth0, 10.0.0.1)"));
	in->small = true;
	out->small = false;
	assert_int_equal(fault(&v), CHECK_ONE_WAY);
	assert_non_null(strstr(v.text, "from a (eth0, 10.0.0.1) to b (eth0, 10.0.0.2)"));
	in->small = false;
	assert_int_equal(fault(&v), CHECK_BLOCKED);
	in->arp = CHECK_ARP_FAILED;
	assert_int_equal(fault(&v), CHECK_ARP);
	there.facts.iface[0].ip = 0x0a000102;
	in->route = false;
	assert_int_equal(fault(&v), CHECK_SUBNET);
	assert_non_null(strstr(v.text, "10.0.1.2/24"));
	here.facts.kinds = CHECK_ROCE;
	assert_int_equal(fault(&v), CHECK_KINDS);
	here.facts.num = 0;
	assert_int_equal(fault(&v), CHECK_NO_IFACE);
	strcpy(there.facts.version, "0.3.0");
	assert_int_equal(fault(&v), CHECK_VERSION);
}

static void a_rail_without_a_partner_is_reported(void **state)
{
	struct check_verdict v;

	(void)state;
	here.facts.num = there.facts.num = 2;
	here.facts.iface[1] = here.facts.iface[0];
	there.facts.iface[1] = there.facts.iface[0];
	here.facts.iface[1].ip = 0x0a010001;
	there.facts.iface[1].ip = 0x0a020001;
	assert_int_equal(fault(&v), CHECK_SUBNET);
	assert_non_null(strstr(v.text, "over 1 other rail"));
	/* The bridge of a container engine has one address everywhere. */
	there.facts.iface[1].ip = here.facts.iface[1].ip;
	here.seen.pair[1][1] = (struct check_pair){.route = true};
	there.seen.pair[1][1] = (struct check_pair){.route = true};
	assert_int_equal(fault(&v), CHECK_FINE);
}

/* Each end tests the way back by the one route to the subnet. */
static void two_rails_in_one_subnet_may_be_filtered(void **state)
{
	struct check_verdict v;

	(void)state;
	here.facts.num = 2;
	here.facts.iface[1] = here.facts.iface[0];
	here.facts.iface[1].ip++;
	here.seen.pair[0][0].large = false;
	assert_int_equal(fault(&v), CHECK_MTU);
	assert_non_null(strstr(v.remedy, "rp_filter=2"));
	here.seen.pair[0][0].small = false;
	assert_int_equal(fault(&v), CHECK_ONE_WAY);
	assert_non_null(strstr(v.remedy, "a has two interfaces in the subnet of eth0"));
	assert_non_null(strstr(v.remedy, "net.ipv4.conf.all.rp_filter=2"));
	there.seen.pair[0][0].small = false;
	assert_int_equal(fault(&v), CHECK_BLOCKED);
	assert_non_null(strstr(v.remedy, "rp_filter=2"));
	there.facts.num = 2;
	there.facts.iface[1] = there.facts.iface[0];
	there.facts.iface[1].ip++;
	here.seen.pair[0][0].small = true;
	assert_int_equal(fault(&v), CHECK_ONE_WAY); /* the other one receives nothing */
	assert_non_null(strstr(v.remedy, "b has two"));
	here.seen.pair[0][0].small = false;
	here.facts.iface[1].ip += 0x10000;
	assert_int_equal(fault(&v), CHECK_BLOCKED);
	assert_non_null(strstr(v.remedy, "b has two interfaces in the subnet of eth0"));
	there.facts.iface[1].ip += 0x20000;
	assert_int_equal(fault(&v), CHECK_BLOCKED);
	assert_non_null(strstr(v.remedy, "firewalls"));
}

static void texts_are_read_as_written(void **state)
{
	static char text[CHECK_TEXT];
	struct check_facts f;
	struct check_seen s;

	(void)state;
	assert_true(check_facts_write(&here.facts, text) < CHECK_TEXT);
	assert_int_equal(check_facts_parse(text, &f), 0);
	assert_memory_equal(&f, &here.facts, sizeof(f));
	assert_true(check_seen_write(&here.seen, 1, 1, text) < CHECK_TEXT);
	assert_int_equal(check_seen_parse(text, 1, 1, &s), 0);
	assert_memory_equal(&s, &here.seen, sizeof(s));
}

/* The kernel permits names with other characters than those of most names. */
static void names_of_any_kind_are_understood(void **state)
{
	static char text[CHECK_TEXT];
	struct check_facts f;

	(void)state;
	strcpy(here.facts.iface[0].name, "br~1%s#2");
	check_facts_write(&here.facts, text);
	assert_int_equal(check_facts_parse(text, &f), 0);
	assert_string_equal(f.iface[0].name, "br~1%s#2");
	strcpy(here.facts.iface[0].name, "b\xc3\xa4\033");
	strcpy(here.facts.host, "a b");
	check_facts_write(&here.facts, text);
	assert_int_equal(check_facts_parse(text, &f), 0);
	assert_string_equal(f.iface[0].name, "b???");
	assert_string_equal(f.host, "a?b");
}

/* A cut text, or one with a changed byte, is not read past its end; what is taken is in range. */
static void wrong_texts_do_no_harm(void **state)
{
	static char good[CHECK_TEXT], text[CHECK_TEXT];
	struct check_facts f;
	struct check_seen s;
	char *copy;
	size_t len;

	(void)state;
	len = check_facts_write(&here.facts, good);
	for (size_t n = 0; n < len - 1; n++) {
		copy = strndup(good, n);
		assert_non_null(copy);
		assert_int_equal(check_facts_parse(copy, &f), -EPROTO);
		free(copy);
	}
	srand(1);
	for (unsigned int i = 0; i < 100000; i++) {
		memcpy(text, good, len + 1);
		text[(size_t)rand() % len] = (char)(1 + rand() % 255);
		if (check_facts_parse(text, &f) != 0)
			continue;
		assert_true(f.num <= CHECK_IFACES);
		assert_null(strpbrk(f.host, "\033\n "));
		for (unsigned int k = 0; k < f.num; k++)
			assert_true(f.iface[k].prefix <= 32 && f.iface[k].mtu >= 68 &&
				    f.iface[k].port != 0);
	}
	strcpy(text, "pair 8 0 route 1 arp 1 small 1 large 1\nend\n");
	assert_int_equal(check_seen_parse(text, 8, 8, &s), -EPROTO);
	strcpy(text, "pair 0 0 route 1 arp 3 small 1 large 1\nend\n");
	assert_int_equal(check_seen_parse(text, 8, 8, &s), -EPROTO);
	strcpy(text, "pair 0 0 route 1 arp 1 small 1 large 1\n");
	assert_int_equal(check_seen_parse(text, 8, 8, &s), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_fault_has_a_verdict, reset),
		cmocka_unit_test_setup(a_rail_without_a_partner_is_reported, reset),
		cmocka_unit_test_setup(two_rails_in_one_subnet_may_be_filtered, reset),
		cmocka_unit_test_setup(texts_are_read_as_written, reset),
		cmocka_unit_test_setup(names_of_any_kind_are_understood, reset),
		cmocka_unit_test_setup(wrong_texts_do_no_harm, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
