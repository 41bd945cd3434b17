/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/sender.h
 * Rendezvous, the sender's half: the offer, and the data that the receiver requests.
 */
#ifndef WEFT_RNDV_SENDER_H
#define WEFT_RNDV_SENDER_H

#include <stddef.h>

#include "core/wire.h"

struct weft_msg_ep;
struct weft_proto;

extern const struct weft_proto weft_proto_rndv_get;
extern const struct weft_proto weft_proto_rndv_pull;
extern const struct weft_proto weft_proto_rndv_put;
extern const struct weft_proto weft_proto_rndv_am;

/** Sender: hand over data requested by RTR and PULL, as far as lanes accept it. @return events */
unsigned int weft_rndv_serve(struct weft_msg_ep *me);
/** The endpoint's lanes have changed: pulls for lanes that are down move to me->am_lane. */
void weft_rndv_send_ep_lanes(struct weft_msg_ep *me);

void weft_rndv_recv_rtr(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_pull(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_ats(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rndv_recv_sync_ack(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_RNDV_SENDER_H */
