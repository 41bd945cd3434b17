/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/unix_diag.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/text.h"
#include "base/thread.h"
#include "port/claim.h"

/* ---- the owner of a name -------------------------------------------------------------------- */

enum weft_claim_held {
	WEFT_HELD_FREE,
	/* bound without a listener: a claim that begins, or an unrelated socket */
	WEFT_HELD_SILENT,
	WEFT_HELD_UNTRUSTED, /* its user is unknown, or neither root nor this process's user */
	/* its process is alive, or in another container, where its state is not visible */
	WEFT_HELD,
	WEFT_HELD_ENDING,
	WEFT_HELD_INHERITED, /* its process has ended, and another one has the descriptor */
};

/* From the kernel's include/linux/sched.h. */
#define PF_EXITING 4u
#define PF_SIGNALED 0x400u /* a signal ends the process; set before PF_EXITING */

static int claim_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* Connections that are never accepted would keep passed descriptors open. */
	weft_socket_refuse_fds(fd);
	return fd;
}

/* ---- the process ---------------------------------------------------------------------------- */

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

/* Fields 3, 9 and 31 of a thread's stat file: see proc(5). */
struct thread {
	char state;
	unsigned int flags;
	unsigned long pending;
};

/* @return true: there is such a thread. If its state cannot be read, it counts as alive. */
static bool read_thread(const char *path, struct thread *t)
{
	const char *at;
	char text[512];
	size_t n;
	FILE *f;

	*t = (struct thread){.state = '?'};
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name, in parentheses, may have any bytes. */
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1,
			  " %c %*d %*d %*d %*d %*d %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			  "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
			  &t->state, &t->flags, &t->pending) != 3)
		*t = (struct thread){.state = '?'};
	return true;
}

/* A zombie's files are closed. */
static bool has_ended(const struct thread *t)
{
	return t->state == 'Z' || t->state == 'X';
}

static bool is_ending(const struct thread *t)
{
	return t->flags & (PF_EXITING | PF_SIGNALED) || t->pending & 1ul << (SIGKILL - 1);
}

/* The files are closed when the last thread has ended. */
static enum weft_claim_held other_threads(int pid)
{
	enum weft_claim_held held = WEFT_HELD_INHERITED;
	struct dirent *entry;
	struct thread t;
	char path[320];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && held != WEFT_HELD && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, entry->d_name);
		if (entry->d_name[0] == '.' || !read_thread(path, &t) || has_ended(&t))
			continue;
		held = is_ending(&t) ? WEFT_HELD_ENDING : WEFT_HELD;
	}
	if (dir)
		closedir(dir);
	return held;
}

static enum weft_claim_held process_is(int pid)
{
	struct thread t;
	char path[48];

	if (pid == 0)
		return WEFT_HELD;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!read_thread(path, &t))
		return WEFT_HELD_INHERITED;
	/* The first thread may end long before the others. */
	return has_ended(&t) || is_ending(&t) ? other_threads(pid) : WEFT_HELD;
}

/* ---- the kernel's list of sockets ----------------------------------------------------------- */

struct wanted {
	const struct sockaddr_un *un;
	socklen_t len;
	bool listens;
	unsigned int uid;
	bool found;
};

static void look_at(const struct nlmsghdr *h, void *arg)
{
	const struct unix_diag_msg *msg = NLMSG_DATA(h);
	struct wanted *w = arg;
	size_t len = w->len - offsetof(struct sockaddr_un, sun_path);
	unsigned int uid = WEFT_CLAIM_NO_UID;
	bool same = false;
	struct rtattr *a;
	int left;

	/* Connections that wait for accept() have the name, too, and read as uid 0. */
	if (msg->udiag_type != SOCK_STREAM ||
	    msg->udiag_state != (w->listens ? TCP_LISTEN : TCP_CLOSE))
		return;
	for (a = weft_netlink_attrs(h, sizeof(*msg), &left); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME)
			same = RTA_PAYLOAD(a) == len && !memcmp(RTA_DATA(a), w->un->sun_path, len);
		else if (a->rta_type == UNIX_DIAG_UID && RTA_PAYLOAD(a) == sizeof(uid))
			uid = weft_netlink_u32(a);
	}
	if (!same)
		return;
	w->found = true;
	w->uid = uid;
}

/* Not every kernel supports this request: then nothing is found. */
static void find_socket(struct wanted *w)
{
	const struct unix_diag_req req = {
		.sdiag_family = AF_UNIX,
		.udiag_states = 1u << TCP_LISTEN | 1u << TCP_CLOSE,
		.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID,
	};
	struct weft_netlink n;

	weft_netlink_init(&n, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &req, sizeof(req));
	weft_netlink_call(NETLINK_SOCK_DIAG, &n, SOCK_DIAG_BY_FAMILY, sizeof(struct unix_diag_msg),
			  look_at, w);
}

/* ---- the owner ------------------------------------------------------------------------------ */

static int query_owner(const struct sockaddr_un *un, socklen_t len, struct weft_claim_owner *owner)
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	int fd = claim_socket(), rc;

	if (fd < 0)
		return fd;
	rc = connect(fd, (const struct sockaddr *)un, len) ? -errno : 0;
	if (!rc && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)) {
		owner->pid = cred.pid;
		owner->uid = cred.uid;
		owner->in_container = cred.pid == 0;
		if (cred.pid)
			read_name(owner);
	}
	close(fd);
	return rc;
}

/*
 * Any user may bind any name. So only a claim of root or of the same user counts, and no user keeps
 * another one from a port.
 */
static bool is_trusted(unsigned int uid)
{
	return uid == 0 || uid == geteuid();
}

static enum weft_claim_held claim_look(const struct sockaddr_un *un, socklen_t len,
				       struct weft_claim_owner *owner)
{
	struct wanted w = {.un = un, .len = len, .uid = WEFT_CLAIM_NO_UID};
	int rc;

	*owner = (struct weft_claim_owner){.uid = WEFT_CLAIM_NO_UID};
	rc = query_owner(un, len, owner);
	if (rc == -EAGAIN || rc == -ECONNREFUSED) {
		/* -EAGAIN: the socket's backlog is full. -ECONNREFUSED: it does not listen. */
		w.listens = rc == -EAGAIN;
		find_socket(&w);
		owner->uid = w.uid;
		if (rc == -ECONNREFUSED && !w.found)
			return WEFT_HELD_FREE;
		if (rc == -ECONNREFUSED)
			return is_trusted(w.uid) ? WEFT_HELD_SILENT : WEFT_HELD_UNTRUSTED;
	} else if (rc) {
		return WEFT_HELD_FREE;
	}
	if (!is_trusted(owner->uid))
		return WEFT_HELD_UNTRUSTED;
	return process_is(owner->pid);
}

void weft_claim_owner_text(const struct weft_claim_owner *owner, char *buf, size_t size)
{
	if (owner->pid == (int)getpid())
		snprintf(buf, size, "this process already");
	else if (owner->pid)
		snprintf(buf, size, "process %d (%s)", owner->pid,
			 owner->name[0] ? owner->name : "?");
	else if (owner->in_container)
		snprintf(buf, size, "a process of another container");
	else
		snprintf(buf, size, "a process that cannot be named");
}

/* ---- names ---------------------------------------------------------------------------------- */

/* A process that queries the owner connects. The connection keeps its place in the backlog. */
#define QUEUE 4096
/* The kernel may take a second for each packet socket of the owner, and frees names last. */
#define ENDING_TRIES 200
/*
 * An owner may be between bind() and listen(), or may have left the descriptor to another process.
 */
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
	int fd = claim_socket(), rc;

	if (fd < 0)
		return fd;
	if (!bind(fd, (const struct sockaddr *)un, len) && !listen(fd, QUEUE))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

struct waits {
	unsigned int ending, other;
};

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
		held = claim_look(&un, len, owner);
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
	return claim_look(&un, len, owner) == WEFT_HELD ? -EADDRINUSE : -EAGAIN;
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
		held = claim_look(&un, len, owner);
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

/* ---- the names of a device ------------------------------------------------------------------ */

#define MEMIF_SOCKET "/run/memif.sock"

unsigned int weft_claim_receive_queues(unsigned int if_index)
{
	struct ethtool_channels ch = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr;
	unsigned int n = 0;
	int fd;

	memset(&ifr, 0, sizeof(ifr));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 1;
	ifr.ifr_data = (char *)&ch;
	if (if_indextoname(if_index, ifr.ifr_name) && !ioctl(fd, SIOCETHTOOL, &ifr))
		n = ch.rx_count + ch.combined_count;
	close(fd);
	return n == 0 ? 1 : n < WEFT_CLAIM_QUEUES ? n : WEFT_CLAIM_QUEUES;
}

void weft_claim_queue_name(char name[WEFT_CLAIM_NAME], unsigned int if_index, unsigned int queue)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/netdev/%u/%u", if_index, queue);
}

void weft_claim_bus_name(char name[WEFT_CLAIM_NAME], const char *bus, const char *device)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/%.16s/%.64s", bus, device);
}

bool weft_device_arg(const char *args, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key), n;
	const char *at = args;

	while (at && *at) {
		if (strncmp(at, key, len) == 0 && at[len] == '=') {
			n = strcspn(at + len + 1, ",");
			snprintf(buf, size, "%.*s", (int)n, at + len + 1);
			return true;
		}
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return false;
}

static unsigned int arg_number(const char *args, const char *key, unsigned int other)
{
	char text[16];

	return weft_device_arg(args, key, text, sizeof(text))
		       ? (unsigned int)strtoul(text, NULL, 10)
		       : other;
}

static bool begins_with(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* ---- all names of a device ------------------------------------------------------------------ */

struct claiming {
	int (*claim)(const char *name, struct weft_claim_owner *owner);
	struct weft_device_claim *c;
};

static int hold_name(const struct claiming *g, const char *name)
{
	struct weft_device_claim *c = g->c;
	int fd = g->claim(name, &c->owner);

	if (fd < 0)
		return fd;
	c->fds[c->num++] = fd;
	return 0;
}

static int hold_queues(const struct claiming *g, const char *ifname, const char *args, bool xdp)
{
	unsigned int if_index = if_nametoindex(ifname), first = 0, n, q;
	struct weft_device_claim *c = g->c;
	char name[WEFT_CLAIM_NAME];
	int rc = 0;

	snprintf(c->what, sizeof(c->what), "kernel interface %.32s", ifname);
	if (if_index == 0)
		return -ENODEV;
	n = weft_claim_receive_queues(if_index);
	if (xdp) {
		first = arg_number(args, "start_queue", 0);
		n = arg_number(args, "queue_count", 1);
		n = n < WEFT_CLAIM_QUEUES ? n : WEFT_CLAIM_QUEUES;
	}
	c->fds = calloc(n ? n : 1, sizeof(*c->fds));
	if (!c->fds)
		return -ENOMEM;
	for (q = first; q < first + n && rc == 0; q++) {
		weft_claim_queue_name(name, if_index, q);
		snprintf(c->what, sizeof(c->what), "queue %u of kernel interface %.32s", q, ifname);
		rc = hold_name(g, name);
	}
	return rc;
}

static int hold_memif(const struct claiming *g, const char *args)
{
	struct weft_device_claim *c = g->c;
	char path[108] = MEMIF_SOCKET, word[16] = "", name[WEFT_CLAIM_NAME];
	bool server, abstract;
	unsigned int id;

	weft_device_arg(args, "socket", path, sizeof(path));
	server = weft_device_arg(args, "role", word, sizeof(word)) &&
		 (!strcmp(word, "server") || !strcmp(word, "master"));
	abstract = !weft_device_arg(args, "socket-abstract", word, sizeof(word)) ||
		   strcmp(word, "no") != 0;
	id = arg_number(args, "id", 0);
	weft_claim_memif_name(name, path, abstract, server, id);
	snprintf(c->what, sizeof(c->what), "the %s's end of id=%u on memif socket %.80s",
		 server ? "server" : "client", id, path);
	c->fds = calloc(1, sizeof(*c->fds));
	return c->fds ? hold_name(g, name) : -ENOMEM;
}

static int hold_device(const struct claiming *g, const struct weft_device *d)
{
	char text[108];

	if (strcmp(d->bus, "vdev") != 0) {
		snprintf(g->c->what, sizeof(g->c->what), "the device");
		g->c->fds = calloc(1, sizeof(*g->c->fds));
		if (!g->c->fds)
			return -ENOMEM;
		weft_claim_bus_name(text, d->bus, d->name);
		return hold_name(g, text);
	}
	if (begins_with(d->name, "net_memif"))
		return hold_memif(g, d->args);
	if ((begins_with(d->name, "net_af_packet") || begins_with(d->name, "net_af_xdp")) &&
	    weft_device_arg(d->args, "iface", text, sizeof(text)))
		return hold_queues(g, text, d->args, begins_with(d->name, "net_af_xdp"));
	return 0;
}

int weft_device_claim(const struct weft_device *d,
		      int (*claim)(const char *name, struct weft_claim_owner *owner),
		      struct weft_device_claim *c)
{
	const struct claiming g = {.claim = claim, .c = c};
	int rc;

	*c = (struct weft_device_claim){.owner = {.uid = WEFT_CLAIM_NO_UID}};
	rc = hold_device(&g, d);
	if (rc)
		weft_device_unclaim(c);
	return rc;
}

void weft_device_unclaim(struct weft_device_claim *c)
{
	while (c->num)
		close(c->fds[--c->num]);
	free(c->fds);
	c->fds = NULL;
}
