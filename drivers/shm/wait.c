/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping. A receiver that will sleep sets a word of each ring, then checks the rings once more. A
 * sender writes a record, then checks that word, and wakes the receiver by a byte over the
 * connection's socket. If both fence in between, at least one of them sees the store of the other.
 * A fence would double the cost of a send, so the receiver makes it for both, by membarrier().
 */

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/shm.h"

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool shm_wait_init(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

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
