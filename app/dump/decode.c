/* SPDX-License-Identifier: BSD-3-Clause */

#include "drivers/dpdk/frame/frame.h"
#include "dump/decode.h"
#include "dump/keylog.h"

/* ---- records -------------------------------------------------------------------------------- */

/*
 * Decodes message records into views like those of DATA frames with one message, so that the code
 * that follows lanes and messages handles both. The frame header is computed from fields that are
 * equal in the records of both ends. The connection is a hash of the workers, the number of the
 * endpoint and the lane. The sequence is a hash of the message's own header.
 */

#define CRC_LEN 4u
#define KEY_BYTES 44u /* the longest header that distinguishes a message from others */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash(uint64_t h, const uint8_t *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		h = mix(h, p[i]);
	return h;
}

/* A number for one direction of one lane between two workers. */
static uint64_t lane_number(uint64_t from, uint64_t to, const struct weft_record_head *r)
{
	return mix(mix(mix(0x77, from), to), (uint64_t)weft_get32(r->conn_sn) << 8 | r->lane);
}

static void make_header(struct dump_view *v, const struct weft_record_head *r)
{
	uint64_t from = weft_get64(r->from), to = weft_get64(r->to);
	uint64_t there = lane_number(from, to, r), back = lane_number(to, from, r), seq;

	seq = hash(weft_get32(r->length), (const uint8_t *)&r->kind, 2);
	seq = hash(seq, v->body, v->body_cap < KEY_BYTES ? v->body_cap : KEY_BYTES);
	v->made = (struct weft_frame_hdr){
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = WEFT_FRAME_DATA,
		.dst_conn = weft_put32((uint32_t)there),
		.token = weft_put32((uint32_t)(there >> 32)),
		.src_conn = weft_put16((uint16_t)back),
		.seq = weft_put32((uint32_t)seq),
		.ts = weft_put32((uint32_t)(seq >> 32)),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};
	v->hdr = &v->made;
}

static const char *record_wrong(const struct dump_frame *frame, const struct weft_record_head *r)
{
	uint32_t length = weft_get32(r->length), behind = frame->len - (uint32_t)sizeof(*r);

	if (weft_get16(r->magic) != WEFT_RECORD_MAGIC)
		return "the magic number is not that of a message record";
	if (r->version != WEFT_RECORD_VERSION)
		return "the record has another version than this weft-dump";
	if (r->kind == 0 || r->kind >= WEFT_RECORD_KINDS)
		return "the kind of the record is unknown";
	if (weft_get16(r->flags) & ~WEFT_RECORD_F_DONE)
		return "unknown flags are set";
	if (r->kind != WEFT_RECORD_MESSAGE)
		return behind == sizeof(struct weft_record_native) && !r->am_id
			       ? NULL
			       : "the length is not that of a native operation";
	if (r->am_id == 0 || r->am_id >= 32)
		return "the message id is not from 1 to 31";
	return behind == length && length
		       ? NULL
		       : "the length of the message differs from that in the head";
}

/* dump_decode() of a record. */
static void dump_record(const struct dump_frame *frame, struct dump_view *v)
{
	const struct weft_record_head *r = (const void *)frame->data;

	v->what = DUMP_WRONG;
	v->cut = frame->caplen < frame->len;
	if (frame->caplen < sizeof(*r)) {
		v->wrong = frame->len < sizeof(*r) ? "the packet is too short for a record"
						   : "the capture has cut its header";
		return;
	}
	v->wrong = record_wrong(frame, r);
	if (v->wrong)
		return;
	v->what = DUMP_RECORD;
	v->record = r;
	v->body = frame->data + sizeof(*r);
	v->body_len = frame->len - (uint32_t)sizeof(*r);
	v->body_cap = frame->caplen - (uint32_t)sizeof(*r);
	v->length = frame->len;
	make_header(v, r);
}

/* dump_msg_next() of a record. */
static bool dump_record_message(const struct dump_view *v, uint32_t *at, struct dump_msg *msg)
{
	if (*at)
		return false;
	*msg = (struct dump_msg){
		.id = v->record->am_id, .len = v->body_len, .cap = v->body_cap, .data = v->body};
	*at = v->body_len;
	return true;
}

bool dump_record_is_unique(const struct dump_view *v)
{
	static const uint32_t with_sequence = 1u << WEFT_WIRE_EAGER | 1u << WEFT_WIRE_EAGER_SYNC |
					      1u << WEFT_WIRE_FRAG | 1u << WEFT_WIRE_FRAG_SYNC |
					      1u << WEFT_WIRE_RTS | 1u << WEFT_WIRE_AM |
					      1u << WEFT_WIRE_AM_RTS | 1u << WEFT_WIRE_AM_FRAG;

	return dump_is_message(v) && with_sequence >> v->record->am_id & 1;
}

/* ---- frames --------------------------------------------------------------------------------- */

#define VLAN_ID 0xfff

/* A position in a frame, whose end may not be in the capture. */
struct cursor {
	const uint8_t *p;
	uint32_t left; /* captured bytes from p on */
	uint32_t len;  /* bytes of the frame from p on */
};

static void skip(struct cursor *c, uint32_t n)
{
	c->p += n;
	c->left -= n;
	c->len -= n;
}

static void set_wrong(struct dump_view *v, const char *why)
{
	v->what = DUMP_WRONG;
	v->wrong = why;
}

static void damaged(struct dump_view *v, const char *why)
{
	v->damaged = true;
	set_wrong(v, why);
}

/* ICMP. Its length is that of the IPv4 header: bytes after it are padding of Ethernet. */
static void icmp(const struct cursor *c, struct dump_view *v, const struct rte_ipv4_hdr *ip)
{
	const uint32_t head = sizeof(*ip);
	uint32_t total = weft_be16(ip->total_length);

	if (total < head || total > c->len)
		return;
	network_icmp(ip, total - head, (c->left < total ? c->left : total) - head, &v->icmp);
}

/* icmp() for IPv6. */
static void icmp6(const struct cursor *c, struct dump_view *v, const struct rte_ipv6_hdr *ip)
{
	uint32_t cap = c->left - (uint32_t)sizeof(*ip), len = weft_be16(ip->payload_len);

	if (len > c->len - sizeof(*ip))
		return;
	cap = cap < len ? cap : len;
	if (network_nd(ip, len, cap, v->src_mac, &v->neighbour))
		v->what = DUMP_ND;
	else
		network_icmp6(ip, len, cap, &v->icmp);
}

static bool has_magic(const struct cursor *c, uint32_t at)
{
	return c->left >= at + 2 && c->p[at] == (WEFT_FRAME_MAGIC & 0xff) &&
	       c->p[at + 1] == WEFT_FRAME_MAGIC >> 8;
}

static bool is_fragment(const struct rte_ipv4_hdr *ip)
{
	return ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);
}

/*
 * A packet of RoCE v2, at its UDP header.
 * @param room  bytes behind the IP header, by that header.
 */
static void roce(const struct cursor *c, struct dump_view *v, uint32_t head, uint32_t room)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(c->p + head);
	uint32_t len = weft_be16(udp->dgram_len);

	if (v->dst_port != ROCEV2_PORT)
		return;
	v->what = DUMP_ROCE;
	if (len < sizeof(*udp) || len > room || room > c->len - head)
		v->roce.wrong = "the lengths in the IP and UDP headers contradict each other";
	else
		rocev2_decode((const uint8_t *)(udp + 1), len - (uint32_t)sizeof(*udp),
			      c->left - head - (uint32_t)sizeof(*udp), &v->roce);
}

/* IPv4 and UDP. Their lengths end the frame: bytes after them are padding of Ethernet. */
static bool ip_udp(struct cursor *c, struct dump_view *v)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)c->p;
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint32_t total, udp_len;

	if (c->left < WEFT_IP_UDP_LEN || ip->version_ihl != RTE_IPV4_VHL_DEF)
		return false;
	v->src = dump_address(ADDRESS_IP4, &ip->src_addr);
	v->dst = dump_address(ADDRESS_IP4, &ip->dst_addr);
	if (ip->next_proto_id == IPPROTO_ICMP)
		icmp(c, v, ip);
	if (ip->next_proto_id != IPPROTO_UDP)
		return false;
	total = weft_be16(ip->total_length);
	udp_len = weft_be16(udp->dgram_len);
	v->src_port = weft_be16(udp->src_port);
	v->dst_port = weft_be16(udp->dst_port);
	v->ecn = ip->type_of_service & RTE_IPV4_HDR_ECN_MASK;
	if (!has_magic(c, WEFT_IP_UDP_LEN)) {
		if (!is_fragment(ip))
			roce(c, v, sizeof(*ip), total < sizeof(*ip) ? 0 : total - sizeof(*ip));
		return false;
	}
	if (total > c->len || total < WEFT_IP_UDP_LEN || udp_len < sizeof(*udp) ||
	    udp_len > total - sizeof(*ip))
		set_wrong(v, "the lengths in the IPv4 and UDP headers contradict each other");
	else if (!weft_ipv4_header_ok(ip))
		damaged(v, "the checksum of the IPv4 header is wrong");
	else if (is_fragment(ip))
		set_wrong(v, "the packet is a fragment of an IPv4 packet");
	else
		c->len = udp_len - (uint32_t)sizeof(*udp) + WEFT_IP_UDP_LEN;
	if (c->left > c->len)
		c->left = c->len;
	skip(c, WEFT_IP_UDP_LEN);
	return v->what != DUMP_WRONG;
}

/* ip_udp() of IPv6. The UDP checksum is not verified: a NIC may fill it behind the capture. */
static bool ip6_udp(struct cursor *c, struct dump_view *v)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)c->p;
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint32_t total, udp_len;

	if (c->left < WEFT_IP6_UDP_LEN || *c->p >> 4 != 6)
		return false;
	v->src = dump_address(ADDRESS_IP6, &ip->src_addr);
	v->dst = dump_address(ADDRESS_IP6, &ip->dst_addr);
	if (ip->proto == IPPROTO_ICMPV6)
		icmp6(c, v, ip);
	if (ip->proto != IPPROTO_UDP)
		return false;
	total = weft_be16(ip->payload_len);
	udp_len = weft_be16(udp->dgram_len);
	v->src_port = weft_be16(udp->src_port);
	v->dst_port = weft_be16(udp->dst_port);
	v->ecn = (uint8_t)(weft_be32(ip->vtc_flow) >> 20 & WEFT_IP_ECN);
	if (!has_magic(c, WEFT_IP6_UDP_LEN)) {
		roce(c, v, sizeof(*ip), total);
		return false;
	}
	if (total > c->len - sizeof(*ip) || udp_len < sizeof(*udp) || udp_len > total)
		set_wrong(v, "the lengths in the IPv6 and UDP headers contradict each other");
	else
		c->len = udp_len + (uint32_t)sizeof(*ip);
	if (c->left > c->len)
		c->left = c->len;
	skip(c, WEFT_IP6_UDP_LEN);
	return v->what != DUMP_WRONG;
}

/* @return whether a lane header follows */
static bool outer(struct cursor *c, struct dump_view *v)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)c->p;
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);
	rte_be16_t type;

	if (c->left < sizeof(*eth))
		return false;
	v->dst_mac = eth->dst_addr.addr_bytes;
	v->src_mac = eth->src_addr.addr_bytes;
	v->src = dump_address(ADDRESS_MAC, v->src_mac);
	v->dst = dump_address(ADDRESS_MAC, v->dst_mac);
	type = eth->ether_type;
	skip(c, sizeof(*eth));
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		if (c->left < sizeof(*tag))
			return false;
		v->vlan = weft_be16(tag->vlan_tci) & VLAN_ID;
		type = tag->eth_proto;
		skip(c, sizeof(*tag));
	}
	if (type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
		if (network_arp((const struct rte_arp_hdr *)c->p, c->left, &v->neighbour))
			v->what = DUMP_ARP;
		return false;
	}
	if (type == RTE_BE16(WEFT_FRAME_ETHERTYPE))
		return true;
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		return ip6_udp(c, v);
	return type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && ip_udp(c, v);
}

/* Is the CRC32C in the last 4 bytes wrong? For a frame whose fields contradict each other. */
static bool crc_differs(const struct cursor *c)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)c->p;
	weft_le32 want;

	if (c->left < sizeof(*hdr) + 4 || c->left < c->len ||
	    !(weft_get16(hdr->flags) & WEFT_FRAME_F_CRC32C))
		return false;
	memcpy(&want, c->p + c->len - 4, 4);
	return (uint32_t)~weft_crc32c(WEFT_CRC32C_INIT, c->p, c->len - 4) != weft_get32(want);
}

static const char *check_crc(struct dump_view *v, const struct cursor *c)
{
	weft_le32 want;

	if (!(v->flags & WEFT_FRAME_F_CRC32C))
		return v->hdr->type != WEFT_FRAME_DATA && v->hdr->type != WEFT_FRAME_ACK
			       ? "the frame has no CRC32C, which its type requires"
			       : NULL;
	if (v->length + 4 > c->len)
		return "the frame has no space for its CRC32C";
	if (c->left < v->length + 4)
		return NULL; /* cut by the capture */
	memcpy(&want, c->p + v->length, 4);
	v->damaged = (uint32_t)~weft_crc32c(WEFT_CRC32C_INIT, c->p, v->length) != weft_get32(want);
	return v->damaged ? "the CRC32C is wrong" : NULL;
}

/*
 * Skip a block: four bytes, of which the first two are a number of units, then the units.
 * @param unit  bytes of each. @param most  units, at most. @return the number; 0: malformed, or cut
 */
static uint16_t block(struct dump_view *v, uint32_t unit, uint16_t most)
{
	uint16_t n, zero;

	if (v->body_cap < 4)
		return 0;
	n = (uint16_t)(v->body[0] | v->body[1] << 8);
	zero = (uint16_t)(v->body[2] | v->body[3] << 8);
	if (n == 0 || n > most || zero || 4 + n * unit > v->body_len || 4 + n * unit > v->body_cap)
		return 0;
	v->body += 4 + n * unit;
	v->body_len -= 4 + n * unit;
	v->body_cap -= 4 + n * unit;
	return n;
}

static const char *blocks(struct dump_view *v)
{
	const uint8_t *at = v->body + 4;

	if (v->flags & WEFT_FRAME_F_SACK) {
		v->sack_words = block(v, 8, WEFT_FRAME_SACK_WORDS);
		v->sack = (const weft_le64 *)at;
		if (!v->sack_words)
			return "the SACK block is malformed";
	}
	at = v->body + 4;
	if (v->flags & WEFT_FRAME_F_ECN) {
		v->ecn_paths = block(v, sizeof(*v->ecn_path), WEFT_FRAME_PATHS_MAX);
		v->ecn_path = (const struct weft_frame_ecn_path *)at;
		if (!v->ecn_paths)
			return "the ECN block is malformed";
	}
	if (v->flags & WEFT_FRAME_F_PROGRESS) {
		if (v->body_len < sizeof(*v->progress) || v->body_cap < sizeof(*v->progress))
			return "the progress block is malformed";
		v->progress = (const struct weft_frame_progress *)v->body;
		v->body += sizeof(*v->progress);
		v->body_len -= (uint32_t)sizeof(*v->progress);
		v->body_cap -= (uint32_t)sizeof(*v->progress);
	}
	return NULL;
}

static const char *check_messages(const struct dump_view *v)
{
	const struct weft_frame_msg *m;
	uint32_t at = 0;

	if (v->body_len < sizeof(*m))
		return "the DATA frame has no message";
	while (at < v->body_len) {
		if (v->body_len - at < sizeof(*m))
			return "the messages do not fill the body";
		if (v->body_cap < at + sizeof(*m))
			return NULL; /* cut by the capture */
		m = (const struct weft_frame_msg *)(v->body + at);
		if (m->am_id == 0 || m->am_id >= 32 || m->flags)
			return "the head of a message is malformed";
		at += (uint32_t)sizeof(*m) + weft_get16(m->length);
	}
	return at == v->body_len ? NULL : "the messages do not fill the body";
}

static const char *check_body(const struct dump_view *v)
{
	const struct dump_shape *shape = dump_shape_of_frame(v->hdr->type);
	const struct weft_frame_ready *ready = (const void *)v->body;
	const struct weft_frame_part *part = (const void *)v->body;
	uint32_t offset, total, end;

	if (v->hdr->type == WEFT_FRAME_DATA)
		return check_messages(v);
	if (v->body_len < shape->size)
		return "the body is too short for its type";
	if (v->body_cap < shape->size)
		return NULL; /* cut by the capture */
	if (v->hdr->type == WEFT_FRAME_READY &&
	    v->body_len < sizeof(*ready) + 2u * weft_get16(ready->paths))
		return "the READY frame states more paths than it has ports";
	if (v->hdr->type != WEFT_FRAME_PART)
		return NULL;
	offset = weft_get16(part->offset);
	total = weft_get16(part->total);
	end = offset + v->body_len - (uint32_t)sizeof(*part);
	return v->body_len == sizeof(*part) || offset % WEFT_FRAME_PART_UNIT || end > total ||
			       (end < total && end % WEFT_FRAME_PART_UNIT)
		       ? "the part does not lie in its frame"
		       : NULL;
}

/* @return what is wrong; NULL also if no key opens it: its body then counts as cut off */
static const char *sealed(const struct cursor *c, struct dump_view *v, struct dump_keylog *keylog)
{
	const uint32_t head = sizeof(*v->hdr) + WEFT_FRAME_NUMBER_LEN;
	enum dump_opened opened = DUMP_NO_KEY;
	const uint8_t *plain;
	const char *why;

	if (v->length < head || v->length + WEFT_FRAME_TAG_LEN > c->len)
		return "the sealed frame has no space for its number and tag";
	if (v->flags & ~(WEFT_FRAME_F_KNOWN | WEFT_FRAME_F_OF_SEAL) ||
	    v->flags & WEFT_FRAME_F_CRC32C)
		return "unknown flags are set";
	v->body_len = v->length - head;
	v->body = c->p + (c->left < head ? c->left : head);
	if (keylog && c->left >= head)
		opened = dump_keylog_open(keylog, c->p, c->left, v->length, &plain);
	v->sealed = opened == DUMP_NO_KEY;
	if (opened == DUMP_BAD_TAG) {
		v->damaged = true;
		v->body_len = 0;
		return "the tag of the sealed frame is wrong";
	}
	if (v->sealed)
		return NULL;
	v->body_cap = (c->left < v->length ? c->left : v->length) - head;
	v->opened = c->p;
	v->hdr = (const struct weft_frame_hdr *)plain;
	v->body = plain + sizeof(*v->hdr);
	v->flags = weft_get16(v->hdr->flags);
	v->length = weft_get16(v->hdr->length);
	why = blocks(v);
	return why ? why : check_body(v);
}

static const char *lane(struct cursor *c, struct dump_view *v, struct dump_keylog *keylog)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)c->p;
	const char *why;

	if (c->len < sizeof(*hdr))
		return "the frame is too short for a lane header";
	if (c->left < sizeof(*hdr)) {
		v->cut = true;
		v->what = DUMP_CUT;
		return NULL;
	}
	if (weft_get16(hdr->magic) != WEFT_FRAME_MAGIC)
		return "the magic number is not that of a lane frame";
	/* RESET has one format in all versions: hosts report their version to each other by it. */
	if (hdr->version != WEFT_FRAME_VERSION && hdr->type != WEFT_FRAME_RESET)
		return "the frame has another version than this weft-dump";
	v->hdr = hdr;
	v->flags = weft_get16(hdr->flags);
	v->length = weft_get16(hdr->length);
	if (v->length < sizeof(*hdr) || v->length > c->len)
		return "the length in the lane header does not fit the frame";
	if (!dump_shape_of_frame(hdr->type))
		return "the type of the frame is unknown";
	if (v->flags & WEFT_FRAME_F_SEALED)
		return sealed(c, v, keylog);
	why = check_crc(v, c);
	if (why)
		return why;
	if (v->flags & ~WEFT_FRAME_F_KNOWN)
		return "unknown flags are set";
	v->body = c->p + sizeof(*hdr);
	v->body_len = v->length - (uint32_t)sizeof(*hdr);
	v->body_cap = c->left - (uint32_t)sizeof(*hdr);
	if (v->body_cap > v->body_len)
		v->body_cap = v->body_len;
	why = blocks(v);
	return why ? why : check_body(v);
}

void dump_decode(const struct dump_frame *frame, struct dump_view *v)
{
	struct cursor c = {.p = frame->data, .left = frame->caplen, .len = frame->len};
	const char *why;

	*v = (struct dump_view){.what = DUMP_OTHER};
	if (frame->record) {
		dump_record(frame, v);
		return;
	}
	if (!outer(&c, v))
		return;
	v->what = DUMP_LANE;
	v->cut = frame->caplen < frame->len;
	why = lane(&c, v, frame->keylog);
	/* Check the CRC also of a frame with a wrong field: the flipped bit may be in it. */
	v->damaged = v->damaged || (why && crc_differs(&c));
	if (why && v->body && v->body_cap < v->body_len)
		why = NULL; /* a frame that the capture has cut can't be checked */
	if (frame->damaged && !why) {
		v->damaged = true;
		why = "its receiver found a wrong checksum";
	}
	if (why)
		set_wrong(v, why);
}

/*
 * Correct the lengths in the headers before a lane frame that has become shorter. The IPv4 header
 * gets its checksum, and UDP over IPv4 none. That of UDP over IPv6 stays, and is wrong.
 */
static void shorten(uint8_t *frame, uint32_t outer, uint16_t by, bool six)
{
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(frame + outer) - 1;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)udp - 1;
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)udp - 1;

	if (six) {
		udp->dgram_len = rte_cpu_to_be_16((uint16_t)(weft_be16(udp->dgram_len) - by));
		ip6->payload_len = udp->dgram_len;
		return;
	}
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(weft_be16(udp->dgram_len) - by));
	udp->dgram_cksum = 0;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(weft_be16(ip->total_length) - by));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

uint32_t dump_decode_plain(const struct dump_frame *frame, const struct dump_view *v, uint8_t *out,
			   uint32_t *len)
{
	const uint32_t spare = WEFT_FRAME_NUMBER_LEN + WEFT_FRAME_TAG_LEN - CRC_LEN;
	struct weft_frame_hdr *hdr;
	uint32_t outer, cap;
	weft_le32 crc;

	if (!v->opened)
		return 0;
	outer = (uint32_t)(v->opened - frame->data);
	cap = frame->caplen - outer - WEFT_FRAME_NUMBER_LEN;
	if (cap > v->length)
		cap = v->length;
	memcpy(out, frame->data, outer);
	memcpy(out + outer, v->hdr, cap);
	hdr = (struct weft_frame_hdr *)(out + outer);
	hdr->flags = weft_put16(v->flags | WEFT_FRAME_F_CRC32C);
	if (outer >= RTE_ETHER_HDR_LEN + WEFT_IP_UDP_LEN)
		shorten(out, outer, (uint16_t)spare, v->src.kind == ADDRESS_IP6);
	*len = outer + v->length + CRC_LEN;
	if (frame->caplen < outer + v->length + WEFT_FRAME_NUMBER_LEN + WEFT_FRAME_TAG_LEN)
		return outer + cap;
	crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, hdr, v->length));
	memcpy(out + outer + cap, &crc, CRC_LEN);
	return *len;
}

bool dump_msg_next(const struct dump_view *v, uint32_t *at, struct dump_msg *msg)
{
	const struct weft_frame_msg *m = (const struct weft_frame_msg *)(v->body + *at);
	uint32_t left;

	if (v->what == DUMP_RECORD)
		return dump_is_message(v) && dump_record_message(v, at, msg);
	if (v->what != DUMP_LANE || v->hdr->type != WEFT_FRAME_DATA ||
	    *at + sizeof(*m) > v->body_cap)
		return false;
	left = v->body_cap - *at - (uint32_t)sizeof(*m);
	*msg = (struct dump_msg){.id = m->am_id, .len = weft_get16(m->length)};
	msg->cap = msg->len < left ? msg->len : left;
	msg->data = (const uint8_t *)(m + 1);
	*at += (uint32_t)sizeof(*m) + msg->len;
	return true;
}

static const char *wireup_wrong(const struct dump_msg *msg)
{
	const struct weft_wire_wireup *w = (const void *)msg->data;
	uint32_t records = msg->len - (uint32_t)sizeof(*w), at = 0;
	const struct weft_wire_record *r;

	if (msg->cap < sizeof(*w))
		return "the wire-up message is too short";
	if (w->major != WEFT_WIRE_MAJOR)
		return NULL; /* another version is valid here: its sender gets an answer */
	if (!dump_word(&dump_shape_of_msg(WEFT_WIRE_WIREUP)->field[0], w->type) ||
	    weft_get16(w->offset) + records > weft_get16(w->total))
		return "the head of the wire-up message is malformed";
	if (weft_get16(w->total) != records)
		return NULL; /* one fragment of a wire-up message */
	while (at < records) {
		r = (const void *)(msg->data + sizeof(*w) + at);
		if (records - at < sizeof(*r))
			return "the records do not fill their message";
		at += (uint32_t)sizeof(*r) + weft_get16(r->length);
	}
	return at == records ? NULL : "the records do not fill their message";
}

const char *dump_msg_wrong(const struct dump_msg *msg)
{
	if (msg->cap < msg->len)
		return NULL; /* cut by the capture */
	if (msg->id == WEFT_WIRE_WIREUP)
		return wireup_wrong(msg);
	if (!dump_shape_of_msg(msg->id))
		return "the message id is unknown";
	return weft_wire_check(msg->id, msg->data, msg->len) ? "the message is malformed" : NULL;
}
