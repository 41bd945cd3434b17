/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/select.h
 * Selection of the pairs of interfaces that become lanes. The selection is pure: it has no state,
 * and the same input gives the same result on every machine. Wire-up, weft-info and tests call it.
 * The lane map is its result for an endpoint, on which both ends agree.
 */
#ifndef WEFT_LANE_SELECT_H
#define WEFT_LANE_SELECT_H

#include "core/address.h"
#include "core/worker.h"

struct weft_ep;
struct weft_lane_ep;
struct weft_records;
struct weft_wire_lane;
struct weft_wireup_msg;

/** A pair of ifaces: positions in the arrays of struct weft_select. */
struct weft_pair {
	uint8_t local, remote;
};

struct weft_select {
	const struct weft_address_iface *local, *remote;
	unsigned int num_local, num_remote; /* <= 16 each */
	uint16_t reach[WEFT_MAX_IFACES];    /* bit r of reach[l]: local l reaches remote r */
	bool have_boot;                     /* `boot` is connected already: it becomes lane 0 */
	struct weft_pair boot;
	/* connected over a control channel: lane 0 is a lane that needs endpoint addresses */
	bool control_boot;
	/* only the peer's boot address is known: a control channel needs no lane */
	bool any_control;
};

struct weft_select_lane {
	struct weft_pair pair;
	double bandwidth, latency;
	uint32_t max_frag;
	uint8_t measured; /* WEFT_WIRE_LANE_F_* */
	const char *why;  /* static text */
};

/** The CPU time of both ends for a message, in s: the longer of the two directions. */
double weft_pair_cpu(const struct weft_address_iface *l, const struct weft_address_iface *r);

/**
 * Pairs that can carry wire-up, in the order in which they are tried. Pairs that carry only wire-up
 * (WEFT_LANE_F_CONTROL) come after all others, and only if there is a lane for them to connect, or
 * with any_control. Pairs whose ifaces fewer earlier pairs use come first, so that one dead iface
 * does not cost many attempts. Of these, pairs inside the host come first, then those of the lowest
 * latency, the highest bandwidth, and the lowest positions.
 * @return number of pairs
 */
unsigned int weft_select_boot(const struct weft_select *in, struct weft_pair *out,
			      unsigned int max);

/**
 * Lanes for bulk data, lane 0 first. Each local and each remote device is used once before any is
 * used twice. An iface is used again only while it has bandwidth left that the other end can take
 * (one 100G port against two of 25G).
 * @return number of lanes, at most @p max
 */
unsigned int weft_select_lanes(const struct weft_select *in, struct weft_select_lane *out,
			       unsigned int max);

/* ------------------------------------------------------------------ the lane map */

/** Position of iface number @p index in the list, or -1. */
int weft_lanes_position(const struct weft_address_iface *list, unsigned int n, unsigned int index);
void weft_lanes_describe_local(struct weft_ep *ep);
void weft_lanes_find_reachable(struct weft_ep *ep, bool complain);
/** Leader: make the map. @p boot is lane 0, unless it is a pair of a control channel. */
void weft_lanes_propose(struct weft_ep *ep, struct weft_pair boot);
/** Accept the possible lanes of a peer's map. @return their number; -EPROTO: without lane 0 */
int weft_lanes_accept(struct weft_ep *ep, const struct weft_wireup_msg *m, struct weft_pair boot);
void weft_lanes_record(const struct weft_ep *ep, struct weft_records *r);
/**
 * Replace the bandwidth and latency of @p lane by those that @p lane_ep has measured. A number
 * stays if its flag WEFT_LANE_F_BW_SET or _LAT_SET is in @p set: a user has set it.
 */
void weft_map_measured(struct weft_lane_ep *lane_ep, uint32_t set, struct weft_select_lane *lane);
/** The leader: give lane @p n the numbers that @p lane_ep has measured, if any. */
void weft_map_take_measured(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep);
void weft_map_get_numbers(const struct weft_wire_lane *wl, struct weft_select_lane *lane);
struct weft_wire_lane weft_map_wire_lane(const struct weft_ep *ep, unsigned int n);

#endif /* WEFT_LANE_SELECT_H */
