/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/container.h"
#include "base/host.h"
#include "base/thread.h"
#include "shm/shm.h"
#include "shm/shm_socket.h"

/* ------------------------------------------------------------------ addresses */

/*
 * Two processes can share memory if system, user, network and user namespace, and folder of sockets
 * are equal. The sockets would also reach other network namespaces, but tests and containers use a
 * network namespace as a separate host.
 */

/* Addresses leave the host, so they have a hash of these numbers, which does not reveal them. */
static const struct weft_siphash_key place_key = {0x7765667420736d31ull, 0x706c616365303031ull};

struct place {
	uint64_t host, folder_dev, folder_ino, net_dev, net_ino, user_dev, user_ino, uid;
};

static int find_place(struct place *p, char *why, size_t why_len)
{
	char path[WEFT_USER_FOLDER];
	struct stat folder, net, user;
	int rc = weft_user_folder_find(path, why, why_len);

	if (rc < 0)
		return rc;
	if (stat(path, &folder) < 0 || stat("/proc/self/ns/net", &net) < 0 ||
	    stat("/proc/self/ns/user", &user) < 0) {
		rc = -errno;
		snprintf(why, why_len,
			 "the namespaces of this process are unknown (/proc/self/ns): is /proc "
			 "mounted?");
		return rc;
	}
	p->folder_dev = folder.st_dev;
	p->folder_ino = folder.st_ino;
	p->net_dev = net.st_dev;
	p->net_ino = net.st_ino;
	p->user_dev = user.st_dev;
	p->user_ino = user.st_ino;
	p->uid = geteuid();
	return 0;
}

int shm_place_init(struct shm_addr *own, const struct weft_lane_open *params, char *why,
		   size_t why_len)
{
	const struct weft_platform *platform = params->platform;
	struct place p = {0};
	int rc;

	memset(own, 0, sizeof(*own));
	p.host = platform->host_id ? platform->host_id(platform->arg) : 0;
	if (p.host == 0) {
		snprintf(why, why_len,
			 "the system's boot id is unknown "
			 "(/proc/sys/kernel/random/boot_id): is /proc mounted?");
		return -ENOENT;
	}
	rc = find_place(&p, why, why_len);
	if (rc < 0)
		return rc;
	own->host = weft_put64(p.host);
	own->place = weft_put64(weft_siphash(&place_key, &p, sizeof(p)));
	own->iface_id = weft_put64(params->iface_id);
	own->version = weft_put16(SHM_VERSION);
	return 0;
}

int shm_place_reachable(const struct shm_addr *own, const void *addr, size_t len, char *why,
			size_t why_len)
{
	struct shm_addr a;

	if (len != sizeof(a)) {
		snprintf(why, why_len, "its address has %zu bytes instead of %zu", len, sizeof(a));
		return -EINVAL;
	}
	memcpy(&a, addr, sizeof(a));
	if (weft_get16(a.version) != SHM_VERSION) {
		snprintf(why, why_len, "it has version %u of shared memory, this process %u",
			 weft_get16(a.version), SHM_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (weft_get64(a.host) != weft_get64(own->host)) {
		snprintf(why, why_len, "it is on another host");
		return -EHOSTUNREACH;
	}
	if (weft_get64(a.place) != weft_get64(own->place)) {
		snprintf(why, why_len,
			 "it is on this host, but has another user, or another /tmp, network or "
			 "user namespace");
		return -EACCES;
	}
	return 0;
}

void shm_place_print(const void *addr, size_t len, char *buf, size_t size)
{
	struct shm_addr a;

	if (len != sizeof(a)) {
		snprintf(buf, size, "malformed address");
		return;
	}
	memcpy(&a, addr, sizeof(a));
	snprintf(buf, size, "shared memory %016llx on host %016llx",
		 (unsigned long long)weft_get64(a.iface_id),
		 (unsigned long long)weft_get64(a.host));
}

/* ------------------------------------------------------------------ sockets */

/*
 * The sockets are in a folder that only this user may access. Names in the abstract namespace have
 * no permissions: each user of the network namespace could fill the backlog, and pass descriptors
 * whose close() blocks.
 */

#define BACKLOG 1024
#define PREFIX "shm-"
#define SWEEP_AGE_S 60

static int name_of(const struct shm_addr *a, struct sockaddr_un *name)
{
	char folder[WEFT_USER_FOLDER], why[256];
	int rc = weft_user_folder_find(folder, why, sizeof(why));

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	snprintf(name->sun_path, sizeof(name->sun_path), "%s/" PREFIX "%016llx", folder,
		 (unsigned long long)weft_get64(a->iface_id));
	return rc;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int close_failed(int fd)
{
	int error = errno;

	close(fd);
	return -error;
}

int shm_socket_listen(const struct shm_addr *own)
{
	struct sockaddr_un name;
	int fd, rc = name_of(own, &name);

	if (rc < 0)
		return rc;
	*strrchr(name.sun_path, '/') = '\0';
	weft_sockets_sweep(name.sun_path, PREFIX, SWEEP_AGE_S);
	name.sun_path[strlen(name.sun_path)] = '/';
	fd = new_socket();
	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return close_failed(fd);
	if (listen(fd, BACKLOG) < 0) {
		unlink(name.sun_path);
		return close_failed(fd);
	}
	return fd;
}

void shm_socket_remove(const struct shm_addr *own)
{
	struct sockaddr_un name;

	if (name_of(own, &name) == 0)
		unlink(name.sun_path);
}

int shm_socket_connect(const struct shm_addr *to)
{
	struct sockaddr_un name;
	int fd, rc = name_of(to, &name);

	if (rc < 0)
		return rc;
	fd = new_socket();
	if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
		/* A process that has ended in an orderly way has removed the name. */
		if (errno == ENOENT)
			errno = ECONNREFUSED;
		return close_failed(fd);
	}
	return fd;
}

int shm_socket_peer(int sock, pid_t *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != geteuid())
		return -EACCES;
	*pid = cred.pid;
	return 0;
}

/* Is @p pid the process that listens at @p addr? @return 0, -EACCES; -EAGAIN: try again */
static int socket_is_at(const struct shm_addr *addr, pid_t pid)
{
	int fd = shm_socket_connect(addr);
	pid_t there = -1;
	bool is;

	if (fd < 0)
		return fd == -EAGAIN ? -EAGAIN : -EACCES; /* it listens, and its backlog is full */
	is = shm_socket_peer(fd, &there) == 0 && there == pid;
	close(fd);
	return is ? 0 : -EACCES;
}

bool shm_socket_has_message(int sock)
{
	char byte;

	return recv(sock, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK) > 0;
}

/* Copy the next message, which stays in the socket. @return false: none, or shorter than a hello */
static bool socket_peek(int sock, struct shm_hello *hello)
{
	return recv(sock, hello, sizeof(*hello), MSG_DONTWAIT | MSG_PEEK) == sizeof(*hello);
}

int shm_socket_send(int sock, const struct shm_hello *hello, const int *fds, unsigned int num)
{
	ssize_t n = weft_socket_send_fds(sock, hello, sizeof(*hello), fds, num);

	return n < 0 ? (int)n : 0;
}

int shm_socket_recv(int sock, struct shm_hello *hello, int fds[SHM_HELLO_FDS])
{
	ssize_t n = weft_foreign_fd_recv(sock, hello, sizeof(*hello), fds, SHM_HELLO_FDS);

	if (n < 0)
		return n == -EAGAIN ? -EAGAIN : -EPROTO;
	if (n != sizeof(*hello) || hello->magic != SHM_HELLO_MAGIC)
		return n == 0 ? -ECONNRESET : -EPROTO;
	hello->text[sizeof(hello->text) - 1] = '\0';
	return 0;
}

int shm_process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* ------------------------------------------------------------------ hellos */

struct shm_inbox {
	_Atomic(struct shm_receipt *) done; /* the newest first */
	atomic_uint refs; /* 1 for the iface, and 1 for each receipt in progress */
	int event;
};

/* ------------------------------------------------------------------ the other thread */

/* @return 0, or an error with a reason in r->why */
static int check_hello(struct shm_receipt *r, int segment_fd)
{
	const struct shm_hello *hello = &r->hello;
	const char *what = "";
	int rc;

	if (hello->version != SHM_VERSION ||
	    memcmp(hello->to, &r->own.iface_id, sizeof(hello->to)) != 0) {
		snprintf(r->why, sizeof(r->why),
			 "the hello is for another interface, or not of version %u", SHM_VERSION);
		return -EPROTONOSUPPORT;
	}
	rc = shm_place_reachable(&r->own, hello->addr, SHM_ADDR_LEN, r->why, sizeof(r->why));
	if (rc < 0)
		return rc;
	r->segment = shm_segment_map(segment_fd, &what);
	if (!r->segment) {
		snprintf(r->why, sizeof(r->why), "%s", what);
		return -EPROTO;
	}
	return 0;
}

/* @return 0: the sender listens at the address in its hello; -EAGAIN: unknown yet; -EACCES */
static int check_sender(const struct shm_receipt *r)
{
	struct shm_hello hello;
	struct shm_addr addr;

	/* Without a hello there is no address to check: shm_socket_recv() reports the cause. */
	if (!socket_peek(r->sock, &hello) || hello.magic != SHM_HELLO_MAGIC)
		return 0;
	memcpy(&addr, hello.addr, sizeof(addr));
	return socket_is_at(&addr, r->pid);
}

static int receive_request(struct shm_receipt *r, int fds[SHM_HELLO_FDS])
{
	int rc, sender = check_sender(r);

	/* The hello stays in the socket: the progress thread starts another receipt. */
	if (sender == -EAGAIN)
		return -EAGAIN;
	rc = shm_socket_recv(r->sock, &r->hello, fds);
	if (rc < 0)
		return rc;
	r->is_hello = true;
	rc = check_hello(r, fds[0]);
	if (rc == 0 && sender < 0) {
		snprintf(r->why, sizeof(r->why),
			 "another process listens at the address in its hello");
		return sender;
	}
	if (rc == 0 && fds[1] >= 0)
		r->regs = shm_reg_map(fds[1]);
	return rc;
}

static int receive_answer(struct shm_receipt *r, int fds[SHM_HELLO_FDS])
{
	int rc = shm_socket_recv(r->sock, &r->hello, fds);

	r->is_hello = rc == 0;
	if (rc == 0 && r->hello.status == 0 && fds[0] >= 0)
		r->regs = shm_reg_map(fds[0]);
	return rc;
}

static void inbox_unref(struct shm_inbox *inbox)
{
	struct shm_receipt *r, *next;

	/* Acquire and release: the last thread frees memory that the others have written. */
	if (atomic_fetch_sub_explicit(&inbox->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (r = atomic_load_explicit(&inbox->done, memory_order_relaxed); r; r = next) {
		next = r->next;
		r->closes = true;
		shm_receipt_free(r);
	}
	close(inbox->event);
	free(inbox);
}

static void inbox_put(struct shm_receipt *r)
{
	struct shm_inbox *inbox = r->inbox;
	const uint64_t one = 1;

	r->next = atomic_load_explicit(&inbox->done, memory_order_relaxed);
	/* Release: the progress thread sees the result. */
	while (!atomic_compare_exchange_weak_explicit(&inbox->done, &r->next, r,
						      memory_order_release, memory_order_relaxed))
		;
	/* A full counter wakes the reader, too. */
	if (write(inbox->event, &one, sizeof(one)) < 0)
		return;
}

static void receive_hello(void *arg)
{
	struct shm_receipt *r = arg;
	struct shm_inbox *inbox = r->inbox;
	int fds[SHM_HELLO_FDS] = {-1, -1};

	r->status = r->is_answer ? receive_answer(r, fds) : receive_request(r, fds);
	inbox_put(r);
	/* After inbox_put(): the progress thread need not wait while a descriptor closes. */
	for (unsigned int i = 0; i < SHM_HELLO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	inbox_unref(inbox);
}

/* ------------------------------------------------------------------ the progress thread */

struct shm_inbox *shm_inbox_new(void)
{
	struct shm_inbox *inbox = calloc(1, sizeof(*inbox));

	if (!inbox)
		return NULL;
	atomic_init(&inbox->refs, 1);
	inbox->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (inbox->event < 0) {
		free(inbox);
		return NULL;
	}
	return inbox;
}

void shm_inbox_close(struct shm_inbox *inbox)
{
	if (inbox)
		inbox_unref(inbox);
}

int shm_inbox_fd(const struct shm_inbox *inbox)
{
	return inbox->event;
}

struct shm_receipt *shm_inbox_take(struct shm_inbox *inbox)
{
	struct shm_receipt *r, *next, *oldest = NULL;
	uint64_t count;

	/* Read before taking the list: later receipts make the descriptor readable again. */
	if (read(inbox->event, &count, sizeof(count)) < 0)
		return NULL;
	/* Acquire: pairs with inbox_put(). */
	r = atomic_exchange_explicit(&inbox->done, NULL, memory_order_acquire);
	for (; r; r = next) {
		next = r->next;
		r->next = oldest;
		oldest = r;
	}
	return oldest;
}

int shm_receipt_start(struct shm_inbox *inbox, struct shm_ep *lane_ep, const struct shm_addr *own)
{
	struct shm_receipt *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->inbox = inbox;
	r->lane_ep = lane_ep;
	r->sock = lane_ep->sock.fd;
	r->own = *own;
	r->pid = lane_ep->pid;
	r->is_answer = lane_ep->state == SHM_REQUESTED;
	/* Relaxed: the lock of the queue of jobs orders this before the thread's decrement. */
	atomic_fetch_add_explicit(&inbox->refs, 1, memory_order_relaxed);
	rc = weft_blocking_run(receive_hello, r);
	if (rc < 0) {
		atomic_fetch_sub_explicit(&inbox->refs, 1, memory_order_relaxed);
		free(r);
		return rc;
	}
	lane_ep->receipt = r;
	return 0;
}

void shm_receipt_orphan(struct shm_ep *lane_ep)
{
	struct shm_receipt *r = lane_ep->receipt;

	lane_ep->receipt = NULL;
	r->lane_ep = NULL;
	r->closes = true;
}

void shm_receipt_free(struct shm_receipt *r)
{
	if (r->segment)
		shm_segment_unmap(r->segment);
	if (r->regs)
		shm_reg_unmap(r->regs);
	if (r->closes)
		weft_foreign_fd_close(r->sock);
	free(r);
}
