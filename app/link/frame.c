/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a switch reads of a frame: its flow and its ECN bits. Frames are anybody's: every length is
 * checked.
 */

#include <string.h>

#include "link/link.h"

#define ETHER_LEN 14
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88a8
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define PROTO_TCP 6
#define PROTO_UDP 17

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* @return the type after all tags, 0 when the frame is cut short; @at: begin of its payload */
static uint16_t ether_type(const uint8_t *data, uint32_t len, uint32_t *at)
{
	uint16_t type;

	for (*at = ETHER_LEN; *at <= len; *at += 4) {
		type = be16(data + *at - 2);
		if (type != TYPE_VLAN && type != TYPE_QINQ)
			return type;
	}
	*at = len;
	return 0;
}

uint32_t sim_link_l2_len(const uint8_t *data, uint32_t len)
{
	uint32_t at;

	ether_type(data, len, &at);
	return at;
}

static uint32_t mix(uint32_t hash, const uint8_t *p, uint32_t n)
{
	for (; n; n--)
		hash = (hash ^ *p++) * 0x01000193u; /* FNV-1a */
	return hash;
}

/* Ports follow the addresses, except in fragments after the first. */
static uint32_t hash_ipv4(const uint8_t *ip, uint32_t len)
{
	uint32_t hash = mix(mix(0x811c9dc5u, ip + 9, 1), ip + 12, 8), hdr = (ip[0] & 15) * 4u;

	if ((ip[9] == PROTO_UDP || ip[9] == PROTO_TCP) && !(be16(ip + 6) & 0x1fff) && hdr >= 20 &&
	    hdr + 4 <= len)
		hash = mix(hash, ip + hdr, 4);
	return hash;
}

uint32_t sim_link_flow_hash(const uint8_t *data, uint32_t len)
{
	uint32_t at, hash;
	uint16_t type = ether_type(data, len, &at);

	if (type == TYPE_IPV4 && at + 20 <= len)
		hash = hash_ipv4(data + at, len - at);
	else if (type == TYPE_IPV6 && at + 44 <= len)
		hash = mix(mix(0x811c9dc5u, data + at + 6, 1), data + at + 8, 36);
	else
		hash = mix(0x811c9dc5u, data, len < ETHER_LEN ? len : ETHER_LEN);
	/* The low bits of FNV are weak when few bytes differ, and callers use the remainder. */
	return (uint32_t)(sim_mix64(hash) >> 32);
}

/* One's complement (RFC 1624): the word of the header grew by one or two. */
static void ipv4_checksum_update(uint8_t *ip, uint16_t before, uint16_t after)
{
	uint32_t sum = (uint16_t)~be16(ip + 10);

	sum += (uint16_t)~before + (uint32_t)after;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

bool sim_link_mark(struct sim_link_state *s, uint8_t *data, uint32_t len)
{
	uint32_t at;
	uint16_t type = ether_type(data, len, &at), before;
	uint8_t *ip = data + at;

	if (type == TYPE_IPV4 && at + 20 <= len) {
		if (!(ip[1] & 3))
			return false;
		before = be16(ip);
		ip[1] |= 3;
		ipv4_checksum_update(ip, before, be16(ip));
	} else if (type == TYPE_IPV6 && at + 40 <= len) {
		if (!(ip[1] & 0x30))
			return false;
		ip[1] |= 0x30; /* the traffic class's low bits: bits 4 and 5 of the second byte */
	} else {
		return false;
	}
	s->stats.marked++;
	return true;
}
