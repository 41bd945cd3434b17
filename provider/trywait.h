/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file trywait.h
 * fi_trywait(): may the application sleep on the descriptors of these objects?
 */
#ifndef WFI_TRYWAIT_H
#define WFI_TRYWAIT_H

#include <rdma/fabric.h>

int wfi_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif /* WFI_TRYWAIT_H */
