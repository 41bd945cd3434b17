/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "base/thread.h"
#include "frame/frame.h"
#include "memif/control.h"
#include "memif/memif.h"
#include "port/claim.h"

#define LOG2_RING 8u /* the buffers of a larger ring do not fit the caches: doc/ports.md */
#define BSIZE 9216u
#define BSIZE_MIN 1536u
#define JUMBO_FRAME 9014u
#define LATENCY 300e-9

/* Polls between two checks of the sockets of a connection. */
#define LOOK_EVERY 16384u
/* Without a connection: polls between two reads of the clock, and us between two checks. */
#define IDLE_EVERY 16u
#define IDLE_US 50u
/* ms between two tries of a client to connect. */
#define RETRY_MS 100u
/* ms after which a client whose handshake has not ended gives way to the next one. */
#define HALF_OPEN_MS 2000u
#define BACKLOG 64
#define SWITCH_MS 100u /* ms that an open waits for weft-switch, at most */

/*
 * Bytes after which a burst of received frames ends. The engine frees its buffers before the next
 * one, so the same few are used again, and stay in the first-level cache.
 */
#define BURST_BYTES 32768u

/*
 * Least bytes of a frame that is read in place, in the ring. Its first IN_PLACE_HEAD bytes, with
 * all headers, are copied before they are checked.
 */
#define IN_PLACE_MIN 2048u
#define IN_PLACE_HEAD 128u

static bool is_up(const struct weft_mport *p)
{
	return p->conn.state == WEFT_MCONN_UP;
}

static uint64_t cycles(uint64_t us)
{
	return rte_get_tsc_hz() * us / 1000000;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static int watch(const struct weft_mport *p, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events};

	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* A peer can wake this process and fill rings: it must be root's or this user's, or `vouched`. */
static bool is_trusted(struct weft_mport *p, int fd)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (p->vouched)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	    (cred.uid == 0 || cred.uid == geteuid()))
		return true;
	p->stats.refused++;
	weft_log_limited(&p->limit, WEFT_LOG_ERROR,
			 "memif socket %s: process %d of user %d is refused as a peer: it is "
			 "neither root's nor this user's",
			 p->path, (int)cred.pid, (int)cred.uid);
	return false;
}

static void conn_lost(struct weft_mport *p, bool was_up)
{
	if (was_up)
		weft_log_limited(&p->limit, WEFT_LOG_INFO, "memif socket %s: %s", p->path,
				 p->conn.why);
	else
		weft_debug("memif socket %s: %s", p->path, p->conn.why);
	p->try_tsc = rte_rdtsc() + cycles(RETRY_MS * 1000);
}

static void conn_fail(struct weft_mport *p, const char *why)
{
	bool up = is_up(p);

	weft_mconn_end(&p->conn, why);
	conn_lost(p, up);
}

#define RAISE_FILES "raise the limit on open files (ulimit -n)"

/* The process has reached a limit. The next look tries again. */
static void no_socket(struct weft_mport *p, const char *what, int err)
{
	snprintf(p->conn.why, sizeof(p->conn.why), "%s: %s", what, strerror(err));
	weft_log_limited(&p->limit, WEFT_LOG_WARN, "memif socket %s: %s", p->path, p->conn.why);
}

static void conn_begin(struct weft_mport *p, int fd)
{
	int rc = watch(p, fd, EPOLLIN);

	p->since_tsc = rte_rdtsc();
	if (rc) {
		no_socket(p,
			  "a connection can't be watched; raise the limit "
			  "fs.epoll.max_user_watches",
			  -rc);
		weft_foreign_fd_close(fd);
		return;
	}
	if (weft_mconn_start(&p->conn, fd))
		conn_lost(p, false);
}

static void accept_one(struct weft_mport *p)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			no_socket(p, "a client can't be accepted; " RAISE_FILES, errno);
		return;
	}
	if (p->conn.fd >= 0 && !is_up(p) &&
	    rte_rdtsc() - p->since_tsc > cycles(HALF_OPEN_MS * 1000))
		conn_fail(p, "the handshake takes too long, and another client has come");
	/* A client that is not accepted tries again. */
	if (p->conn.fd >= 0 || !is_trusted(p, fd))
		weft_foreign_fd_close(fd);
	else
		conn_begin(p, fd);
}

static void set_address(const struct weft_mport *p, struct sockaddr_un *un)
{
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(un->sun_path, p->path, strlen(p->path) + 1);
}

static void try_connect(struct weft_mport *p)
{
	struct sockaddr_un un;
	int fd;

	p->try_tsc = rte_rdtsc() + cycles(RETRY_MS * 1000);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		no_socket(p, "no socket can be made; " RAISE_FILES, errno);
		return;
	}
	set_address(p, &un);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un))) {
		if (errno == EACCES)
			snprintf(p->conn.why, sizeof(p->conn.why),
				 "this user may not connect to it: run both ends as one user, or "
				 "change the rights of the socket and its folder");
		close(fd);
		return;
	}
	if (!is_trusted(p, fd)) {
		/* The peer may have sent descriptors whose close() blocks. */
		weft_foreign_fd_close(fd);
		return;
	}
	conn_begin(p, fd);
}

static void conn_up(struct weft_mport *p)
{
	/* The edge is enough: nothing reads the descriptor, whose read could block. */
	if (watch(p, p->conn.rx.event, EPOLLIN | EPOLLET)) {
		conn_fail(p, "the eventfd can't be polled");
		return;
	}
	p->stats.connects++;
	weft_debug("memif socket %s: connected", p->path);
}

/* The end of a connection would unmap its rings, in which the owner may still read frames. */
static void look(struct weft_mport *p)
{
	bool up = is_up(p);

	if (p->held > 0)
		return;
	if (p->conn.fd >= 0) {
		if (weft_mconn_input(&p->conn))
			conn_lost(p, up);
		else if (!up && is_up(p))
			conn_up(p);
	}
	if (!weft_foreign_fd_has_room())
		return;
	if (p->conf.server)
		accept_one(p);
	else if (p->conn.fd < 0 && rte_rdtsc() >= p->try_tsc)
		try_connect(p);
}

static __rte_noinline void look_idle(struct weft_mport *p)
{
	uint64_t now = rte_rdtsc();

	if (now < p->look_tsc)
		return;
	p->look_tsc = now + cycles(IDLE_US);
	look(p);
}

static inline bool poll_sockets(struct weft_mport *p)
{
	p->polls++;
	if (likely(is_up(p))) {
		if (unlikely(p->polls % LOOK_EVERY == 0))
			look(p);
	} else if (p->polls % IDLE_EVERY == 0) {
		look_idle(p);
	}
	return is_up(p);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/*
 * Each byte of the ring is read once: the engine checks the copy. An invalid frame has no bytes.
 * @return entries of the frame, which begins at entry @p first with the buffer @p b
 */
static inline unsigned int copy_frame(const struct weft_mring *r, unsigned int first,
				      struct weft_mring_buf b, uint32_t room, struct rte_mbuf *m)
{
	uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *);
	unsigned int i = first + 1;
	uint32_t len = 0;
	bool good = true;

	for (;; b = weft_mring_frame(r, i++)) {
		good = good && b.at && b.len <= room - len;
		if (likely(good)) {
			memcpy(to + len, b.at, b.len);
			len += b.len;
		}
		if (likely(!b.more) || i >= r->ready)
			break;
	}
	m->pkt_len = good && !b.more ? len : 0;
	m->data_len = (uint16_t)m->pkt_len;
	return i - first;
}

/* @param num  frames of the burst that stay in the ring already */
static inline bool stays(const struct weft_mport *p, const struct weft_mring_buf *b, uint32_t num)
{
	return p->fp.rx_in_place && b->len >= IN_PLACE_MIN && b->len <= p->fp.frame_size &&
	       !b->more && num < WEFT_MPORT_HELD;
}

/* @p m gets a copy of the frame's first bytes, and @p rest is the others. */
static inline void leave_frame(const struct weft_mring_buf *b, struct rte_mbuf *m,
			       struct rte_mbuf *rest)
{
	memcpy(rte_pktmbuf_mtod(m, void *), b->at, IN_PLACE_HEAD);
	rest->buf_addr = b->at;
	rest->data_off = m->data_len = IN_PLACE_HEAD;
	rest->data_len = (uint16_t)(b->len - IN_PLACE_HEAD);
	m->pkt_len = b->len;
	m->nb_segs = 2;
	m->next = rest;
}

static uint16_t take_frames(struct weft_mport *p, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_mring *r = &p->conn.rx;
	unsigned int used = 0, in_place = 0;
	struct weft_mring_buf b;
	uint32_t bytes = 0;
	struct rte_mbuf *m;
	uint16_t got = 0;

	while (got < n && used < r->ready && bytes < BURST_BYTES) {
		m = rte_pktmbuf_alloc(p->fp.pool);
		if (unlikely(!m)) {
			p->stats.rx_no_buffer++;
			break;
		}
		b = weft_mring_frame(r, used);
		if (stays(p, &b, in_place)) {
			leave_frame(&b, m, &p->rest[in_place++]);
			used++;
		} else {
			used += copy_frame(r, used, b, p->fp.frame_size, m);
		}
		if (likely(m->pkt_len > 0)) {
			bytes += m->pkt_len;
			pkts[got++] = m;
		} else {
			p->stats.rx_invalid++;
			rte_pktmbuf_free(m);
		}
	}
	if (in_place > 0)
		p->held = used;
	else
		weft_mring_return(r, used);
	p->stats.rx_frames += got;
	return got;
}

static __rte_noinline void return_held(struct weft_mport *p)
{
	weft_mring_return(&p->conn.rx, p->held);
	p->held = 0;
}

static uint16_t memif_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_mport *p = weft_mport_of(fp);
	int ready;

	if (unlikely(p->held > 0))
		return_held(p);
	if (unlikely(!poll_sockets(p)))
		return 0;
	ready = weft_mring_poll(&p->conn.rx);
	if (likely(ready == 0))
		return 0;
	if (unlikely(ready < 0)) {
		conn_fail(p, "the peer's index of the receive ring is invalid");
		return 0;
	}
	return take_frames(p, pkts, n);
}

/* ---- sending -------------------------------------------------------------------------------- */

/* The pool belongs to one thread, so a reference that is not the last needs no atomic operation. */
static inline void drop_reference(struct rte_mbuf *m)
{
	struct rte_mbuf *next;
	uint16_t refs;

	for (; m; m = next) {
		next = m->next;
		refs = rte_mbuf_refcnt_read(m);
		if (likely(refs > 1))
			rte_mbuf_refcnt_set(m, (uint16_t)(refs - 1));
		else
			rte_pktmbuf_free_seg(m);
	}
}

static inline void copy_out(uint8_t *to, const struct rte_mbuf *m)
{
	for (; m; m = m->next) {
		memcpy(to, rte_pktmbuf_mtod(m, const void *), m->data_len);
		to += m->data_len;
	}
}

static void wake_peer(struct weft_mport *p)
{
	p->stats.wakes++;
	if (!weft_mwake_signal(&p->wake, p->conn.tx.event))
		weft_debug("memif socket %s: the peer can't be woken: %s", p->path,
			   strerror(errno));
}

static inline int room_for(struct weft_mring *r, uint16_t n)
{
	return r->ready >= n ? r->ready : weft_mring_poll(r);
}

static uint16_t memif_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_mport *p = weft_mport_of(fp);
	struct weft_mring *r = &p->conn.tx;
	struct weft_mring_buf b;
	uint16_t i, filled = 0;
	int room;

	/* An owner that only sends does not poll, and a dead peer's ring stays full. */
	if (unlikely(!poll_sockets(p)))
		return 0;
	room = room_for(r, n);
	if (unlikely(room < 0)) {
		if (p->held == 0)
			conn_fail(p, "the peer's index of the send ring is invalid");
		return 0;
	}
	for (i = 0; i < n && filled < room; i++) {
		b = weft_mring_room(r, filled);
		if (likely(b.at && pkts[i]->pkt_len <= b.len)) {
			copy_out(b.at, pkts[i]);
			weft_mring_fill(r, filled++, pkts[i]->pkt_len);
		} else {
			p->stats.tx_too_long++;
		}
		drop_reference(pkts[i]);
	}
	p->stats.tx_full += n - i;
	p->stats.tx_frames += filled;
	if (unlikely(filled == 0))
		return i;
	weft_mring_done(r, filled);
	if (unlikely(weft_mring_sleeps(r)))
		wake_peer(p);
	return i;
}

/* ---- sleeping ------------------------------------------------------------------------------- */

/* The set stays readable until its edges are taken. */
static void drain_events(const struct weft_mport *p)
{
	struct epoll_event ev[4];

	while (epoll_wait(p->epoll, ev, RTE_DIM(ev), 0) == RTE_DIM(ev))
		;
}

static int memif_wait_fd(struct weft_frame_port *fp)
{
	return weft_mport_of(fp)->epoll;
}

static int memif_arm(struct weft_frame_port *fp, uint64_t *within)
{
	struct weft_mport *p = weft_mport_of(fp);

	p->armed = false;
	look(p);
	if (!is_up(p)) {
		/* Messages of a peer wake the owner; without a server a client must try again. */
		if (p->conn.fd < 0 && !p->conf.server)
			*within = RTE_MIN(*within, RETRY_MS * UINT64_C(1000000));
		return 0;
	}
	if (weft_mring_arm(&p->conn.rx))
		return -EBUSY;
	p->armed = true;
	return 0;
}

static void memif_disarm(struct weft_frame_port *fp)
{
	struct weft_mport *p = weft_mport_of(fp);

	if (p->armed)
		weft_mring_disarm(&p->conn.rx);
	p->armed = false;
	drain_events(p);
	look(p);
}

/* ---- events, counters ----------------------------------------------------------------------- */

static bool memif_link_up(struct weft_frame_port *fp)
{
	struct weft_mport *p = weft_mport_of(fp);

	look(p);
	return is_up(p);
}

static void memif_link_text(struct weft_frame_port *fp, char *buf, size_t size)
{
	const struct weft_mport *p = weft_mport_of(fp);

	buf[0] = '\0';
	if (is_up(p))
		return;
	if (p->conn.why[0] != '\0')
		snprintf(buf, size, "memif socket %s: %s", p->path, p->conn.why);
	else if (p->conf.server)
		snprintf(buf, size,
			 "memif socket %s: no client has connected; start the other end with "
			 "role=client, the same path and the same id",
			 p->path);
	else
		snprintf(buf, size,
			 "memif socket %s: its server is not there; start the other end with "
			 "role=server, the same path and the same id",
			 p->path);
}

/* @return a free entry; 0 = none */
static uint16_t free_farewell(struct weft_mport *p)
{
	const unsigned int num = (1u << WEFT_MEMIF_LOG2_FAREWELLS) - 1;

	for (unsigned int i = 0; i < num; i++) {
		p->last_farewell = (uint16_t)(1 + p->last_farewell % num);
		/* relaxed: the owner's thread writes the table */
		if (atomic_load_explicit(&p->farewells[p->last_farewell].len,
					 memory_order_relaxed) == 0)
			return p->last_farewell;
	}
	return 0;
}

/* The table outlives connections: each new one gets a copy. */
static void memif_farewell(struct weft_frame_port *fp, uint16_t *slot, const uint8_t *frame,
			   uint32_t len)
{
	struct weft_mport *p = weft_mport_of(fp);

	if (!p->farewells || len > sizeof(p->farewells->frame))
		return;
	if (*slot == 0 && len > 0)
		*slot = free_farewell(p);
	if (*slot == 0)
		return;
	weft_memif_farewell_write(&p->farewells[*slot], frame, len);
	if (p->conn.farewells)
		weft_memif_farewell_write(&p->conn.farewells[*slot], frame, len);
	if (len == 0)
		*slot = 0;
}

static void memif_counters(struct weft_frame_port *fp, weft_frame_port_counter_cb cb, void *arg)
{
	const struct weft_memif_stats *s = &weft_mport_of(fp)->stats;

#define REPORT(field, name, help) cb(name, s->field, arg);
	WEFT_MEMIF_COUNTERS(REPORT)
#undef REPORT
}

static void memif_close(struct weft_frame_port *fp)
{
	struct weft_mport *p = weft_mport_of(fp);

	weft_mconn_end(&p->conn, "the port was closed");
	weft_mwake_close(&p->wake);
	if (p->listener >= 0) {
		unlink(p->path);
		weft_socket_close_public(p->listener);
	}
	if (p->epoll >= 0)
		close(p->epoll);
	if (p->claim >= 0)
		weft_socket_close_public(p->claim);
	weft_frame_pools_free(fp);
	free(p->farewells);
	free(fp->hosts);
	free(p);
}

static const struct weft_frame_port_ops memif_ops = {
	.rx_burst = memif_rx,
	.tx_burst = memif_tx,
	.link_up = memif_link_up,
	.link_text = memif_link_text,
	.wait_fd = memif_wait_fd,
	.arm = memif_arm,
	.disarm = memif_disarm,
	.farewell = memif_farewell,
	.counters = memif_counters,
	.close = memif_close,
};

/* ---- open ----------------------------------------------------------------------------------- */

static const char *role(const struct weft_mport *p)
{
	return p->conf.server ? "server" : "client";
}

static int claim_end(struct weft_mport *p, char *why, size_t why_len)
{
	struct weft_claim_owner owner = {0};
	char name[WEFT_CLAIM_NAME], text[128];

	weft_claim_memif_name(name, p->path, false, p->conf.server, p->conf.id);
	p->claim = weft_claim(name, &owner);
	if (p->claim >= 0)
		return 0;
	weft_claim_owner_text(&owner, text, sizeof(text));
	if (p->claim == -EADDRINUSE) {
		snprintf(why, why_len,
			 "memif socket %s: the %s's end of id=%u is in use by %s: give each "
			 "process its own socket, or end that process",
			 p->path, role(p), p->conf.id, text);
		return -EADDRINUSE;
	}
	if (p->claim == -EPERM)
		weft_warn("memif socket %s: %s claims the %s's end of id=%u, and is ignored: it is "
			  "neither root's nor this user's, or does not listen",
			  p->path, text, role(p), p->conf.id);
	return 0;
}

/* @return no process listens at the path: a killed server has left the file */
static bool is_dead(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)un, sizeof(*un)) &&
		    errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return dead;
}

static int listen_at(struct weft_mport *p, char *why, size_t why_len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc = -1;
	struct sockaddr_un un;

	set_address(p, &un);
	if (fd >= 0)
		rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
	if (rc && errno == EADDRINUSE && is_dead(&un) && unlink(p->path) == 0)
		rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
	if (rc == 0 && listen(fd, BACKLOG) == 0) {
		p->listener = fd;
		return watch(p, fd, EPOLLIN);
	}
	rc = -errno;
	if (fd >= 0)
		close(fd);
	snprintf(why, why_len,
		 "memif socket %s can't be made: %s; give a path in a folder that this user can "
		 "write to, and that no other server has",
		 p->path, strerror(-rc));
	return rc;
}

static int choose_frame(struct weft_mport *p, const struct weft_mport_opts *o, char *why,
			size_t why_len)
{
	uint32_t bsize = p->conf.bsize, l2 = RTE_ETHER_HDR_LEN + (o->vlan ? RTE_VLAN_HLEN : 0u);
	uint32_t size = RTE_MIN(bsize, JUMBO_FRAME);

	if (o->mtu != 0)
		size = o->mtu + l2;
	if (size > bsize) {
		snprintf(why, why_len,
			 "memif socket %s: mtu=%u does not fit a buffer of %u bytes: give a larger "
			 "bsize=, the same at both ends",
			 p->path, o->mtu, bsize);
		return -EINVAL;
	}
	if (o->frame_size != 0)
		size = RTE_MIN(size, o->frame_size);
	p->fp.frame_size = (uint16_t)RTE_MIN(size, WEFT_FRAME_SIZE_MAX);
	return 0;
}

static void fill_port(struct weft_mport *p, const struct weft_mport_opts *o)
{
	static const uint8_t none[6];
	struct weft_frame_port *fp = &p->fp;

	fp->ops = &memif_ops;
	snprintf(fp->name, sizeof(fp->name), "%.*s", (int)sizeof(fp->name) - 1,
		 o->name ? o->name : p->path);
	snprintf(fp->device, sizeof(fp->device), "memif %s of id=%u", role(p), p->conf.id);
	fp->flags = (o->network ? 0 : WEFT_FRAME_PORT_MEMORY) | WEFT_FRAME_PORT_RX_OWN |
		    WEFT_FRAME_PORT_IN_PLACE | WEFT_FRAME_PORT_MULTISEG | WEFT_FRAME_PORT_MEASURE |
		    WEFT_FRAME_PORT_COPIES | (o->no_extbuf ? 0 : WEFT_FRAME_PORT_EXTBUF);
	if (memcmp(o->mac, none, sizeof(none)) == 0)
		rte_eth_random_addr(fp->mac);
	else
		memcpy(fp->mac, o->mac, sizeof(fp->mac));
	fp->socket = SOCKET_ID_ANY;
	fp->tx_depth = fp->rx_depth = (uint16_t)(1u << p->conf.log2_ring);
	fp->latency = LATENCY;
	fp->link = WEFT_LANE_LINK_PEER;
	for (unsigned int i = 0; i < WEFT_MPORT_HELD; i++)
		p->rest[i] = (struct rte_mbuf){.nb_segs = 1, .refcnt = 1, .buf_len = UINT16_MAX};
}

static int open_sockets(struct weft_mport *p, char *why, size_t why_len)
{
	int rc = claim_end(p, why, why_len);

	if (rc)
		return rc;
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0) {
		snprintf(why, why_len, "memif socket %s: %s", p->path, strerror(errno));
		return -errno;
	}
	p->conn.epoll = p->epoll;
	return p->conf.server ? listen_at(p, why, why_len) : 0;
}

/* The switch keeps a port for a process that has connected, even if it never polls. */
static void await_switch(struct weft_mport *p)
{
	for (unsigned int i = 0; i < SWITCH_MS && !is_up(p); i++) {
		look(p);
		if (!is_up(p))
			usleep(1000);
	}
}

static int open_port(struct weft_mport *p, const struct weft_mport_opts *o, char *why,
		     size_t why_len)
{
	struct weft_frame_pools pools = {
		.name = "memif", .frames = o->rx_bufs, .least = 63, .no_extbuf = o->no_extbuf};
	int rc = choose_frame(p, o, why, why_len);

	if (!rc)
		rc = open_sockets(p, why, why_len);
	if (rc)
		return rc;
	if (weft_frame_pools_make(&p->fp, &pools)) {
		snprintf(
			why, why_len,
			"memif socket %s: no memory for %u buffers of %u bytes (every lane has its "
			"own): give the EAL more (-m MB), or set WEFT_RX_BUFS lower",
			p->path, pools.frames, pools.room);
		return -ENOMEM;
	}
	fill_port(p, o);
	weft_mring_take_part();
	if (p->vouched)
		await_switch(p);
	return 0;
}

int weft_mport_open(const char *path, const struct weft_mport_opts *o,
		    struct weft_frame_port **port, char *why, size_t why_len)
{
	struct weft_mport *p;
	int rc;

	if (strlen(path) >= sizeof(p->path)) {
		snprintf(why, why_len, "memif socket %s: a path has %zu bytes at most", path,
			 sizeof(p->path) - 1);
		return -EINVAL;
	}
	p = aligned_alloc(alignof(struct weft_mport), sizeof(*p)); /* mbufs fill cache lines */
	if (!p) {
		snprintf(why, why_len, "memif socket %s: out of memory", path);
		return -ENOMEM;
	}
	memset(p, 0, sizeof(*p));
	memcpy(p->path, path, strlen(path) + 1);
	p->listener = p->claim = p->epoll = -1;
	weft_mwake_open(&p->wake);
	p->conf = (struct weft_mconn_conf){
		.server = o->server,
		.id = o->id,
		.bsize = o->bsize != 0 ? RTE_MAX(o->bsize, BSIZE_MIN) : BSIZE,
		.log2_ring = o->log2_ring != 0 ? o->log2_ring : LOG2_RING,
	};
	memcpy(p->conf.secret, o->secret, sizeof(p->conf.secret));
	p->vouched = o->vouched;
	/* Without memory for the table, peers notice the end of this process by their timeout. */
	if (o->farewells)
		p->farewells = calloc(1u << WEFT_MEMIF_LOG2_FAREWELLS, sizeof(*p->farewells));
	p->conf.farewells = p->farewells;
	weft_mconn_init(&p->conn, &p->conf, -1);
	rc = open_port(p, o, why, why_len);
	if (rc) {
		memif_close(&p->fp);
		return rc;
	}
	*port = &p->fp;
	return 0;
}
