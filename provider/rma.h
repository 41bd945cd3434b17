/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/rma.h
 * Remote memory: regions; the calls like fi_read() and fi_write(); in atomic.c those like
 * fi_atomic(), fi_fetch_atomic() and fi_compare_atomic(). Addresses are offsets into the region.
 */
#ifndef WFI_RMA_H
#define WFI_RMA_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "provider/op.h"
#include "weft.h"

/* ------------------------------------------------------------------ memory regions */

extern struct fi_ops_mr wfi_mr_ops;

/** In a child of fork(): forget all regions. */
void wfi_mrs_forked(void);

/* ------------------------------------------------------------------ reads and writes */

extern struct fi_ops_rma wfi_rma_ops;

/*
 * Targets count the operations of an endpoint with FI_RMA_EVENT. Each write notifies its target,
 * which gets the notification when it has all bytes. Reads and atomics cannot notify: the initiator
 * sends an active message when they have been executed.
 */
#define WFI_COUNT_REGION 1u /**< the region's counter: its memory has been changed */
#define WFI_COUNT_READ 2u   /**< the endpoint's counter for FI_REMOTE_READ */
#define WFI_COUNT_WRITE 4u  /**< the endpoint's counter for FI_REMOTE_WRITE */

/**
 * A read or an atomic has succeeded: send its target a message, so that the target counts it. An
 * error is logged. Locked.
 */
void wfi_rma_executed(const struct wfi_op *op);

/**
 * Set the worker's handlers of peers' writes, and with FI_RMA_EVENT of their reads and atomics.
 * Locked. @return 0, or a negative libfabric error
 */
int wfi_rma_listen(const struct wfi_ep *ep);

/**
 * Weft's key for the key of a call: if the application chooses keys, a hash of @p key and of the
 * number of the target's domain; else @p key. Locked.
 */
uint64_t wfi_rma_key(const struct wfi_ep *ep, fi_addr_t addr, uint64_t key);

/**
 * Get the connection and the key for an operation on memory of the process at @p addr. With
 * FI_FENCE, or if the endpoint is ordered, call weft_ep_fence(). The key is valid until the next
 * wfi_peer_rkey(), or until the connection ends. Locked. @return 0, or a negative libfabric error
 */
int wfi_rma_target(struct wfi_ep *ep, fi_addr_t addr, uint64_t key, uint64_t flags,
		   struct weft_ep **to, struct weft_rkey **rkey);

/* ------------------------------------------------------------------ atomics */

extern struct fi_ops_atomic wfi_atomic_ops;

/**
 * fi_query_atomic(). All domains support the same operations.
 * @return 0; -FI_EBADFLAGS; or -FI_EOPNOTSUPP: there is no such operation on this type
 */
int wfi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);

#endif /* WFI_RMA_H */
