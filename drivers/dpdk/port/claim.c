/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/claim.h"

#include <errno.h>
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

#include "port/claim_owner.h"

/*
 * Backlog of a claim's socket. A process that queries the owner connects to it. The connection is
 * never accepted, and stays in the backlog until that is full.
 */
#define QUEUE 4096
/*
 * Closing the packet sockets of an ending owner may take the kernel a second for each, and its name
 * is freed after them.
 */
#define ENDING_TRIES 200
/* Tries while an owner is between bind() and listen(), or changes between two checks. */
#define OTHER_TRIES 20
#define WAIT_NS 50000000
#define FDS_MAX 65536

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

/* ---- claiming ------------------------------------------------------------------------------- */

static int try_claim(const struct sockaddr_un *un, socklen_t len)
{
	int fd = weft_claim_socket(), rc;

	if (fd < 0)
		return fd;
	if (!bind(fd, (const struct sockaddr *)un, len) && !listen(fd, QUEUE))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Number of waits for an owner that is ending, and for other reasons. */
struct waits {
	unsigned int ending, other;
};

/* If the name may soon be free, wait. @return true: try again */
static bool wait_for(enum weft_claim_held held, struct waits *w)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};

	switch (held) {
	case WEFT_HELD_ENDING:
		if (w->ending++ == ENDING_TRIES)
			return false;
		break;
	case WEFT_HELD_FREE:
	case WEFT_HELD_SILENT:
	case WEFT_HELD_INHERITED:
		if (w->other++ == OTHER_TRIES)
			return false;
		break;
	default:
		return false;
	}
	nanosleep(&wait, NULL);
	return true;
}

/* A process that has the name and does not listen has no claim. */
static bool is_claim(enum weft_claim_held held)
{
	return held != WEFT_HELD_UNTRUSTED && held != WEFT_HELD_FREE && held != WEFT_HELD_SILENT;
}

int weft_claim(const char *name, struct weft_claim_owner *owner)
{
	enum weft_claim_held held;
	struct waits waits = {0};
	struct sockaddr_un un;
	socklen_t len;
	int rc;

	*owner = (struct weft_claim_owner){.uid = WEFT_CLAIM_NO_UID};
	rc = address_of(name, &un, &len);
	if (rc)
		return rc;
	do {
		rc = try_claim(&un, len);
		if (rc != -EADDRINUSE)
			return rc;
		held = weft_claim_look(&un, len, owner);
	} while (wait_for(held, &waits));
	return is_claim(held) ? rc : -EPERM;
}

int weft_claim_now(const char *name, struct weft_claim_owner *owner)
{
	struct sockaddr_un un;
	socklen_t len;
	int rc;

	*owner = (struct weft_claim_owner){.uid = WEFT_CLAIM_NO_UID};
	rc = address_of(name, &un, &len);
	if (!rc)
		rc = try_claim(&un, len);
	if (rc != -EADDRINUSE)
		return rc;
	return weft_claim_look(&un, len, owner) == WEFT_HELD ? -EADDRINUSE : -EAGAIN;
}

static bool listens_at(int fd, const struct sockaddr_un *un, socklen_t len)
{
	struct sockaddr_un its;
	socklen_t n = sizeof(its), size = sizeof(int);
	int listens = 0;

	return getsockname(fd, (struct sockaddr *)&its, &n) == 0 && n == len &&
	       memcmp(&its, un, len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

int weft_claim_find(const char *name)
{
	long max = sysconf(_SC_OPEN_MAX);
	struct sockaddr_un un;
	socklen_t len;
	int fd;

	if (address_of(name, &un, &len))
		return -1;
	for (fd = 0; fd < (max < 0 || max > FDS_MAX ? FDS_MAX : max); fd++)
		if (listens_at(fd, &un, len))
			return fd;
	return -1;
}

bool weft_claimed(const char *name, struct weft_claim_owner *owner)
{
	enum weft_claim_held held;
	struct waits waits = {0};
	struct sockaddr_un un;
	socklen_t len;

	if (address_of(name, &un, &len))
		return false;
	do {
		held = weft_claim_look(&un, len, owner);
	} while (held != WEFT_HELD_FREE && wait_for(held, &waits));
	return held == WEFT_HELD || held == WEFT_HELD_ENDING || held == WEFT_HELD_INHERITED;
}

/* A 64-bit hash (FNV-1a) of text that is too long for a name. */
static uint64_t text_hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3;
	return h;
}

/* The meaning of a path depends on a process's mounts; the folder's inode does not. */
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
	return text_hash(text);
}

void weft_claim_memif_name(char name[WEFT_CLAIM_NAME], const char *path, bool abstract, bool server,
			   unsigned int id)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/memif/%s/%u/%016" PRIx64,
		 server ? "server" : "client", id, socket_hash(path, abstract));
}

void weft_claim_args_name(char name[WEFT_CLAIM_NAME], const char *device, const char *args)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/vdev/%.48s/%016" PRIx64, device, text_hash(args));
}
