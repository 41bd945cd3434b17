/* SPDX-License-Identifier: BSD-3-Clause */
/* Validates frames that are not plain DATA, which parse.h does inline. */

#include <string.h>

#include "frame/csum.h"
#include "frame/parse.h"
#include "lane.h"

/* What has been read so far of the frame. */
struct cursor {
	const uint8_t *p;
	size_t left;
};

static const char *const gate_names[WEFT_GATE_COUNT] = {
	[WEFT_GATE_OK] = "ok",
	[WEFT_GATE_ARP] = "arp",
	[WEFT_GATE_NOT_OURS] = "not_ours",
	[WEFT_GATE_BAD_LENGTH] = "bad_length",
	[WEFT_GATE_BAD_IP] = "bad_ip",
	[WEFT_GATE_BAD_MAGIC] = "bad_magic",
	[WEFT_GATE_BAD_VERSION] = "bad_version",
	[WEFT_GATE_BAD_TYPE] = "bad_type",
	[WEFT_GATE_BAD_MESSAGE] = "bad_message",
	[WEFT_GATE_BAD_CSUM] = "bad_csum",
};

const char *weft_gate_name(enum weft_gate g)
{
	return g < WEFT_GATE_COUNT ? gate_names[g] : "?";
}

static enum weft_gate parse_arp(struct cursor *c, struct weft_frame_view *view)
{
	const struct weft_frame_arp *arp = (const struct weft_frame_arp *)c->p;

	if (c->left < sizeof(*arp))
		return WEFT_GATE_BAD_LENGTH;
	if (arp->htype != weft_be16(1) || arp->ptype != weft_be16(0x0800) || arp->hlen != 6 ||
	    arp->plen != 4)
		return WEFT_GATE_NOT_OURS;
	view->arp = arp;
	return WEFT_GATE_ARP;
}

/* IPv4 and UDP: the lengths they state bound what follows; Ethernet padding falls off here. */
static enum weft_gate parse_ip_udp(const struct weft_gate_conf *conf, struct cursor *c,
				   struct weft_frame_view *view)
{
	const uint8_t *ip = c->p, *udp = c->p + WEFT_IPV4_LEN;
	uint16_t total, udp_len;

	if (c->left < WEFT_IPV4_LEN)
		return WEFT_GATE_BAD_LENGTH;
	if (ip[9] != 17 || weft_get_be32(ip + 16) != conf->ip)
		return WEFT_GATE_NOT_OURS;
	total = weft_get_be16(ip + 2);
	/* No options, no fragments (MF or offset): nobody sends these to us, and they would hide
	 * the ports. */
	if (ip[0] != 0x45 || (weft_get_be16(ip + 6) & 0x3fff))
		return WEFT_GATE_BAD_IP;
	if (total > c->left || total < WEFT_IPV4_LEN + WEFT_UDP_LEN)
		return WEFT_GATE_BAD_LENGTH;
	if (conf->check_ip && !weft_ipv4_header_ok(ip))
		return WEFT_GATE_BAD_IP;
	view->dst_port = weft_get_be16(udp + 2);
	if (!weft_gate_port_ok(view->dst_port, conf->udp_port, &conf->range))
		return WEFT_GATE_NOT_OURS;
	udp_len = weft_get_be16(udp + 4);
	if (udp_len < WEFT_UDP_LEN || udp_len > total - WEFT_IPV4_LEN)
		return WEFT_GATE_BAD_LENGTH;

	view->l3 = ip;
	view->src_ip = weft_get_be32(ip + 12);
	view->src_port = weft_get_be16(udp);
	view->udp_csum = weft_get_be16(udp + 6);
	c->p = udp + WEFT_UDP_LEN;
	c->left = udp_len - WEFT_UDP_LEN;
	return WEFT_GATE_OK;
}

static enum weft_gate parse_l2(const struct weft_gate_conf *conf, struct cursor *c,
			       struct weft_frame_view *view)
{
	uint16_t type;

	if (c->left < WEFT_ETH_LEN)
		return WEFT_GATE_BAD_LENGTH;
	/* Group addresses: ARP asks are broadcast, everything of ours is unicast to our MAC. */
	if (!(c->p[0] & 1) && memcmp(c->p, conf->mac, 6) != 0)
		return WEFT_GATE_NOT_OURS;
	view->src_mac = c->p + 6;
	type = weft_get_be16(c->p + 12);
	c->p += WEFT_ETH_LEN;
	c->left -= WEFT_ETH_LEN;
	if (type == 0x8100) {
		if (c->left < WEFT_VLAN_LEN)
			return WEFT_GATE_BAD_LENGTH;
		if ((weft_get_be16(c->p) & 0xfff) != conf->vlan)
			return WEFT_GATE_NOT_OURS;
		type = weft_get_be16(c->p + 2);
		c->p += WEFT_VLAN_LEN;
		c->left -= WEFT_VLAN_LEN;
	} else if (conf->vlan != 0) {
		return WEFT_GATE_NOT_OURS;
	}
	if (conf->raw_ethertype)
		return type == WEFT_FRAME_ETHERTYPE ? WEFT_GATE_OK : WEFT_GATE_NOT_OURS;
	if (type == 0x0806)
		return parse_arp(c, view);
	if (type != 0x0800)
		return WEFT_GATE_NOT_OURS;
	return parse_ip_udp(conf, c, view);
}

/* Shortest body of each type; 0xffff = unknown type. Longer ones are allowed for what versions
 * append. */
static uint32_t body_min(uint8_t type)
{
	static const uint16_t min[WEFT_FRAME_TYPE_END] = {
		[0] = 0xffff,
		[WEFT_FRAME_HELLO] = sizeof(struct weft_frame_hello),
		[WEFT_FRAME_HELLO_ACK] = sizeof(struct weft_frame_hello),
		[WEFT_FRAME_PROBE] = sizeof(struct weft_frame_probe),
		[WEFT_FRAME_PROBE_ACK] = sizeof(struct weft_frame_probe),
		[WEFT_FRAME_READY] = sizeof(struct weft_frame_ready),
		[WEFT_FRAME_DATA] = sizeof(struct weft_frame_msg),
		[WEFT_FRAME_RESET] = sizeof(struct weft_frame_reset),
		[WEFT_FRAME_HELLO_RETRY] = sizeof(struct weft_frame_retry),
		[WEFT_FRAME_CHALLENGE] = sizeof(struct weft_frame_challenge),
		[WEFT_FRAME_CHALLENGE_ACK] = sizeof(struct weft_frame_challenge),
	};

	return type < WEFT_FRAME_TYPE_END ? min[type] : 0xffff;
}

static enum weft_gate check_crc(const uint8_t *lane, size_t len)
{
	weft_le32 want;

	memcpy(&want, lane + len, 4);
	return (uint32_t)~weft_crc32c(WEFT_CRC32C_INIT, lane, len) == weft_get32(want)
		       ? WEFT_GATE_OK
		       : WEFT_GATE_BAD_CSUM;
}

static enum weft_gate parse_sack(struct weft_frame_view *view)
{
	const struct weft_frame_sack *sack = (const struct weft_frame_sack *)view->body;
	uint32_t size, words;

	if (view->body_len < sizeof(*sack))
		return WEFT_GATE_BAD_LENGTH;
	words = weft_get16(sack->words);
	size = (uint32_t)sizeof(*sack) + 8 * words;
	if (words == 0 || words > WEFT_FRAME_SACK_WORDS || size > view->body_len)
		return WEFT_GATE_BAD_LENGTH;
	view->sack = sack;
	view->body += size;
	view->body_len -= size;
	return WEFT_GATE_OK;
}

/* Nobody reads it yet: it is checked and skipped. */
static enum weft_gate parse_ecn(struct weft_frame_view *view)
{
	const struct weft_frame_ecn *ecn = (const struct weft_frame_ecn *)view->body;
	uint32_t size, paths;

	if (view->body_len < sizeof(*ecn))
		return WEFT_GATE_BAD_LENGTH;
	paths = weft_get16(ecn->paths);
	size = (uint32_t)(sizeof(*ecn) + paths * sizeof(struct weft_frame_ecn_path));
	if (paths == 0 || paths > WEFT_FRAME_PATHS_MAX || size > view->body_len)
		return WEFT_GATE_BAD_LENGTH;
	view->body += size;
	view->body_len -= size;
	return WEFT_GATE_OK;
}

static enum weft_gate parse_lane(struct cursor *c, struct weft_frame_view *view)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)c->p;
	enum weft_gate g;
	uint16_t length;

	if (c->left < WEFT_FRAME_FIXED)
		return WEFT_GATE_BAD_LENGTH;
	if (weft_get16(hdr->magic) != WEFT_FRAME_MAGIC)
		return WEFT_GATE_BAD_MAGIC;
	view->hdr = hdr;
	view->type = hdr->type;
	/* RESET looks the same in all versions: it is how one version tells another. */
	if (hdr->version != WEFT_FRAME_VERSION && hdr->type != WEFT_FRAME_RESET)
		return WEFT_GATE_BAD_VERSION;
	if (c->left < sizeof(*hdr))
		return WEFT_GATE_BAD_LENGTH;
	view->flags = weft_get16(hdr->flags);
	length = weft_get16(hdr->length);
	if (length < sizeof(*hdr) ||
	    length + (view->flags & WEFT_FRAME_F_CRC32C ? 4u : 0u) > c->left)
		return WEFT_GATE_BAD_LENGTH;
	if (view->flags & WEFT_FRAME_F_CRC32C) {
		g = check_crc(c->p, length);
		if (g != WEFT_GATE_OK)
			return g;
	}
	if (view->flags & ~WEFT_FRAME_F_KNOWN)
		return WEFT_GATE_BAD_TYPE;
	view->body = c->p + sizeof(*hdr);
	view->body_len = length - (uint32_t)sizeof(*hdr);
	if (view->flags & WEFT_FRAME_F_SACK) {
		g = parse_sack(view);
		if (g != WEFT_GATE_OK)
			return g;
	}
	if (view->flags & WEFT_FRAME_F_ECN) {
		g = parse_ecn(view);
		if (g != WEFT_GATE_OK)
			return g;
	}
	if (view->body_len < body_min(view->type))
		return WEFT_GATE_BAD_TYPE;
	if (view->type == WEFT_FRAME_DATA && !weft_frame_messages_ok(view))
		return WEFT_GATE_BAD_MESSAGE;
	return WEFT_GATE_OK;
}

enum weft_gate weft_frame_parse(const struct weft_gate_conf *conf, const void *frame, size_t len,
				struct weft_frame_view *view)
{
	struct cursor c = {.p = frame, .left = len};
	enum weft_gate g;

	*view = (struct weft_frame_view){0};
	g = parse_l2(conf, &c, view);
	if (g != WEFT_GATE_OK)
		return g;
	/* Only ARP may come to a group address. */
	if (*(const uint8_t *)frame & 1)
		return WEFT_GATE_NOT_OURS;
	return parse_lane(&c, view);
}

void weft_gate_pattern_init(struct weft_gate_pattern *p, const struct weft_gate_conf *conf)
{
	const struct weft_frame_hdr hdr = {.magic = weft_put16(WEFT_FRAME_MAGIC),
					   .version = WEFT_FRAME_VERSION,
					   .type = WEFT_FRAME_DATA};
	struct weft_frame_hdr matters = {.flags = weft_put16(0xffff), .magic = weft_put16(0xffff)};
	uint8_t want[sizeof(p->want)] = {0}, mask[sizeof(p->mask)] = {0};
	uint8_t at = WEFT_ETH_LEN - 2;

	memcpy(want, conf->mac, 6);
	memset(mask, 0xff, 6);
	memset(mask + at, 0xff, 2);
	if (conf->vlan != 0) {
		weft_put_be16(want + at, 0x8100);
		weft_put_be16(want + at + 2, conf->vlan);
		weft_put_be16(mask + at + 2, 0xfff);
		at += WEFT_VLAN_LEN;
		memset(mask + at, 0xff, 2);
	}
	weft_put_be16(want + at, conf->raw_ethertype ? WEFT_FRAME_ETHERTYPE : 0x0800);
	at += 2;
	*p = (struct weft_gate_pattern){
		.check_ip = conf->check_ip,
		.udp_port = conf->udp_port,
		.range = conf->range,
	};
	if (!conf->raw_ethertype) {
		p->ip = at;
		want[at] = 0x45;
		mask[at] = 0xff;
		weft_put_be16(mask + at + 6, 0x3fff); /* no fragment */
		want[at + 9] = 17;
		mask[at + 9] = 0xff;
		weft_put_be32(want + at + 16, conf->ip);
		memset(mask + at + 16, 0xff, 4);
		at += WEFT_IPV4_LEN + WEFT_UDP_LEN;
	}
	p->lane = at;
	p->least = at + (uint32_t)(sizeof(hdr) + sizeof(struct weft_frame_msg));
	matters.version = matters.type = 0xff;
	memcpy(&p->lane_want, &hdr, sizeof(p->lane_want));
	memcpy(&p->lane_mask, &matters, sizeof(p->lane_mask));
	memcpy(p->want, want, sizeof(want));
	memcpy(p->mask, mask, sizeof(mask));
}

bool weft_frame_udp_csum_ok(const struct weft_frame_view *view)
{
	const uint8_t *udp = view->l3 + WEFT_IPV4_LEN;
	uint16_t len = weft_get_be16(udp + 4);
	uint64_t sum = 17u + len;

	if (view->udp_csum == 0)
		return false;
	sum = weft_inet_sum(sum, view->l3 + 12, 8);
	return weft_inet_fold(weft_inet_sum(sum, udp, len)) == 0;
}
