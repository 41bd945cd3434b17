/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/fetch.h
 * Rendezvous, the receiver's half: from the match to the last byte.
 */
#ifndef WEFT_RNDV_FETCH_H
#define WEFT_RNDV_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/wire.h"

struct weft_fetch;
struct weft_msg_ep;
struct weft_proto;
struct weft_pull_range;
struct weft_request;
struct weft_rndv_offer;

extern const struct weft_proto weft_proto_data_get;
extern const struct weft_proto weft_proto_data_pull;
extern const struct weft_proto weft_proto_data_put;
extern const struct weft_proto weft_proto_data_am;

/** Read an offer from a validated RTS. Without keys offer->lanes is 0, offset and key[] unset. */
void weft_rndv_offer_read(struct weft_rndv_offer *offer, struct weft_wire_ref sreq, weft_le32 flags,
			  const void *records, size_t length);
/**
 * Transfer the req->length bytes of an offer to the buffer of req->dt, as far as they fit. No data
 * is needed for an empty message or buffer, or if req->status is an error other than -EMSGSIZE.
 * Then, and without memory (-ENOMEM), the sender gets ATS, and the call ends the request.
 * @param now  for weft_recv_done() in these cases
 */
void weft_rndv_fetch(struct weft_msg_ep *me, struct weft_request *req,
		     const struct weft_rndv_offer *offer, bool now);
/** Send ATS: the receiver needs no (more) data. @param status  0, or the error of the send */
void weft_rndv_refuse(struct weft_msg_ep *me, struct weft_wire_ref sreq, int status);
/** Send the message @p id, WEFT_WIRE_ATS or _SYNC_ACK, with @p status: 0 or a negative error. */
void weft_rndv_send_ats(struct weft_msg_ep *me, uint8_t id, struct weft_wire_ref sreq, int status);

/** The endpoint has failed: end its fetches. One with native reads in flight ends after them. */
void weft_rndv_ended(struct weft_msg_ep *me, int status);
/** The table of protocols has changed: begin the fetches without protocol or with reset() == 0. */
void weft_rndv_reset(struct weft_msg_ep *me);
/** @return 0; -EAGAIN: no room; or another error of the lane, which has not begun the read */
int weft_rndv_native_read(struct weft_fetch *f, struct weft_pull_range *a);

void weft_rndv_recv_data(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_data_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				  size_t length);
void weft_rndv_recv_put_done(struct weft_msg_ep *me, const void *data, size_t payload);
/** The handler of an ABORT whose `rreq` refers to a local receive. */
void weft_rndv_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_RNDV_FETCH_H */
