/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/memif/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_config.h>

/* ---- memif's protocol ------------------------------------------------------------------------ */

#define TYPE_ADD_REGION 4
#define TYPE_ADD_RING 5
#define RING_C2S 1u
#define RING_COOKIE 0x3E31F20u
#define RING_MASK_INT 1u
#define RING_LOG2_MAX 14u
/* Rings are at the beginning of their region. */
#define OFFSET_MAX (64u << 20)

struct __rte_packed add_region {
	uint16_t type;
	uint16_t index;
	uint64_t size;
};

struct __rte_packed add_ring {
	uint16_t type;
	uint16_t flags;
	uint16_t index;
	uint16_t region;
	uint32_t offset;
	uint8_t log2_size;
};

/* In shared memory. */
struct ring {
	uint32_t cookie;
	_Atomic uint16_t flags;
	_Atomic uint16_t head;
	uint8_t line[RTE_CACHE_LINE_SIZE - 8];
	_Atomic uint16_t tail;
};

static_assert(sizeof(struct add_region) == 12 && sizeof(struct add_ring) == 13 &&
		      offsetof(struct ring, head) == 6 &&
		      offsetof(struct ring, tail) == RTE_CACHE_LINE_SIZE,
	      "memif's layout");

struct weft_memif_ring {
	bool server;
	int epoll;
	int poke;   /* own eventfd, in epoll */
	int region; /* memory of region 0; -1 = not known */
	int event;  /* eventfd that the peer signals; -1 = not known */
	uint16_t size;
	void *map;
	size_t map_len;
	struct ring *_Atomic ring; /* NULL = not connected */
};

/* ---- barriers ------------------------------------------------------------------------------- */

static int membarrier(int cmd)
{
	return (int)syscall(SYS_membarrier, cmd, 0, 0);
}

/*
 * Registers this process for the barriers of barrier_everywhere(): its accesses are ordered with
 * those of the process that calls it, and the reverse.
 */
static void take_part(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

static void barrier_everywhere(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/*
 * ---- finding the ring -------------------------------------------------------------------------
 */

static int watch_fd(const struct weft_memif_ring *r, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &ev);
}

struct weft_memif_ring *weft_memif_ring_make(bool server)
{
	struct weft_memif_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->server = server;
	r->region = r->event = -1;
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	r->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->epoll < 0 || r->poke < 0 || watch_fd(r, r->poke)) {
		weft_memif_ring_free(r);
		return NULL;
	}
	take_part();
	return r;
}

void weft_memif_ring_forget(struct weft_memif_ring *r)
{
	atomic_store_explicit(&r->ring, NULL, memory_order_relaxed);
	if (r->map)
		munmap(r->map, r->map_len);
	r->map = NULL;
	if (r->region >= 0)
		close(r->region);
	r->region = -1;
	/*
	 * The peer has the eventfd open, too, so closing it here does not remove it from the set.
	 */
	if (r->event >= 0) {
		epoll_ctl(r->epoll, EPOLL_CTL_DEL, r->event, NULL);
		close(r->event);
	}
	r->event = -1;
}

void weft_memif_ring_free(struct weft_memif_ring *r)
{
	if (!r)
		return;
	weft_memif_ring_forget(r);
	if (r->poke >= 0)
		close(r->poke);
	if (r->epoll >= 0)
		close(r->epoll);
	free(r);
}

static void learn_region(struct weft_memif_ring *r, const struct add_region *m, int fd)
{
	if (m->index != 0 || r->region >= 0)
		return;
	r->region = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* No value from the peer is trusted: the kernel reports the size of its memory. */
static bool map_ring(struct weft_memif_ring *r, const struct add_ring *m)
{
	size_t len = (size_t)m->offset + sizeof(struct ring);
	struct ring *ring;
	struct stat st;

	if (m->region != 0 || r->region < 0 || m->log2_size > RING_LOG2_MAX ||
	    m->offset > OFFSET_MAX || m->offset % sizeof(uint32_t) != 0 || fstat(r->region, &st) ||
	    (uint64_t)st.st_size < len)
		return false;
	r->map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, r->region, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return false;
	}
	r->map_len = len;
	r->size = (uint16_t)(1u << m->log2_size);
	ring = (struct ring *)((char *)r->map + m->offset);
	return ring->cookie == RING_COOKIE;
}

static void learn_ring(struct weft_memif_ring *r, const struct add_ring *m, int fd)
{
	int flags;

	/* Only rings that this end receives from: a server those of its client. */
	if (m->index != 0 || (bool)(m->flags & RING_C2S) != r->server || r->map)
		return;
	if (!map_ring(r, m))
		return;
	r->event = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (r->event < 0)
		return;
	/* The descriptor will be read until it is empty. */
	flags = fcntl(r->event, F_GETFL);
	if (flags < 0 || fcntl(r->event, F_SETFL, flags | O_NONBLOCK) || watch_fd(r, r->event)) {
		close(r->event);
		r->event = -1;
		return;
	}
	/* Release: a thread that sees the ring sees the other fields. */
	atomic_store_explicit(&r->ring, (struct ring *)((char *)r->map + m->offset),
			      memory_order_release);
	weft_memif_ring_poke(r);
}

void weft_memif_ring_message(struct weft_memif_ring *r, const void *data, size_t len,
			     const int *fds, size_t num)
{
	struct add_region region;
	struct add_ring ring;
	uint16_t type;

	if (!r || num == 0 || len < sizeof(ring))
		return;
	memcpy(&type, data, sizeof(type));
	if (type == TYPE_ADD_REGION) {
		memcpy(&region, data, sizeof(region));
		learn_region(r, &region, fds[0]);
	} else if (type == TYPE_ADD_RING) {
		memcpy(&ring, data, sizeof(ring));
		learn_ring(r, &ring, fds[0]);
	}
}

/* ---- sleeping ------------------------------------------------------------------------------- */

void weft_memif_ring_poke(struct weft_memif_ring *r)
{
	uint64_t one = 1;
	ssize_t n;

	if (!r)
		return;
	n = write(r->poke, &one, sizeof(one));
	RTE_SET_USED(n); /* full = readable */
}

static void empty_event(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	RTE_SET_USED(n);
}

int weft_memif_ring_fd(const struct weft_memif_ring *r)
{
	return r->epoll;
}

/*
 * On a client's ring, the server takes the frames between tail, which it moves, and head. A client
 * returns each slot as soon as it has taken its frame, so head is one round ahead of the frames
 * that it has taken.
 */
static bool has_frames(const struct weft_memif_ring *r, struct ring *ring)
{
	uint16_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint16_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	return r->server ? head != tail : (uint16_t)(tail + r->size) != head;
}

int weft_memif_ring_arm(struct weft_memif_ring *r)
{
	struct ring *ring = atomic_load_explicit(&r->ring, memory_order_acquire);

	if (!ring)
		return -ENOTCONN;
	atomic_fetch_and_explicit(&ring->flags, (uint16_t)~RING_MASK_INT, memory_order_seq_cst);
	barrier_everywhere();
	if (!has_frames(r, ring))
		return 0;
	weft_memif_ring_disarm(r);
	return -EBUSY;
}

void weft_memif_ring_awake(struct weft_memif_ring *r)
{
	empty_event(r->poke);
}

void weft_memif_ring_disarm(struct weft_memif_ring *r)
{
	struct ring *ring = atomic_load_explicit(&r->ring, memory_order_acquire);

	weft_memif_ring_awake(r);
	if (!ring)
		return;
	/* With the flag cleared, the PMD would read the eventfd in every poll. */
	atomic_fetch_or_explicit(&ring->flags, RING_MASK_INT, memory_order_relaxed);
	empty_event(r->event);
}
