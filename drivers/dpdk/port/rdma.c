/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/rdma.h"

#include <dirent.h>
#include <stdio.h>

bool weft_port_rdma(const char *sysfs, const char *device, char *rdma, size_t size)
{
	const struct dirent *entry;
	bool found = false;
	char path[512];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s/infiniband", sysfs, device);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(rdma, size, "%s", entry->d_name);
	}
	closedir(dir);
	return found;
}
