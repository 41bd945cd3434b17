/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/clock.h"

#include <rte_common.h>

void raw_clocks_far(struct raw_iface *iface, uint64_t now)
{
	uint64_t step = now > iface->now ? now - iface->now : 0, slept = 0;

	if (iface->slept)
		slept = RTE_MIN(step, iface->sleep_max);
	iface->gap = step > slept + RAW_GAP;
	if (unlikely(iface->gap))
		raw_count(iface, RAW_GAPS);
	iface->step = (uint32_t)RTE_MIN(step, (uint64_t)UINT32_MAX);
	if (iface->sent_outside) {
		iface->sent_outside = false;
		iface->tx_clock += RTE_MIN(step, RAW_OUTSIDE_STEP_MAX);
	} else {
		iface->tx_clock += RTE_MIN(step, slept + RAW_STEP_MAX);
	}
	iface->now += step;
	iface->live_clock += RTE_MIN(step, slept + RAW_LIVE_STEP_MAX);
}
