/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_end.h
 * The end of lanes: by failure, by BYE, by their owner; and flushes.
 */
#ifndef WEFT_ROCE_END_H
#define WEFT_ROCE_END_H

#include "roce.h"

uint64_t roce_ep_seen(const struct weft_lane_ep *lane_ep);
void roce_ep_check(struct weft_lane_ep *lane_ep);
int roce_ep_quiesce(struct weft_lane_ep *lane_ep, void *state);
int roce_ep_reap(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		 weft_lane_reap_cb cb, void *arg);
/** Fail the lane with @p status, unless its owner has other lanes and stops this one. */
void roce_lane_ep_lost(struct roce_lane_ep *lane_ep, int status, const char *text);
void roce_suspect_look(struct roce_lane_ep *lane_ep);

#define ROCE_PARKED 1
/**
 * The final status of a read, write or atomic that has completed with the error @p status: @p
 * status itself, unless the lane was stopped or the operation caused the lane's error.
 * #ROCE_PARKED: the operation stays open until roce_ep_reap() or roce_ep_destroy()
 */
int roce_stopped_status(struct roce_chan *chan, const struct roce_slot *slot, int status);

void roce_ep_destroy(struct weft_lane_ep *lane_ep);
int roce_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);
/**
 * End the lane: its queue pairs go to the error state, operations that have not completed get
 * @p status, and the owner gets @p event. With #WEFT_LANE_EV_GONE, BYE is sent first, and
 * roce_lane_ep_close() changes the state of the queue pairs later.
 */
void roce_lane_ep_fail(struct roce_lane_ep *lane_ep, enum weft_lane_event event, int status,
		       const char *text);
void roce_lane_ep_fail_wc(struct roce_lane_ep *lane_ep, struct roce_chan *chan,
			  enum ibv_wc_status status);
/** BYE of the peer has arrived on a queue pair. When all have received it, set close.seen_at. */
void roce_lane_ep_bye(struct roce_lane_ep *lane_ep);
/** After BYE was sent: has the close finished? If so, the queue pairs go to the error state. */
bool roce_lane_ep_close(struct roce_lane_ep *lane_ep);
/** The thread has finished with a lane_ep that has ended: the worker owns its queue pairs again. */
void roce_lane_ep_ended_meanwhile(struct roce_lane_ep *lane_ep);
/** Advance destroyed lane_eps, and free those that are drained. */
void roce_reap(struct roce_iface *r);
void roce_flush_check(struct roce_lane_ep *lane_ep);

#endif /* WEFT_ROCE_END_H */
