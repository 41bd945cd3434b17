/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/replay.h
 * Messages that a dead lane returns, and that go over another lane.
 */
#ifndef WEFT_MSG_REPLAY_H
#define WEFT_MSG_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_ep;
struct weft_lane_comp;
struct weft_msg_ep;

/**
 * A lane that died returns the messages that the peer has not received (weft_lane_reap_cb, @p arg
 * is the endpoint). They go over another lane. Called between begin and end, for each lane.
 */
void weft_msg_replay_begin(struct weft_ep *ep);
void weft_msg_replay(void *arg, uint8_t id, const void *msg, size_t length,
		     struct weft_lane_comp *comp);
void weft_msg_replay_end(struct weft_ep *ep);
/** Do messages that dead lanes have returned wait for a lane? */
bool weft_msg_replaying(const struct weft_ep *ep);

/**
 * Send the messages that dead lanes have returned, before anything else. @return messages handed
 * over
 */
unsigned int weft_replay_serve(struct weft_msg_ep *me);
void weft_replay_fail(struct weft_msg_ep *me, int status);

#endif /* WEFT_MSG_REPLAY_H */
