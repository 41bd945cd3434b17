/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal_folder.h
 * Where the EAL has its sockets: /var/run/dpdk, of who is not root $XDG_RUNTIME_DIR/dpdk or,
 * without that variable (batch jobs, su), /tmp/dpdk, which belongs to the user who came first.
 * Where it can't write there it does not start; a /tmp/dpdk that others can write to, too, it would
 * use. Then it gets a folder of this user's.
 */
#ifndef WEFT_EAL_FOLDER_H
#define WEFT_EAL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/user_folder.h"

#define WEFT_EAL_FOLDER_VARIABLE "XDG_RUNTIME_DIR"

enum weft_eal_folder {
	WEFT_EAL_FOLDER_ITS,  /**< the EAL's own choice will do */
	WEFT_EAL_FOLDER_OWN,  /**< the variable must name @p own */
	WEFT_EAL_FOLDER_NONE, /**< it can't have one: it must do without telemetry */
};

/**
 * @param runtime  uid 0: /var/run; else the variable's value or NULL
 * @param[out] own  TMP/weft-UID, made and ours
 */
enum weft_eal_folder weft_eal_folder_find(uid_t uid, const char *runtime, const char *tmp,
					  char *own, size_t size);

/**
 * The same for this process.
 *
 * @param[out] base  of BASE/dpdk, where its sockets will be; @p own, the environment's, or static
 */
enum weft_eal_folder weft_eal_folder_now(char *own, size_t size, const char **base);

#endif /* WEFT_EAL_FOLDER_H */
