/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping. A receiver that will sleep sets a word of each ring, then checks the rings once more. A
 * sender writes a record, then checks that word, and wakes the receiver by a byte over the
 * connection's socket. If both fence in between, at least one of them sees the store of the other.
 * A fence would double the cost of a send, so the receiver makes it for both, by membarrier().
 */

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "shm/shm.h"

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* ------------------------------------------------------------------ registration */

/*
 * membarrier() of a sleeper reaches the processes that have registered. In a process of several
 * threads the registration waits until each CPU has switched tasks once: 6 to 18 ms, during which
 * MPI_Init() would wait. So a thread registers. Until that is done this side fences for itself,
 * which is right at any time and costs some ns a message.
 */
static void *register_process(void *arg)
{
	struct shm_iface *s = arg;

	if (membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0)
		/* Release: shm_wait_look() of the owner comes after the registration. */
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

void shm_wait_init(struct shm_iface *s)
{
	atomic_init(&s->registration_done, false);
	s->fences = !is_supported();
	if (s->fences)
		return;
	/* With one thread it takes no time. */
	if (!__libc_single_threaded &&
	    weft_thread_start("weft-barrier", register_process, s, NULL, &s->registrar) == 0)
		s->registers = getpid();
	else
		register_process(s);
	shm_wait_look(s);
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

void shm_wait_look(struct shm_iface *s)
{
	struct shm_ep *lane_ep;

	/* Acquire: pairs with register_process(). */
	if (s->registered || !atomic_load_explicit(&s->registration_done, memory_order_acquire))
		return;
	s->registered = true;
	TAILQ_FOREACH(lane_ep, &s->up, entry)
		lane_ep->fences = lane_ep->peer_fences;
}

/* ------------------------------------------------------------------ sleeping and waking */

void shm_wake(struct shm_ep *lane_ep)
{
	_Atomic uint32_t *word = &lane_ep->tx.dir->ctl.sleeping;

	/* Wake once: the sender that wakes clears the word. */
	if (lane_ep->sock.fd < 0 || atomic_exchange_explicit(word, 0, memory_order_relaxed) == 0)
		return;
	/* When the socket is full, it has unread bytes, which wake the receiver, too. */
	if (send(lane_ep->sock.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		shm_iface(lane_ep->base.iface)->count.tx_wakes++;
}

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
