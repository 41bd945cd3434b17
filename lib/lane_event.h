/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_event.h
 * What a lane driver reports of its connections and of an interface as a whole. A part of lane.h,
 * which includes it.
 */
#ifndef WEFT_LANE_EVENT_H
#define WEFT_LANE_EVENT_H

struct weft_lane_ep;
struct weft_lane_iface;

enum weft_lane_event {
	WEFT_LANE_EV_UP,   /**< the connection is made; status 0, or 1 when @p text is a warning */
	WEFT_LANE_EV_DOWN, /**< the lane has failed: status is the error */
	/**
	 * the peer closed the connection: all it sent has been delivered; own sends that it has not
	 * acknowledged end with -ECONNRESET
	 */
	WEFT_LANE_EV_GONE,
	/**
	 * Of lanes with ep_quiesce(): the lane may be dead. @p status 1: the peer is heard, and
	 * acknowledges nothing. Sends go unacknowledged although they
	 * were repeated, a sign of life was requested in vain, or the port has lost its link. Comes
	 * again while that is so. With @p status < 0 the lane has failed: #WEFT_LANE_EV_DOWN
	 * follows with it, unless the lane_ep is stopped in this call. -ETIMEDOUT says that only
	 * silence tells so
	 */
	WEFT_LANE_EV_SUSPECT,
	/**
	 * weft_lane_ops.ep_best_msg() has changed; status 1: it is smaller, and @p text a warning.
	 * What is longer still goes, up to max_msg
	 */
	WEFT_LANE_EV_SIZE,
};

/**
 * Lane event; runs inside progress(). @p text is human-readable message text: device, peer, what,
 * after how long. EV_UP has one too; it is worth a warning where @p status is > 0 (the lane works,
 * but not as it should: the path carries smaller frames only).
 */
typedef void (*weft_lane_event_cb)(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev,
				   int status, const char *text);

enum weft_lane_iface_event {
	/**
	 * the link is lost, or went unnoticed until now; lane_eps stay. Told once until it is back
	 */
	WEFT_LANE_IFACE_EV_LINK_DOWN,
	/** the link is there; also the first time, when it was not there at open. With its speed */
	WEFT_LANE_IFACE_EV_LINK_UP,
	/** attr.bandwidth has changed while the link was up */
	WEFT_LANE_IFACE_EV_SPEED,
	/**
	 * The device is gone, or is of no use before a reset: every lane_ep gets its EV_DOWN right
	 * after this, connecting is refused (is_reachable() says why), and what waited to be sent
	 * is counted and dropped. The iface can only be closed. Told once; no other event follows.
	 */
	WEFT_LANE_IFACE_EV_ENDED,
};

/**
 * Event of an iface as a whole; runs inside progress(). The worker writes the log line, with the
 * iface's name and device in front and how long the link was away: @p text adds to it.
 *
 * @param text  LINK_UP and SPEED: the speed, "10 Gb/s"; LINK_DOWN: the cause if it is known; "" =
 *   nothing to add. ENDED: message text with the cause and the remedy
 */
typedef void (*weft_lane_iface_event_cb)(void *arg, struct weft_lane_iface *iface,
					 enum weft_lane_iface_event ev, const char *text);

#endif /* WEFT_LANE_EVENT_H */
