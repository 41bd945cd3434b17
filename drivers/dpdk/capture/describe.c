/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/describe.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "frame/frame.h"

#define IP 20u
#define UDP 8u

/* @return where the lane header begins; 0 = this is no frame of a lane, or too short */
static size_t lane_header(const uint8_t *p, size_t len)
{
	size_t at = 12;
	uint16_t type;

	if (len < 18)
		return 0;
	type = (uint16_t)(p[at] << 8 | p[at + 1]);
	if (type == RTE_ETHER_TYPE_VLAN) {
		at += 4;
		type = (uint16_t)(p[at] << 8 | p[at + 1]);
	}
	at += 2;
	if (type == RTE_ETHER_TYPE_IPV4)
		at += IP + UDP;
	else if (type != WEFT_FRAME_ETHERTYPE)
		return 0;
	return at + sizeof(struct weft_frame_hdr) <= len ? at : 0;
}

void weft_capture_describe(const char *lane, const void *data, size_t len, char *buf, size_t size)
{
	size_t at = lane_header(data, len), name = strcspn(lane, " ");
	struct weft_frame_hdr h;

	if (at)
		memcpy(&h, (const uint8_t *)data + at, sizeof(h));
	if (at && weft_get16(h.magic) == WEFT_FRAME_MAGIC)
		snprintf(buf, size, "lane %.*s, path %u", (int)name, lane, h.path);
	else
		snprintf(buf, size, "lane %.*s", (int)name, lane);
}
