/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/layer.h
 * The functions of the message layer for the worker and for connections. The message layer reports
 * to them by struct weft_ep_events (core/endpoint.h).
 */
#ifndef WEFT_MSG_LAYER_H
#define WEFT_MSG_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/endpoint.h"
#include "core/wire.h"
#include "lane.h"

int weft_msg_worker_init(struct weft_worker *worker);
/** All receives end, all messages are dropped; sends end when the lanes close. Callbacks run. */
void weft_msg_worker_stop(struct weft_worker *worker);
/** After the lanes have closed: the last callbacks, and the memory. */
void weft_msg_worker_fini(struct weft_worker *worker);
int weft_msg_ep_init(struct weft_ep *ep);
/**
 * All operations of the endpoint end with @p status; afterwards the ep may be freed. Complete
 * unexpected messages can still be received.
 */
void weft_msg_ep_fini(struct weft_ep *ep, int status);
/**
 * The credit that this side grants the peer at connect. Called once per connection, before
 * CONNECTED is sent to the peer.
 */
void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit);
/**
 * The ep went UP, or a further lane joined. @p credit is what the peer granted, NULL when only
 * lanes changed. Queued sends start.
 */
void weft_msg_ep_connected(struct weft_ep *ep, const struct weft_wire_credit *credit);
/**
 * A lane that died returns the messages that the peer has not received (weft_lane_reap_cb, @p arg
 * is the endpoint). They go over another lane. Called between begin and end, for each lane.
 */
void weft_msg_replay_begin(struct weft_ep *ep);
void weft_msg_replay(void *arg, uint8_t id, const void *msg, size_t length,
		     struct weft_lane_comp *comp);
void weft_msg_replay_end(struct weft_ep *ep);
/** Are there such messages that wait for a lane? */
bool weft_msg_replaying(const struct weft_ep *ep);
/**
 * The ep's lanes are about to be destroyed: their last completions must not start new operations.
 */
void weft_msg_ep_down(struct weft_ep *ep);
/** The ep failed: complete all its requests with @p status. */
void weft_msg_ep_failed(struct weft_ep *ep, int status);
/** The header of a further piece of a message in several buffers: weft_lane_split_fn. Pure. */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece);
/** Writable bytes in front of a message for weft_msg_recast(). */
#define WEFT_RECAST_ROOM 16
/**
 * Converts a whole message of at least one byte to a piece with all of its bytes, which can be
 * split. The piece begins #WEFT_RECAST_ROOM bytes earlier. @return its id; 0: nothing was changed
 */
uint8_t weft_msg_recast(uint8_t id, void *msg, size_t length);
/**
 * As weft_msg_split(), for all messages that can be split for a lane with a lower limit. @p had 0:
 * returns the length of the message's header. The first part contains this header and at least a
 * byte.
 */
size_t weft_msg_part(uint8_t id, const void *msg, size_t had, void *piece);
/** Is it a PUT of any kind? */
bool weft_msg_is_put(uint8_t id, const void *msg);
/**
 * Split a PUT of @p length bytes into two, each of which counts as half a PUT.
 * @param second     room for the second one: @p length bytes are enough
 * @param[out] rest  its length
 * @return bytes that stay in the first one; 0: it cannot be halved
 */
size_t weft_put_halve(uint8_t id, void *msg, size_t length, void *second, size_t *rest);
/** Serve queued sends, credits. Called once per progress after the lanes. @return events */
unsigned int weft_msg_progress(struct weft_worker *worker);
/** Is there work to do at once? @p soon: set when there is work that may be able to go on. */
bool weft_msg_busy(const struct weft_worker *worker, bool *soon);
void weft_msg_counters(struct weft_worker *worker, weft_lane_counter_cb cb, void *arg);
/**
 * Everything posted on the ep before is sent and acknowledged by the peer's protocol layer; then
 * done(arg, status) is called. On a closing endpoint the peer has also finished rendezvous and
 * synchronous sends.
 * @return 0 = it will be called, WEFT_LANE_IDLE = nothing was outstanding, or an error
 */
int weft_msg_ep_flush(struct weft_ep *ep, void (*done)(void *arg, int status), void *arg);

/**
 * A request for an operation of the connection layer (close, flush). It is created here, ended by
 * weft_msg_request_done(), and tested, queried and freed like any other; it cannot be cancelled.
 * @param what    static text for weft_request_query(): "endpoint close"
 * @param params  callback and its argument; NULL = none
 * @param wanted  the caller wants the request (req != NULL); else the library frees it after the
 * callback
 * @return NULL = no memory
 */
struct weft_request *weft_msg_request_new(struct weft_worker *worker, const char *what,
					  const struct weft_op_params *params, bool wanted);
/** End a request of weft_msg_request_new(): its callback runs, unless the user has freed it. */
void weft_msg_request_done(struct weft_request *req, int status);
/**
 * The operation ended inside its call. @return the result of that call: @p status, and the request
 * is freed; or WEFT_INPROGRESS with WEFT_OP_FORCE_REQUEST, and the request ends with @p status at
 * the next progress
 */
int weft_msg_request_at_once(struct weft_request *req, int status);

#endif /* WEFT_MSG_LAYER_H */
