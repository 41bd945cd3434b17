/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/lanes.h
 * The lanes of an endpoint: binding, attaching, leaving out; and the lanes whose two ends need each
 * other's address.
 */
#ifndef WEFT_WIREUP_LANES_H
#define WEFT_WIREUP_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_address;
struct weft_ep;
struct weft_lane_ep;
struct weft_lane_iface;
struct weft_records;
struct weft_wireup_msg;
struct weft_worker;

void weft_lane_bind(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep);
void weft_lane_up(struct weft_ep *ep, unsigned int n);
/** Lane @p n has been stopped: other lanes carry its messages. */
void weft_lane_lost(struct weft_ep *ep, unsigned int n);
/** The first lane that is up, for wire-up messages; NULL = none is. */
struct weft_lane_ep *weft_lane_any(const struct weft_ep *ep);
/** Send ATTACHED, for connection number @p epoch of the lane. */
void weft_lane_answer_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n,
			     uint16_t epoch);
/**
 * Lane 0 is connected, and the map is made. If lane 0 is sealed (doc/sealing.md) and the map has
 * further lanes, lane 0 gives a key. All further connections over interfaces of its driver need
 * this key. @return 0, or an error: the ep has failed
 */
int weft_lanes_make_key(struct weft_ep *ep);
void weft_lanes_drop_key(struct weft_ep *ep);
/** Connect a further lane, or a lane again, with the key if needed. @return as ep_connect() */
int weft_lane_connect(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
		      const void *addr, size_t len, struct weft_lane_ep **lane_ep);
/** @return true also if the connection uses no key */
bool weft_lane_has_key(const struct weft_ep *ep, unsigned int n,
		       const struct weft_lane_ep *lane_ep);
void weft_lanes_start(struct weft_ep *ep);
void weft_lanes_timer(struct weft_ep *ep);
void weft_lane_ep_up(struct weft_ep *ep, unsigned int n);
/** Leave out lane @p n, which is not attached; with @p notify_peer send ERROR to the peer later. */
void weft_lane_leave_out(struct weft_ep *ep, unsigned int n, const char *why, bool notify_peer);
bool weft_lanes_settled(const struct weft_ep *ep);
void weft_lanes_attach(struct weft_worker *worker, struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m);
void weft_lanes_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m);

/* ------------------------------------------------------------------ texts */

#define WEFT_LANE_WHY_MAX 256

/** @param why  static text: why the lane is used, or not */
void weft_lane_set_why(struct weft_ep *ep, unsigned int n, const char *why);
/** A text without the lane's numbers; without memory there is none. */
void weft_lane_format_why(struct weft_ep *ep, unsigned int n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void weft_lane_set_remote(struct weft_ep *ep, unsigned int n, const struct weft_lane_iface *iface,
			  const void *addr, size_t len);
/** Why the lane is used, or not, for users: weft_lane_why() and perhaps the lane's numbers. */
const char *weft_lane_why_text(const struct weft_ep *ep, unsigned int n,
			       char buf[WEFT_LANE_WHY_MAX]);
void weft_lanes_free(struct weft_ep *ep);

/* ------------------------------------------------------------------ addresses of both ends */

/**
 * Make our ends of the lanes whose two ends need each other's address. Lanes that cannot be made
 * are removed from the map. @return 0, or the error of lane 0
 */
int weft_links_create(struct weft_ep *ep);
void weft_links_record(const struct weft_ep *ep, struct weft_records *r);
/** Have the addresses in @p m, of lanes to @p remote, the lengths that its interfaces require? */
bool weft_links_good(const struct weft_worker *w, const struct weft_address *remote,
		     const struct weft_wireup_msg *m);
/**
 * Connect our ends to the peer's; destroy the ends of lanes that are no longer in the map.
 * @param final  no message with our map follows: notify the peer of lanes that are left out
 * @return 0, or the error of lane 0
 */
int weft_links_connect(struct weft_ep *ep, const struct weft_wireup_msg *m, bool final);
/** Destroy the boot connection, all other connections of lanes, and the key. */
void weft_links_reset(struct weft_ep *ep);
/** The addresses are exchanged over a control channel: start to connect lane 0. */
void weft_links_begin(struct weft_ep *ep);
/** Lane @p n is attached: lane 0 establishes the endpoint, another lane is up. */
void weft_link_attached(struct weft_ep *ep, unsigned int n);

#endif /* WEFT_WIREUP_LANES_H */
