/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP that quotes a datagram of ours: what is taken, and what is dropped for which reason. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_icmp.h>

#include "frame/frame.h"
#include "frame/parse.h"

static const struct weft_encap_addr addr = {
	.src_mac = {2, 0, 0, 0, 0, 1},
	.dst_mac = {2, 0, 0, 0, 0, 2},
	.src_ip = 0x0a000001,
	.dst_ip = 0x0a000002,
	.src_port = 0xc123,
	.dst_port = 9338,
};

static const struct weft_rx_filter filter = {
	.check_ip = true,
	.udp_port = 9338,
	.ip = 0x0a000002,
	.mac = {2, 0, 0, 0, 0, 2},
};

/* A frame of the gate's port that did not arrive, or @p quoted bytes of it: malloc()ed. */
static uint8_t *icmp_frame(uint8_t type, size_t quoted, size_t *len)
{
	struct weft_encap_addr back = addr;
	struct rte_icmp_hdr *icmp;
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;
	uint8_t head[WEFT_ENCAP_MAX] __rte_aligned(2);
	struct weft_encap_hdr e;
	uint8_t *f;

	*len = RTE_ETHER_HDR_LEN + sizeof(*ip) + sizeof(*icmp) + quoted;
	f = calloc(1, *len);
	ip = (struct rte_ipv4_hdr *)(f + RTE_ETHER_HDR_LEN);
	icmp = (struct rte_icmp_hdr *)(ip + 1);
	weft_encap_l2(f, addr.dst_mac, addr.src_mac, 0, RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.next_proto_id = IPPROTO_ICMP,
		.src_addr = rte_cpu_to_be_32(addr.src_ip),
		.dst_addr = rte_cpu_to_be_32(addr.dst_ip),
		.total_length = rte_cpu_to_be_16((uint16_t)(*len - RTE_ETHER_HDR_LEN)),
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	back.src_ip = addr.dst_ip;
	back.dst_ip = addr.src_ip;
	weft_encap_build(&e, head, &back);
	memcpy(icmp + 1, head + RTE_ETHER_HDR_LEN,
	       RTE_MIN(quoted, e.len - (size_t)RTE_ETHER_HDR_LEN));
	if (quoted >= WEFT_IP_UDP_LEN) {
		udp = (struct rte_udp_hdr *)((struct rte_ipv4_hdr *)(icmp + 1) + 1);
		udp->src_port = rte_cpu_to_be_16(filter.udp_port);
	}
	icmp->icmp_type = type;
	icmp->icmp_code = 3;
	icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, sizeof(*icmp) + quoted);
	return f;
}

static enum weft_rx_verdict icmp_verdict(uint8_t *f, size_t len)
{
	struct weft_frame_view v;
	enum weft_rx_verdict g = weft_frame_parse(&filter, f, len, &v);

	free(f);
	return g;
}

static void icmp_about_our_frames_is_recognised(void **state)
{
	size_t quote =
		RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_icmp_hdr);
	struct weft_frame_view v;
	size_t len;
	uint8_t *f;

	(void)state;
	f = icmp_frame(WEFT_ICMP_UNREACHABLE, 70, &len);
	assert_int_equal(weft_frame_parse(&filter, f, len, &v), WEFT_VERDICT_ICMP);
	assert_ptr_equal(v.quote, f + quote + sizeof(struct rte_ipv4_hdr));
	assert_int_equal(v.quote_len, 70 - sizeof(struct rte_ipv4_hdr));
	assert_int_equal(v.quote_ip, addr.src_ip);
	assert_int_equal(v.icmp_code, 3);
	free(f);
	f = icmp_frame(WEFT_ICMP_UNREACHABLE, WEFT_IP_UDP_LEN, &len);
	assert_int_equal(icmp_verdict(f, len), WEFT_VERDICT_ICMP);
	f = icmp_frame(WEFT_ICMP_UNREACHABLE, WEFT_IP_UDP_LEN - 1, &len);
	assert_int_equal(icmp_verdict(f, len), WEFT_VERDICT_BAD_LENGTH);
	f = icmp_frame(11, 70, &len);
	assert_int_equal(icmp_verdict(f, len), WEFT_VERDICT_NOT_OURS);
	f = icmp_frame(WEFT_ICMP_UNREACHABLE, 70, &len);
	f[len - 1] ^= 1;
	assert_int_equal(icmp_verdict(f, len), WEFT_VERDICT_BAD_CSUM);
	f = icmp_frame(WEFT_ICMP_UNREACHABLE, 70, &len);
	assert_int_equal(icmp_verdict(f, len - 1), WEFT_VERDICT_BAD_LENGTH);
	/* From another port, and from another host. */
	for (size_t at = quote + 12; at <= quote + sizeof(struct rte_ipv4_hdr); at += 8) {
		f = icmp_frame(WEFT_ICMP_UNREACHABLE, 70, &len);
		f[at] ^= 1;
		((struct rte_icmp_hdr *)(f + quote) - 1)->icmp_cksum = 0;
		((struct rte_icmp_hdr *)(f + quote) - 1)->icmp_cksum = (uint16_t)~rte_raw_cksum(
			f + quote - sizeof(struct rte_icmp_hdr), len - quote + 8);
		assert_int_equal(icmp_verdict(f, len), WEFT_VERDICT_NOT_OURS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icmp_about_our_frames_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
