/* SPDX-License-Identifier: BSD-3-Clause */

#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * A process that could shrink the file could end the other one with SIGBUS. F_SEAL_SEAL makes the
 * seals permanent.
 */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct shm_segment *segment_map(int fd)
{
	void *p = mmap(NULL, sizeof(struct shm_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A forked child must not use the connection. */
	madvise(p, sizeof(struct shm_segment), MADV_DONTFORK);
	return p;
}

struct shm_segment *shm_segment_create(int *fd)
{
	struct shm_segment *segment;
	int error;

	*fd = memfd_create("weft-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return NULL;
	segment = NULL;
	if (ftruncate(*fd, sizeof(*segment)) == 0 && fcntl(*fd, F_ADD_SEALS, SEALS) == 0)
		segment = segment_map(*fd);
	if (!segment) {
		error = errno;
		close(*fd);
		errno = error;
		return NULL;
	}
	segment->magic = SHM_MAGIC;
	segment->version = SHM_VERSION;
	segment->size = sizeof(*segment);
	return segment;
}

const char *shm_memfd_check(int fd, int seals, size_t size)
{
	int present = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	/* Only memory files have seals. Reads of other files could block or fail. */
	if (present < 0 || (present & seals) != seals)
		return "what it passed is no sealed memory file";
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return "the memory file it passed has no ordinary pages";
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)size)
		return "the segment it passed has another size";
	return NULL;
}

struct shm_segment *shm_segment_map(int fd, const char **why)
{
	struct shm_segment *segment;

	*why = shm_memfd_check(fd, SEALS, sizeof(*segment));
	if (*why)
		return NULL;
	*why = "the segment it passed cannot be mapped";
	segment = segment_map(fd);
	if (!segment)
		return NULL;
	*why = "the segment it passed is of another version";
	if (segment->magic != SHM_MAGIC || segment->version != SHM_VERSION ||
	    segment->size != sizeof(*segment)) {
		shm_segment_unmap(segment);
		return NULL;
	}
	return segment;
}

void shm_segment_unmap(struct shm_segment *segment)
{
	munmap(segment, sizeof(*segment));
}
