/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/eal_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As in rte_eal_init(): BASE/dpdk, and a folder for each prefix in it. */
static bool is_usable(const char *base)
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s/dpdk", base) >= (int)sizeof(path))
		return false;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return access(path, W_OK | X_OK) == 0;
}

/*
 * The same in a folder where any user may have created it: if others can write to it, they can
 * replace its files.
 */
static bool is_ours(const char *tmp)
{
	char path[512];

	return snprintf(path, sizeof(path), "%s/dpdk", tmp) < (int)sizeof(path) &&
	       weft_private_folder(path);
}

enum weft_eal_folder weft_eal_folder_find(uid_t uid, const char *runtime, const char *tmp,
					  char *own, size_t size)
{
	if (uid == 0) /* the EAL tries no other folder */
		return is_usable(runtime) ? WEFT_EAL_FOLDER_ITS : WEFT_EAL_FOLDER_NONE;
	if (runtime ? is_usable(runtime) : is_ours(tmp))
		return WEFT_EAL_FOLDER_ITS;
	if (!weft_user_folder(uid, tmp, own, size))
		return WEFT_EAL_FOLDER_NONE;
	return is_usable(own) ? WEFT_EAL_FOLDER_OWN : WEFT_EAL_FOLDER_NONE;
}

enum weft_eal_folder weft_eal_folder_now(char *own, size_t size, const char **base)
{
	static const char tmp[] = "/tmp";
	uid_t uid = getuid();
	const char *runtime = uid == 0 ? "/var/run" : secure_getenv(WEFT_EAL_FOLDER_VARIABLE);
	enum weft_eal_folder which;

	/*
	 * With set-user-id: a folder of the real user's name would belong to another user than the
	 * effective one.
	 */
	if (uid != geteuid()) {
		*base = own;
		return weft_user_folder(geteuid(), tmp, own, size) && is_usable(own)
			       ? WEFT_EAL_FOLDER_OWN
			       : WEFT_EAL_FOLDER_NONE;
	}
	which = weft_eal_folder_find(uid, runtime, tmp, own, size);
	*base = runtime ? runtime : tmp;
	if (which == WEFT_EAL_FOLDER_OWN)
		*base = own;
	return which;
}
