/* SPDX-License-Identifier: BSD-3-Clause */

#include "memif/control.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"

#define PAGE 4096u

/* ---- begin and end -------------------------------------------------------------------------- */

void weft_mconn_init(struct weft_mconn *c, const struct weft_mconn_conf *conf, int epoll)
{
	*c = (struct weft_mconn){
		.conf = conf,
		.epoll = epoll,
		.fd = -1,
		.file = -1,
		.rx = {.event = -1},
		.tx = {.event = -1},
	};
}

static int send_message(const struct weft_mconn *c, const struct weft_memif_message *m, int fd)
{
	ssize_t n = weft_socket_send_fds(c->fd, m, sizeof(*m), &fd, fd >= 0);

	return n == (ssize_t)sizeof(*m) ? 0 : n < 0 ? (int)n : -EPROTO;
}

static void forget_memory(struct weft_mconn *c)
{
	/* The peer has the eventfd open, too, so a close() would not remove it from the set. */
	if (c->rx.event >= 0)
		epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->rx.event, NULL);
	/* A server's eventfds are files of the client's choice: their close() may block. */
	if (c->rx.event >= 0)
		weft_foreign_fd_close(c->rx.event);
	if (c->tx.event >= 0)
		weft_foreign_fd_close(c->tx.event);
	if (c->file >= 0)
		close(c->file);
	while (c->num_regions > 0) {
		c->num_regions--;
		weft_foreign_unmap(c->region[c->num_regions].at, c->region[c->num_regions].len);
	}
}

void weft_mconn_end(struct weft_mconn *c, const char *why)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_DISCONNECT};
	char reason[sizeof(c->why)] = "";

	if (c->fd < 0)
		return;
	if (why) {
		snprintf(reason, sizeof(reason), "%s", why);
		snprintf(m.disconnect.text, sizeof(m.disconnect.text), "%s", why);
		send_message(c, &m, -1);
	}
	forget_memory(c);
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	/* A child of this process may have the socket open, too. */
	shutdown(c->fd, SHUT_RDWR);
	weft_foreign_fd_close(c->fd);
	weft_mconn_init(c, c->conf, c->epoll);
	memcpy(c->why, reason, sizeof(reason));
}

static int refuse(struct weft_mconn *c, const char *why)
{
	weft_mconn_end(c, why);
	return -EPROTO;
}

int weft_mconn_start(struct weft_mconn *c, int fd)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_HELLO};

	c->fd = fd;
	c->why[0] = '\0';
	if (!c->conf->server) {
		c->state = WEFT_MCONN_HELLO;
		weft_socket_refuse_fds(fd);
		return 0;
	}
	c->state = WEFT_MCONN_INIT;
	m.hello = (struct weft_memif_hello){
		.name = "weft",
		.min_version = WEFT_MEMIF_VERSION,
		.max_version = WEFT_MEMIF_VERSION,
		.max_region = WEFT_MRING_REGIONS - 1,
		.max_log2_ring = c->conf->log2_ring,
	};
	return send_message(c, &m, -1) ? refuse(c, "the peer takes no HELLO") : 0;
}

/* ---- client --------------------------------------------------------------------------------- */

enum { STEP_INIT, STEP_REGION, STEP_C2S, STEP_S2C, STEP_FAREWELLS, STEP_CONNECT };

#define FAREWELLS (1u << WEFT_MEMIF_LOG2_FAREWELLS)

static size_t round_up(size_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

void weft_memif_farewell_write(struct weft_memif_farewell *f, const uint8_t *frame, uint32_t len)
{
	/* The process may be killed at any moment, so `len` is 0 while the frame is incomplete. */
	atomic_store_explicit(&f->len, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	if (len > 0)
		memcpy(f->frame, frame, len);
	atomic_store_explicit(&f->len, len, memory_order_release);
}

static void copy_farewells(struct weft_mconn *c, uint8_t *table)
{
	const struct weft_memif_farewell *from = c->conf->farewells;

	c->farewells = (struct weft_memif_farewell *)table;
	/* relaxed: this thread has written them */
	for (unsigned int i = 0; i < FAREWELLS; i++)
		weft_memif_farewell_write(&c->farewells[i], from[i].frame,
					  atomic_load_explicit(&from[i].len, memory_order_relaxed));
}

/* The region has rings, their buffers, farewells: its maximum keeps offsets in 32 bits. */
static int make_memory(struct weft_mconn *c, unsigned int log2)
{
	size_t ring = weft_mring_bytes(log2), bufs = round_up(2 * ring);
	size_t each = ((size_t)1 << log2) * c->conf->bsize, table = round_up(bufs + 2 * each);
	size_t len = table;
	int fd;
	void *at;

	if (c->conf->farewells)
		len += round_up(FAREWELLS * sizeof(*c->farewells));

	if (len > WEFT_MCONN_REGIONS_MAX)
		return -E2BIG;
	fd = memfd_create("weft-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	c->file = fd;
	if (ftruncate(fd, (off_t)len) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -errno;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, len, MADV_DONTFORK);
	c->region[0] = (struct weft_mregion){at, len};
	c->num_regions = 1;
	weft_mring_make(&c->tx, c->region, 0, bufs, c->conf->bsize, log2, true);
	weft_mring_make(&c->rx, c->region, ring, bufs + each, c->conf->bsize, log2, false);
	if (c->conf->farewells)
		copy_farewells(c, c->region[0].at + table);
	c->tx.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->rx.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return c->tx.event < 0 || c->rx.event < 0 ? -errno : 0;
}

static uint8_t log2_of(const struct weft_mring *r)
{
	return (uint8_t)__builtin_ctz(r->size);
}

static int send_ring(struct weft_mconn *c, const struct weft_mring *r, uint16_t flags)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_ADD_RING};

	m.ring = (struct weft_memif_add_ring){
		.flags = flags,
		.offset = (uint32_t)((const uint8_t *)r->shm - c->region[0].at),
		.log2_size = log2_of(r),
	};
	return send_message(c, &m, r->event);
}

static int send_farewells(const struct weft_mconn *c)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_ADD_RING};

	m.ring = (struct weft_memif_add_ring){
		.flags = WEFT_MEMIF_RING_C2S,
		.index = WEFT_MEMIF_FAREWELLS,
		.offset = (uint32_t)((const uint8_t *)c->farewells - c->region[0].at),
		.log2_size = WEFT_MEMIF_LOG2_FAREWELLS,
	};
	return send_message(c, &m, -1);
}

static int send_init(const struct weft_mconn *c)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_INIT};

	m.init = (struct weft_memif_init){
		.version = WEFT_MEMIF_VERSION, .id = c->conf->id, .name = "weft"};
	memcpy(m.init.secret, c->conf->secret, sizeof(m.init.secret));
	return send_message(c, &m, -1);
}

static int send_region(struct weft_mconn *c)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_ADD_REGION};
	int rc;

	m.region = (struct weft_memif_add_region){.size = c->region[0].len};
	rc = send_message(c, &m, c->file);
	close(c->file);
	c->file = -1;
	return rc;
}

static int send_step(struct weft_mconn *c)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_CONNECT};

	switch (c->step) {
	case STEP_INIT:
		return send_init(c);
	case STEP_REGION:
		return send_region(c);
	case STEP_C2S:
		return send_ring(c, &c->tx, WEFT_MEMIF_RING_C2S);
	case STEP_S2C:
		return send_ring(c, &c->rx, 0);
	case STEP_FAREWELLS:
		return send_farewells(c);
	case STEP_CONNECT:
		return send_message(c, &m, -1);
	default:
		return -EPROTO;
	}
}

static int take_hello(struct weft_mconn *c, const struct weft_memif_hello *h)
{
	unsigned int log2 = c->conf->log2_ring;

	if (h->min_version > WEFT_MEMIF_VERSION || h->max_version < WEFT_MEMIF_VERSION)
		return refuse(c, "the server's version of memif is not 2.0");
	if (log2 > h->max_log2_ring)
		log2 = h->max_log2_ring;
	if (make_memory(c, log2))
		return refuse(c, "there is no memory for the rings");
	c->state = WEFT_MCONN_STEPS;
	return send_step(c) ? refuse(c, "the server takes no message") : 0;
}

static int client_take(struct weft_mconn *c, const struct weft_memif_message *m)
{
	if (m->type == WEFT_MEMIF_HELLO && c->state == WEFT_MCONN_HELLO)
		return take_hello(c, &m->hello);
	if (m->type == WEFT_MEMIF_ACK && c->state == WEFT_MCONN_STEPS && c->step < STEP_CONNECT) {
		c->step++;
		if (c->step == STEP_FAREWELLS && !c->farewells)
			c->step++;
		return send_step(c) ? refuse(c, "the server takes no message") : 0;
	}
	if (m->type == WEFT_MEMIF_CONNECTED && c->state == WEFT_MCONN_STEPS &&
	    c->step == STEP_CONNECT) {
		weft_mring_open(&c->tx);
		weft_mring_open(&c->rx);
		c->state = WEFT_MCONN_UP;
		return 0;
	}
	return refuse(c, "a message of the server does not fit the state");
}

/* ---- server --------------------------------------------------------------------------------- */

static int acknowledge(struct weft_mconn *c)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_ACK};

	return send_message(c, &m, -1) ? refuse(c, "the client takes no message") : 0;
}

static int take_init(struct weft_mconn *c, const struct weft_memif_init *i)
{
	if (i->version != WEFT_MEMIF_VERSION || i->mode != 0)
		return refuse(c, "this server has memif 2.0 with Ethernet frames");
	if (i->id != c->conf->id)
		return refuse(c, "this server has another id");
	if (!weft_memif_same_secret(i->secret, c->conf->secret))
		return refuse(c, "the secret is wrong");
	c->state = WEFT_MCONN_RINGS;
	return acknowledge(c);
}

/*
 * A file that could shrink would end this process with SIGBUS. Only a memfd has seals, and they are
 * checked first: fstat() of a file of FUSE would wait for its owner.
 */
static bool is_sealed_memory(int fd, uint64_t size)
{
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == TMPFS_MAGIC && fstat(fd, &st) == 0 && (uint64_t)st.st_size >= size;
}

static size_t bytes_of_regions(const struct weft_mconn *c)
{
	size_t bytes = 0;

	for (unsigned int i = 0; i < c->num_regions; i++)
		bytes += c->region[i].len;
	return bytes;
}

static int take_region(struct weft_mconn *c, const struct weft_memif_add_region *m, int fd)
{
	void *at;

	if (m->index != c->num_regions || m->index >= WEFT_MRING_REGIONS || c->rx.shm || c->tx.shm)
		return refuse(c, "regions are numbered, and precede the rings");
	if (m->size == 0 || m->size > WEFT_MCONN_REGIONS_MAX - bytes_of_regions(c))
		return refuse(c, "the regions are too large");
	if (!is_sealed_memory(fd, m->size))
		return refuse(c, "the region is no memfd that is sealed against shrinking");
	at = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return refuse(c, "the region can't be mapped");
	madvise(at, m->size, MADV_DONTFORK);
	c->region[c->num_regions++] = (struct weft_mregion){at, m->size};
	return acknowledge(c);
}

static int take_ring(struct weft_mconn *c, const struct weft_memif_add_ring *m, int *fd)
{
	bool sends = m->flags & WEFT_MEMIF_RING_C2S;
	struct weft_mring *r = sends ? &c->rx : &c->tx;

	if (r->shm || m->index != 0)
		return refuse(c, "a connection has one ring for each direction");
	if (!weft_memif_is_eventfd(*fd) || fcntl(*fd, F_SETFL, O_NONBLOCK))
		return refuse(c, "the ring has no eventfd");
	if (m->log2_size > c->conf->log2_ring ||
	    weft_mring_attach(r, c->region, c->num_regions, m->region, m->offset, m->log2_size))
		return refuse(c, "the ring is malformed, or exceeds its region");
	r->event = *fd;
	*fd = -1;
	if (sends)
		weft_mring_disarm(r);
	return acknowledge(c);
}

static int take_connect(struct weft_mconn *c)
{
	struct weft_memif_message m = {.type = WEFT_MEMIF_CONNECTED};

	if (!c->rx.shm || !c->tx.shm)
		return refuse(c, "rings are missing");
	weft_socket_refuse_fds(c->fd);
	c->state = WEFT_MCONN_UP;
	return send_message(c, &m, -1) ? refuse(c, "the client takes no message") : 0;
}

static int server_take(struct weft_mconn *c, const struct weft_memif_message *m, int *fd)
{
	if (m->type == WEFT_MEMIF_INIT && c->state == WEFT_MCONN_INIT)
		return take_init(c, &m->init);
	if (c->state == WEFT_MCONN_RINGS && m->type == WEFT_MEMIF_ADD_REGION)
		return take_region(c, &m->region, *fd);
	if (c->state == WEFT_MCONN_RINGS && m->type == WEFT_MEMIF_ADD_RING)
		return take_ring(c, &m->ring, fd);
	if (c->state == WEFT_MCONN_RINGS && m->type == WEFT_MEMIF_CONNECT)
		return take_connect(c);
	return refuse(c, "a message of the client does not fit the state");
}

/* ---- input ---------------------------------------------------------------------------------- */

/* Keep the peer's text in c->why, without bytes that a terminal would interpret. */
static int take_disconnect(struct weft_mconn *c, const struct weft_memif_disconnect *d)
{
	char text[sizeof(d->text) + 1] = "";
	unsigned int i;

	for (i = 0; i < sizeof(d->text) && d->text[i] != '\0'; i++)
		text[i] = (char)(d->text[i] >= ' ' && d->text[i] <= '~' ? d->text[i] : '?');
	text[i] = '\0';
	weft_mconn_end(c, NULL);
	snprintf(c->why, sizeof(c->why), "the peer has ended the connection: %s", text);
	return -ECONNRESET;
}

/* @param fd  passed with the message; -1 after the connection has taken it */
static int take_message(struct weft_mconn *c, const struct weft_memif_message *m, ssize_t n,
			int *fd)
{
	if (n == 0 || n == -ECONNRESET) {
		weft_mconn_end(c, NULL);
		snprintf(c->why, sizeof(c->why), "the peer has ended the connection");
		return -ECONNRESET;
	}
	if (n != (ssize_t)sizeof(*m))
		return refuse(c, "a message is malformed");
	if (m->type == WEFT_MEMIF_DISCONNECT)
		return take_disconnect(c, &m->disconnect);
	return c->conf->server ? server_take(c, m, fd) : client_take(c, m);
}

int weft_mconn_input(struct weft_mconn *c)
{
	struct weft_memif_message m;
	int fd, rc = 0;
	ssize_t n;

	/* A peer may pass descriptors whose close() blocks: has_room() limits their number. */
	while (rc == 0 && (c->state == WEFT_MCONN_UP || weft_foreign_fd_has_room())) {
		n = weft_foreign_fd_recv(c->fd, &m, sizeof(m), &fd, 1);
		if (n == -EAGAIN)
			break;
		rc = take_message(c, &m, n, &fd);
		if (fd >= 0)
			weft_foreign_fd_close(fd);
	}
	return rc;
}

/* ------------------------------------------------------------------ signals of an eventfd */

#define REPORTS 64 /* most reports of ended operations that one call takes */

void weft_mwake_open(struct weft_mwake *w)
{
	*w = (struct weft_mwake){.null = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	if (w->null >= 0 && syscall(SYS_io_setup, 1, &w->aio))
		w->aio = 0;
}

void weft_mwake_close(struct weft_mwake *w)
{
	if (w->aio)
		syscall(SYS_io_destroy, w->aio);
	if (w->null >= 0)
		close(w->null);
	*w = (struct weft_mwake){.null = -1};
}

/* write() may block if the peer fills the counter after poll(). A full counter is a signal, too. */
static bool write_if_free(int event)
{
	struct pollfd p = {.fd = event, .events = POLLOUT};
	uint64_t one = 1;

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return true;
	return write(event, &one, sizeof(one)) == (ssize_t)sizeof(one) || errno == EAGAIN;
}

bool weft_mwake_signal(struct weft_mwake *w, int event)
{
	struct iocb op = {.aio_lio_opcode = IOCB_CMD_PWRITE,
			  .aio_fildes = (uint32_t)w->null,
			  .aio_flags = IOCB_FLAG_RESFD,
			  .aio_resfd = (uint32_t)event};
	struct iocb *ops[] = {&op};
	struct io_event reports[REPORTS];

	if (!w->aio)
		return write_if_free(event);
	if (syscall(SYS_io_submit, w->aio, 1, ops) == 1)
		return true;
	if (errno != EAGAIN)
		return false;
	/* Reports of ended operations use up the room for operations. */
	syscall(SYS_io_getevents, w->aio, 0, REPORTS, reports, NULL);
	return syscall(SYS_io_submit, w->aio, 1, ops) == 1;
}

/* ------------------------------------------------------------------ rings */

static struct weft_mring_shm *shm_at(const struct weft_mregion *region, size_t offset)
{
	return (struct weft_mring_shm *)(region->at + offset);
}

static void set_size(struct weft_mring *r, unsigned int log2)
{
	r->size = (uint16_t)(1u << log2);
	r->mask = (uint16_t)(r->size - 1u);
}

/*
 * The client counts the indices of its rings from 0. On C2S all entries are the client's at
 * first: it may fill up to one round beyond tail. On S2C it hands all entries over at first, so its
 * head is one round ahead of the frames that it has taken.
 */
void weft_mring_make(struct weft_mring *r, const struct weft_mregion *region, size_t offset,
		     size_t bufs, uint32_t bsize, unsigned int log2, bool sends)
{
	struct weft_mring_shm *shm = shm_at(region, offset);
	struct weft_mring_desc *d;

	*r = (struct weft_mring){
		.shm = shm,
		.peer = &shm->tail,
		.own = &shm->head,
		.bufs = region->at + bufs,
		.bsize = bsize,
		.event = -1,
	};
	set_size(r, log2);
	r->add_peer = sends ? r->size : 0;
	r->add_own = sends ? 0 : r->size;
	/* relaxed: the control socket passes the ring on */
	for (unsigned int i = 0; i < r->size; i++) {
		d = &shm->desc[i];
		atomic_init(&d->region, 0);
		atomic_init(&d->offset, (uint32_t)(bufs + (size_t)i * bsize));
		atomic_init(&d->length, bsize);
	}
	atomic_store_explicit(&shm->flags, sends ? 0 : WEFT_MRING_MASK_INT, memory_order_relaxed);
	atomic_store_explicit(&shm->cookie, WEFT_MRING_COOKIE, memory_order_relaxed);
}

void weft_mring_open(struct weft_mring *r)
{
	r->next = r->ready = 0;
	weft_mring_done(r, 0);
}

int weft_mring_attach(struct weft_mring *r, const struct weft_mregion *regions,
		      unsigned int num_regions, unsigned int region, uint64_t offset,
		      unsigned int log2)
{
	struct weft_mring_shm *shm;

	if (log2 > WEFT_MRING_LOG2_MAX || offset % 8 != 0 || region >= num_regions ||
	    offset > regions[region].len || weft_mring_bytes(log2) > regions[region].len - offset)
		return -EINVAL;
	shm = shm_at(&regions[region], offset);
	if (atomic_load_explicit(&shm->cookie, memory_order_relaxed) != WEFT_MRING_COOKIE)
		return -EINVAL;
	*r = (struct weft_mring){
		.shm = shm,
		.peer = &shm->head,
		.own = &shm->tail,
		.regions = regions,
		.num_regions = num_regions,
		.event = -1,
	};
	set_size(r, log2);
	/* relaxed: CONNECTED orders it for the client */
	atomic_store_explicit(&shm->tail, 0, memory_order_relaxed);
	return 0;
}

/* ---- barriers ------------------------------------------------------------------------------- */

static void membarrier(int cmd)
{
	syscall(SYS_membarrier, cmd, 0, 0);
}

void weft_mring_take_part(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

/*
 * The peer's sender reads the flag right after it has moved its index, without a barrier in
 * between. membarrier() makes one there, if the peer's process called weft_mring_take_part().
 * Either the sender sees the flag cleared, or this end sees the index moved.
 */
int weft_mring_arm(struct weft_mring *r)
{
	atomic_fetch_and_explicit(&r->shm->flags, (uint16_t)~WEFT_MRING_MASK_INT,
				  memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	if (weft_mring_poll(r) == 0)
		return 0;
	weft_mring_disarm(r);
	return -EBUSY;
}

/* ------------------------------------------------------------------ control messages */

bool weft_memif_same_secret(const char a[WEFT_MEMIF_SECRET], const char b[WEFT_MEMIF_SECRET])
{
	unsigned int diff = 0;

	for (unsigned int i = 0; i < WEFT_MEMIF_SECRET; i++)
		diff |= (uint8_t)(a[i] ^ b[i]);
	return diff == 0;
}

bool weft_memif_is_eventfd(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd >= 0 && readlink(path, target, sizeof(target) - 1) > 0 &&
	       strcmp(target, "anon_inode:[eventfd]") == 0;
}
