/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/user_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* If another user had access to the folder, it could put a socket there, or replace a file. */
bool weft_private_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

bool weft_user_folder(uid_t uid, const char *tmp, char *own, size_t size)
{
	return snprintf(own, size, "%s/weft-%u", tmp, (unsigned int)uid) < (int)size &&
	       weft_private_folder(own);
}

int weft_user_folder_find(char path[WEFT_USER_FOLDER], char *why, size_t why_len)
{
	unsigned int uid = geteuid();

	if (weft_user_folder(uid, "/tmp", path, WEFT_USER_FOLDER))
		return 0;
	if (uid == 0)
		snprintf(path, WEFT_USER_FOLDER, "/run/weft-0");
	else
		snprintf(path, WEFT_USER_FOLDER, "/run/user/%u/weft", uid);
	if (weft_private_folder(path))
		return 0;
	snprintf(why, why_len,
		 "neither /tmp/weft-%u nor %s is a folder of user %u alone: remove the first one, "
		 "or have its owner remove it",
		 uid, path, uid);
	return -EACCES;
}

/*
 * A connect() with another type of socket fails. Its error shows whether a process has the socket,
 * also before listen(). The owner notices nothing.
 */
bool weft_socket_is_dead(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(un.sun_path))
		return false;
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	rc = connect(fd, (struct sockaddr *)&un, sizeof(un)) ? errno : 0;
	close(fd);
	return rc == ECONNREFUSED;
}

static void sweep_one(const char *folder, int dir, const char *name, time_t before)
{
	struct stat st;
	char path[512];

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_ctime > before)
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (weft_socket_is_dead(path))
		unlinkat(dir, name, 0);
}

void weft_sockets_sweep(const char *folder, const char *prefix, unsigned int age_s)
{
	time_t before = time(NULL) - (time_t)age_s;
	const struct dirent *e;
	DIR *dir = opendir(folder);

	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			sweep_one(folder, dirfd(dir), e->d_name, before);
	closedir(dir);
}
