/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "frame/csum.h"
#include "frame/encap.h"

#define IP_TTL 64
#define IP_PROTO_UDP 17
#define IP_DF 0x4000

static void build_ip_udp(struct weft_encap_hdr *e, uint8_t *ip, const struct weft_encap_addr *a)
{
	uint8_t *udp = ip + WEFT_IPV4_LEN;

	ip[0] = 0x45;
	weft_put_be16(ip + 6, IP_DF); /* so that a wrong MTU loses frames, which the probe sees, and
					 makes no fragments */
	ip[8] = IP_TTL;
	ip[9] = IP_PROTO_UDP;
	weft_put_be32(ip + 12, a->src_ip);
	weft_put_be32(ip + 16, a->dst_ip);
	weft_put_be16(udp, a->src_port);
	weft_put_be16(udp + 2, a->dst_port);
	e->ip_sum = (uint16_t)~weft_inet_fold(weft_inet_sum(0, ip, WEFT_IPV4_LEN));
	e->udp_sum = (uint16_t)~weft_inet_fold(weft_inet_sum(IP_PROTO_UDP, ip + 12, 8));
}

void weft_encap_build(struct weft_encap_hdr *e, const struct weft_encap_addr *a)
{
	uint8_t *p = e->bytes;

	memset(e, 0, sizeof(*e));
	memcpy(p, a->dst_mac, 6);
	memcpy(p + 6, a->src_mac, 6);
	p += 12;
	if (a->vlan != 0) {
		weft_put_be16(p, 0x8100);
		weft_put_be16(p + 2, a->vlan);
		p += WEFT_VLAN_LEN;
	}
	weft_put_be16(p, a->raw_ethertype ? WEFT_FRAME_ETHERTYPE : 0x0800);
	p += 2;
	e->l2_len = (uint8_t)(p - e->bytes);
	e->ip = !a->raw_ethertype;
	if (e->ip) {
		build_ip_udp(e, p, a);
		p += WEFT_IPV4_LEN + WEFT_UDP_LEN;
	}
	e->len = (uint8_t)(p - e->bytes);
}
