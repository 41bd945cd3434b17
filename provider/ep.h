/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/ep.h
 * Endpoints: opening, binding, closing.
 */
#ifndef WFI_EP_H
#define WFI_EP_H

#include <rdma/fi_endpoint.h>

int wfi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

#endif /* WFI_EP_H */
