/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users, and their limits. A process in a user namespace counts for the owner of the namespace,
 * because /etc/subuid gives each user 65,536 further user ids. Where the kernel can't report the
 * owner (before Linux 6.5), a process counts for its user id.
 */

#include "switch/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/nsfs.h>

#include "common/cli.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef PIDFD_GET_USER_NAMESPACE
#define PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)
#endif
/* More levels than the kernel allows. */
#define DEPTH 64

#define SECOND 1000000000ull
#define BAN_NS (10 * SECOND)
/* All processes of a job connect at once; a memif client reconnects 10 times a second. */
#define REQUESTS_PER_S 20
#define REQUESTS_AT_ONCE 128
#define CONNECTS_PER_S 320
#define CONNECTS_AT_ONCE 640
#define LINES_AT_ONCE 5
#define LINES_OF_ALL_PER_S 10
#define LINES_OF_ALL_AT_ONCE 50

/* ---- the user of a connection --------------------------------------------------------------- */

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* /proc/PID is of this process while it lives: until then its PID is not used again. */
static int open_user_ns(int pidfd, pid_t pid)
{
	char path[32];
	int ns = ioctl(pidfd, PIDFD_GET_USER_NAMESPACE, 0);

	if (ns >= 0)
		return ns;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (!has_ended(pidfd))
		return ns;
	if (ns >= 0)
		close(ns);
	return -1;
}

static bool is_own_ns(int ns)
{
	struct stat own, st;

	return stat("/proc/self/ns/user", &own) || fstat(ns, &st) ||
	       (own.st_ino == st.st_ino && own.st_dev == st.st_dev);
}

/* The owner of the outermost namespace below ours, as namespaces may be nested. Closes @p ns. */
static uid_t ns_owner(int ns, uid_t user)
{
	unsigned int i;
	uid_t owner;
	int parent;

	for (i = 0; i < DEPTH && ns >= 0 && !is_own_ns(ns); i++) {
		if (ioctl(ns, NS_GET_OWNER_UID, &owner) == 0)
			user = owner;
		parent = ioctl(ns, NS_GET_PARENT);
		close(ns);
		ns = parent;
	}
	if (ns >= 0)
		close(ns);
	return user;
}

int sw_user_of(int fd, struct sw_conn *c)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred), pidfd_len = sizeof(int);
	bool ended;
	int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	c->pid = cred.pid;
	c->uid = c->user = cred.uid;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &pidfd_len))
		return errno == ENOPROTOOPT ? 0 : -ESRCH;
	c->user = ns_owner(open_user_ns(pidfd, cred.pid), cred.uid);
	/* If the process ended during the check, its user id could be one of its namespace. */
	ended = has_ended(pidfd);
	close(pidfd);
	return ended ? -ESRCH : 0;
}

/* ---- limits --------------------------------------------------------------------------------- */

/* When the table is full, the user that was seen longest ago is replaced. */
static struct sw_user *find(struct sw *s, uid_t id, uint64_t now)
{
	struct sw_user *u = &s->user[0];
	unsigned int i;

	for (i = 0; i < SW_USERS; i++) {
		if (s->user[i].used && s->user[i].id == id) {
			u = &s->user[i];
			break;
		}
		if (s->user[i].seen < u->seen)
			u = &s->user[i];
	}
	if (!u->used || u->id != id)
		*u = (struct sw_user){.id = id, .used = true};
	u->seen = now;
	return u;
}

/* @param until  the time at which the quota is full again, at @p per_s a second */
static bool take(uint64_t *until, uint64_t now, unsigned int per_s, unsigned int at_once)
{
	const uint64_t price = SECOND / per_s;

	if (*until < now)
		*until = now;
	if (*until - now >= price * at_once)
		return false;
	*until += price;
	return true;
}

bool sw_user_may_request(struct sw *s, uid_t user, uint64_t now)
{
	return take(&find(s, user, now)->requests, now, REQUESTS_PER_S, REQUESTS_AT_ONCE);
}

bool sw_user_may_connect(struct sw *s, uid_t user, uint64_t now)
{
	return take(&find(s, user, now)->connects, now, CONNECTS_PER_S, CONNECTS_AT_ONCE);
}

void sw_user_ban(struct sw *s, uid_t user, uint64_t now)
{
	find(s, user, now)->banned_until = now + BAN_NS;
}

bool sw_user_is_banned(const struct sw *s, uid_t user, uint64_t now)
{
	unsigned int i;

	for (i = 0; i < SW_USERS; i++)
		if (s->user[i].used && s->user[i].id == user)
			return now < s->user[i].banned_until;
	return false;
}

void sw_report(struct sw *s, uid_t user, const char *fmt, ...)
{
	uint64_t now = sw_now();
	struct sw_user *u = find(s, user, now);
	char text[400];
	va_list ap;

	if (!take(&u->lines, now, 1, LINES_AT_ONCE) ||
	    !take(&s->lines, now, LINES_OF_ALL_PER_S, LINES_OF_ALL_AT_ONCE)) {
		s->unlogged++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (s->unlogged)
		cli_error("%s (%llu lines about users were left out)", text,
			  (unsigned long long)s->unlogged);
	else
		cli_error("%s", text);
	s->unlogged = 0;
}
