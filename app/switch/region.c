/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a client. The forwarder reads and writes it, so no page may disappear (SIGBUS). No
 * page may be missing either: the forwarder's page fault would block, and the page would be charged
 * to this process without a limit. So:
 *
 *  - It is a memfd of ordinary pages, no longer than two rings of the granted sizes.
 *  - Its size is sealed. Holes can be punched into a memfd in spite of that, so it is also sealed
 *    against writes, except by existing mappings: punching a hole counts as a write.
 *  - Then all missing pages are allocated, and locked in memory as far as limits permit.
 */

#include "switch/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_common.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Rings and buffers each begin at a page boundary; DPDK leaves up to a page between them. */
size_t sw_region_max(unsigned int log2_ring, uint32_t bsize)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), slots = (size_t)1 << log2_ring;
	size_t ring = sizeof(struct sw_ring_shm) + slots * sizeof(struct sw_ring_desc);

	return RTE_ALIGN_CEIL(2 * ring, page) + RTE_ALIGN_CEIL(2 * slots * bsize, page) + page;
}

static bool is_sealed(int fd, int seals)
{
	return (fcntl(fd, F_GET_SEALS) & seals) == seals;
}

static bool seal(int fd, int seals)
{
	return is_sealed(fd, seals) || fcntl(fd, F_ADD_SEALS, seals) == 0;
}

/* Only a memfd has seals. The seals come first: fstat() of a FUSE file would wait for its owner. */
static const char *check_file(const struct sw *s, int fd, uint64_t size)
{
	struct statfs fs;
	struct stat st;

	if (fd < 0 || !is_sealed(fd, F_SEAL_SHRINK))
		return "the region is not sealed against shrinking";
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return "the region is no memfd of ordinary pages";
	if (!seal(fd, F_SEAL_GROW))
		return "the region can't be sealed against growing";
	if (fstat(fd, &st) || (uint64_t)st.st_size < size)
		return "the region is shorter than announced";
	if ((uint64_t)st.st_size > s->region_max)
		return "the region's file is longer than the granted rings need";
	return NULL;
}

/* Kernels before 5.14 have no call that allocates pages of a mapping; writing zero bits does. */
static bool make_pages(uint8_t *at, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;

	if (madvise(at, size, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	for (i = 0; i < size; i += page)
		__atomic_fetch_or(at + i, 0, __ATOMIC_RELAXED);
	return true;
}

const char *sw_region_map(const struct sw *s, int fd, uint64_t size, void **region)
{
	const char *why = NULL;
	void *at;

	if (size == 0 || size > s->region_max)
		return "the region is larger than the granted rings need";
	why = check_file(s, fd, size);
	if (why)
		return why;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return "the region can't be mapped";
	if (!seal(fd, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		why = "the region can't be sealed against holes";
	else if (!make_pages(at, size))
		why = "there is no memory for the region's pages";
	if (why) {
		munmap(at, size);
		return why;
	}
	/*
	 * Where limits forbid it, pages may be swapped out, and the forwarder waits for the disk.
	 */
	(void)mlock(at, size);
	*region = at;
	return NULL;
}
