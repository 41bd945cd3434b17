/* SPDX-License-Identifier: BSD-3-Clause */

#include "memif/messages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool weft_memif_same_secret(const char a[WEFT_MEMIF_SECRET], const char b[WEFT_MEMIF_SECRET])
{
	unsigned int diff = 0;

	for (unsigned int i = 0; i < WEFT_MEMIF_SECRET; i++)
		diff |= (uint8_t)(a[i] ^ b[i]);
	return diff == 0;
}

bool weft_memif_is_eventfd(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd >= 0 && readlink(path, target, sizeof(target) - 1) > 0 &&
	       strcmp(target, "anon_inode:[eventfd]") == 0;
}
