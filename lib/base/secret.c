/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ------------------------------------------------------------------ memory */

void weft_secret_wipe(void *data, size_t len)
{
	explicit_bzero(data, len);
}

static size_t whole_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

void *weft_secret_alloc(size_t size)
{
	void *p = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, whole_pages(size), MADV_DONTDUMP) < 0 ||
	    madvise(p, whole_pages(size), MADV_WIPEONFORK) < 0) {
		munmap(p, whole_pages(size));
		return NULL;
	}
	return p;
}

void weft_secret_free(void *p, size_t size)
{
	if (!p)
		return;
	weft_secret_wipe(p, size);
	munmap(p, whole_pages(size));
}

/* ------------------------------------------------------------------ the job key's file */

struct complaint {
	const char *what, *path;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 3, 4))) static int complain(const struct complaint *c, int rc,
							  const char *fmt, ...)
{
	int n = snprintf(c->why, c->why_len, "%s %s: ", c->what, c->path);
	va_list ap;

	if (n >= 0 && (size_t)n < c->why_len) {
		va_start(ap, fmt);
		vsnprintf(c->why + n, c->why_len - (size_t)n, fmt, ap);
		va_end(ap);
	}
	return rc;
}

/* The content crosses a network: numbers of statfs(2), and others. */
static bool is_remote(int fd)
{
	static const uint32_t types[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB 2 */
		0x01021997, /* 9P */
		0x5346414f, /* OpenAFS */
		0x6b414653, /* AFS */
		0x00c36400, /* Ceph */
		0x0bd00bd0, /* Lustre */
		0x47504653, /* GPFS */
		0x19830326, /* BeeGFS */
		0x65735546, /* FUSE, such as sshfs */
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

static int check_owner(const struct complaint *c, int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return complain(c, -errno, "%s", strerror(errno));
	if (!S_ISREG(st->st_mode))
		return complain(c, -EINVAL, "it is no regular file: give the name of one");
	if (st->st_uid != geteuid())
		return complain(c, -EACCES,
				"it belongs to user %u, and this process runs as user %u: use a "
				"file of its own user",
				(unsigned int)st->st_uid, (unsigned int)geteuid());
	return 0;
}

static int check_file(const struct complaint *c, int fd)
{
	struct stat st;
	int rc = check_owner(c, fd, &st);

	if (rc < 0)
		return rc;
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return complain(c, -EACCES,
				"other users may use it (mode %04o): chmod 600, and make a new key "
				"if other users could read it",
				(unsigned int)st.st_mode & 07777u);
	if (st.st_size != WEFT_JOB_KEY_LEN)
		return complain(c, -EINVAL,
				"it has %lld bytes instead of %u: make one by "
				"'head -c 32 /dev/urandom'",
				(long long)st.st_size, WEFT_JOB_KEY_LEN);
	return 0;
}

/* The file may change while it is read. @return bytes, or a negative error */
static ssize_t read_all(int fd, uint8_t *buf, size_t size)
{
	size_t have = 0;
	ssize_t n = 1;

	while (have < size && n != 0) {
		n = read(fd, buf + have, size - have);
		if (n < 0 && errno != EINTR)
			return -errno;
		have += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)have;
}

static int read_key(const struct complaint *c, int fd, uint8_t key[WEFT_JOB_KEY_LEN])
{
	static const uint8_t zeros[WEFT_JOB_KEY_LEN];
	uint8_t buf[WEFT_JOB_KEY_LEN + 1];
	ssize_t n = read_all(fd, buf, sizeof(buf));
	int rc = 0;

	if (n < 0)
		rc = complain(c, (int)n, "%s", strerror((int)-n));
	else if (n != WEFT_JOB_KEY_LEN)
		rc = complain(c, -EINVAL, "it changed while it was read");
	else if (memcmp(buf, zeros, sizeof(zeros)) == 0)
		rc = complain(c, -EINVAL,
			      "all of its bytes are zero: make one by "
			      "'head -c 32 /dev/urandom'");
	else
		memcpy(key, buf, WEFT_JOB_KEY_LEN);
	weft_secret_wipe(buf, sizeof(buf));
	return rc;
}

int weft_job_key_load(const char *path, uint8_t key[WEFT_JOB_KEY_LEN], bool *remote, char *why,
		      size_t why_len)
{
	const struct complaint c = {"job key", path, why, why_len};
	/* Not blocking: a FIFO without a writer must not hold the process. */
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT)
		return complain(&c, -ENOENT,
				"there is no such file on this host: copy that of the other hosts, "
				"or make the first one by 'head -c 32 /dev/urandom'");
	if (fd < 0)
		return complain(&c, -errno, "%s", strerror(errno));
	rc = check_file(&c, fd);
	if (rc == 0)
		rc = read_key(&c, fd, key);
	if (rc == 0)
		*remote = is_remote(fd);
	close(fd);
	return rc;
}

/* ------------------------------------------------------------------ the key log */

int weft_keylog_open(const char *path, char *why, size_t why_len)
{
	const struct complaint c = {"key log", path, why, why_len};
	struct stat st;
	/* Not blocking: a FIFO without a reader must not hold the process. */
	int rc, fd = open(path,
			  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
				  O_NONBLOCK,
			  0600);

	if (fd < 0 && errno == ELOOP)
		return complain(&c, -ELOOP, "it is a symbolic link: give the file's own name");
	if (fd < 0)
		return complain(&c, -errno, "%s", strerror(errno));
	rc = check_owner(&c, fd, &st);
	if (rc == 0 && st.st_mode & (S_IRWXG | S_IRWXO))
		rc = complain(&c, -EACCES,
			      "other users may use it (mode %04o): remove it, or give another name",
			      (unsigned int)st.st_mode & 07777u);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}
