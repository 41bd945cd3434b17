/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/layer.h
 * What the message layer does for the worker and for connections, and how it reports to them: by
 * struct weft_ep_events (core/endpoint.h).
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
 * Everything of the ep's messages ends with @p status; afterwards the ep may be freed. Unexpected
 * messages that are complete stay receivable.
 */
void weft_msg_ep_fini(struct weft_ep *ep, int status);
/**
 * Credits that this side grants the peer at connect. Called once per connection, before CONNECTED
 * is told to the peer.
 */
void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit);
/**
 * The ep went UP (or a further lane joined); @p credit is what the peer granted, NULL when only
 * lanes changed. Queued sends start.
 */
void weft_msg_ep_connected(struct weft_ep *ep, const struct weft_wire_credit *credit);
/**
 * A lane that died gives back what the peer has not got (weft_lane_reap_cb, @p arg the endpoint):
 * it goes over another lane. Between begin and end, by lane.
 */
void weft_msg_replay_begin(struct weft_ep *ep);
void weft_msg_replay(void *arg, uint8_t id, const void *msg, size_t length,
		     struct weft_lane_comp *comp);
void weft_msg_replay_end(struct weft_ep *ep);
/** Does something of that wait for a lane? */
bool weft_msg_replaying(const struct weft_ep *ep);
/** Its lanes are about to be destroyed: their last completions shall start nothing on them. */
void weft_msg_ep_down(struct weft_ep *ep);
/** The ep failed: complete all its requests with @p status. */
void weft_msg_ep_failed(struct weft_ep *ep, int status);
/** Takes messages apart that lie in several buffers: weft_lane_split_fn. Pure. */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece);
/** Writable bytes in front of a message for weft_msg_recast(). */
#define WEFT_RECAST_ROOM 16
/**
 * A whole message of at least one byte becomes a piece with all of its bytes, of which parts can be
 * made. It begins #WEFT_RECAST_ROOM bytes earlier. @return its id; 0: nothing was changed
 */
uint8_t weft_msg_recast(uint8_t id, void *msg, size_t length);
/**
 * As weft_msg_split(), of all that can be cut for a lane that takes less. @p had 0: how long is
 * what is before the bytes in the message itself? The first part has that and a byte at least.
 */
size_t weft_msg_part(uint8_t id, const void *msg, size_t had, void *piece);
/** Is it a PUT, of whatever kind? */
bool weft_msg_is_put(uint8_t id, const void *msg);
/**
 * Of a PUT of @p length bytes make two, that count half each.
 * @param second     room for the other one: @p length bytes are enough
 * @param[out] rest  bytes of it
 * @return bytes that stay in the first one; 0: it can't be halved
 */
size_t weft_put_halve(uint8_t id, void *msg, size_t length, void *second, size_t *rest);
/** Serve queued sends, credits. Called once per progress after the lanes. @return events */
unsigned int weft_msg_progress(struct weft_worker *worker);
/**
 * Is there something to do at once? @p soon: set when there is something that may go on, or not.
 */
bool weft_msg_busy(const struct weft_worker *worker, bool *soon);
void weft_msg_counters(struct weft_worker *worker, weft_lane_counter_cb cb, void *arg);
/**
 * All that was posted on the ep before is sent and acknowledged by the peer's protocol layer (the
 * peer has also finished rendezvous); then done(arg, status).
 * @return 0 = it will be called, WEFT_LANE_IDLE = nothing was outstanding, or an error
 */
int weft_msg_ep_flush(struct weft_ep *ep, void (*done)(void *arg, int status), void *arg);

/**
 * A request for an operation of the connection layer (close, flush): made here, ended by
 * weft_msg_request_done(), tested, queried and freed like any other; it cannot be cancelled.
 * @param what    static text for weft_request_query(): "endpoint close"
 * @param params  callback and its argument; NULL = none
 * @param wanted  the caller requested the request (req != NULL); else the library frees it after
 *   the callback
 * @return NULL = no memory
 */
struct weft_request *weft_msg_request_new(struct weft_worker *worker, const char *what,
					  const struct weft_op_params *params, bool wanted);
/** End a request of weft_msg_request_new(): its callback runs, unless the user has freed it. */
void weft_msg_request_done(struct weft_request *req, int status);
/**
 * The operation was over at once. @return what the call answers: @p status, and the request is
 * gone; or WEFT_INPROGRESS with WEFT_OP_FORCE_REQUEST, and it ends with @p status at the next
 * progress
 */
int weft_msg_request_at_once(struct weft_request *req, int status);

#endif /* WEFT_MSG_LAYER_H */
