/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "engine/engine.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/ip.h"
#include "lane.h"

/*
 * Address of an iface, 32 bytes, little-endian:
 *   0 version (1)  1 flags (1 = own ethertype)  2 UDP port  4 VLAN  6 frame size  8 IPv4  12 prefix
 * 13 queues that the port hashes frames to; 0 = they are steered by UDP port, or there is one
 * 14 MAC (6)  20 0 (4)  24 iface id (8)
 */
#define ADDR_VERSION 1
#define ADDR_F_ETHER 1

static void put16(uint8_t *p, uint16_t v)
{
	v = weft_le16(v);
	memcpy(p, &v, 2);
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return weft_le16(v);
}

void raw_get_address(struct weft_lane_iface *base, void *buf)
{
	const struct raw_iface *iface = raw_iface_of(base);
	uint32_t ip = weft_le32(iface->gate.ip);
	uint64_t id = weft_le64(iface->iface_id);
	uint8_t *p = buf;

	memset(p, 0, RAW_ADDR_LEN);
	p[0] = ADDR_VERSION;
	p[1] = iface->gate.raw_ethertype ? ADDR_F_ETHER : 0;
	put16(p + 2, iface->gate.udp_port);
	put16(p + 4, iface->gate.vlan);
	put16(p + 6, iface->frame_size);
	memcpy(p + 8, &ip, 4);
	p[12] = iface->prefix;
	p[13] = iface->port->steering.hashed ? (uint8_t)iface->port->steering.queues : 0;
	memcpy(p + 14, iface->gate.mac, 6);
	memcpy(p + 24, &id, 8);
}

int raw_addr_read(const void *buf, size_t len, struct raw_addr *a)
{
	const uint8_t *p = buf;

	if (len < RAW_ADDR_LEN || p[0] != ADDR_VERSION || p[1] & ~ADDR_F_ETHER)
		return -EINVAL;
	*a = (struct raw_addr){
		.version = p[0],
		.raw_ethertype = p[1] & ADDR_F_ETHER,
		.udp_port = get16(p + 2),
		.vlan = get16(p + 4),
		.frame_size = get16(p + 6),
		.prefix = p[12],
		.queues = p[13],
	};
	memcpy(&a->ip, p + 8, 4);
	a->ip = weft_le32(a->ip);
	memcpy(a->mac, p + 14, 6);
	memcpy(&a->iface_id, p + 24, 8);
	a->iface_id = weft_le64(a->iface_id);
	return 0;
}

static uint32_t netmask(uint8_t prefix)
{
	return prefix == 0 ? 0 : ~0u << (32 - prefix);
}

/*
 * Who gets the frame: the peer itself, or the gateway. A static neighbour is on the link, whatever
 * its address is; so is the gateway.
 */
int raw_next_hop(const struct raw_iface *iface, uint32_t ip, uint32_t *hop)
{
	if (weft_arp_is_fixed(&iface->arp, ip))
		*hop = ip;
	else if (((ip ^ iface->gate.ip) & netmask(iface->prefix)) == 0)
		*hop = ip;
	else if (iface->gateway != 0)
		*hop = iface->gateway;
	else
		return -EHOSTUNREACH;
	return 0;
}

const char *raw_ip_hint(const struct raw_iface *iface)
{
	if (!iface->no_ip || iface->gate.raw_ethertype ||
	    iface->port->flags & WEFT_FRAME_PORT_MEMORY)
		return "";
	return "; without ip= this lane has a link-local address, which clouds and most networks "
	       "drop: give ip= and gw= of this NIC (weft-info --lane-options, doc/clouds.md)";
}

static void ip_text(uint32_t ip, char *buf, size_t size)
{
	snprintf(buf, size, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

int raw_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
		     size_t why_len)
{
	const struct raw_iface *iface = raw_iface_of(base);
	char ours[16], theirs[16];
	struct raw_addr a;
	uint32_t hop;

	if (iface->ended != 0) {
		snprintf(why, why_len, "%s", iface->ended_why);
		return iface->ended;
	}
	if (raw_addr_read(addr, len, &a) != 0) {
		snprintf(why, why_len, "%s: not an address of this driver's version", base->name);
		return -EINVAL;
	}
	if (a.iface_id == iface->iface_id) {
		snprintf(why, why_len, "%s: a raw lane does not reach its own iface", base->name);
		return -EHOSTUNREACH;
	}
	if (a.raw_ethertype != iface->gate.raw_ethertype) {
		snprintf(why, why_len,
			 "%s: one side uses UDP, the other its own ethertype (WEFT_ENCAP)",
			 base->name);
		return -EHOSTUNREACH;
	}
	if (a.raw_ethertype)
		return 0;
	ip_text(iface->gate.ip, ours, sizeof(ours));
	ip_text(a.ip, theirs, sizeof(theirs));
	if (!weft_lane_is_unicast(a.ip)) {
		snprintf(why, why_len, "%s: %s is not an address that a peer can have", base->name,
			 theirs);
		return -EINVAL;
	}
	if (a.ip == iface->gate.ip) {
		snprintf(why, why_len, "%s: the peer has our own IP address %s", base->name, ours);
		return -EHOSTUNREACH;
	}
	if (raw_next_hop(iface, a.ip, &hop) != 0) {
		snprintf(why, why_len,
			 "%s: %s is not in our subnet %s/%u and there is no gateway (gw=)%s",
			 base->name, theirs, ours, iface->prefix, raw_ip_hint(iface));
		return -EHOSTUNREACH;
	}
	return 0;
}

void weft_raw_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	struct raw_addr a;
	char ip[16];

	if (raw_addr_read(addr, len, &a) != 0) {
		snprintf(buf, size, "(not a raw-DPDK address)");
		return;
	}
	ip_text(a.ip, ip, sizeof(ip));
	if (a.raw_ethertype)
		snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x vlan %u frames of %u", a.mac[0],
			 a.mac[1], a.mac[2], a.mac[3], a.mac[4], a.mac[5], a.vlan, a.frame_size);
	else
		snprintf(buf, size, "%s/%u:%u vlan %u frames of %u", ip, a.prefix, a.udp_port,
			 a.vlan, a.frame_size);
}

const char *raw_peer_text(const struct raw_conn *c, char *buf, size_t size)
{
	const uint8_t *m = c->peer_mac;

	if (c->iface->gate.raw_ethertype)
		snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
			 m[5]);
	else
		snprintf(buf, size, "%u.%u.%u.%u:%u", c->peer_ip >> 24, c->peer_ip >> 16 & 255,
			 c->peer_ip >> 8 & 255, c->peer_ip & 255, c->peer_port);
	return buf;
}
