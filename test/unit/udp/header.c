/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The headers that the UDP port makes: the engine accepts them, and the port reads what the engine
 * has written.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame/frame.h"
#include "frame/parse.h"
#include "udp/udp_io.h"

#define US 0x0a000001u
#define PEER 0xfffefdfcu

struct frame {
	uint8_t head[WEFT_UDP_HEAD];
	struct weft_frame_hdr hdr;
	uint8_t rest[64];
} __attribute__((aligned(8)));

static struct weft_rx_filter make_filter(void)
{
	struct weft_rx_filter c = {.check_ip = true, .udp_port = 4000, .ip = US};

	weft_udp_mac(US, c.mac);
	return c;
}

/* Every length and TOS: the checksum of the header is right, and the view is what was given. */
static void received_head_is_valid(void **state)
{
	const struct weft_rx_filter conf = make_filter();
	struct weft_udp_way way = {
		.src_ip = PEER, .dst_ip = US, .src_port = 65535, .dst_port = 4000};
	struct weft_frame_view v;
	struct frame f = {.hdr = {.magic = weft_put16(WEFT_FRAME_MAGIC),
				  .version = WEFT_FRAME_VERSION,
				  .type = WEFT_FRAME_ACK,
				  .length = weft_put16(sizeof(f.hdr))}};
	const size_t size = offsetof(struct frame, rest) + sizeof(f.rest);
	uint8_t mac[6];

	(void)state;
	weft_udp_mac(PEER, mac);
	for (uint32_t extra = 0; extra <= sizeof(f.rest); extra++) {
		way.tos = (uint8_t)(extra * 7);
		weft_udp_head(f.head, &way, (uint32_t)sizeof(f.hdr) + extra);
		assert_int_equal(weft_frame_parse(&conf, &f, size, &v), WEFT_VERDICT_OK);
		assert_int_equal(v.src_ip, PEER);
		assert_int_equal(v.src_port, 65535);
		assert_int_equal(v.dst_port, 4000);
		assert_int_equal(v.ce, (way.tos & 3) == 3);
		assert_memory_equal(v.src_mac, mac, 6);
		assert_int_not_equal(v.udp_csum, 0);
	}
	/* A byte less than the headers report is no frame. */
	weft_udp_head(f.head, &way, sizeof(f.hdr) + sizeof(f.rest) + 1);
	assert_int_equal(weft_frame_parse(&conf, &f, size, &v), WEFT_VERDICT_BAD_LENGTH);
}

static void sent_head_is_read(void **state)
{
	const struct weft_encap_addr a = {
		.tos = 0xba,
		.src_ip = US,
		.dst_ip = PEER,
		.src_port = 4001,
		.dst_port = 5002,
	};
	uint8_t head[WEFT_ENCAP_MAX] __rte_aligned(2);
	struct weft_encap_hdr e;
	struct weft_udp_sent sent;
	struct frame f = {.hdr.type = WEFT_FRAME_DATA};

	(void)state;
	weft_encap_build(&e, head, &a);
	assert_int_equal(e.len, WEFT_UDP_HEAD);
	memcpy(f.head, head, e.len);
	weft_encap_patch(&e, f.head, 100, 4001, 5002);
	weft_udp_read(f.head, &sent);
	assert_null(sent.arp);
	assert_true(sent.data);
	assert_int_equal(sent.way.src_ip, US);
	assert_int_equal(sent.way.dst_ip, PEER);
	assert_int_equal(sent.way.src_port, 4001);
	assert_int_equal(sent.way.dst_port, 5002);
	assert_int_equal(sent.way.tos, 0xba);
	f.hdr.type = WEFT_FRAME_PROBE;
	weft_udp_read(f.head, &sent);
	assert_false(sent.data);
}

/* An error of the kernel's is the ICMP packet that a NIC would have received. */
static void errors_are_icmp(void **state)
{
	const struct weft_rx_filter conf = make_filter();
	struct weft_udp_error e = {
		.from_ip = PEER,
		.code = WEFT_ICMP_NO_PORT,
		.way = {.src_ip = US, .dst_ip = PEER, .src_port = 4000, .dst_port = 5002}};
	struct weft_frame_view v;
	struct weft_udp_icmp f;
	uint32_t size;

	(void)state;
	for (uint32_t i = 0; i < sizeof(e.quote); i++)
		e.quote[i] = (uint8_t)(i * 37);
	for (uint32_t len = 0; len <= sizeof(e.quote); len++) {
		size = weft_udp_icmp(&e, len, &f);
		assert_int_equal(weft_frame_parse(&conf, &f, size, &v), WEFT_VERDICT_ICMP);
		assert_int_equal(v.src_ip, PEER);
		assert_int_equal(v.icmp_code, WEFT_ICMP_NO_PORT);
		assert_int_equal(v.quote_len, sizeof(*v.quote) + len);
		assert_int_equal(v.quote_ip, PEER);
		assert_memory_equal(v.quote + 1, e.quote, len);
	}
	e.way.src_port = 4001; /* another lane's */
	size = weft_udp_icmp(&e, 0, &f);
	assert_int_equal(weft_frame_parse(&conf, &f, size, &v), WEFT_VERDICT_NOT_OURS);
}

static void requests_are_answered(void **state)
{
	struct rte_arp_hdr request = {.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
				      .arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
				      .arp_hlen = 6,
				      .arp_plen = 4,
				      .arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST),
				      .arp_data = {.arp_sip = rte_cpu_to_be_32(US),
						   .arp_tip = rte_cpu_to_be_32(PEER)}};
	const struct weft_rx_filter conf = make_filter();
	struct weft_udp_arp reply;
	struct weft_frame_view v;
	uint8_t mac[6];

	(void)state;
	memcpy(&request.arp_data.arp_sha, conf.mac, 6);
	weft_udp_mac(PEER, mac);
	assert_true(weft_udp_arp_reply(&request, &reply));
	assert_int_equal(weft_frame_parse(&conf, &reply, sizeof(reply), &v), WEFT_VERDICT_ARP);
	assert_int_equal(v.arp->arp_opcode, RTE_BE16(RTE_ARP_OP_REPLY));
	assert_int_equal(v.arp->arp_data.arp_sip, rte_cpu_to_be_32(PEER));
	assert_memory_equal(&v.arp->arp_data.arp_sha, mac, 6);
	/* An announcement, a request for the own address, and a reply get none. */
	request.arp_data.arp_sip = 0;
	assert_false(weft_udp_arp_reply(&request, &reply));
	request.arp_data.arp_sip = request.arp_data.arp_tip;
	assert_false(weft_udp_arp_reply(&request, &reply));
	request.arp_data.arp_sip = rte_cpu_to_be_32(US);
	request.arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	assert_false(weft_udp_arp_reply(&request, &reply));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(received_head_is_valid),
		cmocka_unit_test(sent_head_is_read),
		cmocka_unit_test(errors_are_icmp),
		cmocka_unit_test(requests_are_answered),
	};

	return cmocka_run_group_tests_name("udp_header", tests, NULL, NULL);
}
