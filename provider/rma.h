/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma.h
 * Remote memory: fi_read(), fi_write() and their like. Addresses are offsets into the region, whose
 * key is Weft's 64-bit number.
 */
#ifndef WFI_RMA_H
#define WFI_RMA_H

#include <rdma/fi_rma.h>

extern struct fi_ops_rma wfi_rma_ops;

#endif /* WFI_RMA_H */
