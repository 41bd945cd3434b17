/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/thread.h"
#include "drivers/dpdk/memif/control.h"
#include "switch/client.h"
#include "switch/grant.h"
#include "switch/pump.h"
#include "switch/switch.h"
#include "switch/control.h"

/* ---- the memory of a client ----------------------------------------------------------------- */

/*
 * The forwarder reads and writes the memory of a client, so no page may disappear (SIGBUS). No page
 * may be missing either: the forwarder's page fault would block, and the page would be charged to
 * this process without a limit. So:
 *
 *  - The memory is a memfd of ordinary pages, no longer than sw_region_max().
 *  - Its size is sealed. Holes can be punched into a memfd in spite of that, so it is also sealed
 *    against writes, except by existing mappings: punching a hole counts as a write.
 *  - Then all missing pages are allocated, and locked in memory as far as limits permit.
 */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Rings and buffers each begin at a page boundary; DPDK leaves up to a page between them. */
size_t sw_region_max(unsigned int log2_ring, uint32_t bsize)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), slots = (size_t)1 << log2_ring;
	size_t ring = weft_mring_bytes(log2_ring);

	size_t farewells = sizeof(struct weft_memif_farewell) << WEFT_MEMIF_LOG2_FAREWELLS;

	return RTE_ALIGN_CEIL(2 * ring, page) + RTE_ALIGN_CEIL(2 * slots * bsize, page) +
	       RTE_ALIGN_CEIL(farewells, page) + page;
}

static bool is_sealed(int fd, int seals)
{
	int has = fcntl(fd, F_GET_SEALS);

	return has >= 0 && (has & seals) == seals;
}

static bool seal(int fd, int seals)
{
	return is_sealed(fd, seals) || fcntl(fd, F_ADD_SEALS, seals) == 0;
}

/* Only a memfd has seals. The seals come first: fstat() of a FUSE file would wait for its owner. */
static const char *check_file(const struct sw *s, int fd, uint64_t size)
{
	struct statfs fs;
	struct stat st;

	if (fd < 0 || !is_sealed(fd, F_SEAL_SHRINK))
		return "the region is not sealed against shrinking";
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return "the region is no memfd of ordinary pages";
	if (!seal(fd, F_SEAL_GROW))
		return "the region can't be sealed against growing";
	if (fstat(fd, &st) || (uint64_t)st.st_size < size)
		return "the region is shorter than announced";
	if ((uint64_t)st.st_size > s->region_max)
		return "the region's file is longer than the granted rings need";
	return NULL;
}

/* Kernels before 5.14 have no call that allocates pages of a mapping; writing zero bits does. */
static bool make_pages(uint8_t *at, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;

	if (madvise(at, size, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	for (i = 0; i < size; i += page)
		__atomic_fetch_or(at + i, 0, __ATOMIC_RELAXED);
	return true;
}

/* @return NULL; or the reason of a refusal, for the client */
static const char *sw_region_map(const struct sw *s, int fd, uint64_t size, uint8_t **region)
{
	const char *why = NULL;
	void *at;

	if (size == 0 || size > s->region_max)
		return "the region is larger than the granted rings need";
	why = check_file(s, fd, size);
	if (why)
		return why;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return "the region can't be mapped";
	if (!seal(fd, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		why = "the region can't be sealed, so pages of it could be removed";
	else if (!make_pages(at, size))
		why = "there is no memory for the region's pages";
	if (why) {
		munmap(at, size);
		return why;
	}
	/* Where limits forbid it, pages may be swapped out: the forwarder waits for the disk. */
	(void)mlock(at, size);
	*region = at;
	return NULL;
}

/* ---- connections ---------------------------------------------------------------------------- */

/*
 * For this time after its first grants are possible, a switch accepts clients of its predecessor,
 * which try to reconnect ten times a second.
 */
#define RECONNECT_NS 10000000000ull
#define HALF_OPEN_NS 2000000000ull /* timeout from accept() until the secret has come */
#define RINGS_NS 5000000000ull     /* timeout from accept() until the rings are there */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* ---- begin and end -------------------------------------------------------------------------- */

void sw_conn_init(struct sw_conn *c)
{
	*c = (struct sw_conn){.fd = -1, .region_fd = -1, .rx = {.event = -1}, .tx = {.event = -1}};
}

static void conn_close(struct sw *s, struct sw_conn *c)
{
	sw_hang_up(s, &c->fd);
	sw_close(&c->region_fd);
	sw_close(&c->rx.event);
	sw_close(&c->tx.event);
	if (c->region.at)
		weft_foreign_unmap(c->region.at, c->region.len);
	sw_conn_init(c);
}

static bool send_message(const struct sw_conn *c, const struct weft_memif_message *m)
{
	return send(c->fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*m);
}

static bool acknowledge(const struct sw_conn *c)
{
	return send_message(c, &(struct weft_memif_message){.type = WEFT_MEMIF_ACK});
}

static bool refuse(const struct sw_conn *c, const char *text)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_DISCONNECT};

	snprintf(m.disconnect.text, sizeof(m.disconnect.text), "%s", text);
	send_message(c, &m);
	return false;
}

static unsigned int half_open_of(const struct sw *s, uid_t user)
{
	unsigned int i, n = 0;

	for (i = 0; i < SW_HALF_OPEN; i++)
		n += s->half[i].fd >= 0 && s->half[i].user == user;
	return n;
}

/* The user with most half-open connections loses its oldest one, so no user evicts others. */
static unsigned int half_slot(struct sw *s)
{
	unsigned int i, n, most = 0, oldest = 0;

	for (i = 0; i < SW_HALF_OPEN; i++) {
		if (s->half[i].fd < 0)
			return i;
		n = half_open_of(s, s->half[i].user);
		if (n > most || (n == most && s->half[i].since < s->half[oldest].since)) {
			most = n;
			oldest = i;
		}
	}
	conn_close(s, &s->half[oldest]);
	return oldest;
}

static void take_half(struct sw *s, int fd, uint64_t now)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_HELLO};
	struct sw_conn from;
	struct sw_conn *c;
	unsigned int i;

	sw_conn_init(&from);
	from.fd = fd;
	from.since = now;
	if (sw_user_of(fd, &from) || !sw_user_may_connect(s, from.user, now)) {
		sw_close(&fd);
		return;
	}
	i = half_slot(s);
	c = &s->half[i];
	if (sw_watch(s, fd, sw_tag(SW_TAG_HALF, i)) < 0) {
		sw_close(&fd);
		return;
	}
	*c = from;
	m.hello = (struct weft_memif_hello){
		.name = "weft-switch",
		.min_version = WEFT_MEMIF_VERSION,
		.max_version = WEFT_MEMIF_VERSION,
		.max_log2_ring = s->log2_ring,
	};
	if (!send_message(c, &m))
		conn_close(s, c);
}

void sw_conn_accept(struct sw *s, uint64_t now)
{
	sw_accept(s, s->memif_fd, now, take_half);
}

void sw_half_expire(struct sw *s, uint64_t now)
{
	struct sw_port *p;
	unsigned int i;

	for (i = 0; i < SW_HALF_OPEN; i++)
		if (s->half[i].fd >= 0 && now - s->half[i].since > HALF_OPEN_NS)
			conn_close(s, &s->half[i]);
	for (i = 0; i < s->plan.ports; i++) {
		p = &s->port[i];
		if (p->conn.fd >= 0 && !p->conn.up && now - p->conn.since > RINGS_NS)
			sw_conn_end(s, i);
	}
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* @return 1 a message, 0 none now, -ECONNRESET the client has ended the connection, or -EPROTO */
static int recv_message(const struct sw_conn *c, struct weft_memif_message *m, int *fd)
{
	ssize_t n = weft_foreign_fd_recv(c->fd, m, sizeof(*m), fd, 1);

	if (n == -EAGAIN)
		return 0;
	if (n == 0 || n == -ECONNRESET)
		return -ECONNRESET;
	/* All messages have the size that DPDK's clients send. */
	return n == (ssize_t)sizeof(*m) ? 1 : -EPROTO;
}

/* ---- the port's messages -------------------------------------------------------------------- */

static bool take_region(const struct sw *s, struct sw_conn *c,
			const struct weft_memif_add_region *r, int *fd)
{
	const char *why;

	if (c->region.at || r->index != 0)
		return refuse(c, "a connection has one region of memory");
	why = sw_region_map(s, *fd, r->size, &c->region.at);
	if (why)
		return refuse(c, why);
	c->region.len = r->size;
	c->region_fd = *fd;
	*fd = -1;
	return acknowledge(c);
}

static bool take_ring(const struct sw *s, struct sw_conn *c, const struct weft_memif_add_ring *m,
		      int *fd)
{
	struct weft_mring *r = m->flags & WEFT_MEMIF_RING_C2S ? &c->rx : &c->tx;

	if (c->up || r->shm || !c->region.at || m->index != 0 || m->region != 0)
		return refuse(c, "a connection has one ring for each direction, in region 0");
	if (!weft_memif_is_eventfd(*fd))
		return refuse(c, "the ring has no eventfd");
	/* The forwarder handles a whole ring at once when its client ends. */
	if (m->log2_size > s->log2_ring)
		return refuse(c, "the ring is larger than the switch has granted");
	if (weft_mring_attach(r, &c->region, 1, 0, m->offset, m->log2_size))
		return refuse(c, "the ring does not fit into its region");
	r->event = *fd;
	*fd = -1;
	return acknowledge(c);
}

/* The frames are checked when they are sent, as those of a ring. */
static bool take_farewells(struct sw_conn *c, const struct weft_memif_add_ring *m)
{
	size_t bytes;

	if (c->up || c->farewells || !c->region.at || m->region != 0)
		return refuse(c, "a connection has one table of farewells, in region 0");
	if (m->log2_size > WEFT_MEMIF_LOG2_FAREWELLS)
		return refuse(c, "the table of farewells is too long");
	bytes = sizeof(struct weft_memif_farewell) << m->log2_size;
	if (m->offset % sizeof(uint32_t) != 0 || m->offset > c->region.len ||
	    bytes > c->region.len - m->offset)
		return refuse(c, "the table of farewells does not fit into its region");
	c->farewells = (const struct weft_memif_farewell *)(c->region.at + m->offset);
	c->num_farewells = 1u << m->log2_size;
	return acknowledge(c);
}

/* Without memory for the copy, peers detect the end of the process by their timeout. */
static void keep_farewells(struct sw_port *p)
{
	const struct sw_conn *c = &p->conn;
	struct sw_farewell *to;
	uint32_t len;

	free(p->farewells);
	p->farewells = NULL;
	if (!c->farewells)
		return;
	p->farewells =
		malloc(sizeof(*p->farewells) + c->num_farewells * sizeof(p->farewells->at[0]));
	if (!p->farewells)
		return;
	p->farewells->num = 0;
	for (unsigned int i = 0; i < c->num_farewells; i++) {
		/* acquire: the frame was written before its length */
		len = atomic_load_explicit(&c->farewells[i].len, memory_order_acquire);
		to = &p->farewells->at[p->farewells->num];
		if (len == 0 || len > sizeof(to->frame))
			continue;
		memcpy(to->frame, c->farewells[i].frame, len);
		to->len = len;
		p->farewells->num++;
	}
}

/* A client may pass descriptors only between its secret and its rings (Linux 6.16 or later). */
static void let_descriptors(const struct sw_conn *c, int let)
{
	setsockopt(c->fd, SOL_SOCKET, SO_PASSRIGHTS, &let, sizeof(let));
}

static bool connect_rings(struct sw *s, unsigned int port)
{
	struct sw_conn *c = &s->port[port].conn;
	struct weft_memif_message m = {.type = WEFT_MEMIF_CONNECTED};

	if (!c->rx.shm || !c->tx.shm)
		return refuse(c, "rings are missing");
	if (c->up)
		return false;
	let_descriptors(c, false);
	c->up = true;
	s->port[port].hung_up = false;
	sw_wake_set(s, port, c->tx.event);
	sw_lane_attach(s, port, c);
	snprintf(m.connected, sizeof(m.connected), "port %u", port);
	return send_message(c, &m);
}

static bool take(struct sw *s, unsigned int port, const struct weft_memif_message *m, int *fd)
{
	struct sw_conn *c = &s->port[port].conn;

	switch (m->type) {
	case WEFT_MEMIF_ACK:
		return true;
	case WEFT_MEMIF_ADD_REGION:
		return take_region(s, c, &m->region, fd);
	case WEFT_MEMIF_ADD_RING:
		if (m->ring.index == WEFT_MEMIF_FAREWELLS)
			return take_farewells(c, &m->ring);
		return take_ring(s, c, &m->ring, fd);
	case WEFT_MEMIF_CONNECT:
		return connect_rings(s, port);
	default:
		return false;
	}
}

void sw_conn_end(struct sw *s, unsigned int port)
{
	struct sw_port *p = &s->port[port];

	if (p->conn.up) {
		sw_lane_detach(s, port);
		sw_wake_forget(s, port);
		p->idle_since = sw_now();
		if (p->hung_up)
			keep_farewells(p);
	}
	conn_close(s, &p->conn);
	sw_port_check(s, port);
}

void sw_conn_event(struct sw *s, unsigned int port)
{
	struct sw_conn *c = &s->port[port].conn;
	struct weft_memif_message m;
	bool goes_on;
	int fd, rc = recv_message(c, &m, &fd);

	if (rc == 0)
		return;
	goes_on = rc > 0 && take(s, port, &m, &fd);
	sw_close(&fd);
	if (goes_on)
		return;
	if (rc == -ECONNRESET && c->up)
		s->port[port].hung_up = true;
	sw_conn_end(s, port);
}

/* ---- which port is it? ---------------------------------------------------------------------- */

/*
 * A client of a port without a grant has its secret from this switch's predecessor. The limit of
 * ports applies to it, too, because a user keeps the secrets of all ports that it ever had.
 */
static bool may_come(const struct sw *s, const struct sw_port *p, const struct sw_conn *c,
		     uint64_t now)
{
	const char *limit;

	if (p->grant < 0 && (s->grants_from == 0 || c->since >= s->grants_from + RECONNECT_NS))
		return refuse(c, "the port was released: request one from the switch");
	limit = sw_user_is_banned(s, c->user, now) || !sw_port_is_taken(p, now)
			? sw_user_limit(s, c->user, now)
			: NULL;
	return limit ? refuse(c, limit) : true;
}

static bool take_init(struct sw *s, struct sw_conn *c, const struct weft_memif_init *i,
		      uint64_t now)
{
	char secret[24];
	struct sw_port *p;

	if (i->version != WEFT_MEMIF_VERSION || i->mode != 0)
		return refuse(c, "this switch has memif 2.0 with Ethernet frames");
	if (i->id >= s->plan.ports)
		return refuse(c, "there is no such port");
	sw_secret(s, i->id, c->uid, secret);
	if (!weft_memif_same_secret(secret, i->secret))
		return refuse(c, "wrong secret: request a port from the switch");
	p = &s->port[i->id];
	if (p->conn.fd >= 0)
		return refuse(c, "the port has a connection already");
	if (p->grant >= 0 && p->uid != c->uid)
		return refuse(c, "the port belongs to another user");
	if (!may_come(s, p, c, now))
		return false;
	p->user = c->user;
	if (p->grant < 0)
		p->pid = c->pid;
	p->uid = c->uid;
	return true;
}

void sw_half_event(struct sw *s, unsigned int half, uint64_t now)
{
	struct sw_conn *c = &s->half[half];
	struct sw_port *p;
	struct weft_memif_message m;
	int fd, rc = c->fd < 0 ? 0 : recv_message(c, &m, &fd);

	if (rc == 0)
		return;
	sw_close(&fd);
	if (rc > 0 && m.type == WEFT_MEMIF_INIT && take_init(s, c, &m.init, now)) {
		p = &s->port[m.init.id];
		p->conn = *c;
		sw_conn_init(c);
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->conn.fd,
			  &(struct epoll_event){.events = EPOLLIN,
						.data.u64 = sw_tag(SW_TAG_CONN, m.init.id)});
		let_descriptors(&p->conn, true);
		if (acknowledge(&p->conn))
			return;
		sw_conn_end(s, m.init.id);
		return;
	}
	conn_close(s, c);
}
