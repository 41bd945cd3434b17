/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_mem.h
 * Memory files that processes share: the segment of a connection, and the table of registered
 * memory. doc/shm.md has every byte, in host byte order.
 *
 * Peers map the table of a process read-only; native reads find addresses, lengths and rights in
 * it. A key is a slot's number with a random part: addresses of memory do not leave the host.
 */
#ifndef WEFT_SHM_MEM_H
#define WEFT_SHM_MEM_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lane.h"

/* ---- the segment of a connection */

#define SHM_LINE 64u
#define SHM_LINES 512u        /* lines of a ring: a power of two */
#define SHM_RECORD_LINES 16u  /* lines of the largest record that contains its message */
#define SHM_CHUNKS 16u        /* buffers for longer messages, in each direction */
#define SHM_CHUNK_SIZE 16384u /* bytes of a chunk, and of the largest message */
#define SHM_SHORT_MAX (SHM_RECORD_LINES * SHM_LINE - 8u)

#define SHM_MAGIC 0x314d48535446u
#define SHM_VERSION 3u

/** shm_ctl.sleeping: the events that must wake the owner of the receiving end. */
#define SHM_WAKE_RECORD 1u /* a record in this ring */
#define SHM_WAKE_HEAD 2u   /* space in the other ring, to which this owner writes */

/** Words of one direction, on separate lines: each is written by one side, except sleeping. */
struct shm_ctl {
	/* written by the receiver: lines taken since the begin, modulo 2^32 */
	_Alignas(SHM_LINE) _Atomic uint32_t head;
	/* SHM_WAKE_*: set and cleared by the receiver; also cleared by a sender that wakes it */
	_Alignas(SHM_LINE) _Atomic uint32_t sleeping;
	/* written by the sender: 1 = it has ended the connection; a process that dies leaves 0 */
	_Alignas(SHM_LINE) _Atomic uint32_t closed;
	/* written by the receiver: for each chunk, the number of its last use that has ended */
	_Alignas(SHM_LINE) _Atomic uint8_t done[SHM_CHUNKS];
};

struct shm_dir {
	struct shm_ctl ctl;
	_Alignas(4096) uint64_t lines[SHM_LINES][SHM_LINE / 8];
	_Alignas(4096) uint8_t chunks[SHM_CHUNKS][SHM_CHUNK_SIZE];
};

struct shm_segment {
	uint64_t magic;
	uint32_t version, size;
	/* 0: from initiator to acceptor; 1: from acceptor to initiator */
	_Alignas(4096) struct shm_dir dir[2];
};

static_assert(offsetof(struct shm_dir, lines) == 4096, "as doc/shm.md has it");
static_assert(offsetof(struct shm_dir, chunks) == 4096 + 32768, "as doc/shm.md has it");
static_assert(sizeof(struct shm_dir) == 4096 + 32768 + 262144, "as doc/shm.md has it");
static_assert(sizeof(struct shm_segment) == 4096 + 2 * sizeof(struct shm_dir), "no gap");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "locks of libatomic are not shared between processes");

/**
 * Create a segment that no process can shrink. Its header is set, and all other bytes are zero.
 * @param[out] fd  to be passed to the peer, then closed
 * @return the mapped segment; NULL with errno
 */
struct shm_segment *shm_segment_create(int *fd);

/**
 * Map a descriptor that a peer has passed, if it is a segment of this version that can't shrink.
 * @return NULL and a reason in @p why
 */
struct shm_segment *shm_segment_map(int fd, const char **why);

void shm_segment_unmap(struct shm_segment *segment);

/**
 * Check a memory file of a peer before it is mapped: accesses to pages that the peer has removed
 * raise SIGBUS. A sealed size does not exclude this: a hole can be punched into a file of huge
 * pages, and the next access to it fails when no huge page is free.
 * @return NULL, or the reason of the refusal
 */
const char *shm_memfd_check(int fd, int seals, size_t size);

/* ---- the table of registered memory */

#define SHM_REG_SLOTS 65536u /* a key's low 16 bits are the slot */

/** Only the process that owns the table writes it. */
struct shm_reg_slot {
	_Atomic uint64_t key; /**< 0 = free; written last, cleared first */
	_Atomic uint64_t address, length;
	_Atomic uint64_t access; /**< WEFT_LANE_ACCESS_REMOTE_* */
};
static_assert(sizeof(struct shm_reg_slot) == 32, "as doc/shm.md has it");

struct shm_reg_table {
	struct shm_reg_slot slots[SHM_REG_SLOTS];
};

/**
 * Open the table of this process, which the first of its ifaces creates.
 * @param[out] fd  to be passed to peers; shm_reg_close() closes it
 * @return 0, or a negative error: peers can't access memory of this process
 */
int shm_reg_open(const struct weft_platform *platform, int *fd);
/** Undo one shm_reg_open(). The last one unmaps the table and closes its descriptor. */
void shm_reg_close(void);

/** Members of struct weft_lane_driver. */
int shm_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		     struct weft_mem_lane **mem, char *why, size_t why_len);
void shm_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
uint64_t shm_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem);

/** Map a peer's table. @return NULL: not sealed (its pages could be removed), or not mapped */
const struct shm_reg_table *shm_reg_map(int fd);
void shm_reg_unmap(const struct shm_reg_table *table);

/**
 * Find the address, in the peer's memory, of @p offset bytes after the start of a registration.
 * @param right  one of WEFT_LANE_ACCESS_REMOTE_*
 * @return 0; -EKEYREJECTED: no such key now; -EACCES: the registration lacks @p right; -ERANGE: the
 *   bytes are not inside the registration
 */
int shm_reg_find(const struct shm_reg_table *table, uint64_t key, uint64_t offset, size_t len,
		 unsigned int right, uint64_t *address);

/* ---- rings */

/*
 * The two ends of a ring of cache lines in shared memory. A record is one line or several
 * consecutive ones. Its first word has the whole description and is written last, so one load reads
 * the description consistently. The sender finds free lines by the position that the receiver
 * publishes.
 *
 * A record's first word has its position, so words of earlier laps differ. Message bytes at a
 * line's beginning could look like such a word, so the receiver clears them.
 */

#define SHM_F_VALID 1u  /* in every word, so none is 0 */
#define SHM_F_FILLER 2u /* no record until the end of the ring */
#define SHM_F_CHUNK 4u  /* the message is in a chunk; the next word has its number */

/** First word of a record: position + 1 (32 bits), length (16), am_id (8), flags (8). */
static inline uint64_t shm_word(uint32_t position, size_t length, uint8_t am_id, unsigned int flags)
{
	return (uint64_t)(uint32_t)(position + 1) << 32 | (uint64_t)length << 16 |
	       (uint64_t)am_id << 8 | flags | SHM_F_VALID;
}

static inline unsigned int shm_record_lines(size_t length)
{
	return (unsigned int)((8 + length + SHM_LINE - 1) / SHM_LINE);
}

/* ---- the sender's end of a ring */

struct shm_tx {
	struct shm_dir *dir;
	uint32_t tail;            /* lines written or skipped */
	uint32_t head;            /* lines taken by the receiver, at the last check */
	uint32_t out;             /* mask of the chunks that may be in use */
	bool broken;              /* the receiver's position is impossible */
	uint8_t uses[SHM_CHUNKS]; /* number of the last use of each chunk, modulo 2^8 */
};

static inline void shm_tx_look(struct shm_tx *tx)
{
	/* Acquire: the receiver has finished with the lines before they are written again. */
	uint32_t head = atomic_load_explicit(&tx->dir->ctl.head, memory_order_acquire);

	if (head - tx->head > tx->tail - tx->head)
		tx->broken = true;
	else
		tx->head = head;
}

static inline uint32_t shm_tx_room(const struct shm_tx *tx)
{
	return SHM_LINES - (tx->tail - tx->head);
}

static inline void shm_tx_put_word(uint64_t *line, uint64_t word)
{
	/* Release: a receiver that sees the word also sees the record. */
	atomic_store_explicit((_Atomic uint64_t *)line, word, memory_order_release);
}

static inline void shm_tx_fill(struct shm_tx *tx, uint32_t at)
{
	uint32_t i;

	/* Clear the first words of the skipped lines: no later lap may take one for a record. */
	for (i = at + 1; i < SHM_LINES; i++)
		tx->dir->lines[i][0] = 0;
	shm_tx_put_word(tx->dir->lines[at], shm_word(tx->tail, 0, 0, SHM_F_FILLER));
	tx->tail += SHM_LINES - at;
}

/** Reserve @p num consecutive lines, num <= SHM_RECORD_LINES; NULL = the ring has no room. */
static inline uint64_t *shm_tx_reserve(struct shm_tx *tx, unsigned int num)
{
	uint32_t at = tx->tail % SHM_LINES, rest = SHM_LINES - at;
	uint32_t need = num > rest ? rest + num : num;

	if (__builtin_expect(need > shm_tx_room(tx), 0)) {
		shm_tx_look(tx);
		if (need > shm_tx_room(tx))
			return NULL;
	}
	if (__builtin_expect(num > rest, 0)) {
		shm_tx_fill(tx, at);
		at = 0;
	}
	return tx->dir->lines[at];
}

static inline void shm_tx_publish(struct shm_tx *tx, uint64_t *line, unsigned int num,
				  size_t length, uint8_t am_id, unsigned int flags)
{
	uint32_t position = tx->tail;

	tx->tail += num;
	shm_tx_put_word(line, shm_word(position, length, am_id, flags));
}

/** @return number of a free chunk; -1 = none */
static inline int shm_tx_chunk(struct shm_tx *tx)
{
	unsigned int i;

	/* The lowest first: it may be in a cache. Acquire: the receiver has read the chunk. */
	for (i = 0; i < SHM_CHUNKS; i++)
		if (tx->out >> i & 1 && atomic_load_explicit(&tx->dir->ctl.done[i],
							     memory_order_acquire) == tx->uses[i])
			tx->out &= ~(1u << i);
	i = (unsigned int)__builtin_ctz(~tx->out);
	return i < SHM_CHUNKS ? (int)i : -1;
}

static inline void shm_tx_publish_chunk(struct shm_tx *tx, uint64_t *line, unsigned int chunk,
					size_t length, uint8_t am_id)
{
	tx->out |= 1u << chunk;
	line[1] = chunk | (uint64_t)++tx->uses[chunk] << 8;
	/* The word of a chunk's line has length - 1; shm_rx_next() adds 1. */
	shm_tx_publish(tx, line, 1, length - 1, am_id, SHM_F_CHUNK);
}

/* ---- the receiver's end of a ring */

struct shm_rx {
	struct shm_dir *dir;
	uint32_t head;
	uint32_t published; /* lines reported to the sender */
};

/** A validated record: the receiver does not read its description in shared memory again. */
struct shm_record {
	const uint64_t *data; /* of the message, in shared memory: copy it once */
	uint32_t length;
	uint8_t am_id;
	uint8_t chunk, use; /* chunk == SHM_CHUNKS: the message is in the ring */
};

static inline bool shm_rx_empty(const struct shm_rx *rx)
{
	const _Atomic uint64_t *line = (const void *)rx->dir->lines[rx->head % SHM_LINES];

	/* Relaxed: shm_rx_next() loads it again, with acquire. */
	return (uint32_t)(atomic_load_explicit(line, memory_order_relaxed) >> 32) != rx->head + 1;
}

/** @return 1 a message, 0 none, -1 a record that no correct sender writes */
static inline int shm_rx_next(struct shm_rx *rx, uint8_t am_max, struct shm_record *r)
{
	uint32_t at = rx->head % SHM_LINES;
	const uint64_t *line = rx->dir->lines[at];
	/* Acquire: pairs with shm_tx_put_word(). */
	uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)line, memory_order_acquire);

	if ((uint32_t)(word >> 32) != rx->head + 1 || !(word & SHM_F_VALID))
		return 0;
	r->length = word >> 16 & 0xffff;
	r->am_id = (uint8_t)(word >> 8);
	if (word & SHM_F_FILLER) {
		rx->head += SHM_LINES - at;
		return at > 0 ? shm_rx_next(rx, am_max, r) : -1;
	}
	if (r->am_id >= am_max)
		return -1;
	if (word & SHM_F_CHUNK) {
		uint64_t which = ((const volatile uint64_t *)line)[1];

		r->length++;
		r->chunk = (uint8_t)which;
		r->use = (uint8_t)(which >> 8);
		if (r->chunk >= SHM_CHUNKS || r->length > SHM_CHUNK_SIZE)
			return -1;
		r->data = (const uint64_t *)rx->dir->chunks[r->chunk];
		return 1;
	}
	r->chunk = SHM_CHUNKS;
	r->data = line + 1;
	return r->length <= SHM_SHORT_MAX && shm_record_lines(r->length) <= SHM_LINES - at ? 1 : -1;
}

/** Release a copied record: its chunk at once, its lines by the next shm_rx_publish(). */
static inline void shm_rx_taken(struct shm_rx *rx, const struct shm_record *r)
{
	uint32_t at = rx->head % SHM_LINES, num = 1, i;

	if (r->chunk < SHM_CHUNKS) {
		/* Release: after the copy. */
		atomic_store_explicit(&rx->dir->ctl.done[r->chunk], r->use, memory_order_release);
	} else {
		num = shm_record_lines(r->length);
		for (i = 1; i < num; i++)
			rx->dir->lines[at + i][0] = 0;
	}
	rx->head += num;
}

static inline void shm_rx_publish(struct shm_rx *rx)
{
	rx->published = rx->head;
	/* Release: after the copies, the clearing, and the callbacks. */
	atomic_store_explicit(&rx->dir->ctl.head, rx->head, memory_order_release);
}

#endif /* WEFT_SHM_MEM_H */
