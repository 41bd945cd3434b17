/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/recorder_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user_folder.h"

#define PREFIX "recorder-"
#define SUFFIX ".pcapng"
#define TRIES 16u

int weft_recorder_folder_find(char *path, size_t size)
{
	const char *tmp = secure_getenv("TMPDIR");
	char found[WEFT_USER_FOLDER], why[256];
	int rc;

	if (tmp && tmp[0]) {
		if (weft_user_folder(geteuid(), tmp, path, size))
			return 0;
		snprintf(path, size,
			 "%s/weft-%u is no folder of this user alone: set TMPDIR, or "
			 "WEFT_RECORDER_FILE",
			 tmp, (unsigned int)geteuid());
		return -EACCES;
	}
	rc = weft_user_folder_find(found, why, sizeof(why));
	snprintf(path, size, "%s", rc ? why : found);
	return rc;
}

int weft_recorder_folder_create(const char *folder, char *name, size_t size)
{
	unsigned int i;
	uint64_t id;
	int fd;

	for (i = 0; i < TRIES; i++) {
		if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
			id = i; /* names only have to differ */
		snprintf(name, size, "%s/" PREFIX "%d-%016llx" SUFFIX, folder, (int)getpid(),
			 (unsigned long long)id);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	i = (unsigned int)errno;
	snprintf(name, size, "no file can be made in %s (%s)", folder, strerror((int)i));
	return -(int)i;
}

struct old_file {
	struct timespec when;
	uint64_t bytes;
	char name[64];
};

static bool is_ours(const char *name)
{
	size_t len = strlen(name);

	return len < sizeof(((struct old_file *)NULL)->name) &&
	       !strncmp(name, PREFIX, sizeof(PREFIX) - 1) && len > sizeof(SUFFIX) &&
	       !strcmp(name + len - (sizeof(SUFFIX) - 1), SUFFIX);
}

static int newest_first(const void *a, const void *b)
{
	const struct old_file *x = a, *y = b;

	if (x->when.tv_sec != y->when.tv_sec)
		return x->when.tv_sec < y->when.tv_sec ? 1 : -1;
	if (x->when.tv_nsec != y->when.tv_nsec)
		return x->when.tv_nsec < y->when.tv_nsec ? 1 : -1;
	return 0;
}

/* @return files in @p list, which the caller frees */
static size_t list_files(DIR *dir, struct old_file **list)
{
	struct old_file *more;
	const struct dirent *e;
	size_t n = 0;
	struct stat st;

	*list = NULL;
	while ((e = readdir(dir))) {
		if (!is_ours(e->d_name) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
			continue;
		/* The array grows by powers of two. */
		more = n & (n - 1) ? *list : realloc(*list, (n ? 2 * n : 1) * sizeof(*more));
		if (!more)
			break;
		*list = more;
		more[n].when = st.st_mtim;
		more[n].bytes = (uint64_t)st.st_size;
		memcpy(more[n].name, e->d_name, strlen(e->d_name) + 1);
		n++;
	}
	return n;
}

void weft_recorder_folder_prune(const char *folder, unsigned int files, uint64_t bytes)
{
	struct old_file *list;
	DIR *dir = opendir(folder);
	uint64_t sum = 0;
	size_t i, n;

	if (!dir)
		return;
	n = list_files(dir, &list);
	if (n > 1)
		qsort(list, n, sizeof(*list), newest_first);
	for (i = 0; i < n; i++) {
		sum += list[i].bytes;
		if (i > 0 && (i >= files || sum > bytes))
			unlinkat(dirfd(dir), list[i].name, 0);
	}
	free(list);
	closedir(dir);
}
