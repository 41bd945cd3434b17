/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/memory_limit.h
 * The memory that this process may use.
 */
#ifndef WEFT_MEMORY_LIMIT_H
#define WEFT_MEMORY_LIMIT_H

#include <stddef.h>

/**
 * The least memory limit of the process's control group and of the groups above it, version 1 or 2.
 *
 * @param groups  the groups of the process: "/proc/self/cgroup"
 * @param mount   where control groups are mounted: "/sys/fs/cgroup"
 * @return bytes; SIZE_MAX = no limit, or none that can be read
 */
size_t weft_memory_group_limit(const char *groups, const char *mount);

/**
 * @return bytes: the host's memory, or the limit of the control group if that is less;
 *         0 = unknown
 */
size_t weft_memory_limit(void);

#endif /* WEFT_MEMORY_LIMIT_H */
