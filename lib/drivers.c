/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/core.h"
#include "self/self_lane.h"
#include "weft_build.h"

#if WEFT_HAVE_DPDK
/*
 * Weak: the library links, and has no raw lanes, while the driver's sources are not in the build.
 */
extern const struct weft_lane_driver weft_dpdk_driver __attribute__((weak));
#endif

#if WEFT_HAVE_ROCE
extern const struct weft_lane_driver weft_roce_driver;
extern const struct weft_lane_driver weft_roce_ud_driver;
#endif

/*
 * The one place that knows which drivers there are. Order is the order of interfaces in a worker.
 */
const struct weft_lane_driver *const weft_drivers[] = {
	&weft_self_driver,
#if WEFT_HAVE_DPDK
	&weft_dpdk_driver,
#endif
#if WEFT_HAVE_ROCE
	&weft_roce_driver,
	&weft_roce_ud_driver,
#endif
	NULL,
};
