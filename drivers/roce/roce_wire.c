/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "roce_wire.h"

__attribute__((format(printf, 4, 5))) static int bad_address(int err, char *why, size_t why_len,
							     const char *fmt, ...)
{
	va_list ap;

	if (why && why_len > 0) {
		va_start(ap, fmt);
		vsnprintf(why, why_len, fmt, ap);
		va_end(ap);
	}
	return err;
}

static bool gid_is_host(const uint8_t gid[16])
{
	static const uint8_t none[16];

	if (memcmp(gid, none, 16) == 0 || gid[0] == 0xff)
		return false;
	/* A host's IPv4 address is not in 0/8 or 127/8, and below 224/4 (multicast). */
	return !weft_roce_gid_is_ipv4(gid) || (gid[12] != 0 && gid[12] != 127 && gid[12] < 224);
}

int weft_roce_addr_check(const void *addr, size_t len, enum weft_roce_kind kind, char *why,
			 size_t why_len)
{
	struct weft_roce_addr a;
	uint32_t seg, qpn;

	if (len < sizeof(a))
		return bad_address(-EINVAL, why, why_len,
				   "the peer's address has %zu bytes, %zu are needed", len,
				   sizeof(a));
	memcpy(&a, addr, sizeof(a));
	if (a.version != WEFT_ROCE_VERSION)
		return bad_address(-EPROTONOSUPPORT, why, why_len,
				   "the peer speaks version %u of RoCE lanes, this is version %u",
				   a.version, WEFT_ROCE_VERSION);
	seg = weft_get32(a.seg);
	qpn = weft_get32(a.qpn);
	if (len != sizeof(a) || a.kind != kind || a.mtu < 1 || a.mtu > 5 || a.v1 > 1 ||
	    seg < (kind == WEFT_ROCE_RC ? WEFT_ROCE_SEG_MIN : 128) || seg > WEFT_ROCE_SEG_MAX ||
	    qpn >> 24 || (kind == WEFT_ROCE_UD) != (qpn != 0) || !gid_is_host(a.gid))
		return bad_address(-EINVAL, why, why_len, "the peer's address is damaged");
	return 0;
}

int weft_roce_ep_addr_check(const void *addr, size_t len, char *why, size_t why_len)
{
	struct weft_roce_ep_addr a;
	uint32_t window, i;

	if (len < sizeof(a))
		return bad_address(-EINVAL, why, why_len,
				   "the peer's connection address has %zu bytes, %zu are needed",
				   len, sizeof(a));
	memcpy(&a, addr, sizeof(a));
	if (a.version != WEFT_ROCE_VERSION)
		return bad_address(-EPROTONOSUPPORT, why, why_len,
				   "the peer speaks version %u of RoCE lanes, this is version %u",
				   a.version, WEFT_ROCE_VERSION);
	window = weft_get32(a.window);
	if (len != sizeof(a) || a.num_qps < 1 || a.num_qps > WEFT_ROCE_MAX_QPS || a.reads > 128 ||
	    window < 1 || window > WEFT_ROCE_WINDOW_MAX || weft_get32(a.psn) >> 24 ||
	    weft_get64(a.word_addr) % sizeof(struct weft_roce_word))
		return bad_address(-EINVAL, why, why_len,
				   "the peer's connection address is damaged");
	for (i = 0; i < a.num_qps; i++)
		if (weft_get32(a.qpn[i]) == 0 || weft_get32(a.qpn[i]) >> 24)
			return bad_address(-EINVAL, why, why_len,
					   "the peer's connection address is damaged");
	return 0;
}

void weft_roce_gid_print(const uint8_t gid[16], char *buf, size_t size)
{
	if (weft_roce_gid_is_ipv4(gid))
		snprintf(buf, size, "%u.%u.%u.%u", gid[12], gid[13], gid[14], gid[15]);
	else if (!inet_ntop(AF_INET6, gid, buf, (socklen_t)size))
		snprintf(buf, size, "?");
}

/*
 * The 40 bytes before a datagram hold its IPv6 header. For IPv4 the last 20 of them hold the IPv4
 * header, and the first 20 are undefined. A valid IPv4 header (version, length, checksum) decides.
 * Between queue pairs of one device, rdma_rxe sets neither checksum nor length, so these fields
 * have old bytes of the memory; the first 20 bytes are zeros then.
 */
static bool ipv4_whole(const uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	if (ip[0] != 0x45)
		return false;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static bool ipv4_same_device(const uint8_t *grh)
{
	static const uint8_t zeros[20];

	return memcmp(grh, zeros, sizeof(zeros)) == 0 && grh[20] == 0x45;
}

static bool source_of(const uint8_t *grh, uint8_t gid[16])
{
	if (ipv4_whole(grh + 20) || ipv4_same_device(grh)) {
		memset(gid, 0, 10);
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, grh + 20 + 12, 4);
	} else if (grh[0] >> 4 == 6) {
		memcpy(gid, grh + 8, 16);
	} else {
		return false;
	}
	return gid_is_host(gid);
}

/*
 * A RETRY has a cookie, but no connection of its sender and no payload. Any other datagram has a
 * connection of its sender, and a cookie only without a connection of its receiver.
 */
static bool roles_fit(const struct weft_roce_ud_packet *p)
{
	if (p->am_id == WEFT_ROCE_UD_RETRY)
		return p->src_conn == 0 && p->dst_conn != 0 && p->cookie != 0 && p->length == 0;
	return p->src_conn != 0 && (p->am_id <= 31 || p->am_id == WEFT_ROCE_UD_BYE) &&
	       (p->dst_conn == 0 || p->cookie == 0);
}

int weft_roce_ud_check(const uint8_t *buf, size_t len, struct weft_roce_ud_packet *out)
{
	struct weft_roce_ud_head h;

	if (len < WEFT_ROCE_GRH + sizeof(h))
		return -EBADMSG;
	memcpy(&h, buf + WEFT_ROCE_GRH, sizeof(h));
	out->am_id = h.am_id;
	out->mtu = h.mtu;
	out->src_conn = weft_get32(h.src_conn);
	out->dst_conn = weft_get32(h.dst_conn);
	out->src_qkey = weft_get32(h.src_qkey);
	out->cookie = weft_get64(h.cookie);
	out->length = weft_get16(h.length);
	out->data = buf + WEFT_ROCE_GRH + sizeof(h);
	if (weft_get16(h.magic) != WEFT_ROCE_UD_MAGIC || h.version != WEFT_ROCE_VERSION ||
	    !roles_fit(out) || h.mtu > 5 || h.reserved != 0 ||
	    out->length != len - WEFT_ROCE_GRH - sizeof(h))
		return -EBADMSG;
	return source_of(buf, out->gid) ? 0 : -EBADMSG;
}
