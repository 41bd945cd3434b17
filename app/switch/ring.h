/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/ring.h
 * The server's end of memif's rings. They are in memory of the client, which can change it at any
 * time, so no value in it is trusted: an index, offset or length is read once, checked, and used as
 * it was read. DPDK's PMD trusts these values, and would access any address that a client names.
 */
#ifndef APP_SWITCH_RING_H
#define APP_SWITCH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_RING_LOG2_MAX 14u
#define SW_RING_COOKIE 0x3E31F20u
#define SW_RING_MASK_INT 1u
#define SW_DESC_NEXT 1u

/** A descriptor, in memif's layout. */
struct sw_ring_desc {
	uint16_t flags, region;
	uint32_t length, offset, metadata;
};

struct sw_ring_shm {
	uint32_t cookie;
	uint16_t flags, head;
	uint8_t pad0[56];
	uint16_t tail;
	uint8_t pad1[62];
	struct sw_ring_desc desc[];
};

struct sw_ring {
	struct sw_ring_shm *shm; /**< NULL = not connected */
	uint8_t *base;           /**< of the region */
	size_t len;
	uint16_t size, last; /**< entries; the next one for us */
	int event;           /**< eventfd that wakes the client; -1 = none */
};

/** A frame in a client's memory, or a buffer for one. */
struct sw_buf {
	uint8_t *at; /**< NULL = the descriptor is invalid */
	uint32_t len;
};

/** @return 0; -EINVAL: the ring is malformed or exceeds the region, and @p r is unchanged */
int sw_ring_attach(struct sw_ring *r, void *region, size_t len, uint64_t offset,
		   unsigned int log2_size, int event);

/**
 * Query the number of entries that the client has handed over and that were not used yet.
 * @return the number; -EPROTO: the client's index is invalid
 */
int sw_ring_ready(const struct sw_ring *r);

/** Entry @p i of those. */
struct sw_buf sw_ring_at(const struct sw_ring *r, unsigned int i);

/** Set the length of a frame that was written into the buffer of sw_ring_at(). */
void sw_ring_fill(const struct sw_ring *r, unsigned int i, uint32_t len);

/** Return the first @p n entries to the client. */
void sw_ring_done(struct sw_ring *r, unsigned int n);

/** Does the client sleep until it is woken? Call it after sw_ring_done(). */
bool sw_ring_sleeps(const struct sw_ring *r);

#endif /* APP_SWITCH_RING_H */
