/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/ring.h
 * The server's end of memif's rings. They lie in memory that the client gave and can change at any
 * time, so nothing in it is believed: an index, offset or length is read once, checked, and used as
 * it was read. DPDK's PMD believes them, and would read and write wherever a client points.
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

/** As memif lays them out. */
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
	uint16_t size, last; /**< entries; the next one that is ours */
	int event;           /**< eventfd that wakes the client; -1 = none */
};

/** A frame in a client's memory, or room for one. */
struct sw_buf {
	uint8_t *at; /**< NULL = the descriptor is no good */
	uint32_t len;
};

/** @return 0; -EINVAL: the ring does not fit into the region, or is none; @p r is as it was */
int sw_ring_attach(struct sw_ring *r, void *region, size_t len, uint64_t offset,
		   unsigned int log2_size, int event);

/**
 * How many entries the client has handed over and we have not used?
 * @return a number; -EPROTO: the client's index makes no sense
 */
int sw_ring_ready(const struct sw_ring *r);

/** Entry @p i of those. */
struct sw_buf sw_ring_at(const struct sw_ring *r, unsigned int i);

/** Room for a frame that is there now: its length. Of the same entry as sw_ring_at(). */
void sw_ring_fill(const struct sw_ring *r, unsigned int i, uint32_t len);

/** The first @p n are done: the client's again. */
void sw_ring_done(struct sw_ring *r, unsigned int n);

/** Does the client sleep until it is woken? Behind sw_ring_done(). */
bool sw_ring_sleeps(const struct sw_ring *r);

#endif /* APP_SWITCH_RING_H */
