/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_ether.h>

#include "port/eal.h"
#include "port/port.h"
#include "port/ports.h"
#include "port/switch.h"

/* Timeout in s: a switch that was just started waits for the clients of its predecessor. */
#define TIMEOUT_S 10

/* One port for a process, which all its contexts use. Only the end of the process returns it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_switch_place place;
static bool joined;
/* The port belongs to this process while this descriptor is open. */
static int grant_fd = -1;

const char *weft_switch_socket(const char *conf)
{
	if (conf && conf[0] == '/')
		return conf;
	if (conf && strcmp(conf, "auto") != 0)
		return NULL;
	return access(WEFT_SWITCH_SOCKET, F_OK) == 0 ? WEFT_SWITCH_SOCKET : NULL;
}

/* ---- the request ---------------------------------------------------------------------------- */

static int no_answer(const char *path, int err, char *why, size_t why_len)
{
	const char *what =
		err == EACCES ? "this user may not request a port: see its option -M"
		: err == ECONNREFUSED || err == ENOENT
			? "no weft-switch listens there; start it, or set WEFT_SWITCH=off"
			: strerror(err);

	return weft_port_fail(-err, why, why_len, "weft-switch at %s: %s", path, what);
}

static int open_socket(const char *path, char *why, size_t why_len)
{
	struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(un.sun_path))
		return weft_port_fail(-EINVAL, why, why_len,
				      "WEFT_SWITCH has a path of more than %zu bytes",
				      sizeof(un.sun_path) - 1);
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return no_answer(path, errno, why, why_len);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	err = errno;
	close(fd);
	return no_answer(path, err, why, why_len);
}

/*
 * @return the uid of all users without a number in this user namespace; -1: there are no such
 * users, or it is unknown
 */
static int64_t overflow_uid(void)
{
	unsigned int inside = 1, outside = 1, count = 0, uid = 0;
	FILE *map = fopen("/proc/self/uid_map", "r"), *file;
	bool good;

	if (!map)
		return -1;
	good = fscanf(map, "%u %u %u", &inside, &outside, &count) == 3;
	fclose(map);
	if (!good || (inside == 0 && outside == 0 && count == UINT32_MAX))
		return -1;
	file = fopen("/proc/sys/kernel/overflowuid", "r");
	if (!file)
		return -1;
	good = fscanf(file, "%u", &uid) == 1;
	fclose(file);
	return good ? (int64_t)uid : -1;
}

/*
 * In a container, root may have no number, like any other user outside. Then the socket must be in
 * a folder that only such a user can write to: the creator of the container has put it here.
 */
static bool is_from_outside(const char *path, uid_t uid)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat st;
	char *end;

	if ((int64_t)uid != overflow_uid())
		return false;
	snprintf(folder, sizeof(folder), "%s", path);
	end = strrchr(folder, '/');
	if (!end)
		return false;
	end[end == folder] = '\0';
	return stat(folder, &st) == 0 && st.st_uid == uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Frames go to the listener, which must be root's or this user's. */
static bool is_trusted(const char *path, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       (cred.uid == 0 || cred.uid == geteuid() || is_from_outside(path, cred.uid));
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool makes_sense(const struct weft_switch_grant *g)
{
	return g->ports > 0 && g->ports <= WEFT_SWITCH_PORTS && g->port < g->ports &&
	       g->prefix <= 32 && g->log2_ring <= 14 && g->mtu >= 1280 &&
	       g->bsize >= (uint32_t)g->mtu + RTE_ETHER_HDR_LEN && g->bsize <= UINT16_MAX &&
	       is_text(g->socket, sizeof(g->socket)) && is_text(g->secret, sizeof(g->secret)) &&
	       !strpbrk(g->socket, ",=") && g->socket[0] == '/';
}

static int read_grant(const char *path, int fd, struct weft_switch_grant *g, char *why,
		      size_t why_len)
{
	ssize_t n;

	do
		n = recv(fd, g, sizeof(*g), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return weft_port_fail(-ETIMEDOUT, why, why_len,
				      "weft-switch at %s gives no answer in %d s", path, TIMEOUT_S);
	if (n < 0)
		return weft_port_fail(-errno, why, why_len,
				      "the answer of weft-switch at %s cannot be received: %s",
				      path, strerror(errno));
	if (n == 0)
		return weft_port_fail(-ECONNRESET, why, why_len,
				      "weft-switch at %s ended the connection without an answer: "
				      "its log has the reason",
				      path);
	if (n != (ssize_t)sizeof(*g) || g->magic != WEFT_SWITCH_MAGIC ||
	    g->version != WEFT_SWITCH_VERSION || !is_text(g->text, sizeof(g->text)))
		return weft_port_fail(-EPROTO, why, why_len,
				      "%s is not a weft-switch of this version", path);
	if (g->error)
		return weft_port_fail(g->error < 0 ? g->error : -EPROTO, why, why_len, "%s",
				      g->text);
	if (!makes_sense(g))
		return weft_port_fail(-EPROTO, why, why_len,
				      "weft-switch at %s: its answer is invalid", path);
	return 0;
}

/* ---- the port ------------------------------------------------------------------------------- */

static void take_grant(const struct weft_switch_grant *g)
{
	bool single = g->flags & WEFT_SWITCH_F_SINGLE;

	place = (struct weft_switch_place){
		.mtu = g->mtu,
		.ip = g->ip,
		.gw = g->gw,
		.prefix = g->prefix,
		.udp_port = single ? (uint16_t)(g->udp_port + g->port) : 0,
		.queue = single ? g->port : 0,
		.queues = single ? g->ports : 0,
		.uplink = g->flags & WEFT_SWITCH_F_UPLINK,
		.id = g->port,
		.log2_ring = g->log2_ring,
		.bsize = g->bsize,
	};
	memcpy(place.mac, g->mac, sizeof(place.mac));
	memcpy(place.socket, g->socket, sizeof(place.socket));
	memcpy(place.secret, g->secret, sizeof(place.secret));
}

static int join_switch(const char *path, char *why, size_t why_len)
{
	struct weft_switch_grant g;
	int fd = open_socket(path, why, why_len), rc = 0;

	if (fd < 0)
		return fd;
	grant_fd = fd; /* from here on a child that is forked in the meantime closes it */
	if (!is_trusted(path, fd))
		rc = weft_port_fail(
			-EPERM, why, why_len,
			"the process that listens at %s is neither root nor this user (in a "
			"container: its folder must be root's)",
			path);
	if (!rc)
		rc = read_grant(path, fd, &g, why, why_len);
	if (!rc)
		take_grant(&g);
	if (rc) {
		grant_fd = -1;
		close(fd);
		return rc;
	}
	joined = true;
	return 0;
}

/* A child has no port of its own, and must not keep the port after the end of its parent. */
static void in_child(void)
{
	/* The thread that held the lock does not exist in the child. */
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (grant_fd >= 0)
		close(grant_fd);
	grant_fd = -1;
	joined = false;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

int weft_switch_join(const char *socket, char *why, size_t why_len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc = 0;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (!joined)
		rc = join_switch(socket, why, why_len);
	pthread_mutex_unlock(&lock);
	return rc;
}

const struct weft_switch_place *weft_switch_place(void)
{
	bool ours;

	/* Called by threads that have not joined, too. Once joined, the place does not change. */
	pthread_mutex_lock(&lock);
	ours = joined;
	pthread_mutex_unlock(&lock);
	return ours ? &place : NULL;
}
