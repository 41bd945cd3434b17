/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/initiator.h
 * Puts, gets and atomics at their initiator: the begin and the end of every operation, native ones
 * included. For operations by messages also what the initiator sends, and the replies.
 */
#ifndef WEFT_RMA_INITIATOR_H
#define WEFT_RMA_INITIATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/wire.h"

struct weft_msg_ep;
struct weft_request;
struct weft_request_ops;

extern const struct weft_request_ops weft_rma_ops;

/** @return 0: the operation is over and freed; WEFT_INPROGRESS; or an error (freed) */
int weft_rma_start(struct weft_request *req);
/** A part of the operation is over: complete the operation if all parts are. */
void weft_rma_check(struct weft_request *req);
int weft_rma_put_step(struct weft_request *req);
int weft_rma_get_step(struct weft_request *req);
int weft_rma_amo_step(struct weft_request *req);
/** Begin again a native operation that has no pieces in flight, perhaps by another protocol. */
void weft_rma_restart(struct weft_request *req);
/** reset() of the protocols of RMA: 0 if no lane has got a part of the operation yet. */
int weft_rma_reset(struct weft_request *req);
struct weft_wire_put weft_rma_put_head(const struct weft_request *req, size_t off);
/**
 * @return bytes handed over; 0 if the put has failed already; -EAGAIN; or the pack callback's error
 */
ssize_t weft_rma_put_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
			   size_t hdr_len, size_t off, size_t rest);
/** Send queued replies, continue queued operations, and send a due RMA_FLUSH. @return events */
unsigned int weft_rma_serve(struct weft_msg_ep *me);
bool weft_rma_has_work(const struct weft_msg_ep *me);

void weft_rma_recv_data(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_data_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				 size_t length);
void weft_rma_recv_amo_rep(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_nak(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_amov_rep(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_RMA_INITIATOR_H */
