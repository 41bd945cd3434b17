/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/user_folder.h
 * A folder that belongs to one user alone. Processes of the user find each other's sockets and
 * files there, and no other user can put anything into it.
 */
#ifndef WEFT_USER_FOLDER_H
#define WEFT_USER_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Longest path of the folder, with its zero byte. A socket's name fits behind it. */
#define WEFT_USER_FOLDER 64

/** Beginning of the names of sockets of processes without raw lanes (answer.h), for weft-info. */
#define WEFT_ANSWERS_PREFIX "answers-"

/**
 * Make @p path with mode 0700, if it is not there.
 * @return true: it is a folder, no link, belongs to the effective user, and no other user can write
 *   to it
 */
bool weft_private_folder(const char *path);

/**
 * Make TMP/weft-UID, if it is not there.
 * @param[out] own  its path, of @p size bytes at most
 * @return false: the path is too long, the folder cannot be made, or weft_private_folder() is false
 */
bool weft_user_folder(uid_t uid, const char *tmp, char *own, size_t size);

/**
 * The folder of the effective user: /tmp/weft-UID. Another user may have made this name first. Then
 * it is /run/user/UID/weft, or /run/weft-0 for root, whose parents only the user or root can write
 * to. All processes of the user that see the same /tmp and /run come to the same result.
 *
 * @param[out] why  on error: the folder, and the remedy
 * @return 0; -EACCES: none of them belongs to the user alone
 */
int weft_user_folder_find(char path[WEFT_USER_FOLDER], char *why, size_t why_len);

/**
 * No process has the socket at @p path any more. False also when this is unknown. The owner of the
 * socket notices nothing.
 */
bool weft_socket_is_dead(const char *path);

/**
 * Remove this user's sockets in @p folder whose names begin with @p prefix and that no process has
 * any more. Sockets that are younger than @p age_s stay, so that many processes that start at a
 * time do not probe each other.
 */
void weft_sockets_sweep(const char *folder, const char *prefix, unsigned int age_s);

#endif /* WEFT_USER_FOLDER_H */
