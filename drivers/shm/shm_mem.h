/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_mem.h
 * Memory files that two processes share: the segment of a connection, and the table of registered
 * memory. doc/shm.md has every byte. Host byte order: they never leave the host.
 *
 * Peers map the table of a process read-only. An access to a peer's memory looks up the address,
 * length and rights in this table. Keys are slots with a random part, and no addresses leave the
 * host.
 */
#ifndef WEFT_SHM_MEM_H
#define WEFT_SHM_MEM_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"

/* ---- the segment of a connection */

#define SHM_LINE 64u
#define SHM_LINES 512u        /* of a ring: a power of two */
#define SHM_RECORD_LINES 16u  /* of the largest record with its message in it */
#define SHM_CHUNKS 16u        /* buffers for longer messages */
#define SHM_CHUNK_SIZE 16384u /* bytes of one, and of the largest message */
/** Largest message inside a record. */
#define SHM_SHORT_MAX (SHM_RECORD_LINES * SHM_LINE - 8u)

#define SHM_MAGIC 0x314d48535446u
#define SHM_VERSION 3u

/** shm_ctl.sleeping: the events that must wake the owner of the receiving end. */
#define SHM_WAKE_RECORD 1u /* a record in this ring */
#define SHM_WAKE_HEAD 2u   /* space in the other ring, to which this owner writes */

/** Words of one direction, on separate lines: each is written by one side, except sleeping. */
struct shm_ctl {
	/* the receiver's: lines taken, free-running */
	_Alignas(SHM_LINE) _Atomic uint32_t head;
	/* set by the receiver, cleared by the peer that wakes it: SHM_WAKE_* */
	_Alignas(SHM_LINE) _Atomic uint32_t sleeping;
	/* the sender's: it has closed the connection in order */
	_Alignas(SHM_LINE) _Atomic uint32_t closed;
	/* the receiver's: for each chunk, the number of its last use that has ended */
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
 * Check a memory file of a peer before it is mapped. If the peer can remove pages, accesses to the
 * mapping raise SIGBUS. A sealed size does not exclude this: a hole can be punched into a file of
 * huge pages, and the next access to it fails when no huge page is free.
 *
 * @param seals  required seals of the file
 * @param size   required size, in bytes
 * @return NULL, or the reason of the refusal
 */
const char *shm_memfd_check(int fd, int seals, size_t size);

/* ---- the table of registered memory */

#define SHM_REG_SLOTS 65536u /* a key's low 16 bits are the slot */

/** Written only by its owner. */
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
 * @param[out] fd  to be passed to peers; the table keeps it
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

/**
 * Map a peer's table. @return NULL: the file is not sealed, so that the peer could remove its
 * pages, or it cannot be mapped
 */
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

#endif /* WEFT_SHM_MEM_H */
