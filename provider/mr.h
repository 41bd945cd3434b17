/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mr.h
 * Memory regions. The descriptor for sends and receives is the region itself.
 */
#ifndef WFI_MR_H
#define WFI_MR_H

#include "provider/provider.h"
#include "weft.h"

struct wfi_domain;

struct wfi_mr {
	struct fid_mr mr;
	struct wfi_domain *domain;
	struct weft_mem *mem;
};

extern struct fi_ops_mr wfi_mr_ops;

/** The registration of a descriptor; NULL for none. */
static inline struct weft_mem *wfi_mr_mem(void *desc)
{
	return desc ? ((struct wfi_mr *)desc)->mem : NULL;
}

#endif /* WFI_MR_H */
