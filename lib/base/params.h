/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/params.h
 * Parameter structs of calls. Their first member `size` identifies the version that the caller was
 * compiled with.
 */
#ifndef WEFT_PARAMS_H
#define WEFT_PARAMS_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/**
 * Copy a caller's parameter struct (its first member is `size`) into ours of @p size bytes. Fields
 * that the caller's version lacks become zero. NULL = all zero. @return 0, or -EINVAL when size is
 * not set
 */
static inline int weft_struct_in(void *mine, size_t size, const void *theirs)
{
	size_t n;

	memset(mine, 0, size);
	if (!theirs)
		return 0;
	memcpy(&n, theirs, sizeof(n));
	if (n < sizeof(n))
		return -EINVAL;
	memcpy(mine, theirs, n < size ? n : size);
	return 0;
}

/**
 * Fill a caller's struct, whose `size` must be set, from ours. Fields that our version lacks become
 * zero. @return 0 or -EINVAL
 */
static inline int weft_struct_out(void *theirs, const void *mine, size_t size)
{
	size_t n;

	if (!theirs)
		return -EINVAL;
	memcpy(&n, theirs, sizeof(n));
	if (n < sizeof(n))
		return -EINVAL;
	memset((char *)theirs + sizeof(n), 0, n - sizeof(n));
	memcpy((char *)theirs + sizeof(n), (const char *)mine + sizeof(n),
	       (n < size ? n : size) - sizeof(n));
	return 0;
}

#endif /* WEFT_PARAMS_H */
