/* SPDX-License-Identifier: BSD-3-Clause */

#include "memif_dead.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_PATH "/run/memif.sock"

/* The value of key in a device's arguments. @return false when it has none */
static bool argument(const char *args, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key), n;
	const char *at;

	for (at = strchr(args, ','); at; at = strchr(at, ',')) {
		at++;
		if (strncmp(at, key, len) || at[len] != '=')
			continue;
		n = strcspn(at + len + 1, ",");
		snprintf(buf, size, "%.*s", (int)n, at + len + 1);
		return true;
	}
	return false;
}

/* The path that a device will bind, if it is a memif server on one. */
static bool server_path(const char *device, char *path, size_t size)
{
	char word[16];

	if (strncmp(device, "net_memif", 9) || !argument(device, "role", word, sizeof(word)) ||
	    (strcmp(word, "server") && strcmp(word, "master")))
		return false;
	if (!argument(device, "socket-abstract", word, sizeof(word)) || strcmp(word, "no"))
		return false;
	if (!argument(device, "socket", path, size))
		snprintf(path, size, "%s", DEFAULT_PATH);
	return true;
}

/*
 * To connect with another type of socket fails with one error when somebody listens and with
 * another when nobody does, and the one who listens hears nothing of it.
 */
static bool is_dead(const char *path)
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

static int make_free(const char *path, char *why, size_t why_len)
{
	struct stat st;

	if (lstat(path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, why_len,
			 "the memif server's socket %s can't be made: there is a file that is no "
			 "socket; give another socket=",
			 path);
		return -EADDRINUSE;
	}
	if (is_dead(path) && (!unlink(path) || errno == ENOENT))
		return 0;
	snprintf(why, why_len,
		 "the memif server's socket %s is taken: another process listens there; end it, or "
		 "give another socket=",
		 path);
	return -EADDRINUSE;
}

int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len)
{
	const char *device;
	char path[256];
	int i, rc = 0;

	for (i = 0; i < count && rc == 0; i++) {
		device = NULL;
		if (!strncmp(words[i], "--vdev=", 7))
			device = words[i] + 7;
		else if (!strcmp(words[i], "--vdev") && i + 1 < count)
			device = words[i + 1];
		if (device && server_path(device, path, sizeof(path)))
			rc = make_free(path, why, why_len);
	}
	return rc;
}
