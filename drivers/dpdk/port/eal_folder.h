/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal_folder.h
 * The folder of the EAL's sockets. It is /var/run/dpdk; for users other than root
 * $XDG_RUNTIME_DIR/dpdk, or, without that variable (batch jobs, su), /tmp/dpdk, which belongs to
 * the first user that creates it. If the EAL can't write there, it does not start. It would use a
 * /tmp/dpdk that others can write to. In both cases the EAL gets a folder of this user.
 */
#ifndef WEFT_EAL_FOLDER_H
#define WEFT_EAL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/user_folder.h"

#define WEFT_EAL_FOLDER_VARIABLE "XDG_RUNTIME_DIR"

enum weft_eal_folder {
	WEFT_EAL_FOLDER_ITS,  /**< the EAL's default is usable */
	WEFT_EAL_FOLDER_OWN,  /**< the variable must name @p own */
	WEFT_EAL_FOLDER_NONE, /**< no folder is usable: the EAL must start without telemetry */
};

/**
 * @param runtime  uid 0: /var/run; else the variable's value or NULL
 * @param[out] own  TMP/weft-UID, created and owned by this user
 */
enum weft_eal_folder weft_eal_folder_find(uid_t uid, const char *runtime, const char *tmp,
					  char *own, size_t size);

/**
 * The same for this process.
 *
 * @param[out] base  of BASE/dpdk, where the sockets will be; @p own, the environment's, or static
 */
enum weft_eal_folder weft_eal_folder_now(char *own, size_t size, const char **base);

#endif /* WEFT_EAL_FOLDER_H */
