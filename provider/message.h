/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/message.h
 * Messages: sends and receives, with and without a tag, and the calls for those without.
 */
#ifndef WFI_MESSAGE_H
#define WFI_MESSAGE_H

#include "provider/op.h"
#include "provider/provider.h"
#include "weft.h"

/* ------------------------------------------------------------------ sends and receives */

/*
 * Messages, tagged or not. An endpoint has a channel of Weft for each kind, so messages of
 * different kinds and endpoints never match. On the channel of untagged messages every tag is 0.
 */

/** Weft's channel for a kind of messages of an endpoint. */
static inline uint16_t wfi_channel(uint16_t number, uint64_t kind)
{
	return (uint16_t)(number * 2 + (kind == FI_MSG));
}

ssize_t wfi_send(struct fid_ep *ep, const struct wfi_post *post);
ssize_t wfi_recv(struct fid_ep *ep, const struct wfi_post *post);
/** wfi_send() and wfi_recv() with one buffer, which the functions enter into @p post. */
ssize_t wfi_send_one(struct fid_ep *ep, const void *buf, size_t length, struct wfi_post *post);
ssize_t wfi_recv_one(struct fid_ep *ep, void *buf, size_t length, struct wfi_post *post);

/**
 * Set where a receive or probe searches: its channel, and the process that it names. No connection
 * is needed. Locked.
 * @param[out] peer  the process, or NULL for any
 * @return 0 or a negative error
 */
int wfi_recv_source(const struct wfi_ep *ep, fi_addr_t from, uint64_t kind,
		    struct weft_op_params *params, struct wfi_peer **peer);

/* ------------------------------------------------------------------ calls without a tag */

/** The calls like fi_send() and fi_recv(). */
extern struct fi_ops_msg wfi_msg_ops;

#endif /* WFI_MESSAGE_H */
