/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/ring.h
 * Sleeping on a memif connection. A sender signals the receiver's eventfd after each burst, unless
 * the receiver has set a flag in the ring for polling. DPDK's PMD sets it and has no call to clear
 * it. So the port finds the ring and the eventfd in the messages that pass on the control socket
 * (port/memif/relay.h). It clears the flag while its owner sleeps.
 *
 * The PMD's sender checks the flag right after it has moved the ring's index, without a barrier in
 * between. The sleeping end requests a barrier on all processors from the kernel (membarrier(2)).
 * So the sender sees the flag cleared, or the sleeping end sees the index moved. membarrier() may
 * be missing, or a switch between the peers may not be registered for it. Then, in rare cases, a
 * frame stays in the ring until the sender's next tail probe.
 *
 * message(), forget() and poke() run in the interrupt thread, arm() and disarm() in the owner's.
 * The owner does not use the ring while the connection is removed (port/memif/memif.c).
 */
#ifndef WEFT_MEMIF_RING_H
#define WEFT_MEMIF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_memif_ring;

/** @return NULL without memory or descriptors: the port cannot wake its owner */
struct weft_memif_ring *weft_memif_ring_make(bool server);
/** NULL is allowed. */
void weft_memif_ring_free(struct weft_memif_ring *r);
/** A message has passed, in either direction, with @p num descriptors, which stay the caller's. */
void weft_memif_ring_message(struct weft_memif_ring *r, const void *data, size_t len,
			     const int *fds, size_t num);
/** The connection is over. */
void weft_memif_ring_forget(struct weft_memif_ring *r);
/** Wake the owner, whatever the state of the ring is. */
void weft_memif_ring_poke(struct weft_memif_ring *r);
/** The descriptor to be polled for reading; the same from make() to free(). */
int weft_memif_ring_fd(const struct weft_memif_ring *r);
/**
 * @return 0: a frame that arrives makes the descriptor readable; -EBUSY: a frame is there already;
 * -ENOTCONN: the ring is not connected
 */
int weft_memif_ring_arm(struct weft_memif_ring *r);
/** After an arm() that returned 0. */
void weft_memif_ring_disarm(struct weft_memif_ring *r);
/** The owner has woken up, and had no connection. */
void weft_memif_ring_awake(struct weft_memif_ring *r);

#endif /* WEFT_MEMIF_RING_H */
