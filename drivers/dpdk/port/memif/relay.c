/* SPDX-License-Identifier: BSD-3-Clause */

/* Interrupt handles are experimental in 22.11 and stable in later versions. */
#define ALLOW_EXPERIMENTAL_API

#include "port/memif/relay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_config.h>
#include <rte_cycles.h>
#include <rte_interrupts.h>
#include <rte_log.h>

#include "base/thread.h"

#define MESSAGE_MAX 512 /* bytes; memif's messages have 128 */
#define FDS_MAX 4       /* descriptors of a message; memif's have one at most */
#define TYPE_DISCONNECT 8
#define BACKLOG 64 /* a client's connect() sleeps when the backlog is full */

/* A connection may exist for a short time after its port has ended it. */
struct link {
	struct weft_memif_relay *relay; /* NULL: no port uses the link any more */
	int peer;                       /* -1 = closed */
	int pmd;                        /* the relay's end of the PMD's connection */
	bool pmd_is_there;              /* server: the PMD has accepted `pmd`, and sent HELLO */
	struct rte_intr_handle *peer_watch, *pmd_watch;
};

/* A server's listening socket; exists until the process ends. */
struct listener {
	struct weft_memif_name name;
	struct weft_memif_relay *relay;
	int real;
	struct rte_intr_handle *watch;
	int pmd; /* the PMD's descriptor, which now refers to another socket */
	/* as link.pmd, of a connection for which there was no memory; -1 = none */
	int spare;
};

struct weft_memif_relay {
	struct weft_memif_name name;
	struct listener *listener;
	struct link *link;            /* NULL = not connected */
	struct weft_memif_ring *ring; /* NULL = frames cannot wake the owner */
	bool started;
	bool left; /* atomic: one of the ends has closed the connection */
};

static struct listener *listeners[RTE_MAX_ETHPORTS];

/* ---- the interrupt thread's descriptors ----------------------------------------------------- */

static struct rte_intr_handle *handle_of(int fd)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);

	if (h && !rte_intr_fd_set(h, fd) && !rte_intr_type_set(h, RTE_INTR_HANDLE_EXT))
		return h;
	rte_intr_instance_free(h);
	return NULL;
}

/* The handle stays for unwatch_and_close(), which must not need memory. */
static int watch_fd(int fd, rte_intr_callback_fn fn, void *arg, struct rte_intr_handle **watch)
{
	struct rte_intr_handle *h = handle_of(fd);
	int rc = h ? rte_intr_callback_register(h, fn, arg) : -ENOMEM;

	if (rc < 0) {
		rte_intr_instance_free(h);
		return rc;
	}
	*watch = h;
	return 0;
}

static void close_watched(struct rte_intr_handle *h, void *arg)
{
	RTE_SET_USED(arg);
	close(rte_intr_fd_get(h));
}

/* The EAL aborts if a watched descriptor is closed. Its own callback defers the removal. */
static void unwatch_and_close(struct rte_intr_handle **watch, rte_intr_callback_fn fn, void *arg)
{
	int fd = rte_intr_fd_get(*watch), rc = rte_intr_callback_unregister(*watch, fn, arg);

	if (rc == -EAGAIN)
		rte_intr_callback_unregister_pending(*watch, fn, arg, close_watched);
	else if (rc > 0)
		close(fd);
	rte_intr_instance_free(*watch);
	*watch = NULL;
}

/* ---- finding the PMD's sockets -------------------------------------------------------------- */

static bool is_path(const struct weft_memif_name *name, const struct sockaddr_un *un, socklen_t len)
{
	size_t n = strlen(name->path), at = name->abstract ? 1 : 0;
	size_t have = len - offsetof(struct sockaddr_un, sun_path);

	if (len <= offsetof(struct sockaddr_un, sun_path) || have < at + n)
		return false;
	if (name->abstract && un->sun_path[0])
		return false;
	return !memcmp(un->sun_path + at, name->path, n) &&
	       (have == at + n || un->sun_path[at + n] == '\0');
}

static int int_option(int fd, int option)
{
	socklen_t len = sizeof(int);
	int v = -1;

	return getsockopt(fd, SOL_SOCKET, option, &v, &len) ? -1 : v;
}

static bool is_pmd_socket(const struct weft_memif_name *name, int fd, int ours)
{
	struct sockaddr_un un = {0};
	socklen_t len = sizeof(un);
	int rc;

	if (fd == ours || int_option(fd, SO_DOMAIN) != AF_UNIX ||
	    int_option(fd, SO_TYPE) != SOCK_SEQPACKET ||
	    int_option(fd, SO_ACCEPTCONN) != (name->server ? 1 : 0))
		return false;
	/* The PMD's descriptors have no FD_CLOEXEC; those of this file have it. */
	if (fcntl(fd, F_GETFD) & FD_CLOEXEC)
		return false;
	rc = name->server ? getsockname(fd, (struct sockaddr *)&un, &len)
			  : getpeername(fd, (struct sockaddr *)&un, &len);
	return rc == 0 && un.sun_family == AF_UNIX && is_path(name, &un, len);
}

static int find_socket(const struct weft_memif_name *name, int ours)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int fd, found = -1;

	if (!dir)
		return -1;
	while (found < 0 && (e = readdir(dir))) {
		fd = (int)strtol(e->d_name, NULL, 10);
		if (e->d_name[0] != '.' && is_pmd_socket(name, fd, ours))
			found = fd;
	}
	closedir(dir);
	return found;
}

/* ---- passing on ----------------------------------------------------------------------------- */

static bool is_end(const char *data, size_t len)
{
	uint16_t type = 0;

	memcpy(&type, data, RTE_MIN(len, sizeof(type)));
	return type == TYPE_DISCONNECT;
}

/* @return 1: a message was passed on; 0: none; error: @p from is closed, or the peer disconnects */
static int pass_on(int from, int to, struct weft_memif_ring *ring, bool to_pmd)
{
	char data[MESSAGE_MAX];
	int fds[FDS_MAX];
	ssize_t len = weft_foreign_fd_recv(from, data, sizeof(data), fds, FDS_MAX);
	bool ended;
	size_t i, n = 0;

	if (len == -EAGAIN)
		return 0;
	if (len <= 0)
		return len < 0 ? (int)len : -ECONNRESET;
	while (n < FDS_MAX && fds[n] >= 0)
		n++;
	/* The PMD would unmap the rings, while the thread that polls the port may use them. */
	ended = to_pmd && is_end(data, (size_t)len);
	if (!ended)
		weft_memif_ring_message(ring, data, (size_t)len, fds, n);
	/* A failure of @p to is detected when the relay reads from it. */
	if (!ended && to >= 0)
		weft_socket_send_fds(to, data, (size_t)len, fds, (unsigned int)n);
	for (i = 0; i < n; i++)
		weft_foreign_fd_close(fds[i]);
	return ended ? -ECONNRESET : 1;
}

/* ---- a connection --------------------------------------------------------------------------- */

static void on_pmd(void *arg);
static void on_peer(void *arg);

static void close_peer(struct link *l)
{
	if (l->peer >= 0)
		unwatch_and_close(&l->peer_watch, on_peer, l);
	l->peer = -1;
}

/* A connection must be accepted before it is closed: a HELLO on a closed one ends the process. */
static void link_free(struct link *l)
{
	close_peer(l);
	if (l->pmd >= 0 && !l->pmd_is_there)
		return;
	if (l->pmd >= 0)
		unwatch_and_close(&l->pmd_watch, on_pmd, l);
	free(l);
}

static void notify_left(struct link *l)
{
	if (!l->relay)
		return;
	__atomic_store_n(&l->relay->left, true, __ATOMIC_RELEASE);
	weft_memif_ring_poke(l->relay->ring);
}

static struct weft_memif_ring *ring_of(const struct link *l)
{
	return l->relay ? l->relay->ring : NULL;
}

static void on_peer(void *arg)
{
	struct link *l = arg;

	if (l->peer < 0 || pass_on(l->peer, l->pmd, ring_of(l), true) >= 0)
		return;
	close_peer(l);
	notify_left(l);
}

static void on_pmd(void *arg)
{
	struct link *l = arg;
	int rc = l->pmd < 0 ? 0 : pass_on(l->pmd, l->peer, ring_of(l), false);

	if (rc > 0)
		l->pmd_is_there = true;
	if (rc < 0) {
		unwatch_and_close(&l->pmd_watch, on_pmd, l);
		l->pmd = -1;
		notify_left(l);
	}
	if (rc && !l->relay)
		link_free(l);
}

static struct link *link_make(struct weft_memif_relay *r, int peer, int pmd)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->relay = r;
	l->peer = peer;
	l->pmd = pmd;
	if (watch_fd(pmd, on_pmd, l, &l->pmd_watch)) {
		free(l);
		return NULL;
	}
	return l;
}

/* ---- trust in the peer ---------------------------------------------------------------------- */

/* A peer can read and write this process: the PMD trusts the offsets that the peer writes. */
static bool is_trusted(int sock, const struct weft_memif_name *name)
{
	/* shared by the interrupt thread and the threads that start ports */
	static uint64_t next_tsc;
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	uint64_t now, due;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	    (cred.uid == 0 || cred.uid == geteuid()))
		return true;
	now = rte_rdtsc();
	due = __atomic_load_n(&next_tsc, __ATOMIC_RELAXED);
	/* Relaxed: one of the threads writes the line, whichever it is. */
	if (now >= due && __atomic_compare_exchange_n(&next_tsc, &due, now + rte_get_tsc_hz() * 10,
						      false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1,
			"weft: memif socket %s: process %d of user %d is refused as a peer: it is "
			"neither root's nor this user's (a memif peer can read and write this "
			"process)\n",
			name->path, (int)cred.pid, (int)cred.uid);
	return false;
}

/* ---- client --------------------------------------------------------------------------------- */

static int client_started(struct weft_memif_relay *r)
{
	int fd = find_socket(&r->name, -1), pair[2], peer;

	/* The interrupt thread, which runs this, reads from the PMD's socket only later. */
	if (fd >= 0 && !is_trusted(fd, &r->name))
		return -EACCES;
	if (fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return fd < 0 ? -ENOTCONN : -errno;
	peer = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	r->link = peer < 0 ? NULL : link_make(r, peer, pair[1]);
	if (!r->link) {
		close(pair[0]);
		close(pair[1]);
		if (peer >= 0)
			close(peer);
		return -ENOMEM;
	}
	r->link->pmd_is_there = true;
	/* This thread has not polled the descriptor yet, so it never polls the real socket. */
	if (dup2(pair[0], fd) < 0 || watch_fd(peer, on_peer, r->link, &r->link->peer_watch)) {
		close(pair[0]);
		close(peer); /* link_free() closes what is watched */
		r->link->peer = -1;
		link_free(r->link);
		r->link = NULL;
		return -ENOMEM;
	}
	close(pair[0]);
	return 0;
}

/* ---- server --------------------------------------------------------------------------------- */

static int private_dir(char *buf, size_t size)
{
	static const char *const places[] = {"/tmp", "/run", "/dev/shm"};
	size_t i;

	for (i = 0; i < RTE_DIM(places); i++) {
		snprintf(buf, size, "%s/weft-memif-XXXXXX", places[i]);
		if (mkdtemp(buf))
			return 0;
	}
	return -errno;
}

/* A listening socket whose name is removed at once. With @p ours, the relay's connection waits. */
static int make_listener(int *ours)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char dir[32];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = private_dir(dir, sizeof(dir));
	if (rc) {
		close(fd);
		return rc;
	}
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/control", dir);
	rc = bind(fd, (struct sockaddr *)&un, sizeof(un)) || listen(fd, 1) ? -errno : 0;
	if (!rc && ours) {
		*ours = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		rc = *ours < 0 || connect(*ours, (struct sockaddr *)&un, sizeof(un)) ? -errno : 0;
		if (rc && *ours >= 0)
			close(*ours);
	}
	unlink(un.sun_path);
	rmdir(dir);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

static int give_listener(struct listener *ls, int *ours)
{
	int fd = make_listener(ours), rc;

	if (fd < 0)
		return fd;
	rc = dup2(fd, ls->pmd) < 0 ? -errno : 0;
	close(fd);
	if (rc && ours)
		close(*ours);
	return rc;
}

static struct link *let_in(struct weft_memif_relay *r, int peer)
{
	struct listener *ls = r->listener;
	struct link *l;

	if (ls->spare < 0 && give_listener(ls, &ls->spare)) {
		ls->spare = -1;
		return NULL;
	}
	/* From here on the PMD accepts this connection, which must stay open until then. */
	l = link_make(r, -1, ls->spare);
	if (!l)
		return NULL; /* out of memory: the next client gets the connection */
	ls->spare = -1;
	if (watch_fd(peer, on_peer, l, &l->peer_watch)) {
		/* Out of memory: the PMD waits on a connection without messages. */
		l->relay = NULL;
		return NULL;
	}
	l->peer = peer;
	return l;
}

static void on_listener(void *arg)
{
	struct listener *ls = arg;
	struct weft_memif_relay *r = ls->relay;
	int peer = accept4(ls->real, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (peer < 0)
		return;
	if (!is_trusted(peer, &ls->name)) {
		/* Untrusted messages stay unread. Another thread closes the descriptors. */
		weft_foreign_fd_close(peer);
		return;
	}
	/* A rejected client tries again. */
	if (r && r->started && !r->link && !weft_memif_relay_left(r))
		r->link = let_in(r, peer);
	if (!r || !r->link || r->link->peer != peer)
		close(peer);
}

static void listener_forget(struct listener *ls)
{
	unwatch_and_close(&ls->watch, on_listener, ls);
	/* The PMD's end of this connection was closed with the old port. */
	if (ls->spare >= 0)
		close(ls->spare);
	free(ls);
}

static int listener_take(struct weft_memif_relay *r, int fd, struct listener **out)
{
	struct listener *ls = calloc(1, sizeof(*ls));
	int flags, rc;

	if (!ls)
		return -ENOMEM;
	ls->name = r->name;
	ls->pmd = fd;
	ls->spare = -1;
	ls->real = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	rc = ls->real < 0 ? -errno : 0;
	flags = rc ? -1 : fcntl(ls->real, F_GETFL);
	if (flags >= 0 && fcntl(ls->real, F_SETFL, flags | O_NONBLOCK) == 0)
		listen(ls->real, BACKLOG);
	if (!rc)
		rc = watch_fd(ls->real, on_listener, ls, &ls->watch);
	if (!rc) {
		rc = give_listener(ls, NULL);
		if (rc) {
			listener_forget(ls);
			return rc;
		}
		*out = ls;
		return 0;
	}
	if (ls->real >= 0)
		close(ls->real);
	free(ls);
	return rc;
}

static int server_open(struct weft_memif_relay *r, uint16_t port_id)
{
	struct listener *ls = listeners[port_id];
	int fd = find_socket(&r->name, ls ? ls->real : -1), rc;

	if (fd >= 0) {
		/* A port was created again with the number of an old one. */
		if (ls)
			listener_forget(ls);
		listeners[port_id] = ls = NULL;
		rc = listener_take(r, fd, &ls);
		if (rc)
			return rc;
		listeners[port_id] = ls;
	}
	if (!ls || strcmp(ls->name.path, r->name.path))
		return -ENOENT;
	ls->relay = r;
	r->listener = ls;
	return 0;
}

/* ---- the interface for the port ------------------------------------------------------------- */

/* A server's socket has the path that it was bound to, even if its client uses a symbolic link. */
static void follow_link(struct weft_memif_name *name)
{
	char there[sizeof(name->path)];
	ssize_t n;

	if (name->server || name->abstract)
		return;
	n = readlink(name->path, there, sizeof(there) - 1);
	if (n <= 0 || there[0] != '/')
		return;
	memcpy(name->path, there, (size_t)n);
	name->path[n] = '\0';
}

int weft_memif_relay_open(uint16_t port_id, const struct weft_memif_name *name,
			  struct weft_memif_relay **out)
{
	struct weft_memif_relay *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->name = *name;
	follow_link(&r->name);
	r->ring = weft_memif_ring_make(name->server);
	rc = name->server ? server_open(r, port_id) : 0;
	if (rc) {
		weft_memif_ring_free(r->ring);
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void weft_memif_relay_close(struct weft_memif_relay *r)
{
	if (!r)
		return;
	weft_memif_relay_stopped(r);
	if (r->listener)
		r->listener->relay = NULL;
	weft_memif_ring_free(r->ring);
	free(r);
}

int weft_memif_relay_started(struct weft_memif_relay *r)
{
	int rc = r->name.server ? 0 : client_started(r);

	r->started = rc == 0;
	return rc;
}

void weft_memif_relay_stopped(struct weft_memif_relay *r)
{
	struct link *l = r->link;

	r->started = false;
	r->link = NULL;
	if (l) {
		l->relay = NULL;
		link_free(l);
	}
	if (r->ring)
		weft_memif_ring_forget(r->ring);
	__atomic_store_n(&r->left, false, __ATOMIC_RELEASE);
}

struct weft_memif_ring *weft_memif_relay_ring(const struct weft_memif_relay *r)
{
	return r->ring;
}

bool weft_memif_relay_left(const struct weft_memif_relay *r)
{
	return __atomic_load_n(&r->left, __ATOMIC_ACQUIRE);
}
