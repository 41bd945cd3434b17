/* SPDX-License-Identifier: BSD-3-Clause */

#include "frame/ip.h"

bool weft_lane_is_unicast(uint32_t ip)
{
	return ip >> 24 != 0 && ip >> 24 != 127 && ip >> 28 < 14;
}

uint32_t weft_lane_link_local(const uint8_t mac[6])
{
	uint32_t h = 2166136261u; /* FNV-1a: close MACs must give different addresses */
	int i;

	for (i = 0; i < 6; i++)
		h = (h ^ mac[i]) * 16777619u;
	h ^= h >> 16;
	/* 169.254.0.* and 169.254.255.* are reserved. */
	return 0xa9fe0100u + h % (254u * 256u);
}
