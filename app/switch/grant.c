/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The well-known socket. Who connects is told a port at once, or why there is none; nothing is read
 * from him. The port is his while this connection lasts, or the memif connection that he makes with
 * the secret: so a switch that was started anew, and has the key of the one before, lets its
 * clients in again, and gives out no port before they have had the time to come.
 */

#include "switch/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cli.h"

#define EVENTS 64
/* Clients of the switch before try ten times a second. */
#define RETURN_NS 1000000000ull
#define BAN_NS 10000000000ull

uint64_t sw_tag(unsigned int kind, unsigned int index)
{
	return (uint64_t)kind << 32 | index;
}

int sw_watch(struct sw *s, int fd, uint64_t tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = tag};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) ? -1 : fd;
}

/* ---- who gets which port -------------------------------------------------------------------- */

void sw_secret(const struct sw *s, unsigned int port, uid_t uid, char secret[24])
{
	const uint64_t what[2] = {port, uid};
	struct weft_siphash_key other = {s->key.k1, ~s->key.k0};

	memset(secret, 0, 24);
	snprintf(secret, 24, "%016" PRIx64 "%07" PRIx64, weft_siphash(&s->key, what, sizeof(what)),
		 weft_siphash(&other, what, sizeof(what)) >> 36);
}

static bool is_taken(const struct sw_port *p)
{
	return p->grant >= 0 || p->conn.fd >= 0;
}

void sw_port_check(struct sw *s, unsigned int port)
{
	struct sw_port *p = &s->port[port];

	if (is_taken(p))
		return;
	p->uid = (uid_t)-1;
	p->pid = 0;
}

bool sw_user_has_all(const struct sw *s, uid_t uid)
{
	unsigned int i, own = 0;

	for (i = 0; i < s->plan.ports; i++)
		own += is_taken(&s->port[i]) && s->port[i].uid == uid;
	return uid != geteuid() && own >= s->per_user;
}

void sw_ban(struct sw *s, uid_t uid, uint64_t now)
{
	struct sw_ban *b = &s->ban[0];
	unsigned int i;

	for (i = 1; i < SW_BANS; i++)
		if (s->ban[i].until < b->until)
			b = &s->ban[i];
	*b = (struct sw_ban){uid, now + BAN_NS};
}

bool sw_is_banned(const struct sw *s, uid_t uid, uint64_t now)
{
	unsigned int i;

	for (i = 0; i < SW_BANS; i++)
		if (now < s->ban[i].until && s->ban[i].uid == uid)
			return true;
	return false;
}

/* @return the first free port; -1 with a sentence */
static int choose(const struct sw *s, const struct ucred *who, uint64_t now, char *text, size_t len)
{
	unsigned int i, taken = 0;
	int found = -1;

	for (i = 0; i < s->plan.ports; i++) {
		if (is_taken(&s->port[i])) {
			taken++;
		} else if (found < 0) {
			found = (int)i;
		}
	}
	if (sw_is_banned(s, who->uid, now)) {
		snprintf(text, len,
			 "weft-switch gives user %u no port: an eventfd of this user has blocked; "
			 "wait 10 s",
			 (unsigned int)who->uid);
		return -1;
	}
	if (found < 0)
		snprintf(text, len,
			 "weft-switch has %u ports, and all have a process: start it with more "
			 "(-n)",
			 taken);
	else if (sw_user_has_all(s, who->uid)) {
		snprintf(text, len,
			 "weft-switch gives user %u no more than %u ports at a time (-u)",
			 (unsigned int)who->uid, s->per_user);
		found = -1;
	}
	return found;
}

static void fill(const struct sw *s, unsigned int port, uid_t uid, struct weft_switch_grant *g)
{
	g->flags = (s->plan.single ? WEFT_SWITCH_F_SINGLE : 0u) |
		   (s->plan.uplink ? WEFT_SWITCH_F_UPLINK : 0u);
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

static void grant(struct sw *s, uint64_t now)
{
	struct weft_switch_grant g = {
		.magic = WEFT_SWITCH_MAGIC,
		.version = WEFT_SWITCH_VERSION,
		.size = sizeof(g),
	};
	int fd = accept4(s->grant_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), port;
	struct ucred who = {0};
	socklen_t len = sizeof(who);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len)) {
		sw_close(&fd);
		return;
	}
	port = choose(s, &who, now, g.text, sizeof(g.text));
	g.error = port < 0 ? -EBUSY : 0;
	if (port >= 0)
		fill(s, (unsigned int)port, who.uid, &g);
	if (send(fd, &g, sizeof(g), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(g) ||
	    port < 0 || sw_watch(s, fd, sw_tag(SW_TAG_GRANT, (unsigned int)port)) < 0) {
		sw_close(&fd);
		return;
	}
	s->port[port].grant = fd;
	s->port[port].uid = who.uid;
	s->port[port].pid = who.pid;
	s->port[port].counters = (struct sw_counters){0};
}

/* Nothing is to be said there, so whatever happens is the end. */
static void ungrant(struct sw *s, unsigned int port)
{
	struct sw_port *p = &s->port[port];

	sw_hang_up(s, &p->grant);
	sw_port_check(s, port);
}

/* ---- events --------------------------------------------------------------------------------- */

static void one_event(struct sw *s, uint64_t tag, uint64_t now)
{
	unsigned int index = (uint32_t)tag;

	switch (tag >> 32) {
	case SW_TAG_LISTEN:
		if (now >= s->grants_from)
			grant(s, now);
		break;
	case SW_TAG_MEMIF:
		sw_conn_accept(s, now);
		break;
	case SW_TAG_GRANT:
		ungrant(s, index);
		break;
	case SW_TAG_HALF:
		sw_half_event(s, index);
		break;
	default:
		if (s->port[index].conn.fd >= 0)
			sw_conn_event(s, index);
	}
}

void sw_serve(struct sw *s, uint64_t now)
{
	struct epoll_event ev[EVENTS];
	int i, n = epoll_wait(s->epoll, ev, EVENTS, 0);

	for (i = 0; i < n; i++)
		one_event(s, ev[i].data.u64, now);
	sw_half_expire(s, now);
}

/* ---- start ---------------------------------------------------------------------------------- */

static int failed(const char *path, const char *what)
{
	cli_error("%s: %s: %s", path, what, strerror(errno));
	return APP_FAIL;
}

/* The folder of the well-known socket is made; others are the user's business. */
static void make_folder(const char *path)
{
	static const char known[] = "/run/weft/";

	if (!strncmp(path, known, sizeof(known) - 1) && mkdir("/run/weft", 0755) == 0)
		chmod("/run/weft", 0755);
}

/* One switch for each path. The key outlives it, so that its clients are known again. */
static int take_key(struct sw *s)
{
	char path[sizeof(s->path) + 8];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "%s.key", s->path);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0 || fstat(s->lock_fd, &st))
		return failed(path, "it can't be opened");
	if (st.st_uid != geteuid() || st.st_mode & 077) {
		cli_error("%s is another user's, or others can read it; give another path (-p)",
			  path);
		return APP_FAIL;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		cli_error("another weft-switch has %s; end it, or give another path (-p)", s->path);
		return APP_FAIL;
	}
	n = pread(s->lock_fd, &s->key, sizeof(s->key), 0);
	if (n == (ssize_t)sizeof(s->key)) {
		s->grants_from = sw_now() + RETURN_NS;
		return APP_OK;
	}
	if (getrandom(&s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key) ||
	    pwrite(s->lock_fd, &s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key))
		return failed(path, "the key can't be written");
	return APP_OK;
}

/* The lock is ours, so who listened there before has ended. */
static int listen_at(struct sw *s, const char *ext, int *fd, uint64_t tag)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct stat st;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s%s", s->path, ext);
	if (!lstat(un.sun_path, &st)) {
		if (!S_ISSOCK(st.st_mode)) {
			cli_error("%s is there and is no socket; give another path (-p)",
				  un.sun_path);
			return APP_FAIL;
		}
		unlink(un.sun_path);
	}
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0 || bind(*fd, (struct sockaddr *)&un, sizeof(un)) ||
	    chmod(un.sun_path, s->mode) || listen(*fd, 128) || sw_watch(s, *fd, tag) < 0)
		return failed(un.sun_path, "it can't be listened at");
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
		return failed("epoll", "it can't be had");
	make_folder(s->path);
	ret = take_key(s);
	mask = umask(0177); /* nobody connects before the mode is what was asked for */
	if (!ret)
		ret = listen_at(s, "", &s->grant_fd, sw_tag(SW_TAG_LISTEN, 0));
	if (!ret)
		ret = listen_at(s, ".memif", &s->memif_fd, sw_tag(SW_TAG_MEMIF, 0));
	umask(mask);
	return ret;
}

/* The key stays: a switch that comes next knows the clients by it. */
void sw_unlisten(struct sw *s)
{
	char path[sizeof(s->path) + 8];

	unlink(s->path);
	snprintf(path, sizeof(path), "%s.memif", s->path);
	unlink(path);
}
