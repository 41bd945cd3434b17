/* SPDX-License-Identifier: BSD-3-Clause */

#include "claim.h"

#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

/* Who asks for the owner stays in the queue of a socket that nobody accepts from, until it is full. */
#define QUEUE 4096
#define PF_EXITING 4u /* of the kernel's include/linux/sched.h */
/* Closing its packet sockets may take the kernel a second for each, and the name comes after them. */
#define ENDING_TRIES 200
#define ENDING_WAIT_NS 50000000

static int address_of(const char *name, struct sockaddr_un *un, socklen_t *len)
{
	size_t n = strlen(name);

	if (n >= WEFT_CLAIM_NAME)
		return -ENAMETOOLONG;
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(un->sun_path + 1, name, n);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
	return 0;
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* ---- the owner ------------------------------------------------------------------------------ */

static void read_name(struct weft_claim_owner *owner)
{
	char path[48], comm[32];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", owner->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	n = fread(comm, 1, sizeof(comm), f);
	fclose(f);
	if (n > 0 && comm[n - 1] == '\n')
		n--;
	weft_text_copy(owner->name, sizeof(owner->name), comm, n);
}

/* Is the process a zombie, inside of exit(), or about to be killed? Then its sockets are closed soon. */
static bool is_ending(int pid)
{
	char path[48], text[512], state;
	unsigned long pending;
	unsigned int flags;
	const char *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return true;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name, in parentheses, may have any bytes. Fields 3, 9 and 31 of proc(5). */
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1,
			  " %c %*d %*d %*d %*d %*d %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			  "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
			  &state, &flags, &pending) != 3)
		return false;
	return state == 'Z' || state == 'X' || flags & PF_EXITING || pending & 1ul << (SIGKILL - 1);
}

/* @return whether somebody listens there. */
static bool find_owner(const struct sockaddr_un *un, socklen_t len, struct weft_claim_owner *owner)
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	int fd = open_socket(), rc;

	*owner = (struct weft_claim_owner){0};
	if (fd < 0)
		return false;
	rc = connect(fd, (const struct sockaddr *)un, len) ? -errno : 0;
	if (!rc && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)) {
		owner->pid = cred.pid;
		owner->uid = cred.uid;
		if (cred.pid)
			read_name(owner);
	}
	close(fd);
	/* A full queue is somebody's, too. */
	return !rc || rc == -EAGAIN;
}

static bool is_heeded(const struct weft_claim_owner *owner)
{
	return geteuid() != 0 || owner->uid == 0;
}

/* ---- claiming ------------------------------------------------------------------------------- */

static int try_claim(const struct sockaddr_un *un, socklen_t len)
{
	int fd = open_socket(), rc;

	if (fd < 0)
		return fd;
	if (!bind(fd, (const struct sockaddr *)un, len) && !listen(fd, QUEUE))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int weft_claim(const char *name, struct weft_claim_owner *owner)
{
	const struct timespec wait = {.tv_nsec = ENDING_WAIT_NS};
	struct sockaddr_un un;
	unsigned int tries;
	socklen_t len;
	int rc;

	*owner = (struct weft_claim_owner){0};
	rc = address_of(name, &un, &len);
	if (rc)
		return rc;
	for (tries = 0; tries < ENDING_TRIES; tries++) {
		rc = try_claim(&un, len);
		if (rc != -EADDRINUSE)
			return rc;
		/* Bound and not listening yet, or gone since: look again. */
		if (find_owner(&un, len, owner)) {
			if (!is_heeded(owner))
				return -EPERM;
			if (!owner->pid || !is_ending(owner->pid))
				return rc;
		}
		nanosleep(&wait, NULL);
	}
	return rc;
}

bool weft_claimed(const char *name, struct weft_claim_owner *owner)
{
	const struct timespec wait = {.tv_nsec = ENDING_WAIT_NS};
	struct sockaddr_un un;
	unsigned int tries;
	socklen_t len;

	if (address_of(name, &un, &len))
		return false;
	for (tries = 0; tries < ENDING_TRIES && find_owner(&un, len, owner); tries++) {
		if (!is_heeded(owner))
			return false;
		if (!owner->pid || !is_ending(owner->pid))
			return true;
		nanosleep(&wait, NULL);
	}
	return false;
}

/* 64 bits of what is too long for a name (FNV-1a). */
static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3;
	return h;
}

/* What two processes mean by a path depends on their mounts; the folder's inode does not. */
static uint64_t socket_hash(const char *path, bool abstract)
{
	const char *base = strrchr(path, '/');
	char dir[PATH_MAX], text[PATH_MAX + 64];
	struct stat st;

	snprintf(dir, sizeof(dir), "%.*s", base ? (int)(base - path) : 1, base ? path : ".");
	if (abstract || stat(dir[0] ? dir : "/", &st))
		snprintf(text, sizeof(text), "%c%s", abstract ? '@' : '/', path);
	else
		snprintf(text, sizeof(text), "%jx:%jx/%s", (uintmax_t)st.st_dev,
			 (uintmax_t)st.st_ino, base ? base + 1 : path);
	return hash(text);
}

void weft_claim_memif_name(char name[WEFT_CLAIM_NAME], const char *path, bool abstract, bool server,
			   unsigned int id)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/memif/%s/%u/%016" PRIx64,
		 server ? "server" : "client", id, socket_hash(path, abstract));
}

void weft_claim_owner_text(const struct weft_claim_owner *owner, char *buf, size_t size)
{
	if (owner->pid == (int)getpid())
		snprintf(buf, size, "this process already");
	else if (owner->pid)
		snprintf(buf, size, "process %d (%s)", owner->pid,
			 owner->name[0] ? owner->name : "?");
	else
		snprintf(buf, size, "a process of another container");
}
