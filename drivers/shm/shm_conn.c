/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator creates the segment and passes it with its hello. The acceptor checks both and
 * replies. The sockets stay open: they report when the peer has ended.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "shm/shm.h"
#include "shm/shm_conn.h"
#include "shm/shm_progress.h"
#include "shm/shm_socket.h"
#include "shm/shm_transfer.h"

#define ACCEPTS 16 /* connections accepted per check */

/* ------------------------------------------------------------------ lane_eps */

static struct shm_ep *ep_new(struct shm_iface *s, enum shm_state state, uint64_t now_ns)
{
	struct shm_ep *lane_ep;

	if (shm_table_reserve(s, s->num_eps + 1) < 0)
		return NULL;
	lane_ep = calloc(1, sizeof(*lane_ep));
	if (!lane_ep)
		return NULL;
	lane_ep->base = (struct weft_lane_ep){
		.iface = &s->base,
		.ops = s->base.ops,
		.tx_room = true,
		.max_msg = SHM_CHUNK_SIZE,
		.passive = state == SHM_ACCEPTED,
	};
	lane_ep->state = (uint8_t)state;
	lane_ep->since = now_ns;
	lane_ep->sock = (struct shm_fd){.fd = -1, .lane_ep = lane_ep};
	lane_ep->process = (struct shm_fd){.fd = -1, .lane_ep = lane_ep, .is_process = true};
	STAILQ_INIT(&lane_ep->comps);
	STAILQ_INIT(&lane_ep->natives);
	TAILQ_INSERT_TAIL(&s->making, lane_ep, entry);
	s->num_eps++;
	s->num_making++;
	s->num_half += state == SHM_ACCEPTED;
	return lane_ep;
}

static int watch_socket(struct shm_iface *s, struct shm_fd *what, uint32_t more)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP | more, .data.ptr = what};

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, what->fd, &ev) == 0 ||
	    (errno == EEXIST && epoll_ctl(s->epoll, EPOLL_CTL_MOD, what->fd, &ev) == 0))
		return 0;
	return -errno;
}

/* Another thread receives the hello, so epoll must report this socket once only. */
static int watch_hello(struct shm_iface *s, struct shm_ep *lane_ep)
{
	return watch_socket(s, &lane_ep->sock, EPOLLONESHOT);
}

/* While a forked child also has the descriptor, close() does not remove it from the epoll set. */
static void unwatch_process(struct shm_iface *s, struct shm_ep *lane_ep)
{
	if (lane_ep->process.fd < 0)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, lane_ep->process.fd, NULL);
	close(lane_ep->process.fd);
	lane_ep->process.fd = -1;
}

/* Closing may block: descriptors that the peer has passed may be in the socket's queue. */
static void unwatch_socket(struct shm_iface *s, struct shm_ep *lane_ep)
{
	if (lane_ep->sock.fd < 0)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, lane_ep->sock.fd, NULL);
	if (lane_ep->receipt)
		shm_receipt_orphan(lane_ep);
	else
		weft_foreign_fd_close(lane_ep->sock.fd);
	lane_ep->sock.fd = -1;
}

/* A process in another PID namespace has no PID here: then only the socket reports its end. */
static void watch_process(struct shm_iface *s, struct shm_ep *lane_ep)
{
	if (lane_ep->pid <= 0)
		return;
	lane_ep->process.fd = shm_process_open(lane_ep->pid);
	if (lane_ep->process.fd == -ESRCH)
		lane_ep->ended = true; /* its children may still have the socket open */
	if (lane_ep->process.fd >= 0 && watch_socket(s, &lane_ep->process, 0) < 0)
		unwatch_process(s, lane_ep);
}

static void lane_bury(struct shm_iface *s, struct shm_ep *lane_ep, int status)
{
	if (lane_ep->state == SHM_UP) {
		TAILQ_REMOVE(&s->up, lane_ep, entry);
		shm_table_remove(lane_ep);
		/* Release: records and the last position precede the flag. */
		shm_rx_publish(&lane_ep->rx);
		atomic_store_explicit(&lane_ep->tx.dir->ctl.closed, 1, memory_order_release);
	} else {
		TAILQ_REMOVE(&s->making, lane_ep, entry);
		s->num_making--;
		s->num_half -= lane_ep->state == SHM_ACCEPTED;
	}
	lane_ep->state = SHM_DEAD;
	lane_ep->status = status;
	lane_ep->base.up = false;
	/* A forked child may have the socket, too: close() alone would not end the connection. */
	if (lane_ep->sock.fd >= 0)
		shutdown(lane_ep->sock.fd, SHUT_RDWR);
	unwatch_socket(s, lane_ep);
	unwatch_process(s, lane_ep);
	TAILQ_INSERT_TAIL(&s->dead, lane_ep, entry);
}

void shm_reap(struct shm_iface *s)
{
	struct shm_ep *lane_ep, *next;

	for (lane_ep = TAILQ_FIRST(&s->dead); lane_ep; lane_ep = next) {
		next = TAILQ_NEXT(lane_ep, entry);
		if (!lane_ep->destroyed)
			continue;
		TAILQ_REMOVE(&s->dead, lane_ep, entry);
		s->num_eps--;
		if (lane_ep->segment)
			shm_segment_unmap(lane_ep->segment);
		if (lane_ep->regs)
			shm_reg_unmap(lane_ep->regs);
		free(lane_ep);
	}
}

void shm_ep_destroy(struct weft_lane_ep *base)
{
	struct shm_ep *lane_ep = shm_ep(base);
	bool was_up = lane_ep->state == SHM_UP;

	lane_ep->destroyed = true;
	if (lane_ep->state != SHM_DEAD)
		lane_bury(shm_iface(base->iface), lane_ep, -ECANCELED);
	/* The peer may have taken more messages since the last check: read its position again. */
	if (was_up)
		shm_complete(lane_ep);
	shm_cancel(lane_ep, -ECANCELED);
}

void shm_end(struct shm_ep *lane_ep, int status, const char *text)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);
	bool known = lane_ep->state != SHM_ACCEPTED, was_up = lane_ep->state == SHM_UP;
	char words[128], line[SHM_TEXT_MAX + 160];

	lane_bury(s, lane_ep, status < 0 ? status : -ECONNRESET);
	lane_ep->destroyed = lane_ep->destroyed || !known;
	if (was_up)
		shm_complete(lane_ep); /* messages that the peer has taken complete with 0 */
	shm_cancel(lane_ep, lane_ep->status);
	if (!known || lane_ep->destroyed)
		return;
	shm_place_print(&lane_ep->peer, sizeof(lane_ep->peer), words, sizeof(words));
	snprintf(line, sizeof(line), "%s to %s (process %d): %s", s->base.name, words,
		 (int)lane_ep->pid, text);
	s->event(s->arg, &lane_ep->base, status < 0 ? WEFT_LANE_EV_DOWN : WEFT_LANE_EV_GONE, status,
		 line);
}

static void lane_up(struct shm_iface *s, struct shm_ep *lane_ep, const struct shm_hello *hello,
		    unsigned int receives)
{
	char words[128], line[192];

	if (!shm_native_reaches(lane_ep, hello))
		lane_ep->base.lacks = SHM_NATIVE_FEATURES;
	shm_wait_up(lane_ep, hello->fences);

	weft_socket_refuse_fds(lane_ep->sock.fd);
	if (watch_socket(s, &lane_ep->sock, 0) < 0)
		lane_ep->ended = true; /* unwatched, the peer's end and wake-ups would be missed */
	TAILQ_REMOVE(&s->making, lane_ep, entry);
	s->num_making--;
	s->num_half -= lane_ep->state == SHM_ACCEPTED;
	TAILQ_INSERT_TAIL(&s->up, lane_ep, entry);
	lane_ep->state = SHM_UP;
	lane_ep->rx.dir = &lane_ep->segment->dir[receives];
	lane_ep->tx.dir = &lane_ep->segment->dir[1 - receives];
	lane_ep->base.up = true;
	shm_table_add(lane_ep);
	shm_place_print(&lane_ep->peer, sizeof(lane_ep->peer), words, sizeof(words));
	snprintf(line, sizeof(line), "%s%s", words,
		 lane_ep->base.lacks ? ", by copies: its memory cannot be read" : "");
	s->event(s->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, line);
}

/* ------------------------------------------------------------------ initiator */

static void hello_init(const struct shm_iface *s, const struct shm_ep *lane_ep,
		       struct shm_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = SHM_HELLO_MAGIC;
	hello->version = SHM_VERSION;
	hello->fences = s->fences;
	memcpy(hello->addr, &s->addr, SHM_ADDR_LEN);
	memcpy(hello->to, &lane_ep->peer.iface_id, sizeof(hello->to));
	if (s->reg_fd >= 0) {
		hello->word_at = (uintptr_t)&s->word;
		hello->word = s->word;
	}
}

static int send_segment(struct shm_iface *s, struct shm_ep *lane_ep)
{
	struct shm_hello hello;
	int fds[SHM_HELLO_FDS] = {-1, s->reg_fd}, rc;

	rc = shm_socket_peer(lane_ep->sock.fd, &lane_ep->pid);
	if (rc < 0) {
		snprintf(lane_ep->text, sizeof(lane_ep->text),
			 "a process of another user has its socket");
		return rc;
	}
	lane_ep->segment = shm_segment_create(&fds[0]);
	if (!lane_ep->segment) {
		rc = -errno;
		snprintf(lane_ep->text, sizeof(lane_ep->text),
			 "no shared memory of %zu bytes: %s: is there a limit (ulimit -n, -v, "
			 "memory of the container)?",
			 sizeof(struct shm_segment), strerror(-rc));
		return rc;
	}
	hello_init(s, lane_ep, &hello);
	rc = shm_socket_send(lane_ep->sock.fd, &hello, fds, s->reg_fd >= 0 ? 2 : 1);
	close(fds[0]);
	if (rc == 0)
		rc = watch_hello(s, lane_ep);
	if (rc < 0)
		snprintf(lane_ep->text, sizeof(lane_ep->text), "its socket refuses the hello: %s",
			 strerror(-rc));
	watch_process(s, lane_ep);
	if (rc == 0 && lane_ep->ended) {
		snprintf(lane_ep->text, sizeof(lane_ep->text), "its process has ended");
		rc = -ECONNREFUSED;
	}
	return rc;
}

/* @return 0: the hello was sent, or a further attempt follows */
static int try_connect(struct shm_iface *s, struct shm_ep *lane_ep)
{
	int fd = shm_socket_connect(&lane_ep->peer);

	if (fd == -EAGAIN)
		return 0;
	if (fd < 0) {
		snprintf(lane_ep->text, sizeof(lane_ep->text), "%s",
			 fd == -ECONNREFUSED ? "there is no such process any more on this host"
			 : fd == -EMFILE     ? "no descriptor is left: raise the limit (ulimit -n)"
					     : strerror(-fd));
		return fd;
	}
	lane_ep->sock.fd = fd;
	lane_ep->state = SHM_REQUESTED;
	return send_segment(s, lane_ep);
}

int shm_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **out)
{
	struct shm_iface *s = shm_iface(base);
	struct shm_ep *lane_ep;
	char why[160];
	int rc;

	rc = shm_place_reachable(&s->addr, addr, len, why, sizeof(why));
	if (rc < 0)
		return rc;
	if (s->num_eps == SHM_EPS_MAX) {
		weft_log_limited(&s->full, WEFT_LOG_WARN,
				 "%s: it has %u connections, which is the limit", s->base.name,
				 SHM_EPS_MAX);
		return -ENOSPC;
	}
	lane_ep = ep_new(s, SHM_CONNECTING, 0);
	if (!lane_ep)
		return -ENOMEM;
	lane_ep->base.user = user;
	memcpy(&lane_ep->peer, addr, sizeof(lane_ep->peer));
	/* progress() reports a failure. */
	lane_ep->status = try_connect(s, lane_ep);
	s->look_at = 0;
	*out = &lane_ep->base;
	return 0;
}

static void answer_received(struct shm_iface *s, struct shm_ep *lane_ep, struct shm_receipt *r)
{
	const struct shm_hello *hello = &r->hello;

	if (r->status < 0) {
		shm_end(lane_ep, -ECONNREFUSED,
			lane_ep->ended ? "its process has ended"
				       : "its reply is no hello of shared memory");
	} else if (hello->status < 0) {
		snprintf(lane_ep->text, sizeof(lane_ep->text), "refused: %s", hello->text);
		shm_end(lane_ep, -ECONNREFUSED, lane_ep->text);
	} else if (hello->version != SHM_VERSION ||
		   memcmp(hello->addr, &lane_ep->peer, SHM_ADDR_LEN) != 0) {
		shm_end(lane_ep, -EPROTO, "another interface answered");
	} else {
		lane_ep->regs = r->regs;
		r->regs = NULL;
		lane_up(s, lane_ep, hello, 1);
	}
}

unsigned int shm_making(struct shm_iface *s, uint64_t now_ns)
{
	struct shm_ep *lane_ep, *next;
	unsigned int n = 0;

	for (lane_ep = TAILQ_FIRST(&s->making); lane_ep; lane_ep = next) {
		next = TAILQ_NEXT(lane_ep, entry);
		if (lane_ep->since == 0)
			lane_ep->since = now_ns;
		if (lane_ep->state == SHM_CONNECTING && lane_ep->status == 0)
			lane_ep->status = try_connect(s, lane_ep);
		if (lane_ep->status == 0 && now_ns - lane_ep->since < s->connect_timeout)
			continue;
		if (lane_ep->status == 0)
			snprintf(lane_ep->text, sizeof(lane_ep->text),
				 "it has not replied in time: does it call progress?");
		shm_end(lane_ep, lane_ep->status < 0 ? lane_ep->status : -ETIMEDOUT, lane_ep->text);
		n++;
		break; /* a callback may have changed the list: continue at the next call */
	}
	return n;
}

/* ------------------------------------------------------------------ acceptor */

static void serve_request(struct shm_iface *s, struct shm_ep *lane_ep, struct shm_receipt *r)
{
	struct shm_hello answer;

	if (!r->is_hello) {
		/* A peer that only checks an address (socket_is_at()) closes without a hello. */
		s->count.refused_other += r->status != -ECONNRESET;
		shm_end(lane_ep, -EPROTO, "");
		return;
	}
	memcpy(&lane_ep->peer, r->hello.addr, SHM_ADDR_LEN);
	hello_init(s, lane_ep, &answer);
	answer.status = r->status;
	snprintf(answer.text, sizeof(answer.text), "%s", r->why);
	if (r->status < 0)
		s->count.refused_other++;
	if (shm_socket_send(lane_ep->sock.fd, &answer, &s->reg_fd, s->reg_fd >= 0) < 0 ||
	    r->status < 0) {
		shm_end(lane_ep, -EPROTO, "");
		return;
	}
	lane_ep->segment = r->segment;
	lane_ep->regs = r->regs;
	r->segment = NULL;
	r->regs = NULL;
	watch_process(s, lane_ep);
	s->count.accepted++;
	lane_up(s, lane_ep, &r->hello, 0);
}

static bool has_its_share(const struct shm_iface *s, pid_t pid)
{
	const struct shm_ep *lane_ep;
	unsigned int n = 0;

	TAILQ_FOREACH(lane_ep, &s->making, entry)
		n += lane_ep->state == SHM_ACCEPTED && lane_ep->pid == pid;
	return n >= SHM_HALF_ONE;
}

static void start_receipt(struct shm_iface *s, struct shm_ep *lane_ep)
{
	int rc = shm_receipt_start(s->inbox, lane_ep, &s->addr);

	if (rc == 0)
		return;
	weft_log_limited(&s->full, WEFT_LOG_WARN,
			 "%s: a connection ends, since no thread can be started for its hello: %s; "
			 "raise the limits on threads and memory (ulimit -u, -v)",
			 s->base.name, strerror(-rc));
	shm_end(lane_ep, rc, "no thread can be started for its hello");
}

static void accept_failed(struct shm_iface *s, int err)
{
	if (err != EMFILE && err != ENFILE && err != ENOBUFS && err != ENOMEM)
		return;
	weft_log_limited(&s->full, WEFT_LOG_WARN,
			 "%s: processes that connect wait: %s; raise the limit on open files "
			 "(ulimit -n)",
			 s->base.name, strerror(err));
}

unsigned int shm_accept(struct shm_iface *s, uint64_t now_ns)
{
	struct shm_ep *lane_ep;
	pid_t pid;
	int fd, i;

	/* At SHM_HALF_MAX, connections wait in the backlog: closing would fail valid ones, too. */
	for (i = 0; i < ACCEPTS && s->num_half < SHM_HALF_MAX && weft_foreign_fd_has_room(); i++) {
		fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			accept_failed(s, errno);
			return (unsigned int)i;
		}
		if (shm_socket_peer(fd, &pid) < 0) {
			s->count.refused_user++;
			weft_foreign_fd_close(fd);
			continue;
		}
		if (pid > 0 && has_its_share(s, pid)) {
			s->count.refused_share++;
			weft_foreign_fd_close(fd);
			continue;
		}
		lane_ep = s->num_eps < SHM_EPS_MAX ? ep_new(s, SHM_ACCEPTED, now_ns) : NULL;
		if (!lane_ep) {
			weft_log_limited(&s->full, WEFT_LOG_WARN,
					 s->num_eps < SHM_EPS_MAX
						 ? "%s: a process is refused: no memory for a "
						   "connection; there are %u, of at most %u"
						 : "%s: a process is refused: there are %u "
						   "connections, of at most %u",
					 s->base.name, s->num_eps, SHM_EPS_MAX);
			s->count.refused_other++;
			weft_foreign_fd_close(fd);
			continue;
		}
		lane_ep->sock.fd = fd;
		lane_ep->pid = pid;
		/* The hello has mostly arrived already. */
		if (shm_socket_has_message(fd))
			start_receipt(s, lane_ep);
		else if (watch_hello(s, lane_ep) < 0)
			shm_end(lane_ep, -ENOMEM, "");
	}
	return (unsigned int)i;
}

/* ------------------------------------------------------------------ events of the sockets */

static void drain_wakeups(struct shm_iface *s, struct shm_ep *lane_ep)
{
	char bytes[8];
	ssize_t n;
	int i;

	for (i = 0; i < 16; i++) {
		n = weft_foreign_fd_recv(lane_ep->sock.fd, bytes, sizeof(bytes), NULL, 0);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			lane_ep->ended = true;
			unwatch_socket(s, lane_ep);
			return;
		}
	}
}

static unsigned int process_ended(struct shm_iface *s, struct shm_ep *lane_ep)
{
	lane_ep->ended = true;
	unwatch_process(s, lane_ep);
	if (lane_ep->state != SHM_REQUESTED || lane_ep->receipt)
		return 0;
	/* A reply that was sent before the end is valid: messages may have followed it. */
	if (shm_socket_has_message(lane_ep->sock.fd)) {
		start_receipt(s, lane_ep);
		return 0;
	}
	shm_end(lane_ep, -ECONNREFUSED, "its process has ended");
	return 1;
}

unsigned int shm_readable(struct shm_fd *from)
{
	struct shm_ep *lane_ep = from->lane_ep;
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	if (lane_ep->state == SHM_DEAD)
		return 0;
	if (from->is_process)
		return process_ended(s, lane_ep);
	if (lane_ep->state == SHM_UP)
		drain_wakeups(s, lane_ep);
	else if (!lane_ep->receipt)
		start_receipt(s, lane_ep);
	return 0;
}

static void receipt_over(struct shm_iface *s, struct shm_ep *lane_ep, struct shm_receipt *r)
{
	lane_ep->receipt = NULL;
	if (r->status == -EAGAIN && !lane_ep->ended) {
		if (watch_hello(s, lane_ep) < 0)
			shm_end(lane_ep, -ENOMEM, "its socket cannot be watched");
		return;
	}
	if (r->is_answer)
		answer_received(s, lane_ep, r);
	else
		serve_request(s, lane_ep, r);
}

unsigned int shm_received(struct shm_iface *s)
{
	struct shm_receipt *r = shm_inbox_take(s->inbox), *next;
	unsigned int n = 0;

	for (; r; r = next) {
		next = r->next;
		/* A callback for an earlier receipt may have ended the connection. */
		if (r->lane_ep) {
			receipt_over(s, r->lane_ep, r);
			n++;
		}
		shm_receipt_free(r);
	}
	return n;
}
