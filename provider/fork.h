/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fork.h
 * Children of fork(): worker, connections and thread are their parent's. A child begins with
 * nothing open, and what it closes of its parent's stays as it is. It may open what it wants.
 */
#ifndef WFI_FORK_H
#define WFI_FORK_H

/** From now on children are told that they are ones. @return 0, or a negative error */
int wfi_fork_watch(void);

#endif /* WFI_FORK_H */
