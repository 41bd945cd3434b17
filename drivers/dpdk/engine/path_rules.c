/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/path_rules.h"

/* A path that was never measured counts as the best one. */
static uint32_t least_srtt(const struct weft_path_load *load, uint16_t mask)
{
	uint32_t least = 0;

	for (unsigned int k = 0; k < WEFT_PATHS_MAX; k++)
		if (mask & 1u << k && load[k].srtt != 0 && (least == 0 || load[k].srtt < least))
			least = load[k].srtt;
	return least != 0 ? least : 1;
}

unsigned int weft_path_soonest(const struct weft_path_load load[WEFT_PATHS_MAX], uint16_t mask,
			       unsigned int after, uint32_t bytes)
{
	uint32_t least = least_srtt(load, mask);
	uint64_t best = UINT64_MAX, cost;
	unsigned int found = after;

	for (unsigned int i = 1; i <= WEFT_PATHS_MAX; i++) {
		unsigned int k = (after + i) % WEFT_PATHS_MAX;

		if (!(mask & 1u << k))
			continue;
		cost = (load[k].srtt != 0 ? load[k].srtt : least);
		cost *= (uint64_t)load[k].inflight + bytes;
		/* A full path is taken only when all are full. */
		if (load[k].full)
			cost = cost / 2 + UINT64_MAX / 2;
		if (cost < best) {
			best = cost;
			found = k;
		}
	}
	return found;
}
