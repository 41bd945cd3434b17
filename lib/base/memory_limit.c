/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/memory_limit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* @return the number in the file; SIZE_MAX = "max", or there is no such file */
static size_t read_limit(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long value;
	size_t limit = SIZE_MAX;

	if (!f)
		return SIZE_MAX;
	if (fscanf(f, "%llu", &value) == 1 && value < SIZE_MAX)
		limit = (size_t)value;
	fclose(f);
	return limit;
}

/* Each group up to the root: a group above may have the smaller limit. */
static size_t least_limit(const char *mount, char *group, const char *file)
{
	size_t least = SIZE_MAX, limit;
	char path[1200], *slash;

	for (;;) {
		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		limit = read_limit(path);
		least = limit < least ? limit : least;
		slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* Does a list of controllers, such as "cpu,memory", contain this one? */
static int has_memory(const char *controllers)
{
	const char *at = strstr(controllers, "memory");

	return at && (at == controllers || at[-1] == ',') && (at[6] == '\0' || at[6] == ',');
}

size_t weft_memory_group_limit(const char *groups, const char *mount)
{
	/* A line of /proc/PID/cgroup: "ID:CONTROLLERS:GROUP"; of version 2: "0::GROUP". */
	char line[1024], controllers[256], group[768], below[512];
	size_t least = SIZE_MAX, limit = SIZE_MAX;
	FILE *f = fopen(groups, "re");

	if (!f)
		return SIZE_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "0::%767[^\n]", group) == 1) {
			limit = least_limit(mount, group, "memory.max");
		} else if (sscanf(line, "%*u:%255[^:]:%767[^\n]", controllers, group) == 2 &&
			   has_memory(controllers)) {
			snprintf(below, sizeof(below), "%s/memory", mount);
			limit = least_limit(below, group, "memory.limit_in_bytes");
		}
		least = limit < least ? limit : least;
	}
	fclose(f);
	return least;
}

size_t weft_memory_limit(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	size_t limit = weft_memory_group_limit("/proc/self/cgroup", "/sys/fs/cgroup");
	size_t host = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0;

	if (limit == SIZE_MAX)
		return host;
	return host == 0 || limit < host ? limit : host;
}
