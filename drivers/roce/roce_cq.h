/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_cq.h
 * Completions, and owners that sleep until one arrives.
 */
#ifndef WEFT_ROCE_CQ_H
#define WEFT_ROCE_CQ_H

#include "roce.h"

unsigned int roce_cq_poll(struct roce_iface *r);
/** End messages of @p chan that are complete: call their completions, check flushes. */
void roce_chan_done(struct roce_chan *chan);
/** End requests that the device will not complete, with the lane_ep's status. */
void roce_chan_abandon(struct roce_chan *chan, uint32_t from);

void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx);
/** Call it after the completion queue is destroyed. */
void roce_notify_close(struct roce_notify *n);
int roce_wait_fd(struct weft_lane_iface *base);
int roce_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void roce_disarm(struct weft_lane_iface *base);
/** A message or completion has arrived: check counts soon, as more may follow. */
void roce_look_soon(struct roce_iface *r);

/* The same for the control channel (ud.h). */
int roce_ud_wait_fd(struct weft_lane_iface *base);
int roce_ud_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void roce_ud_disarm(struct weft_lane_iface *base);

#endif /* WEFT_ROCE_CQ_H */
