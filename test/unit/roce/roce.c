/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The RoCE driver's logic, without a device: credits, batches, GID choice, addresses, datagrams,
 * options, error messages.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drivers/roce/roce_text.h"
#include "drivers/roce/roce_wire.h"

static char why[320];

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" lacks \"%s\"", text, part);
}

/* ------------------------------------------------------------------ silence */

#define MS 1000000ull

static void a_lane_may_be_silent_for_as_long_as_it_takes(void **state)
{
	struct weft_roce_silence s = {0};
	uint64_t now = 1;
	unsigned int i;

	(void)state;
	/* Nothing is known of it; then that it answers small ones at once. */
	assert_int_equal(weft_roce_silence_limit(&s, 8), 300 * MS);
	for (i = 0; i < 8; i++)
		weft_roce_silence_note(&s, now += MS, 10000, 100);
	assert_int_equal(weft_roce_silence_limit(&s, 8), 50 * MS);
	/* Of many bytes nothing is known yet. 1 MiB in 8 ms: then what it says. */
	assert_int_equal(weft_roce_silence_limit(&s, 1 << 20), 300 * MS);
	for (i = 0; i < 16; i++)
		weft_roce_silence_note(&s, now += MS, MS / 2, 65536);
	assert_int_equal(weft_roce_silence_limit(&s, 1 << 20), 50 * MS);
	assert_in_range(weft_roce_silence_limit(&s, 8 << 20), 257 * MS, 300 * MS);
	assert_int_equal(weft_roce_silence_limit(&s, 1u << 30), 1000 * MS);
	/* It was silent once for long, and has the time for it 10 to 20 s long. */
	weft_roce_silence_note(&s, now += MS, 80 * MS, 8);
	assert_in_range(weft_roce_silence_limit(&s, 8), 160 * MS, 162 * MS);
	weft_roce_silence_note(&s, now += 10000 * MS, 10000, 8);
	assert_in_range(weft_roce_silence_limit(&s, 8), 160 * MS, 162 * MS);
	weft_roce_silence_note(&s, now += 10000 * MS, 10000, 65536);
	assert_int_equal(weft_roce_silence_limit(&s, 8), 50 * MS);
}

/* ------------------------------------------------------------------ GIDs */

static struct weft_roce_gid entry(uint8_t index, bool v2, const char *addr)
{
	struct weft_roce_gid g = {.index = index, .v2 = v2};

	if (strchr(addr, ':')) {
		assert_int_equal(inet_pton(AF_INET6, addr, g.gid), 1);
	} else {
		g.gid[10] = g.gid[11] = 0xff;
		assert_int_equal(inet_pton(AF_INET, addr, g.gid + 12), 1);
	}
	return g;
}

static int pick(const struct weft_roce_gid *table, int num, int index, const char *subnet)
{
	struct weft_roce_opts o = {0};
	char text[64];

	if (subnet) {
		snprintf(text, sizeof(text), "subnet=%s", subnet);
		assert_int_equal(weft_roce_opts_parse(text, &o, why, sizeof(why)), 0);
	}
	return weft_roce_gid_pick(table, num, index, &o.subnet, why, sizeof(why));
}

static void gids_are_chosen_by_rule_with_the_reason(void **state)
{
	struct weft_roce_gid t[8];

	(void)state;
	t[0] = entry(0, false, "fe80::1");
	t[1] = entry(1, true, "fe80::1");
	t[2] = entry(2, false, "10.0.0.1");
	t[3] = entry(3, true, "2001:db8::1");
	t[4] = entry(4, true, "169.254.1.2");
	t[5] = entry(5, true, "10.0.0.1");
	t[6] = entry(6, true, "192.168.3.4");
	assert_int_equal(pick(t, 7, -1, NULL), 5);
	assert_string_equal(why, "RoCE v2 over IPv4, the first of 2");
	assert_int_equal(pick(t, 5, -1, NULL), 4);
	has(why, "link-local IPv4");
	assert_int_equal(pick(t, 4, -1, NULL), 3);
	assert_string_equal(why, "RoCE v2 over IPv6");
	assert_int_equal(pick(t, 2, -1, NULL), 1);
	has(why, "link-local IPv6");
	/* By order, whatever it is. */
	assert_int_equal(pick(t, 7, 2, NULL), 2);
	assert_string_equal(why, "RoCE v1, requested by gid=2");
	/* By network. */
	assert_int_equal(pick(t, 7, -1, "192.168.0.0/16"), 6);
	has(why, "in the subnet");
	assert_int_equal(pick(t, 7, -1, "2001:db8::/32"), 3);
}

static void without_a_usable_gid_the_error_lists_what_there_is(void **state)
{
	struct weft_roce_gid t[2] = {0};

	(void)state;
	assert_int_equal(pick(t, 0, -1, NULL), -EADDRNOTAVAIL);
	has(why, "give its network device an IP address");
	t[0] = entry(0, false, "fe80::1");
	t[1] = entry(1, false, "10.0.0.1");
	assert_int_equal(pick(t, 2, -1, NULL), -EADDRNOTAVAIL);
	has(why, "1: 10.0.0.1 v1");
	has(why, "only when gid=N requests it");
	assert_int_equal(pick(t, 2, 7, NULL), -EADDRNOTAVAIL);
	has(why, "no GID with index 7; there are 0: fe80::1");
	t[1].v2 = true;
	assert_int_equal(pick(t, 2, -1, "10.1.0.0/16"), -EADDRNOTAVAIL);
	has(why, "10.1.0.0 (first 16 bits)");
	has(why, "there are 1: 10.0.0.1 v2, 0: fe80::1 v1");
}

static void of_many_gids_the_sentence_names_the_best(void **state)
{
	struct weft_roce_gid t[40];

	(void)state;
	for (int i = 0; i < 38; i++)
		t[i] = entry((uint8_t)i, i % 2, "fe80::1234:5678:9abc:def0");
	t[38] = entry(38, false, "10.0.0.1");
	t[39] = entry(39, true, "10.0.0.1");
	assert_int_equal(pick(t, 40, -1, "10.1.0.0/16"), -EADDRNOTAVAIL);
	has(why, "there are 39: 10.0.0.1 v2, 1: fe80::1234:5678:9abc:def0 v2");
	assert_non_null(strstr(why, " more"));
}

static void prefixes_of_every_length_match_by_bits(void **state)
{
	struct weft_roce_gid g = entry(0, true, "10.128.0.1");
	struct weft_roce_subnet net = {.prefix = 96 + 9};

	(void)state;
	memcpy(net.net, g.gid, 16);
	assert_true(weft_roce_gid_in(g.gid, &net));
	net.net[13] = 0x00;
	assert_false(weft_roce_gid_in(g.gid, &net));
	net.prefix = 96 + 8;
	assert_true(weft_roce_gid_in(g.gid, &net));
	net.prefix = 128;
	assert_false(weft_roce_gid_in(g.gid, &net));
	memcpy(net.net, g.gid, 16);
	assert_true(weft_roce_gid_in(g.gid, &net));
}

/* ------------------------------------------------------------------ addresses */

static struct weft_roce_addr good_addr(enum weft_roce_kind kind)
{
	struct weft_roce_addr a = {
		.version = WEFT_ROCE_VERSION,
		.kind = (uint8_t)kind,
		.mtu = 5,
		.qpn = weft_put32(kind == WEFT_ROCE_UD ? 17 : 0),
		.seg = weft_put32(8320),
	};
	struct weft_roce_gid g = entry(0, true, "10.0.0.2");

	memcpy(a.gid, g.gid, 16);
	return a;
}

#define REFUSES(field, value)                                                           \
	do {                                                                            \
		a = good_addr(WEFT_ROCE_RC);                                            \
		a.field = value;                                                        \
		assert_int_equal(weft_roce_addr_check(&a, sizeof(a), WEFT_ROCE_RC, why, \
						      sizeof(why)),                     \
				 -EINVAL);                                              \
	} while (0)

static void addresses_are_judged_before_they_are_used(void **state)
{
	struct weft_roce_addr a = good_addr(WEFT_ROCE_RC);
	size_t i;

	(void)state;
	assert_int_equal(weft_roce_addr_check(&a, sizeof(a), WEFT_ROCE_RC, why, sizeof(why)), 0);
	assert_int_equal(weft_roce_addr_check(&a, sizeof(a), WEFT_ROCE_UD, why, sizeof(why)),
			 -EINVAL);
	for (i = 0; i < sizeof(a); i++)
		assert_int_equal(weft_roce_addr_check(&a, i, WEFT_ROCE_RC, NULL, 0), -EINVAL);
	a.version++;
	assert_int_equal(weft_roce_addr_check(&a, sizeof(a), WEFT_ROCE_RC, why, sizeof(why)),
			 -EPROTONOSUPPORT);
	has(why, "version");
	REFUSES(mtu, 0);
	REFUSES(mtu, 6);
	REFUSES(seg, weft_put32(100));
	REFUSES(seg, weft_put32(1 << 20));
	REFUSES(qpn, weft_put32(5));
	REFUSES(gid[12], 127);
	REFUSES(gid[12], 0);
	REFUSES(gid[12], 239);
	a = good_addr(WEFT_ROCE_UD);
	assert_int_equal(weft_roce_addr_check(&a, sizeof(a), WEFT_ROCE_UD, NULL, 0), 0);
	a.qpn = weft_put32(0);
	assert_int_equal(weft_roce_addr_check(&a, sizeof(a), WEFT_ROCE_UD, NULL, 0), -EINVAL);
}

static void connection_addresses_are_judged_too(void **state)
{
	struct weft_roce_ep_addr good =
					 {
						 .version = WEFT_ROCE_VERSION,
						 .num_qps = 2,
						 .reads = 16,
						 .window = weft_put32(64),
						 .psn = weft_put32(0xabcdef),
						 .word_addr = weft_put64(128),
						 .qpn = {weft_put32(18), weft_put32(19)},
					 },
				 a = good;
	size_t i;

	(void)state;
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), why, sizeof(why)), 0);
	for (i = 0; i < sizeof(a); i++)
		assert_int_equal(weft_roce_ep_addr_check(&a, i, NULL, 0), -EINVAL);
	a.num_qps = 3; /* one has no number */
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
	a = good;
	a.num_qps = 9;
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
	a = good;
	a.window = weft_put32(0);
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
	a.window = weft_put32(WEFT_ROCE_WINDOW_MAX + 1);
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
	a = good;
	a.psn = weft_put32(1u << 24);
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
	a = good;
	a.word_addr = weft_put64(132);
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
	a = good;
	a.qpn[1] = weft_put32(1u << 24);
	assert_int_equal(weft_roce_ep_addr_check(&a, sizeof(a), NULL, 0), -EINVAL);
}

static void immediate_data_holds_id_flags_and_count(void **state)
{
	uint32_t imm = weft_roce_imm(WEFT_ROCE_IMM_ACK_REQ, 31, 0xffffffff);

	(void)state;
	assert_int_equal(weft_roce_imm_id(imm), 31);
	assert_int_equal(imm & WEFT_ROCE_COUNT_MASK, WEFT_ROCE_COUNT_MASK);
	assert_true(imm & WEFT_ROCE_IMM_ACK_REQ);
	assert_false(imm & WEFT_ROCE_IMM_CONTROL);
	assert_int_equal(weft_roce_imm(0, 1, 0), 1u << 25);
}

static void half_a_count_is_not_believed(void **state)
{
	struct weft_roce_word w = weft_roce_word(0x01ff);
	uint32_t v;

	(void)state;
	assert_true(weft_roce_word_read(&w, &v) && v == 0x01ff);
	w.processed = weft_put32(0x0200);
	assert_false(weft_roce_word_read(&w, &v));
	w = weft_roce_word(0);
	assert_true(weft_roce_word_read(&w, &v) && v == 0);
}

/* ------------------------------------------------------------------ datagrams */

static uint8_t packet[WEFT_ROCE_GRH + sizeof(struct weft_roce_ud_head) + 64];

static void checksum(uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	ip[10] = ip[11] = 0;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

/* A datagram of @p payload bytes from 10.0.0.7. @return its length */
static size_t datagram(uint8_t am_id, size_t payload)
{
	struct weft_roce_ud_head h = {
		.magic = weft_put16(WEFT_ROCE_UD_MAGIC),
		.version = WEFT_ROCE_VERSION,
		.am_id = am_id,
		.src_conn = weft_put32(99),
		.dst_conn = weft_put32(0),
		.src_qkey = weft_put32(4711),
		.length = weft_put16((uint16_t)payload),
	};
	static const uint8_t ip[20] = {0x45, 0, 0,  84, 0, 0, 0x40, 0, 64, 17,
				       0,    0, 10, 0,  0, 7, 10,   0, 0,  8};

	memset(packet, 0x5a, sizeof(packet));
	memcpy(packet + 20, ip, 20);
	checksum(packet + 20);
	memcpy(packet + WEFT_ROCE_GRH, &h, sizeof(h));
	return WEFT_ROCE_GRH + sizeof(h) + payload;
}

static void a_datagram_contains_its_source(void **state)
{
	struct weft_roce_ud_packet p;
	size_t n = datagram(1, 33);
	char gid[48];

	(void)state;
	assert_int_equal(weft_roce_ud_check(packet, n, &p), 0);
	weft_roce_gid_print(p.gid, gid, sizeof(gid));
	assert_string_equal(gid, "10.0.0.7");
	assert_int_equal(p.am_id, 1);
	assert_int_equal(p.src_conn, 99);
	assert_int_equal(p.src_qkey, 4711);
	assert_int_equal(p.length, 33);
	assert_ptr_equal(p.data, packet + n - 33);
	/* IPv6 fills all of the header's place. */
	memset(packet, 0, WEFT_ROCE_GRH);
	packet[0] = 0x60;
	packet[8] = 0xfe;
	packet[9] = 0x80;
	packet[23] = 9;
	assert_int_equal(weft_roce_ud_check(packet, n, &p), 0);
	weft_roce_gid_print(p.gid, gid, sizeof(gid));
	assert_string_equal(gid, "fe80::9");
}

/* As rdma_rxe leaves the network header between queue pairs of one device: two MPI ranks, say. */
static void a_datagram_of_the_same_device_has_no_checksum(void **state)
{
	struct weft_roce_ud_packet p;
	size_t n = datagram(1, 33);
	char gid[48];

	(void)state;
	memset(packet, 0, 20);
	packet[20 + 2] = packet[20 + 3] = 0xa7; /* nor a length */
	packet[20 + 10] = packet[20 + 11] = 0xa7;
	assert_int_equal(weft_roce_ud_check(packet, n, &p), 0);
	weft_roce_gid_print(p.gid, gid, sizeof(gid));
	assert_string_equal(gid, "10.0.0.7");
	/* What may be IPv6 is, without a checksum that says otherwise. */
	packet[0] = 0x60;
	packet[8] = 0xfe;
	packet[9] = 0x80;
	assert_int_equal(weft_roce_ud_check(packet, n, &p), 0);
	weft_roce_gid_print(p.gid, gid, sizeof(gid));
	assert_string_equal(gid, "fe80::4500:a7a7");
}

static void damaged_datagrams_are_refused(void **state)
{
	struct weft_roce_ud_packet p;
	struct weft_roce_ud_head *h = (struct weft_roce_ud_head *)(packet + WEFT_ROCE_GRH);
	size_t n, i;

	(void)state;
	n = datagram(1, 33);
	for (i = 0; i < n; i++)
		assert_int_equal(weft_roce_ud_check(packet, i, &p), -EBADMSG);
	assert_int_equal(weft_roce_ud_check(packet, n + 1, &p), -EBADMSG);
	h->magic = weft_put16(1);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	datagram(32, 33);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	datagram(WEFT_ROCE_UD_BYE, 33);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), 0);
	datagram(1, 33);
	h->src_conn = weft_put32(0);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	/*
	 * A cookie is of the end that begins, or of RETRY, whose sender has no connection and no
	 * payload.
	 */
	datagram(1, 33);
	h->cookie = weft_put64(7);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), 0);
	h->dst_conn = weft_put32(5);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	datagram(WEFT_ROCE_UD_RETRY, 33);
	h->src_conn = weft_put32(0);
	h->dst_conn = weft_put32(5);
	h->cookie = weft_put64(7);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	h->length = weft_put16(0);
	assert_int_equal(weft_roce_ud_check(packet, n - 33, &p), 0);
	assert_int_equal(p.cookie, 7);
	for (i = 0; i < 3; i++) {
		h->src_conn = weft_put32(i == 0 ? 99 : 0);
		h->dst_conn = weft_put32(i == 1 ? 0 : 5);
		h->cookie = weft_put64(i == 2 ? 0 : 7);
		assert_int_equal(weft_roce_ud_check(packet, n - 33, &p), -EBADMSG);
	}
	datagram(1, 33);
	h->mtu = 6;
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	datagram(1, 33);
	h->reserved = 1;
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	datagram(1, 33);
	packet[20 + 8]++; /* the network header's checksum does not fit any more */
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
	datagram(1, 33);
	packet[20 + 12] = 224; /* from a multicast address */
	checksum(packet + 20);
	assert_int_equal(weft_roce_ud_check(packet, n, &p), -EBADMSG);
}

/* ------------------------------------------------------------------ options */

static void options_have_sane_defaults(void **state)
{
	struct weft_roce_opts o;

	(void)state;
	assert_int_equal(weft_roce_opts_parse("", &o, why, sizeof(why)), 0);
	assert_int_equal(o.gid, -1);
	assert_true(o.retry <= 6 && o.rnr_timer >= 12 && o.timeout > 0 && o.qps == 1);
	assert_true(weft_roce_give_up_ns(&o) > 1000000000 && weft_roce_give_up_ns(&o) < 3000000000);
}

static void bad_options(const char *text, const char *part)
{
	struct weft_roce_opts o;

	assert_int_equal(weft_roce_opts_parse(text, &o, why, sizeof(why)), -EINVAL);
	has(why, part);
}

static void options_are_read_and_judged(void **state)
{
	struct weft_roce_opts o;

	(void)state;
	assert_int_equal(
		weft_roce_opts_parse("gid=3,mtu=1024,tc=96,timeout=18,retry=0,rnr_timer=31,qps=4,"
				     "window=128,seg=16384",
				     &o, why, sizeof(why)),
		0);
	assert_true(o.gid == 3 && o.mtu == 1024 && o.tc == 96 && o.timeout == 18 && o.retry == 0 &&
		    o.rnr_timer == 31 && o.qps == 4 && o.window == 128 && o.seg == 16384);
	assert_int_equal(weft_roce_opts_parse("tc=0x6A", &o, why, sizeof(why)), 0);
	assert_int_equal(o.tc, 106);
	bad_options("tc=0x", "a number from 0 to 255");
	bad_options("tc=0x1ff", "a number from 0 to 255");
	bad_options("tc=0xg", "a number from 0 to 255");
	bad_options("retry=7", "a number from 0 to 6 is wanted (7 means for ever");
	bad_options("retry=8", "a number from 0 to 6");
	bad_options("rnr_timer=0", "a number from 1 to 31 is wanted (0 means 655 ms)");
	bad_options("mtu=9000", "the network device's MTU is set elsewhere");
	bad_options("timeout=0", "a number from 1 to 31");
	bad_options("mtu=1500", "one of 256, 512, 1024, 2048, 4096");
	bad_options("qps=9", "a number from 1 to 8");
	bad_options("subnet=10.0.0.0", "subnet=10.0.0.0/16");
	bad_options("subnet=10.0.0.0/33", "prefix length");
	bad_options("gid=1,subnet=10.0.0.0/8", "give one of them");
	bad_options("speed=9", "there are gid, subnet");
}

static void resources_are_a_device_and_perhaps_a_port(void **state)
{
	char device[64];
	unsigned int port;

	(void)state;
	assert_int_equal(weft_roce_resource_parse("mlx5_0", device, sizeof(device), &port), 0);
	assert_string_equal(device, "mlx5_0");
	assert_int_equal(port, 1);
	assert_int_equal(weft_roce_resource_parse("mlx5_0:2", device, sizeof(device), &port), 0);
	assert_string_equal(device, "mlx5_0");
	assert_int_equal(port, 2);
	assert_int_equal(weft_roce_resource_parse("", device, sizeof(device), &port), -EINVAL);
	assert_int_equal(weft_roce_resource_parse(":1", device, sizeof(device), &port), -EINVAL);
	assert_int_equal(weft_roce_resource_parse("a:0", device, sizeof(device), &port), -EINVAL);
	assert_int_equal(weft_roce_resource_parse("a:x", device, sizeof(device), &port), -EINVAL);
}

/* ------------------------------------------------------------------ error messages */

static void errors_are_sentences_for_people(void **state)
{
	struct weft_roce_names names = {"rxe0", "10.0.0.2"};
	char text[320];
	int i;

	(void)state;
	weft_roce_text_wc(&names, IBV_WC_RETRY_EXC_ERR, 1234567890, text, sizeof(text));
	assert_string_equal(text, "rxe0: peer 10.0.0.2 gave no answer for 1.2 s (transport retry "
				  "counter exceeded): is the program there, and its link up?");
	weft_roce_text_wc(&names, IBV_WC_REM_ACCESS_ERR, 0, text, sizeof(text));
	has(text, "refused access to its memory");
	/* Every status there is, and some that are not. */
	for (i = -1; i < 64; i++) {
		weft_roce_text_wc(&names, (enum ibv_wc_status)i, 0, text, sizeof(text));
		has(text, "rxe0: peer 10.0.0.2 ");
		assert_true(weft_roce_wc_error((enum ibv_wc_status)i) < 0);
	}
	weft_roce_text_connect(&names, ETIMEDOUT, text, sizeof(text));
	has(text, "does not answer address resolution");
	weft_roce_text_connect(&names, ENETUNREACH, text, sizeof(text));
	has(text, "no route");
	weft_roce_text_connect(&names, EBUSY, text, sizeof(text));
	has(text, "10.0.0.2");
	weft_roce_text_qp_event(&names, IBV_EVENT_QP_ACCESS_ERR, text, sizeof(text));
	has(text, "no key");
	weft_roce_text_setup("rxe0", "completion queue", ENOMEM, 65536, text, sizeof(text));
	has(text, "the limit of locked memory is 64 KiB");
	has(text, "ulimit -l");
	weft_roce_text_setup("rxe0", "completion queue", ENOMEM, 1ull << 30, text, sizeof(text));
	has(text, "the limit of locked memory is 1048576 KiB");
	weft_roce_text_setup("rxe0", "completion queue", ENOMEM, UINT64_MAX, text, sizeof(text));
	has(text, "Cannot allocate memory");
	weft_roce_text_setup("rxe0", "access to the device", EACCES, 0, text, sizeof(text));
	has(text, "/dev/infiniband");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gids_are_chosen_by_rule_with_the_reason),
		cmocka_unit_test(without_a_usable_gid_the_error_lists_what_there_is),
		cmocka_unit_test(of_many_gids_the_sentence_names_the_best),
		cmocka_unit_test(prefixes_of_every_length_match_by_bits),
		cmocka_unit_test(addresses_are_judged_before_they_are_used),
		cmocka_unit_test(connection_addresses_are_judged_too),
		cmocka_unit_test(immediate_data_holds_id_flags_and_count),
		cmocka_unit_test(half_a_count_is_not_believed),
		cmocka_unit_test(a_datagram_contains_its_source),
		cmocka_unit_test(a_lane_may_be_silent_for_as_long_as_it_takes),
		cmocka_unit_test(a_datagram_of_the_same_device_has_no_checksum),
		cmocka_unit_test(damaged_datagrams_are_refused),
		cmocka_unit_test(options_have_sane_defaults),
		cmocka_unit_test(options_are_read_and_judged),
		cmocka_unit_test(resources_are_a_device_and_perhaps_a_port),
		cmocka_unit_test(errors_are_sentences_for_people),
	};

	return cmocka_run_group_tests_name("roce", tests, NULL, NULL);
}
