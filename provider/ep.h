/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/ep.h
 * Endpoints: opening, binding, closing. Shared contexts.
 */
#ifndef WFI_EP_H
#define WFI_EP_H

#include <rdma/fi_endpoint.h>

int wfi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/* Shared contexts: fi_stx_context(), fi_srx_context(). */
int wfi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		 void *context);
int wfi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		 void *context);

#endif /* WFI_EP_H */
