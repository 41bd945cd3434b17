/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cli.h"
#include "switch/client.h"
#include "switch/grant.h"
#include "switch/pump.h"
#include "switch/switch.h"
#include "switch/control.h"

/* ---- users ---------------------------------------------------------------------------------- */

/*
 * A process in a user namespace counts for the owner of the namespace, because /etc/subuid gives
 * each user 65,536 further user ids. Where the kernel can't report the owner (before Linux 6.5), a
 * process counts for its user id.
 */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef PIDFD_GET_USER_NAMESPACE
#define PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)
#endif
#define DEPTH 64 /* more levels than the kernel allows */

#define SECOND 1000000000ull
#define BAN_NS (10 * SECOND) /* no port for a user whose eventfd was full or has blocked */
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

/* A PID is not used again while its process lives: so check after the open that it still does. */
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

static bool sw_user_may_request(struct sw *s, uid_t user, uint64_t now)
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

/* ---- the well-known socket ------------------------------------------------------------------ */

/*
 * A process that connects gets a port at once, or a reason; the switch reads nothing from it. The
 * port belongs to the process until both this connection and the memif connection, which is made
 * with the secret, have ended. A grant without a memif connection for IDLE_NS holds its port only
 * until another process needs it. A restarted switch with the key of its predecessor accepts the
 * predecessor's clients.
 */

#define IDLE_NS 5000000000ull

/* ---- ports and users ------------------------------------------------------------------------ */

void sw_secret(const struct sw *s, unsigned int port, uid_t uid, char secret[24])
{
	const uint64_t what[2] = {port, uid};
	struct weft_siphash_key other = {s->key.k1, ~s->key.k0};

	memset(secret, 0, 24);
	snprintf(secret, 24, "%016" PRIx64 "%07" PRIx64, weft_siphash(&s->key, what, sizeof(what)),
		 weft_siphash(&other, what, sizeof(what)) >> 36);
}

bool sw_port_is_taken(const struct sw_port *p, uint64_t now)
{
	return p->conn.fd >= 0 || (p->grant >= 0 && now - p->idle_since < IDLE_NS);
}

void sw_port_check(struct sw *s, unsigned int port)
{
	struct sw_port *p = &s->port[port];

	if (p->grant >= 0 || p->conn.fd >= 0)
		return;
	p->uid = p->user = (uid_t)-1;
	p->pid = 0;
	/* The switch itself ends connections of living processes, too: then no peer is notified. */
	if (p->hung_up)
		sw_lane_gone(s, port, p->farewells);
	else
		free(p->farewells);
	p->farewells = NULL;
	p->hung_up = false;
}

/*
 * A user gets at most -u ports, and no second port when -u ports are taken: the remaining ones are
 * for users without a port. The switch's own user has no limit.
 */
const char *sw_user_limit(const struct sw *s, uid_t user, uint64_t now)
{
	unsigned int i, own = 0, taken = 0;

	if (user == geteuid())
		return NULL;
	if (sw_user_is_banned(s, user, now))
		return "an eventfd of this user was full or has blocked; wait 10 s";
	for (i = 0; i < s->plan.ports; i++) {
		if (!sw_port_is_taken(&s->port[i], now))
			continue;
		taken++;
		own += s->port[i].user == user;
	}
	if (own >= s->per_user)
		return "it has the most ports that one user may have (-u)";
	if (own > 0 && taken >= s->per_user)
		return "it has a port, and the remaining ports are for users without one (-u)";
	return NULL;
}

/* Prefer a port without a grant: the process of an idle grant may still connect. */
static int free_port(const struct sw *s, uint64_t now)
{
	unsigned int i;
	int found = -1;

	for (i = 0; i < s->plan.ports; i++) {
		if (sw_port_is_taken(&s->port[i], now))
			continue;
		if (s->port[i].grant < 0)
			return (int)i;
		if (found < 0)
			found = (int)i;
	}
	return found;
}

/* @return a free port; -1 with a reason in @p text */
static int choose(struct sw *s, uid_t user, uint64_t now, char *text, size_t len)
{
	const char *limit = sw_user_limit(s, user, now);
	int found = free_port(s, now);

	if (!sw_user_may_request(s, user, now))
		limit = "it sends too many requests; wait some seconds";
	if (found < 0)
		snprintf(text, len,
			 "weft-switch has %u ports, and all are in use: start it with more "
			 "(-n)",
			 s->plan.ports);
	else if (limit)
		snprintf(text, len, "weft-switch gives user %u no port: %s", (unsigned int)user,
			 limit);
	return limit ? -1 : found;
}

static void fill(const struct sw *s, unsigned int port, uid_t uid, struct weft_switch_grant *g)
{
	g->flags = (s->plan.single ? WEFT_SWITCH_F_SINGLE : 0u) |
		   (s->plan.uplink ? WEFT_SWITCH_F_UPLINK : 0u) | WEFT_SWITCH_F_FAREWELLS;
	g->port = (uint16_t)port;
	g->ports = s->plan.ports;
	g->udp_port = s->plan.udp_port;
	g->mtu = s->mtu;
	g->ip = s->plan.prefix ? s->plan.ip[port] : 0;
	g->prefix = s->plan.prefix;
	g->gw = s->plan.gw;
	g->log2_ring = s->log2_ring;
	g->bsize = s->bsize;
	sw_plan_mac(&s->plan, port, g->mac);
	snprintf(g->socket, sizeof(g->socket), "%s.memif", s->path);
	sw_secret(s, port, uid, g->secret);
}

static void grant(struct sw *s, int fd, uint64_t now)
{
	struct weft_switch_grant g = {
		.magic = WEFT_SWITCH_MAGIC,
		.version = WEFT_SWITCH_VERSION,
		.size = sizeof(g),
	};
	struct sw_conn from;
	int port;

	if (sw_user_of(fd, &from)) {
		sw_close(&fd);
		return;
	}
	port = choose(s, from.user, now, g.text, sizeof(g.text));
	g.error = port < 0 ? -EBUSY : 0;
	if (port >= 0)
		fill(s, (unsigned int)port, from.uid, &g);
	if (send(fd, &g, sizeof(g), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(g) ||
	    port < 0) {
		sw_close(&fd);
		return;
	}
	if (s->port[port].grant >= 0)
		sw_grant_end(s, (unsigned int)port);
	if (sw_watch(s, fd, sw_tag(SW_TAG_GRANT, (unsigned int)port)) < 0) {
		sw_close(&fd);
		return;
	}
	s->port[port].grant = fd;
	s->port[port].uid = from.uid;
	s->port[port].user = from.user;
	s->port[port].pid = from.pid;
	s->port[port].idle_since = now;
}

void sw_grant_accept(struct sw *s, uint64_t now)
{
	sw_accept(s, s->grant_fd, now, grant);
}

void sw_grant_end(struct sw *s, unsigned int port)
{
	sw_hang_up(s, &s->port[port].grant);
	sw_port_check(s, port);
}

/* ---- both sockets, key and lock ------------------------------------------------------------- */

/*
 * A restarted switch grants no port for this time, in which clients of the predecessor reconnect:
 * they try it ten times a second.
 */
#define RETURN_NS 1000000000ull
#define BACKLOG 1024
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static int failed(const char *path, const char *what)
{
	cli_error("%s: %s: %s", path, what, strerror(errno));
	return APP_FAIL;
}

/* The user must make the folder of any other path. */
static void make_folder(const char *path)
{
	static const char known[] = "/run/weft/";

	if (!strncmp(path, known, sizeof(known) - 1) && mkdir("/run/weft", 0755) == 0)
		chmod("/run/weft", 0755);
}

/* One switch for each path. Its key outlives it, so that its successor accepts its clients. */
static int take_key(struct sw *s)
{
	char path[sizeof(s->path) + 8];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "%s.key", s->path);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0 || fstat(s->lock_fd, &st))
		return failed(path, "the switch's key can't be opened");
	if (st.st_uid != geteuid() || st.st_mode & 077) {
		cli_error("%s is another user's, or others can read it; give another path (-p)",
			  path);
		return APP_FAIL;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		cli_error("another weft-switch uses %s; end it, or give another path (-p)",
			  s->path);
		return APP_FAIL;
	}
	n = pread(s->lock_fd, &s->key, sizeof(s->key), 0);
	if (n == (ssize_t)sizeof(s->key)) {
		s->grants_from = sw_now() + RETURN_NS;
		return APP_OK;
	}
	if (getrandom(&s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key) ||
	    pwrite(s->lock_fd, &s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key))
		return failed(path, "the switch's key can't be written");
	return APP_OK;
}

/*
 * This process has the lock, so the predecessor has ended. Connections inherit the option that no
 * descriptors may be sent over them: from Linux 6.16 on the sender gets EPERM.
 */
static int listen_at(struct sw *s, const char *ext, int *fd)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const int off = 0;
	struct stat st;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s%s", s->path, ext);
	if (!lstat(un.sun_path, &st)) {
		if (!S_ISSOCK(st.st_mode)) {
			cli_error("%s exists and is no socket; give another path (-p)",
				  un.sun_path);
			return APP_FAIL;
		}
		unlink(un.sun_path);
	}
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return failed(un.sun_path, "no socket can be created");
	setsockopt(*fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
	if (bind(*fd, (struct sockaddr *)&un, sizeof(un)) || chmod(un.sun_path, s->mode) ||
	    listen(*fd, BACKLOG))
		return failed(un.sun_path,
			      "no socket can listen here; the folder must exist and be writable");
	return APP_OK;
}

int sw_listen(struct sw *s)
{
	mode_t mask;
	unsigned int i;
	int ret;

	for (i = 0; i < WEFT_SWITCH_PORTS; i++) {
		s->port[i].grant = -1;
		sw_conn_init(&s->port[i].conn);
	}
	for (i = 0; i < SW_HALF_OPEN; i++)
		sw_conn_init(&s->half[i]);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return failed("epoll", "the descriptor can't be created");
	make_folder(s->path);
	ret = take_key(s);
	mask = umask(0177); /* no user may connect before the sockets have their mode */
	if (!ret)
		ret = listen_at(s, "", &s->grant_fd);
	if (!ret)
		ret = listen_at(s, ".memif", &s->memif_fd);
	umask(mask);
	if (!ret && sw_watch(s, s->memif_fd, sw_tag(SW_TAG_MEMIF, 0)) < 0)
		ret = failed("epoll", "the sockets can't be added");
	return ret;
}

/* The key stays: by it a successor recognises the clients. */
void sw_unlisten(struct sw *s)
{
	char path[sizeof(s->path) + 8];

	unlink(s->path);
	snprintf(path, sizeof(path), "%s.memif", s->path);
	unlink(path);
}
