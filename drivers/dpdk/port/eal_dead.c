/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/eal_dead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TELEMETRY "dpdk_telemetry.v" /* and 1 or 2, and :N */

/*
 * To connect with another type of socket fails with one error when somebody has it, be it before
 * listen(), and with another when nobody does; and who has it hears nothing.
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

static void look_at(const char *folder, int dir, const char *name)
{
	struct stat st;
	char path[512];

	if (strncmp(name, TELEMETRY, strlen(TELEMETRY)) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode) ||
	    st.st_uid != geteuid())
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (weft_socket_is_dead(path))
		unlinkat(dir, name, 0);
}

void weft_eal_dead_remove(const char *base)
{
	const struct dirent *e;
	char folder[256];
	DIR *dir;

	if (snprintf(folder, sizeof(folder), "%s/dpdk/weft", base) >= (int)sizeof(folder))
		return;
	dir = opendir(folder);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		look_at(folder, dirfd(dir), e->d_name);
	closedir(dir);
}
