/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memif/ring.h
 * One memif ring, as one of its two ends uses it. Pure, but for the barrier of weft_mring_arm().
 *
 * A ring has descriptors and two indices. The client makes the memory and moves `head`, the server
 * moves `tail`. The sender of the ring C2S is the client: the entries from tail to head are frames.
 * The sender of S2C is the server: the entries from tail to head are empty buffers, and the server
 * fills them.
 *
 * Another process writes to the memory at any time, so an index, a length, a region or an offset is
 * read once, checked, and used as it was read. The client never reads where its buffers are: it has
 * laid them out itself.
 */
#ifndef WEFT_MEMIF_RING_H
#define WEFT_MEMIF_RING_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_MRING_LOG2_MAX 14u
#define WEFT_MRING_COOKIE 0x3E31F20u
#define WEFT_MRING_MASK_INT 1u /**< flag of a ring: its receiver polls */
#define WEFT_MRING_NEXT 1u     /**< flag of a descriptor: the frame goes on in the next one */
#define WEFT_MRING_REGIONS 16u

/* The layout of memif 2.0. */
struct weft_mring_desc {
	_Atomic uint16_t flags, region;
	_Atomic uint32_t length, offset;
	uint32_t metadata;
};

struct weft_mring_shm {
	_Atomic uint32_t cookie;
	_Atomic uint16_t flags, head;
	uint8_t pad0[56];
	_Atomic uint16_t tail;
	uint8_t pad1[62];
	struct weft_mring_desc desc[];
};

static_assert(sizeof(struct weft_mring_desc) == 16 && offsetof(struct weft_mring_shm, head) == 6 &&
		      offsetof(struct weft_mring_shm, tail) == 64 &&
		      offsetof(struct weft_mring_shm, desc) == 128,
	      "memif's layout");

struct weft_mregion {
	uint8_t *at;
	size_t len;
};

struct weft_mring {
	struct weft_mring_shm *shm; /**< NULL = there is none */
	const _Atomic uint16_t *peer;
	_Atomic uint16_t *own;
	/** entries of the ring between the indices and what they count: see weft_mring_make() */
	uint16_t add_peer, add_own;
	uint16_t size, mask;
	uint16_t next;  /**< the next entry for this end */
	uint16_t ready; /**< number of entries from there on that belong to this end */
	/** client: its buffers, in the order of the entries; NULL: this end is the server */
	uint8_t *bufs;
	uint32_t bsize;
	const struct weft_mregion *regions; /**< server: those of the client */
	unsigned int num_regions;
	int event; /**< eventfd that wakes the receiver; -1 = none */
};

/** A buffer, or a part of a received frame. */
struct weft_mring_buf {
	uint8_t *at; /**< NULL = the descriptor is invalid */
	uint32_t len;
	bool more; /**< the frame goes on in the next entry */
};

/** Bytes of a ring. */
static inline size_t weft_mring_bytes(unsigned int log2)
{
	return sizeof(struct weft_mring_shm) + ((size_t)1 << log2) * sizeof(struct weft_mring_desc);
}

/**
 * Client: write an empty ring at @p offset of region 0, whose buffers begin at @p bufs.
 * @param sends  this end sends: C2S. Else the peer gets the buffers by weft_mring_open()
 */
void weft_mring_make(struct weft_mring *r, const struct weft_mregion *region, size_t offset,
		     size_t bufs, uint32_t bsize, unsigned int log2, bool sends);

/** Client: the peer is ready. It may have reset both indices until now. */
void weft_mring_open(struct weft_mring *r);

/**
 * Server: use a ring of the client.
 * @return 0; -EINVAL: the ring is malformed or exceeds its region, and @p r is unchanged
 */
int weft_mring_attach(struct weft_mring *r, const struct weft_mregion *regions,
		      unsigned int num_regions, unsigned int region, uint64_t offset,
		      unsigned int log2);

/** Allow weft_mring_arm() of other processes to order the accesses of this one. */
void weft_mring_take_part(void);

/**
 * Receiver: let the peer signal the eventfd.
 * @return 0, or -EBUSY: there are frames, and the ring is as before
 */
int weft_mring_arm(struct weft_mring *r);

/** Receiver: it polls again. */
static inline void weft_mring_disarm(struct weft_mring *r)
{
	/* relaxed: a signal too many is harmless */
	atomic_fetch_or_explicit(&r->shm->flags, WEFT_MRING_MASK_INT, memory_order_relaxed);
}

/**
 * Read the peer's index.
 * @return number of entries that belong to this end; -EPROTO: the index is invalid
 */
static inline int weft_mring_poll(struct weft_mring *r)
{
	/* acquire: pairs with the peer's release, after which its entries are valid */
	uint16_t at = atomic_load_explicit(r->peer, memory_order_acquire);
	uint16_t n = (uint16_t)(at + r->add_peer - r->next);

	if (n > r->size)
		return -EPROTO;
	r->ready = n;
	return n;
}

/* relaxed in the functions below: weft_mring_poll() has ordered the accesses, and so will done() */

static inline struct weft_mring_desc *weft_mring_desc(const struct weft_mring *r, unsigned int i)
{
	return &r->shm->desc[(r->next + i) & r->mask];
}

/** Bytes that a descriptor of the client names. */
static inline struct weft_mring_buf weft_mring_foreign(const struct weft_mring *r, unsigned int i)
{
	const struct weft_mring_desc *d = weft_mring_desc(r, i);
	uint32_t length = atomic_load_explicit(&d->length, memory_order_relaxed);
	uint32_t offset = atomic_load_explicit(&d->offset, memory_order_relaxed);
	uint16_t region = atomic_load_explicit(&d->region, memory_order_relaxed);
	uint16_t flags = atomic_load_explicit(&d->flags, memory_order_relaxed);

	if (region >= r->num_regions || offset > r->regions[region].len ||
	    length > r->regions[region].len - offset)
		return (struct weft_mring_buf){0};
	return (struct weft_mring_buf){r->regions[region].at + offset, length,
				       flags & WEFT_MRING_NEXT};
}

static inline uint8_t *weft_mring_own(const struct weft_mring *r, unsigned int i)
{
	return r->bufs + (size_t)((r->next + i) & r->mask) * r->bsize;
}

/** Receiver: entry @p i of those that are ready. */
static inline struct weft_mring_buf weft_mring_frame(const struct weft_mring *r, unsigned int i)
{
	const struct weft_mring_desc *d = weft_mring_desc(r, i);
	uint32_t length;

	if (!r->bufs)
		return weft_mring_foreign(r, i);
	length = atomic_load_explicit(&d->length, memory_order_relaxed);
	if (length > r->bsize)
		return (struct weft_mring_buf){0};
	return (struct weft_mring_buf){weft_mring_own(r, i), length,
				       atomic_load_explicit(&d->flags, memory_order_relaxed) &
					       WEFT_MRING_NEXT};
}

/** Sender: the buffer of entry @p i of those that are ready. */
static inline struct weft_mring_buf weft_mring_room(const struct weft_mring *r, unsigned int i)
{
	if (!r->bufs)
		return weft_mring_foreign(r, i);
	return (struct weft_mring_buf){weft_mring_own(r, i), r->bsize, false};
}

/** Sender: the length of the frame that was written into the buffer of entry @p i. */
static inline void weft_mring_fill(const struct weft_mring *r, unsigned int i, uint32_t len)
{
	struct weft_mring_desc *d = weft_mring_desc(r, i);

	atomic_store_explicit(&d->length, len, memory_order_relaxed);
	atomic_store_explicit(&d->flags, 0, memory_order_relaxed);
}

/** The first @p n entries are the peer's. */
static inline void weft_mring_done(struct weft_mring *r, unsigned int n)
{
	r->next = (uint16_t)(r->next + n);
	r->ready = (uint16_t)(r->ready - n);
	/* release: the peer sees the entries before the index that hands them over */
	atomic_store_explicit(r->own, (uint16_t)(r->next + r->add_own), memory_order_release);
}

/** Receiver: weft_mring_done() for frames that were read. */
static inline void weft_mring_return(struct weft_mring *r, unsigned int n)
{
	/* The server takes a descriptor's length for that of the buffer. */
	for (unsigned int i = 0; r->bufs && i < n; i++)
		weft_mring_fill(r, i, r->bsize);
	weft_mring_done(r, n);
}

/** Sender, after weft_mring_done(): is the receiver to be signalled? weft_mring_arm() orders. */
static inline bool weft_mring_sleeps(const struct weft_mring *r)
{
	return !(atomic_load_explicit(&r->shm->flags, memory_order_relaxed) & WEFT_MRING_MASK_INT);
}

#endif /* WEFT_MEMIF_RING_H */
