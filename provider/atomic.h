/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/atomic.h
 * Atomics on remote memory: the calls like fi_atomic(), fi_fetch_atomic(), fi_compare_atomic().
 */
#ifndef WFI_ATOMIC_H
#define WFI_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

extern struct fi_ops_atomic wfi_atomic_ops;

/**
 * fi_query_atomic(). All domains support the same operations.
 * @return 0; -FI_EBADFLAGS; or -FI_EOPNOTSUPP: there is no such operation on this type
 */
int wfi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);

#endif /* WFI_ATOMIC_H */
