/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/lane_list.h
 * The text of WEFT_LANES: items separated by ';', each `driver:resource[,option=value...]`.
 */
#ifndef WEFT_LANE_LIST_H
#define WEFT_LANE_LIST_H

#include "lane.h"

#define WEFT_LANES_MAX_ITEMS 32

/**
 * Figures that the user sets in place of the driver's, for lanes of every driver. If a driver lists
 * such an option itself, the option is passed to the driver.
 */
struct weft_lane_numbers {
	uint32_t given;   /**< bit 0: bandwidth, 1: latency, and so on */
	double bandwidth; /**< bw=25Gbps, bytes/s */
	double latency;   /**< lat=12us, s */
	double overhead;  /**< overhead=100ns: s of CPU per message, at each end */
	double reg_cost;  /**< reg=16us: s */
};

void weft_lane_numbers_apply(const struct weft_lane_numbers *n, struct weft_lane_attr *attr);

/** "driver" alone and "driver:*" request all resources of the driver. */
struct weft_lanes_item {
	const struct weft_lane_driver *driver;
	bool all; /**< every usable resource; one that cannot be opened is left out */
	/** of a fallback driver, by '*': opened only if no other lane leads to other hosts */
	bool fallback;
	char resource[64];
	struct weft_lane_numbers numbers;
	char options[512]; /**< behind the first comma */
};

/**
 * Empty text, "all" and "*" mean all resources that no other item names, of all drivers. "-NAME"
 * excludes a driver from these.
 * @param drivers  NULL-terminated
 * @return number of items; -EINVAL, with a sentence in @p why
 */
int weft_lanes_parse(const char *text, const struct weft_lane_driver *const *drivers,
		     struct weft_lanes_item *items, char *why, size_t why_len);

#endif /* WEFT_LANE_LIST_H */
