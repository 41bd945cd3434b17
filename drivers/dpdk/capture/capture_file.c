/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that captures and the flight recorder write: opening, comments of frames, threads. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_lcore.h>

#include "base/thread.h"
#include "capture/capture_file.h"
#include "frame/frame.h"

/* ---- files ---------------------------------------------------------------------------------- */

/*
 * An existing file is used only if it belongs to this user: its owner could read the frames. FIFOs
 * and devices may belong to root, too (/dev/null), since root reads everything anyway.
 */
static int make_ours(int fd, const char *name, char *why, size_t why_len)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st)) {
		rc = -errno;
		snprintf(why, why_len, "the owner of the file %s can't be found (%s)", name,
			 strerror(-rc));
		return rc;
	}
	if (st.st_uid != geteuid() && (S_ISREG(st.st_mode) || st.st_uid != 0)) {
		snprintf(why, why_len,
			 "%s belongs to user %u, which could read all frames: remove it, or give "
			 "another name",
			 name, st.st_uid);
		return -EPERM;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_mode & 077 && fchmod(fd, 0600)) {
		snprintf(why, why_len, "others can read %s, and that can't be changed (%s)", name,
			 strerror(errno));
		return -EPERM;
	}
	/* Two processes that write one file would corrupt it for both. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(
			why, why_len,
			"another capture is being written to %s; with %%p in the name each process "
			"writes its own",
			name);
		return -EBUSY;
	}
	return 0;
}

int weft_capture_file_open(const char *name, char *why, size_t why_len)
{
	/*
	 * O_NOFOLLOW: another user may have made a link here. O_NONBLOCK: opening a FIFO must not
	 * wait.
	 */
	int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600), rc;

	if (fd < 0) {
		rc = -errno;
		if (rc == -ELOOP)
			snprintf(
				why, why_len,
				"%s is a symbolic link, which is not followed: give the file's own "
				"name",
				name);
		else if (rc == -ENXIO)
			snprintf(why, why_len,
				 "%s is a FIFO without a reader: start the reader first", name);
		else
			snprintf(why, why_len, "%s can't be written (%s)", name, strerror(-rc));
		return rc;
	}
	rc = make_ours(fd, name, why, why_len);
	if (!rc && ftruncate(fd, 0) && errno != EINVAL) {
		rc = -errno;
		snprintf(why, why_len, "%s can't be truncated (%s)", name, strerror(-rc));
	}
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

int weft_capture_file_rotate(const char *name, unsigned int files)
{
	char from[640], to[640];
	unsigned int i;

	for (i = files - 1; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%u", name, i);
		if (i > 1)
			snprintf(from, sizeof(from), "%s.%u", name, i - 1);
		else
			snprintf(from, sizeof(from), "%s", name);
		if (rename(from, to) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* ---- comments of frames --------------------------------------------------------------------- */

#define IP 20u
#define UDP 8u

/* @return where the lane header begins; 0 = this is no frame of a lane, or too short */
static size_t lane_header(const uint8_t *p, size_t len)
{
	size_t at = 12;
	uint16_t type;

	if (len < 18)
		return 0;
	type = (uint16_t)(p[at] << 8 | p[at + 1]);
	if (type == RTE_ETHER_TYPE_VLAN) {
		at += 4;
		type = (uint16_t)(p[at] << 8 | p[at + 1]);
	}
	at += 2;
	if (type == RTE_ETHER_TYPE_IPV4)
		at += IP + UDP;
	else if (type != WEFT_FRAME_ETHERTYPE)
		return 0;
	return at + sizeof(struct weft_frame_hdr) <= len ? at : 0;
}

void weft_capture_describe(const char *lane, const void *data, size_t len, char *buf, size_t size)
{
	size_t at = lane_header(data, len), name = strcspn(lane, " ");
	struct weft_frame_hdr h;

	if (at)
		memcpy(&h, (const uint8_t *)data + at, sizeof(h));
	if (at && weft_get16(h.magic) == WEFT_FRAME_MAGIC)
		snprintf(buf, size, "lane %.*s, path %u", (int)name, lane, h.path);
	else
		snprintf(buf, size, "lane %.*s", (int)name, lane);
}

/* ---- threads -------------------------------------------------------------------------------- */

int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread)
{
	cpu_set_t lcores, lcore;
	unsigned int id;

	CPU_ZERO(&lcores);
	RTE_LCORE_FOREACH(id) {
		lcore = rte_lcore_cpuset(id);
		CPU_OR(&lcores, &lcores, &lcore);
	}
	return weft_thread_start(name, run, arg, &lcores, thread);
}
