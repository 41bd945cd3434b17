/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/rkey.h
 * Remote keys, and requests for what a key that was made from a number lacks.
 */
#ifndef WEFT_RMA_RKEY_H
#define WEFT_RMA_RKEY_H

#include <stddef.h>

struct weft_msg_ep;
struct weft_rkey;

/** Lanes of the endpoint could use native keys: request them, once. */
void weft_rkey_query(struct weft_msg_ep *me, struct weft_rkey *rkey);
void weft_rma_recv_key_req(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_key(struct weft_msg_ep *me, const void *data, size_t payload);
/** The key is unused: free it. */
void weft_rkey_free(struct weft_rkey *rkey);

#endif /* WEFT_RMA_RKEY_H */
