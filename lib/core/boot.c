/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "core/boot.h"
#include "core/worker.h"

static_assert(sizeof(struct weft_wire_boot_address) == WEFT_BOOT_ADDRESS_MAX, "wire");

#define HEAD offsetof(struct weft_wire_boot_address, bytes)

static uint32_t crc_of(const void *p, size_t n)
{
	return weft_crc32c_of(p, n, offsetof(struct weft_wire_boot_address, crc));
}

bool weft_boot_is(const void *buf, size_t length)
{
	weft_le16 magic;

	if (!buf || length < sizeof(magic))
		return false;
	memcpy(&magic, buf, sizeof(magic));
	return weft_get16(magic) == WEFT_BOOT_ADDRESS_MAGIC;
}

size_t weft_boot_pack(const struct weft_boot *b, void *buf)
{
	struct weft_wire_boot_address w = {
		.magic = weft_put16(WEFT_BOOT_ADDRESS_MAGIC),
		.major = WEFT_WIRE_MAJOR,
		.iface = (uint8_t)(b->kind << 5 | b->index),
		.worker_id = weft_put64(b->worker_id),
		.secret = weft_put64(b->secret),
		.digest = weft_put64(b->digest),
		.host = weft_put32(b->host),
		.host_lane = (uint8_t)(b->iface.variant << 5 | b->host_lane),
	};
	size_t length = HEAD + b->iface.length;

	memcpy(w.bytes, b->iface.bytes, b->iface.length);
	w.crc = weft_put32(crc_of(&w, length));
	memcpy(buf, &w, length);
	return length;
}

static int bad(char *why, size_t why_len, const char *text)
{
	if (why)
		snprintf(why, why_len, "%s", text);
	return -EINVAL;
}

int weft_boot_unpack(struct weft_boot *b, const void *buf, size_t length, char *why, size_t why_len)
{
	struct weft_wire_boot_address w = {{0}};

	*b = (struct weft_boot){0};
	if (!weft_boot_is(buf, length))
		return bad(why, why_len, "this is no boot address");
	/* Magic and version are at the same place in every version. */
	if (length < offsetof(struct weft_wire_boot_address, iface))
		return bad(why, why_len, "the boot address is truncated");
	memcpy(&w, buf, length < sizeof(w) ? length : sizeof(w));
	b->major = w.major;
	if (w.major != WEFT_WIRE_MAJOR) {
		if (why)
			snprintf(why, why_len,
				 "the boot address was made by protocol version %u, this is %u",
				 w.major, WEFT_WIRE_MAJOR);
		return -EPROTONOSUPPORT;
	}
	if (length < HEAD || length > sizeof(w))
		return bad(why, why_len,
			   "the boot address is truncated or has something behind it");
	if (weft_get32(w.crc) != crc_of(buf, length))
		return bad(why, why_len, "the boot address is damaged");
	b->worker_id = weft_get64(w.worker_id);
	b->secret = weft_get64(w.secret);
	b->digest = weft_get64(w.digest);
	b->host = weft_get32(w.host);
	b->kind = w.iface >> 5;
	b->index = w.iface & 31;
	b->host_lane = w.host_lane & 31;
	b->iface.variant = w.host_lane >> 5;
	b->iface.length = (uint8_t)(length - HEAD);
	memcpy(b->iface.bytes, w.bytes, b->iface.length);
	if (b->worker_id == 0 || b->index >= WEFT_MAX_IFACES || b->host_lane > WEFT_MAX_IFACES ||
	    b->kind == WEFT_LANE_BOOT_HOST || (b->kind && b->host_lane == b->index + 1))
		return bad(why, why_len, "the boot address contradicts itself");
	return 0;
}
