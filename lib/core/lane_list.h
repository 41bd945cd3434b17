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
 * Figures of a lane that the user sets instead of the driver. Protocols and lanes are chosen by
 * them. The lanes of every driver have these options. If a driver lists such an option itself, the
 * option is passed to the driver.
 */
struct weft_lane_numbers {
	uint32_t given;   /**< bit 0: bandwidth is set, 1: latency, and so on */
	double bandwidth; /**< bw=25Gbps, bytes/s */
	double latency;   /**< lat=12us, s */
	double overhead;  /**< overhead=100ns: CPU per message, sending and receiving alike, s */
	double reg_cost;  /**< reg=16us: time of one registration, s */
};

/** Replace in @p attr the attributes that @p n has. */
void weft_lane_numbers_apply(const struct weft_lane_numbers *n, struct weft_lane_attr *attr);

/** One item. "driver" alone and "driver:*" request all resources of the driver. */
struct weft_lanes_item {
	const struct weft_lane_driver *driver;
	bool all; /**< every usable resource; a resource that cannot be opened is left out */
	/** the item is of '*': opened only if the worker has no other lane to other hosts */
	bool fallback;
	char resource[64];
	struct weft_lane_numbers numbers; /**< taken out of `options` */
	char options[512];                /**< text behind the first comma; "" = none */
};

/**
 * Parse WEFT_LANES. Empty text, "all" and "*" mean all resources that no other item names, of all
 * drivers. "-NAME" excludes a driver from these.
 * @param drivers  NULL-terminated
 * @param why      gets a sentence on error
 * @return number of items, or -EINVAL
 */
int weft_lanes_parse(const char *text, const struct weft_lane_driver *const *drivers,
		     struct weft_lanes_item *items, char *why, size_t why_len);

#endif /* WEFT_LANE_LIST_H */
