/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/message.h
 * Messages with and without a tag: the calls of libfabric that send, receive and probe them.
 */
#ifndef WFI_MESSAGE_H
#define WFI_MESSAGE_H

#include "provider/op.h"
#include "provider/provider.h"
#include "weft.h"

/* ------------------------------------------------------------------ sends and receives */

/*
 * Messages, tagged or not. A receiver is an endpoint with receives of its own, or a shared receive
 * context. Each receiver has one channel of Weft for tagged messages and one for untagged ones. So
 * messages of different kinds, or to different receivers, never match the same receive. On the
 * channel of untagged messages every tag is 0.
 */

/**
 * Weft's channel of an endpoint or of a shared receive context.
 * @param kind  FI_MSG; anything else means the channel of tagged messages
 */
static inline uint16_t wfi_channel(uint16_t number, uint64_t kind)
{
	return (uint16_t)(number * 2 + (kind == FI_MSG));
}

/** The calls like fi_send() and fi_recv(). */
extern struct fi_ops_msg wfi_msg_ops;

/** The calls like fi_tsend() and fi_trecv(), and probes for messages before they are received. */
extern struct fi_ops_tagged wfi_tagged_ops;

/** The endpoint closes: drop messages that were claimed and not received. Locked. */
void wfi_claims_drop(struct wfi_ep *ep);

#endif /* WFI_MESSAGE_H */
