/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_event.h
 * Events that a lane driver reports, of its connections and of an interface as a whole. A part of
 * lane.h, which includes it.
 */
#ifndef WEFT_LANE_EVENT_H
#define WEFT_LANE_EVENT_H

struct weft_lane_ep;
struct weft_lane_iface;

enum weft_lane_event {
	WEFT_LANE_EV_UP,   /**< the connection is made; status 0, or 1 when @p text is a warning */
	WEFT_LANE_EV_DOWN, /**< the lane has failed: status is the error */
	/**
	 * the peer closed the connection. All its messages have been delivered. Sends of this end
	 * that the peer has not acknowledged end with -ECONNRESET
	 */
	WEFT_LANE_EV_GONE,
	/**
	 * Only for lanes with ep_quiesce(): the lane may be dead. Retransmitted sends are not
	 * acknowledged, a probe was not answered, or the port has lost its link. The event is
	 * repeated while that is so. @p status 1: frames of the peer arrive, but acknowledge
	 * nothing. @p status < 0: the lane has failed, and #WEFT_LANE_EV_DOWN follows with this
	 * status unless the lane_ep is stopped in this call. -ETIMEDOUT means that silence is the
	 * only evidence
	 */
	WEFT_LANE_EV_SUSPECT,
	/**
	 * weft_lane_ops.ep_best_msg() has changed; status 1: it is smaller, and @p text a warning.
	 * Longer messages are still accepted, up to max_msg
	 */
	WEFT_LANE_EV_SIZE,
};

/**
 * Lane event; runs inside progress(). @p text is human-readable message text: device, peer, event,
 * and the time it took. EV_UP has a text too. The text is a warning if @p status is > 0: the lane
 * works, but the path carries smaller frames only.
 */
typedef void (*weft_lane_event_cb)(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev,
				   int status, const char *text);

enum weft_lane_iface_event {
	/**
	 * the link is lost, or its loss was unnoticed until now; lane_eps stay. Reported once until
	 * the link is back
	 */
	WEFT_LANE_IFACE_EV_LINK_DOWN,
	/** the link is up; also the first time, if it was not up at open(). With its speed */
	WEFT_LANE_IFACE_EV_LINK_UP,
	/** attr.bandwidth has changed while the link was up */
	WEFT_LANE_IFACE_EV_SPEED,
	/**
	 * The device is gone, or unusable before a reset. Every lane_ep gets its EV_DOWN right
	 * after this event. Connecting is refused, and is_reachable() returns the reason. Frames
	 * that waited to be sent are dropped and counted. The iface can only be closed. Reported
	 * once; no other event follows.
	 */
	WEFT_LANE_IFACE_EV_ENDED,
};

/**
 * Event of an iface as a whole; runs inside progress(). The worker writes the log line, which
 * begins with the iface's name and device and has the time for which the link was down. @p text is
 * appended to it.
 *
 * @param text  LINK_UP and SPEED: the speed, "10 Gb/s"; LINK_DOWN: the cause if it is known; "" =
 *   no text. ENDED: message text with the cause and the remedy
 */
typedef void (*weft_lane_iface_event_cb)(void *arg, struct weft_lane_iface *iface,
					 enum weft_lane_iface_event ev, const char *text);

#endif /* WEFT_LANE_EVENT_H */
