/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weft-switch: where a frame goes, whether its sender may send it, and rings in memory that
 * another process writes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "frame/parse.h"
#include "switch/forward.h"

#define NET 0x0a000000u /* 10.0.0.0 */
#define OURS (NET + 16)
#define BASE 9338

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t outside_mac[6] = {0x52, 0x54, 0, 1, 2, 3};

/* Ports 0 to 3 of 8 have processes. */
static struct sw_plan each_plan(void)
{
	struct sw_plan p = {.uplink = true,
			    .ports = 8,
			    .udp_port = BASE,
			    .up = 0xf,
			    .mac = {2, 0x57, 1, 2, 3, 0}};

	for (uint32_t i = 0; i < 8; i++)
		p.ip[i] = OURS + i;
	return p;
}

static struct sw_plan single_plan(void)
{
	struct sw_plan p = each_plan();

	p.single = true;
	for (uint32_t i = 0; i < 8; i++)
		p.ip[i] = OURS;
	return p;
}

struct packet {
	uint8_t b[128];
	uint32_t len;
};

static void put16(uint8_t *at, uint16_t v)
{
	v = rte_cpu_to_be_16(v);
	memcpy(at, &v, 2);
}

static void put32(uint8_t *at, uint32_t v)
{
	v = rte_cpu_to_be_32(v);
	memcpy(at, &v, 4);
}

static struct packet ether(const uint8_t dst[6], const uint8_t src[6], uint16_t type)
{
	struct packet f = {.len = 60};

	memcpy(f.b, dst, 6);
	memcpy(f.b + 6, src, 6);
	put16(f.b + 12, type);
	return f;
}

static void ip_at(uint8_t *at, uint8_t protocol, uint32_t from, uint32_t to)
{
	at[0] = 0x45;
	at[9] = protocol;
	put32(at + 12, from);
	put32(at + 16, to);
}

static struct packet udp(const uint8_t dst[6], const uint8_t src[6], uint32_t from, uint32_t to,
			 uint16_t sport, uint16_t dport)
{
	struct packet f = ether(dst, src, 0x0800);

	ip_at(f.b + 14, 17, from, to);
	put16(f.b + 34, sport);
	put16(f.b + 36, dport);
	return f;
}

static struct packet arp(const uint8_t dst[6], const uint8_t src[6], uint16_t op, uint32_t from,
			 uint32_t about)
{
	struct packet f = ether(dst, src, 0x0806);

	put16(f.b + 20, op);
	memcpy(f.b + 22, src, 6);
	put32(f.b + 28, from);
	put32(f.b + 38, about);
	return f;
}

static void mac_of(const struct sw_plan *p, unsigned int port, uint8_t mac[6])
{
	sw_plan_mac(p, port, mac);
}

static void expect(struct sw_route r, uint64_t ports, bool uplink, enum sw_drop drop)
{
	assert_int_equal(r.ports, ports);
	assert_int_equal(r.uplink, uplink);
	assert_int_equal(r.drop, drop);
}

/* ---- a MAC for each ------------------------------------------------------------------------- */

static void frames_go_by_mac(void **state)
{
	struct sw_plan p = each_plan();
	uint8_t a[6], b[6], gone[6];
	struct packet f;

	mac_of(&p, 0, a);
	mac_of(&p, 2, b);
	mac_of(&p, 5, gone);
	f = udp(b, a, OURS, OURS + 2, BASE, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 1 << 2, false, SW_PASS);
	f = udp(outside_mac, a, OURS, NET + 99, BASE, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, true, SW_PASS);
	f = udp(gone, a, OURS, OURS + 5, BASE, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
	f = udp(b, outside_mac, NET + 99, OURS + 2, BASE, BASE);
	expect(sw_from_uplink(&p, f.b, f.len), 1 << 2, false, SW_PASS);
	f = ether(b, a, 0x88b5);
	expect(sw_from_port(&p, 0, f.b, f.len), 1 << 2, false, SW_PASS);
	p.uplink = false;
	f = udp(outside_mac, a, OURS, NET + 99, BASE, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
}

static void no_client_sends_with_others_addresses(void **state)
{
	struct sw_plan p = each_plan();
	uint8_t a[6], b[6], c[6];
	struct packet f;

	mac_of(&p, 0, a);
	mac_of(&p, 1, b);
	mac_of(&p, 2, c);
	f = udp(c, b, OURS, OURS + 2, BASE, BASE); /* another's MAC */
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = udp(c, a, OURS + 1, OURS + 2, BASE, BASE); /* another's IP address */
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = arp(c, a, 2, OURS + 1, OURS + 2); /* says that it has another's */
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = arp(c, a, 2, OURS, OURS + 2);
	memcpy(f.b + 22, b, 6); /* says that another has its own */
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = udp(c, b, OURS + 1, OURS + 2, BASE, BASE); /* from outside, by a MAC of ours */
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_SOURCE);
	/* behind a tag, too */
	p.vlans[0] = 1;
	f = ether(c, a, 0x8100);
	put16(f.b + 16, 0x0800);
	ip_at(f.b + 18, 17, OURS + 1, OURS + 2);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	put32(f.b + 30, OURS);
	expect(sw_from_port(&p, 0, f.b, f.len), 1 << 2, false, SW_PASS);
}

static struct packet tagged(const uint8_t dst[6], const uint8_t src[6], uint16_t kind, uint16_t tag,
			    uint16_t type, uint32_t from)
{
	struct packet f = ether(dst, src, kind);

	put16(f.b + 14, tag);
	put16(f.b + 16, type);
	ip_at(f.b + 18, 17, from, OURS + 2);
	return f;
}

static void tags_pass_if_they_are_named(void **state)
{
	struct sw_plan plans[] = {each_plan(), single_plan()};
	static const uint16_t kinds[] = {0x88a8, 0x9100, 0x9200, 0x9300};
	struct packet f;
	uint8_t mac[6];

	for (unsigned int i = 0; i < 2; i++) {
		struct sw_plan *p = &plans[i];

		mac_of(p, 0, mac);
		p->vlans[20 / 64] |= 1ull << 20;
		for (uint16_t vlan = 0; vlan < 4096; vlan++) {
			/* the priority in the upper bits is no part of the number */
			f = tagged(outside_mac, mac, 0x8100, vlan | 0xe000, 0x0800, OURS);
			put16(f.b + 38, BASE);
			assert_int_equal(sw_from_port(p, 0, f.b, f.len).uplink, vlan == 20);
			assert_int_equal(sw_from_port(p, 0, f.b, f.len).drop,
					 vlan == 20 ? SW_PASS : SW_DROP_VLAN);
			f = tagged(mac, outside_mac, 0x8100, vlan, 0x0800, NET + 99);
			put32(f.b + 34, OURS);
			put16(f.b + 40, BASE);
			expect(sw_from_uplink(p, f.b, f.len), vlan == 20, false,
			       vlan == 20 ? SW_PASS : SW_DROP_VLAN);
		}
		f = tagged(outside_mac, mac, 0x8100, 20, 0x8100, OURS); /* a second tag */
		expect(sw_from_port(p, 0, f.b, f.len), 0, false, SW_DROP_VLAN);
		f = tagged(mac, outside_mac, 0x8100, 20, 0x88a8, NET + 99);
		expect(sw_from_uplink(p, f.b, f.len), 0, false, SW_DROP_VLAN);
		for (unsigned int k = 0; k < 4; k++) {
			f = tagged(mac, outside_mac, kinds[k], 20, 0x0800, NET + 99);
			expect(sw_from_uplink(p, f.b, f.len), 0, false, SW_DROP_VLAN);
		}
	}
}

static void arp_goes_to_ports_that_can_answer(void **state)
{
	struct sw_plan p = each_plan();
	uint8_t a[6];
	struct packet f;

	mac_of(&p, 0, a);
	f = arp(everybody, a, 1, OURS, OURS + 3);
	expect(sw_from_port(&p, 0, f.b, f.len), 1 << 3, false, SW_PASS);
	f = arp(everybody, a, 1, OURS, NET + 99);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, true, SW_PASS);
	f = arp(everybody, a, 1, 0, OURS); /* a probe is heard by all */
	expect(sw_from_port(&p, 0, f.b, f.len), 0xe, true, SW_PASS);
	f = arp(everybody, outside_mac, 1, NET + 99, OURS + 1);
	expect(sw_from_uplink(&p, f.b, f.len), 1 << 1, false, SW_PASS);
	f = arp(everybody, outside_mac, 1, NET + 99, NET + 77);
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
	f = udp(everybody, outside_mac, NET + 99, 0xffffffff, 67, 68);
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_KIND);
}

/* ---- one address for all -------------------------------------------------------------------- */

static void frames_go_by_udp_port(void **state)
{
	struct sw_plan p = single_plan();
	struct packet f;
	uint8_t mac[6];

	mac_of(&p, 3, mac);
	f = udp(mac, outside_mac, NET + 99, OURS, BASE, BASE + 2);
	expect(sw_from_uplink(&p, f.b, f.len), 1 << 2, false, SW_PASS);
	/* of the ports that connections are opened from each has an eighth of a quarter */
	f = udp(mac, outside_mac, NET + 99, OURS, BASE, 0xc000 + 3 * 2048 + 77);
	expect(sw_from_uplink(&p, f.b, f.len), 1 << 3, false, SW_PASS);
	f = udp(mac, outside_mac, NET + 99, OURS, BASE, BASE + 6);
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
	f = udp(mac, outside_mac, NET + 99, OURS, BASE, 22);
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
	f = udp(mac, outside_mac, NET + 99, OURS + 1, BASE, BASE + 2);
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
	f = udp(outside_mac, mac, OURS, NET + 99, BASE + 1, BASE);
	expect(sw_from_port(&p, 1, f.b, f.len), 0, true, SW_PASS);
	f = udp(mac, mac, OURS, OURS, BASE + 1, BASE);
	expect(sw_from_port(&p, 1, f.b, f.len), 0, false, SW_DROP_UNKNOWN);
}

static void a_udp_port_is_an_address_too(void **state)
{
	struct sw_plan p = single_plan();
	struct packet f;
	uint8_t mac[6];

	mac_of(&p, 0, mac);
	f = udp(outside_mac, mac, OURS, NET + 99, BASE + 1, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = udp(outside_mac, mac, OURS, NET + 99, 53, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = udp(outside_mac, mac, OURS, NET + 99, 0xc000 + 2048, BASE);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SOURCE);
	f = ether(outside_mac, mac, 0x88b5); /* the owner of the answer is not known */
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_KIND);
	/* A fragment has no UDP header, whatever stands there. */
	f = udp(outside_mac, mac, OURS, NET + 99, BASE, BASE);
	put16(f.b + 20, 1);
	expect(sw_from_port(&p, 0, f.b, f.len), 0, false, SW_DROP_SHORT);
}

static void arp_and_icmp_find_their_port(void **state)
{
	struct sw_plan p = single_plan();
	struct packet f;
	uint8_t mac[6];

	p.up = 0xe;
	mac_of(&p, 0, mac);
	f = arp(everybody, outside_mac, 1, NET + 99, OURS); /* answered once */
	expect(sw_from_uplink(&p, f.b, f.len), 1 << 1, false, SW_PASS);
	f = arp(mac, outside_mac, 2, NET + 99, OURS); /* the sender of the request knows */
	expect(sw_from_uplink(&p, f.b, f.len), 0xe, false, SW_PASS);
	f = ether(mac, outside_mac, 0x0800);
	f.len = 14 + 20 + 8 + 28;
	ip_at(f.b + 14, 1, NET + 99, OURS);
	f.b[34] = 3;
	ip_at(f.b + 42, 17, OURS, NET + 99);
	put16(f.b + 62, BASE + 3);
	expect(sw_from_uplink(&p, f.b, f.len), 1 << 3, false, SW_PASS);
	f.b[34] = 8; /* a ping: of no connection */
	expect(sw_from_uplink(&p, f.b, f.len), 0, false, SW_DROP_KIND);
}

/* No length makes it read beyond the end: the frame stands at the end of its memory. */
static void cut_off_anywhere(void **state)
{
	struct sw_plan plans[] = {each_plan(), single_plan()};
	struct packet kinds[4], f;
	uint8_t mac[6], *exact;

	for (unsigned int i = 0; i < 2; i++) {
		mac_of(&plans[i], 0, mac);
		kinds[0] = udp(outside_mac, mac, OURS, NET + 99, BASE, BASE);
		kinds[1] = arp(everybody, mac, 1, OURS, NET + 99);
		kinds[2] = ether(outside_mac, mac, 0x8100);
		put16(kinds[2].b + 16, 0x0800);
		kinds[3] = kinds[0];
		kinds[3].b[23] = 1;
		kinds[3].b[34] = 3;
		for (unsigned int k = 0; k < 4; k++) {
			for (uint32_t len = 0; len <= 100; len++) {
				f = kinds[k];
				exact = test_malloc(len ? len : 1);
				memcpy(exact, f.b, len);
				sw_from_port(&plans[i], 0, exact, len);
				memcpy(f.b, mac, 6);
				memcpy(exact, f.b, len);
				sw_from_uplink(&plans[i], exact, len);
				test_free(exact);
			}
		}
	}
}

/* ---- ports whose process has ended ---------------------------------------------------------- */

#define PEER_CONN 7u
#define CONN 0x00030009u
#define TOKEN 0x12345678u

/* A lane frame of port 0 for port 5. @p tag: with 802.1Q; @p ip: over UDP */
static struct packet lane_frame(const struct sw_plan *p, uint8_t type, bool tag, bool ip)
{
	const struct weft_frame_hdr hdr = {
		.type = type,
		.dst_conn = weft_put32(CONN),
		.token = weft_put32(TOKEN),
		.src_conn = weft_put16(PEER_CONN),
	};
	struct weft_encap_addr a = {
		.vlan = tag ? 10 : 0,
		.raw_ethertype = !ip,
		.src_ip = OURS,
		.dst_ip = OURS + 5,
		.src_port = BASE + 100,
		.dst_port = BASE,
	};
	struct packet f;

	mac_of(p, 0, a.src_mac);
	mac_of(p, 5, a.dst_mac);
	f.len = weft_frame_write(f.b, &a, &hdr, NULL, 0);
	return f;
}

/* The farewell ends the connection whose frame it answers. */
static void expect_farewell(const struct sw_plan *p, const struct packet *f, bool tag, bool ip)
{
	uint8_t out[SW_FAREWELL_MAX];
	uint32_t len = sw_farewell(f->b, f->len, out);
	struct weft_rx_filter conf = {
		.raw_ethertype = !ip,
		.check_ip = true,
		.vlan = tag ? 10 : 0,
		.udp_port = BASE + 100,
		.ip = OURS,
	};
	const struct weft_frame_reset *body;
	struct weft_frame_view v = {0};
	uint8_t gone[6];

	mac_of(p, 0, conf.mac);
	mac_of(p, 5, gone);
	assert_int_equal(weft_frame_parse(&conf, out, len, &v), WEFT_VERDICT_OK);
	assert_int_equal(v.type, WEFT_FRAME_RESET);
	assert_memory_equal(v.src_mac, gone, 6);
	assert_int_equal(v.src_ip, ip ? OURS + 5 : 0);
	assert_int_equal(v.src_port, ip ? BASE : 0);
	assert_int_equal(weft_get32(v.hdr->dst_conn), PEER_CONN);
	body = (const struct weft_frame_reset *)v.body;
	assert_int_equal(weft_get16(body->reason), WEFT_RESET_GONE);
	assert_int_equal(weft_get32(body->echo_conn), CONN);
	assert_int_equal(weft_get32(body->echo_token), TOKEN);
}

/* @behaviour R86 */
static void a_frame_for_an_ended_process_gets_a_farewell(void **state)
{
	struct sw_plan p = each_plan();
	struct packet f = lane_frame(&p, WEFT_FRAME_DATA, false, true);

	p.vlans[0] = 1u << 10;
	assert_false(sw_from_port(&p, 0, f.b, f.len).gone); /* the port never had a process */
	p.gone = 1 << 5;
	for (unsigned int tag = 0; tag < 2; tag++) {
		for (unsigned int ip = 0; ip < 2; ip++) {
			f = lane_frame(&p, WEFT_FRAME_ACK, tag, ip);
			assert_true(sw_from_port(&p, 0, f.b, f.len).gone);
			expect_farewell(&p, &f, tag, ip);
		}
	}
	p.up |= 1 << 5;
	assert_false(sw_from_port(&p, 0, f.b, f.len).gone);
}

static void only_frames_of_connections_get_one(void **state)
{
	static const uint8_t none[] = {WEFT_FRAME_HELLO, WEFT_FRAME_HELLO_RETRY, WEFT_FRAME_RESET,
				       WEFT_FRAME_CHALLENGE};
	struct sw_plan p = each_plan();
	uint8_t out[SW_FAREWELL_MAX], *exact, a[6], gone[6];
	struct packet f;

	for (unsigned int i = 0; i < sizeof(none); i++) {
		f = lane_frame(&p, none[i], false, true);
		assert_int_equal(sw_farewell(f.b, f.len, out), 0);
	}
	f = lane_frame(&p, WEFT_FRAME_DATA, false, true);
	for (uint32_t len = 0; len < 14 + 28 + sizeof(struct weft_frame_hdr); len++) {
		exact = test_malloc(len ? len : 1);
		memcpy(exact, f.b, len);
		assert_int_equal(sw_farewell(exact, len, out), 0);
		test_free(exact);
	}
	f.b[42] ^= 1; /* the magic */
	assert_int_equal(sw_farewell(f.b, f.len, out), 0);
	mac_of(&p, 0, a);
	mac_of(&p, 5, gone);
	f = arp(gone, a, 2, OURS, OURS + 5);
	assert_int_equal(sw_farewell(f.b, f.len, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_go_by_mac),
		cmocka_unit_test(no_client_sends_with_others_addresses),
		cmocka_unit_test(tags_pass_if_they_are_named),
		cmocka_unit_test(arp_goes_to_ports_that_can_answer),
		cmocka_unit_test(frames_go_by_udp_port),
		cmocka_unit_test(a_udp_port_is_an_address_too),
		cmocka_unit_test(arp_and_icmp_find_their_port),
		cmocka_unit_test(cut_off_anywhere),
		cmocka_unit_test(a_frame_for_an_ended_process_gets_a_farewell),
		cmocka_unit_test(only_frames_of_connections_get_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
