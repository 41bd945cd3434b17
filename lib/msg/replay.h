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

/** A lane that died is about to return messages. */
void weft_msg_replay_begin(struct weft_ep *ep);
/**
 * A lane that died returns a message that the peer has not received, which then goes over another
 * lane. Called between weft_msg_replay_begin() and weft_msg_replay_end(), as weft_lane_reap_cb.
 * Messages about the connection of the dead lane are dropped.
 * @param arg   struct weft_ep
 * @param msg   NULL = there is only @p comp
 * @param comp  ends when the message is at the peer, or with an error; NULL = none
 */
void weft_msg_replay(void *arg, uint8_t id, const void *msg, size_t length,
		     struct weft_lane_comp *comp);
void weft_msg_replay_end(struct weft_ep *ep);
/** Do messages that dead lanes have returned wait for a lane? */
bool weft_msg_replaying(const struct weft_ep *ep);

/** Send messages that dead lanes have returned. @return number of those handed over in full */
unsigned int weft_replay_serve(struct weft_msg_ep *me);
/** The endpoint has failed: drop the returned messages; their completions end with @p status. */
void weft_replay_fail(struct weft_msg_ep *me, int status);

#endif /* WEFT_MSG_REPLAY_H */
