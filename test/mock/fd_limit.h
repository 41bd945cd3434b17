/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/fd_limit.h
 * The kernel's limit of descriptors of this process.
 */
#ifndef FD_LIMIT_H
#define FD_LIMIT_H

#include <stdio.h>
#include <sys/resource.h>

/**
 * @return the soft limit in the kernel, 0 where it is unknown. Under valgrind it differs from what
 *         setrlimit() has set: valgrind applies that limit itself, after the kernel's call.
 */
static inline rlim_t kernel_fd_limit(void)
{
	FILE *f = fopen("/proc/self/limits", "r");
	unsigned long limit = 0;
	char line[200];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Max open files %lu", &limit) == 1)
			break;
	fclose(f);
	return limit;
}

#endif /* FD_LIMIT_H */
