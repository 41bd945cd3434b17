/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_transfer.h
 * Sends with their completions, native reads of the peer's memory, and waking the peer.
 */
#ifndef WEFT_SHM_TRANSFER_H
#define WEFT_SHM_TRANSFER_H

#include <stdatomic.h>

#include "shm/shm.h"

int shm_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length);
ssize_t shm_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg);
int shm_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp);
int shm_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp);
/** Run the completions of records that the peer has taken. @return number of completions */
unsigned int shm_complete(struct shm_ep *lane_ep);
/** Run all completions that are left, and end native reads, with the error @p status. */
void shm_cancel(struct shm_ep *lane_ep, int status);

void shm_native_init(struct shm_iface *s);
/** Does process_vm_readv() work? A test reads this process's own memory. */
bool shm_native_works(const struct shm_iface *s);

/** Measured once per process, on its own memory (0.2 ms). @return bytes/s; 0 = unknown */
double shm_native_rate(void);
/** Was @p hello sent by the process whose PID the kernel reports, and is its memory readable? */
bool shm_native_reaches(const struct shm_ep *lane_ep, const struct shm_hello *hello);
int shm_get_zcopy(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
		  struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		  struct weft_lane_comp *comp);
/** Execute a slice of the outstanding operations of each lane_ep. @return events */
unsigned int shm_native_work(struct shm_iface *s);

void shm_wake(struct shm_ep *lane_ep);

/**
 * After a record was written or taken: wake the peer if it sleeps and waits for @p what. The peer's
 * arm() writes ctl.sleeping and then checks the ring. In between it calls membarrier(), a fence for
 * both sides. If the peer has no membarrier(), or this process is not registered for it, this side
 * fences, too.
 */
static inline void shm_wake_peer(struct shm_ep *lane_ep, const struct shm_dir *dir,
				 unsigned int what)
{
	if (__builtin_expect(lane_ep->fences, 0))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&dir->ctl.sleeping, memory_order_relaxed) & what,
			     0))
		shm_wake(lane_ep);
}

#endif /* WEFT_SHM_TRANSFER_H */
