/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <semaphore.h>
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

#include <rte_alarm.h>
#include <rte_common.h>
#include <rte_config.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_log.h>

#include "port/memif/memif.h"
#include "port/memif/relay.h"

/* ---- memif's protocol ----------------------------------------------------------------------- */

#define TYPE_ADD_REGION 4
#define TYPE_ADD_RING 5
#define RING_C2S 1u
#define RING_COOKIE 0x3E31F20u
#define RING_MASK_INT 1u
#define RING_LOG2_MAX 14u
/* Largest offset of a ring in its region, in bytes: rings are at the beginning. */
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
	int poke;   /* own eventfd in the set, which wakes the owner */
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

/* A peer's barrier_everywhere() then orders the accesses of this process, too. */
static void take_part(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

static void barrier_everywhere(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* ---- finding the ring ----------------------------------------------------------------------- */

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
	/* The peer has the eventfd open, too, so close() does not remove it from the set. */
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

	/* Use only ring 0 from which this end receives: on a server the client's. */
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

/* Servers take frames from tail to head. A client returns slots at once: head is a round ahead. */
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

/* ---- the connection ------------------------------------------------------------------------- */

/*
 * The PMD makes and ends connections in the EAL's interrupt thread, and a start or stop in another
 * thread would race with it. So every start and stop runs in that thread, as an alarm. When the
 * peer has left, the thread that polls the port stops using the rings, and only then has them
 * removed.
 *
 * A client's start fails while its server does not run, a server that is not ready rejects it, and
 * a lost connection stays lost. In each case the port is started again, at most every 100 ms. A
 * handshake has no time limit, since a stopped server may continue later.
 */

#define RETRY_MS 100

/* ---- in the interrupt thread ---------------------------------------------------------------- */

static bool has_link(const struct weft_memif *mi)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(mi->port_id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static int start_quietly(struct weft_memif *mi)
{
	/* A client logs an error for each try while its server does not run yet. */
	int type = mi->name.server ? -1 : rte_log_register("pmd.net.memif");
	int level = type >= 0 ? rte_log_get_level((uint32_t)type) : -1;
	int rc;

	if (level >= 0)
		rte_log_set_level((uint32_t)type, RTE_LOG_EMERG);
	rc = rte_eth_dev_start(mi->port_id);
	if (level >= 0)
		rte_log_set_level((uint32_t)type, (uint32_t)level);
	return rc;
}

static void stop_now(struct weft_memif *mi)
{
	if (mi->running)
		rte_eth_dev_stop(mi->port_id);
	mi->running = false;
	if (mi->relay)
		weft_memif_relay_stopped(mi->relay);
}

static void do_restart(void *arg)
{
	struct weft_memif *mi = arg;

	stop_now(mi);
	mi->running = start_quietly(mi) == 0;
	if (mi->running && mi->relay && weft_memif_relay_started(mi->relay))
		stop_now(mi);
	/* release: the owner uses the queues that the start has made */
	atomic_store_explicit(mi->started, mi->running, memory_order_release);
	__atomic_store_n(&mi->busy, false, __ATOMIC_RELEASE);
}

static void do_open(void *arg)
{
	struct weft_memif *mi = arg;

	/* Only the PMD can find out which port of a shared listening socket a client requests. */
	if ((!mi->name.server || mi->alone) &&
	    weft_memif_relay_open(mi->port_id, &mi->name, &mi->relay))
		mi->relay = NULL;
	do_restart(mi);
}

static void do_close(void *arg)
{
	struct weft_memif *mi = arg;

	stop_now(mi);
	weft_memif_relay_close(mi->relay);
	mi->relay = NULL;
}

struct wait {
	struct weft_memif *mi;
	void (*fn)(void *arg);
	sem_t done;
};

static void run_and_post(void *arg)
{
	struct wait *w = arg;

	w->fn(w->mi);
	sem_post(&w->done);
}

static void run_and_wait(struct weft_memif *mi, void (*fn)(void *arg))
{
	struct wait w = {.mi = mi, .fn = fn};

	sem_init(&w.done, 0, 0);
	if (rte_eal_alarm_set(1, run_and_post, &w))
		fn(mi);
	else
		while (sem_wait(&w.done) && errno == EINTR)
			;
	sem_destroy(&w.done);
}

static void run_soon(struct weft_memif *mi, void (*fn)(void *arg))
{
	__atomic_store_n(&mi->busy, true, __ATOMIC_RELEASE);
	if (rte_eal_alarm_set(1, fn, mi))
		fn(mi);
}

/* ---- from the port's owner ------------------------------------------------------------------ */

static bool is_started(const struct weft_memif *mi)
{
	/* acquire: with the release of do_restart() */
	return atomic_load_explicit(mi->started, memory_order_acquire);
}

static void set_stopped(struct weft_memif *mi)
{
	/* relaxed: alarms order it before the stop */
	atomic_store_explicit(mi->started, false, memory_order_relaxed);
}

void weft_memif_start(struct weft_memif *mi)
{
	run_and_wait(mi, do_open);
	mi->next_tsc = rte_rdtsc() + rte_get_tsc_hz() * RETRY_MS / 1000;
}

void weft_memif_stop(struct weft_memif *mi)
{
	set_stopped(mi);
	/* Alarms run one after the other: those that were scheduled before are done then. */
	run_and_wait(mi, do_close);
}

static bool has_left(const struct weft_memif *mi)
{
	return mi->relay && weft_memif_relay_left(mi->relay);
}

void weft_memif_look(struct weft_memif *mi)
{
	uint64_t now;

	if (__atomic_load_n(&mi->busy, __ATOMIC_ACQUIRE) || (is_started(mi) && !has_left(mi)))
		return;
	now = rte_rdtsc();
	if (now < mi->next_tsc)
		return;
	mi->next_tsc = now + rte_get_tsc_hz() * RETRY_MS / 1000;
	set_stopped(mi);
	run_soon(mi, do_restart);
}

bool weft_memif_link_up(struct weft_memif *mi)
{
	weft_memif_look(mi);
	return is_started(mi) && has_link(mi) && !has_left(mi);
}

/* ---- an owner that sleeps ------------------------------------------------------------------- */

#define LOOK_NS 10000000u

static struct weft_memif_ring *ring_of(const struct weft_memif *mi)
{
	if (!mi->relay || mi->no_wait)
		return NULL;
	return weft_memif_relay_ring(mi->relay);
}

int weft_memif_wait_fd(struct weft_memif *mi)
{
	struct weft_memif_ring *r = ring_of(mi);

	return r ? weft_memif_ring_fd(r) : -ENOTSUP;
}

int weft_memif_arm(struct weft_memif *mi, uint64_t *within)
{
	struct weft_memif_ring *r = ring_of(mi);
	int rc;

	if (!r)
		return 0;
	mi->armed = false;
	rc = weft_memif_link_up(mi) ? weft_memif_ring_arm(r) : -ENOTCONN;
	if (rc == -EBUSY)
		return rc;
	mi->armed = rc == 0;
	/* A new connection wakes the owner, but a client retries only when it is checked. */
	if (rc)
		*within = RTE_MIN(*within, (uint64_t)LOOK_NS);
	return 0;
}

void weft_memif_disarm(struct weft_memif *mi)
{
	struct weft_memif_ring *r = ring_of(mi);

	if (r && mi->armed)
		weft_memif_ring_disarm(r);
	else if (r)
		weft_memif_ring_awake(r);
	mi->armed = false;
	weft_memif_look(mi);
}
