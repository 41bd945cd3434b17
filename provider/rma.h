/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma.h
 * Remote memory: the calls like fi_read() and fi_write(). Addresses are offsets into the region,
 * whose key is Weft's 64-bit number.
 */
#ifndef WFI_RMA_H
#define WFI_RMA_H

#include <rdma/fi_rma.h>

#include "provider/op.h"
#include "weft.h"

extern struct fi_ops_rma wfi_rma_ops;

/** Callback of Weft: a peer has written, with immediate data. */
void wfi_rma_notified(struct weft_worker *worker, const struct weft_put_event *event, void *arg);

/**
 * Get the connection and the key for an operation on @p addr's memory; with FI_FENCE, set a fence
 * first. Locked. @return 0, or a negative libfabric error
 */
int wfi_rma_target(struct wfi_ep *ep, fi_addr_t addr, uint64_t key, uint64_t flags,
		   struct weft_ep **to, struct weft_rkey **rkey);

#endif /* WFI_RMA_H */
