/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fork.h
 * Children of fork(): worker, connections and thread belong to the parent. A child starts with
 * nothing open. Closing an object of the parent has no effect in the child, which may open its own
 * objects.
 */
#ifndef WFI_FORK_H
#define WFI_FORK_H

/** From now on a child detects that it is one. @return 0, or a negative error */
int wfi_fork_watch(void);

#endif /* WFI_FORK_H */
