/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/claim_owner.h"

#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/blocking.h"
#include "base/text.h"

#define PF_EXITING 4u /* from the kernel's include/linux/sched.h */

int weft_claim_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/*
	 * Its connections are never accepted: passed descriptors would stay open until it is
	 * closed.
	 */
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

/* Of a thread: fields 3, 9 and 31 of proc(5)'s stat. */
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

/* In exit(), or about to be killed. */
static bool is_ending(const struct thread *t)
{
	return t->flags & PF_EXITING || t->pending & 1ul << (SIGKILL - 1);
}

/* The first thread has ended. The files are closed when the last one has ended. */
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
	if (has_ended(&t))
		return other_threads(pid);
	return is_ending(&t) ? WEFT_HELD_ENDING : WEFT_HELD;
}

/* ---- the kernel's list of sockets ----------------------------------------------------------- */

struct wanted {
	const struct sockaddr_un *un;
	socklen_t len;
	bool listens;
	unsigned int uid; /* of its creator */
	bool found;
};

static void look_at(struct wanted *w, const struct nlmsghdr *h)
{
	const struct unix_diag_msg *msg = NLMSG_DATA(h);
	size_t len = w->len - offsetof(struct sockaddr_un, sun_path);
	unsigned int uid = WEFT_CLAIM_NO_UID;
	bool same = false;
	struct rtattr *a;
	int left;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*msg)) || msg->udiag_type != SOCK_STREAM)
		return;
	/*
	 * Connections that wait for accept() have the name, too. They belong to no user, which
	 * reads as uid 0.
	 */
	if (msg->udiag_state != (w->listens ? TCP_LISTEN : TCP_CLOSE))
		return;
	left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*msg)));
	for (a = (struct rtattr *)(msg + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME)
			same = RTA_PAYLOAD(a) == len && !memcmp(RTA_DATA(a), w->un->sun_path, len);
		else if (a->rta_type == UNIX_DIAG_UID && RTA_PAYLOAD(a) == sizeof(uid))
			memcpy(&uid, RTA_DATA(a), sizeof(uid));
	}
	if (!same)
		return;
	w->found = true;
	w->uid = uid;
}

/* @return true: there may be more */
static bool look_at_all(struct wanted *w, const uint8_t *buf, size_t n)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)buf;

	for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return false;
		look_at(w, h);
	}
	return !w->found;
}

/* Not every kernel supports this request: then nothing is found. */
static void find_socket(struct wanted *w)
{
	const struct {
		struct nlmsghdr h;
		struct unix_diag_req req;
	} query = {
		.h = {.nlmsg_len = sizeof(query),
		      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_UNIX,
			.udiag_states = 1u << TCP_LISTEN | 1u << TCP_CLOSE,
			.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	_Alignas(8) uint8_t buf[32768];
	ssize_t n;

	if (fd < 0)
		return;
	n = send(fd, &query, sizeof(query), 0);
	/* Each part of the answer is ready when it is requested. */
	while (n > 0) {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0 && !look_at_all(w, buf, (size_t)n))
			break;
	}
	close(fd);
}

/* ---- the owner ------------------------------------------------------------------------------ */

static int query_owner(const struct sockaddr_un *un, socklen_t len, struct weft_claim_owner *owner)
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	int fd = weft_claim_socket(), rc;

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
 * Each user may bind each name, whether or not the user can open the device. Only a claim of root
 * or of the same user counts, so no user keeps another one from a port.
 */
static bool is_trusted(unsigned int uid)
{
	return uid == 0 || uid == geteuid();
}

enum weft_claim_held weft_claim_look(const struct sockaddr_un *un, socklen_t len,
				     struct weft_claim_owner *owner)
{
	struct wanted w = {.un = un, .len = len, .uid = WEFT_CLAIM_NO_UID};
	int rc;

	*owner = (struct weft_claim_owner){.uid = WEFT_CLAIM_NO_UID};
	rc = query_owner(un, len, owner);
	if (rc == -EAGAIN || rc == -ECONNREFUSED) {
		/*
		 * -EAGAIN: the socket listens, but its backlog is full. -ECONNREFUSED: it does not
		 * listen.
		 */
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
