/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/fd_limit.h
 * Descriptors of this process: the kernel's limit, and how many are open.
 */
#ifndef FD_LIMIT_H
#define FD_LIMIT_H

#include <dirent.h>
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

/** @return entries of the folder of open descriptors; 0 = it cannot be read */
static inline unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif /* FD_LIMIT_H */
