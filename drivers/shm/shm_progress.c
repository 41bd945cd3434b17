/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An iface with up to SHM_HOT + SHM_COLD peers checks all rings each time. With more, it checks
 * SHM_HOT rings that had messages lately, and SHM_COLD of the others in rotation.
 */

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "shm/shm.h"
#include "shm/shm_conn.h"
#include "shm/shm_progress.h"
#include "shm/shm_transfer.h"

/* ------------------------------------------------------------------ waiting without fences */

/*
 * A receiver that will sleep sets a word of each ring, then checks the rings once more. A sender
 * writes a record, then checks that word, and wakes the receiver by a byte over the connection's
 * socket. If both fence in between, at least one of them sees the store of the other. A fence would
 * double the cost of a send, so the receiver makes it for both, by membarrier().
 */

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* ------------------------------------------------------------------ registration */

/*
 * In a process of several threads, the registration for membarrier() waits until each CPU has
 * switched tasks once: 6 to 18 ms, for which MPI_Init() would wait. So a thread registers. Until
 * then each send fences, which is correct at any time and costs some ns.
 */
static void *register_process(void *arg)
{
	struct shm_iface *s = arg;

	if (membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0)
		/* Release: wait_look() of the owner comes after the registration. */
		atomic_store_explicit(&s->registration_done, true, memory_order_release);
	return NULL;
}

static bool is_supported(void)
{
	const long needed =
		MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	long commands = membarrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && (commands & needed) == needed;
}

/* Once the registration is done, sends fence only for peers that lack membarrier(). */
static void wait_look(struct shm_iface *s)
{
	struct shm_ep *lane_ep;

	/* Acquire: pairs with register_process(). */
	if (s->registered || !atomic_load_explicit(&s->registration_done, memory_order_acquire))
		return;
	s->registered = true;
	TAILQ_FOREACH(lane_ep, &s->up, entry)
		lane_ep->fences = lane_ep->peer_fences;
}

void shm_wait_init(struct shm_iface *s)
{
	atomic_init(&s->registration_done, false);
	s->fences = !is_supported();
	if (s->fences)
		return;
	/* In a process of one thread the registration does not wait. */
	if (!__libc_single_threaded &&
	    weft_thread_start("weft-barrier", register_process, s, NULL, &s->registrar) == 0)
		s->registers = getpid();
	else
		register_process(s);
	wait_look(s);
}

void shm_wait_exit(struct shm_iface *s)
{
	/* A child of fork() does not have its parent's thread. */
	if (s->registers != 0 && s->registers == getpid())
		pthread_join(s->registrar, NULL);
	s->registers = 0;
}

void shm_wait_up(struct shm_ep *lane_ep, bool peer_fences)
{
	const struct shm_iface *s = shm_iface(lane_ep->base.iface);

	lane_ep->peer_fences = peer_fences;
	lane_ep->fences = peer_fences || !s->registered;
}

/* ------------------------------------------------------------------ sleeping */

int shm_wait_fd(struct weft_lane_iface *base)
{
	return shm_iface(base)->epoll;
}

static bool has_news(struct shm_ep *lane_ep)
{
	const struct shm_rx *rx = &lane_ep->rx;
	uint64_t word =
		atomic_load_explicit((const _Atomic uint64_t *)rx->dir->lines[rx->head % SHM_LINES],
				     memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&lane_ep->tx.dir->ctl.head, memory_order_relaxed);

	if (((uint32_t)(word >> 32) == rx->head + 1 && word & SHM_F_VALID) || lane_ep->ended ||
	    lane_ep->tx.broken)
		return true;
	return (lane_ep->num_comps > 0 || lane_ep->starved) && head != lane_ep->tx.head;
}

int shm_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct shm_iface *s = shm_iface(base);
	struct shm_ep *lane_ep;
	uint32_t what;

	if (!LIST_EMPTY(&s->busy))
		return -EBUSY;
	TAILQ_FOREACH(lane_ep, &s->up, entry) {
		what = SHM_WAKE_RECORD;
		if (lane_ep->num_comps > 0 || lane_ep->starved)
			what |= SHM_WAKE_HEAD;
		atomic_store_explicit(&lane_ep->rx.dir->ctl.sleeping, what, memory_order_relaxed);
	}
	/* Without membarrier(), peers fence themselves: our hello requests it. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!s->fences && !TAILQ_EMPTY(&s->up))
		membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	TAILQ_FOREACH(lane_ep, &s->up, entry) {
		if (!has_news(lane_ep))
			continue;
		shm_disarm(base);
		return -EBUSY;
	}
	if (s->num_making > 0 && now_ns + SHM_LOOK_NS < *due_ns)
		*due_ns = now_ns + SHM_LOOK_NS;
	return 0;
}

void shm_disarm(struct weft_lane_iface *base)
{
	struct shm_iface *s = shm_iface(base);
	struct shm_ep *lane_ep;

	TAILQ_FOREACH(lane_ep, &s->up, entry) {
		atomic_store_explicit(&lane_ep->rx.dir->ctl.sleeping, 0, memory_order_relaxed);
		lane_ep->starved = false;
	}
	s->look_at = 0; /* read the bytes that have woken us, and other events of the sockets */
}

#define EVENTS 16

/* ------------------------------------------------------------------ the table of rings */

int shm_table_reserve(struct shm_iface *s, uint32_t num)
{
	uint32_t room = s->table_room ? 2 * s->table_room : 64;
	struct shm_ep **table;

	if (num <= s->table_room)
		return 0;
	table = realloc(s->table, room * sizeof(struct shm_ep *));
	if (!table)
		return -ENOMEM;
	s->table = table;
	s->table_room = room;
	return 0;
}

void shm_table_add(struct shm_ep *lane_ep)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	lane_ep->slot = s->num_table;
	s->table[s->num_table++] = lane_ep;
}

static void table_put(struct shm_iface *s, uint32_t slot, struct shm_ep *lane_ep)
{
	s->table[slot] = lane_ep;
	lane_ep->slot = slot;
}

void shm_table_remove(struct shm_ep *lane_ep)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	table_put(s, lane_ep->slot, s->table[--s->num_table]);
}

static void make_hot(struct shm_iface *s, struct shm_ep *lane_ep)
{
	uint32_t hot = s->next_hot++ % SHM_HOT, slot = lane_ep->slot;

	table_put(s, slot, s->table[hot]);
	table_put(s, hot, lane_ep);
}

/* ------------------------------------------------------------------ messages */

static void deliver_short(struct shm_iface *s, struct shm_ep *lane_ep, const struct shm_record *r)
{
	/* Upper layers validate a copy, which the peer cannot change. */
	memcpy(s->copy, r->data, r->length);
	shm_rx_taken(&lane_ep->rx, r);
	s->recv(s->arg, &lane_ep->base, r->am_id, s->copy, r->length, NULL);
}

/* shm_rx_next() and deliver_short() of a record of one line. @return false: it is another one */
static inline bool deliver_line(struct shm_iface *s, struct shm_ep *lane_ep)
{
	struct shm_rx *rx = &lane_ep->rx;
	const uint64_t *line = rx->dir->lines[rx->head % SHM_LINES];
	/* Acquire: pairs with shm_tx_put_word(). */
	uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)line, memory_order_acquire);
	uint32_t length = word >> 16 & 0xffff;
	uint8_t am_id = (uint8_t)(word >> 8);

	if ((uint32_t)(word >> 32) != rx->head + 1 || (uint8_t)word != SHM_F_VALID ||
	    length > SHM_LINE - 8 || am_id >= WEFT_LANE_AM_MAX)
		return false;
	memcpy(s->copy, line + 1, SHM_LINE - 8);
	rx->head++;
	s->recv(s->arg, &lane_ep->base, am_id, s->copy, length, NULL);
	return true;
}

static bool deliver_chunk(struct shm_iface *s, struct shm_ep *lane_ep, const struct shm_record *r)
{
	void *buf = weft_mpool_get(&s->bufs);

	if (!buf)
		return false;
	memcpy(buf, r->data, r->length);
	shm_rx_taken(&lane_ep->rx, r);
	s->count.rx_chunks++;
	if (s->recv(s->arg, &lane_ep->base, r->am_id, buf, r->length,
		    s->num_kept < SHM_KEEP_MAX ? buf : NULL) == WEFT_LANE_KEEP)
		s->num_kept++;
	else
		weft_mpool_put(&s->bufs, buf);
	return true;
}

void shm_release(struct weft_lane_iface *base, void *desc)
{
	struct shm_iface *s = shm_iface(base);

	s->num_kept--;
	weft_mpool_put(&s->bufs, desc);
}

static void publish_head(struct shm_ep *lane_ep)
{
	shm_rx_publish(&lane_ep->rx);
	shm_wake_peer(lane_ep, lane_ep->tx.dir, SHM_WAKE_HEAD);
}

static void end_broken(struct shm_iface *s, struct shm_ep *lane_ep)
{
	s->count.rx_bad++;
	shm_end(lane_ep, -EPROTO, "its process wrote invalid data into the shared memory");
}

/* All records of the peer have been delivered. */
static void end_gone(struct shm_iface *s, struct shm_ep *lane_ep)
{
	/* Acquire: the peer's records precede this flag. */
	if (atomic_load_explicit(&lane_ep->rx.dir->ctl.closed, memory_order_acquire)) {
		shm_end(lane_ep, 0, "the peer has closed the connection");
		return;
	}
	s->count.died++;
	shm_end(lane_ep, -ECONNRESET, "its process has ended without closing the connection");
}

static __attribute__((noinline)) unsigned int take_records(struct shm_iface *s,
							   struct shm_ep *lane_ep)
{
	struct shm_record r;
	unsigned int n;
	int rc = 0;

	for (n = 0; n < SHM_BURST; n++) {
		if (!deliver_line(s, lane_ep)) {
			rc = shm_rx_next(&lane_ep->rx, WEFT_LANE_AM_MAX, &r);
			if (rc <= 0)
				break;
			if (r.chunk == SHM_CHUNKS)
				deliver_short(s, lane_ep, &r);
			else if (!deliver_chunk(s, lane_ep, &r))
				break;
		}
		if (lane_ep->state != SHM_UP) {
			s->count.rx_messages += n + 1;
			return n + 1;
		}
		if (lane_ep->rx.head - lane_ep->rx.published >= SHM_LINES / 4)
			publish_head(lane_ep);
	}
	s->count.rx_messages += n;
	if (lane_ep->rx.head != lane_ep->rx.published)
		publish_head(lane_ep);
	if (__builtin_expect(rc < 0 || lane_ep->tx.broken, 0)) {
		end_broken(s, lane_ep);
		return n + 1;
	}
	if (__builtin_expect(lane_ep->ended, 0) && n == 0 && rc == 0) {
		end_gone(s, lane_ep);
		return 1;
	}
	return n;
}

static inline unsigned int poll_ring(struct shm_iface *s, struct shm_ep *lane_ep)
{
	/* The common case, an empty ring, takes one load of shared memory. */
	if (__builtin_expect(shm_rx_empty(&lane_ep->rx) & !(lane_ep->ended | lane_ep->tx.broken),
			     1))
		return 0;
	return take_records(s, lane_ep);
}

static unsigned int poll_cold(struct shm_iface *s)
{
	struct shm_ep *lane_ep;
	unsigned int i, n, sum = 0;

	for (i = 0; i < SHM_COLD && s->num_table > SHM_HOT; i++) {
		if (s->next_cold >= s->num_table || s->next_cold < SHM_HOT)
			s->next_cold = SHM_HOT;
		lane_ep = s->table[s->next_cold++];
		n = poll_ring(s, lane_ep);
		sum += n;
		if (n > 0 && lane_ep->state == SHM_UP && lane_ep->slot >= SHM_HOT)
			make_hot(s, lane_ep);
	}
	return sum;
}

/* ------------------------------------------------------------------ progress */

static unsigned int poll_sockets(struct shm_iface *s, uint64_t now_ns)
{
	struct epoll_event events[EVENTS];
	unsigned int n = 0;
	int i, num;

	if (__builtin_expect(!s->registered, 0))
		wait_look(s);
	num = epoll_wait(s->epoll, events, EVENTS, 0);
	for (i = 0; i < num; i++) {
		if (events[i].data.ptr == &s->listen)
			n += shm_accept(s, now_ns);
		else if (events[i].data.ptr == &s->received)
			n += shm_received(s);
		else
			n += shm_readable(events[i].data.ptr);
	}
	if (s->num_making > 0)
		n += shm_making(s, now_ns);
	s->look_at = now_ns + (s->num_making > 0 ? SHM_LOOK_MAKING_NS : SHM_LOOK_NS);
	if (num == EVENTS)
		s->look_at = now_ns;
	return n;
}

/* A callback may end other lane_eps: they stay in memory until shm_reap(). */
static unsigned int run_completions(struct shm_iface *s)
{
	struct shm_ep *lane_ep, *next;
	unsigned int n = 0;

	for (lane_ep = LIST_FIRST(&s->waiting); lane_ep; lane_ep = next) {
		next = LIST_NEXT(lane_ep, waiting);
		n += shm_complete(lane_ep);
	}
	return n;
}

unsigned int shm_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct shm_iface *s = shm_iface(base);
	unsigned int i, n = 0;

	for (i = 0; i < SHM_HOT && i < s->num_table; i++)
		n += poll_ring(s, s->table[i]);
	if (__builtin_expect(s->num_table > SHM_HOT, 0))
		n += poll_cold(s);
	if (!LIST_EMPTY(&s->waiting))
		n += run_completions(s);
	if (!LIST_EMPTY(&s->busy))
		n += shm_native_work(s);
	if (__builtin_expect(now_ns >= s->look_at, 0))
		n += poll_sockets(s, now_ns);
	if (__builtin_expect(!TAILQ_EMPTY(&s->dead), 0))
		shm_reap(s);
	return n;
}
