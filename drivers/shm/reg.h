/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/reg.h
 * Registered memory of a process, for its peers: a table in a memory file, which peers map
 * read-only. An access to a peer's memory looks up the address, length and rights in this table.
 * Keys are slots with a random part, and no addresses leave the host.
 */
#ifndef WEFT_SHM_REG_H
#define WEFT_SHM_REG_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"

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
/** The last call unmaps it. */
void shm_reg_close(void);

/** Members of struct weft_lane_driver. */
int shm_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		     struct weft_mem_lane **mem, char *why, size_t why_len);
void shm_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
uint64_t shm_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem);

/** Map a peer's table, if it is sealed against shrinking; else NULL. */
const struct shm_reg_table *shm_reg_map(int fd);
void shm_reg_unmap(const struct shm_reg_table *table);

/**
 * Find the address in the peer's memory.
 * @param right  one of WEFT_LANE_ACCESS_REMOTE_*
 * @return 0; -EKEYREJECTED: no such key now; -EACCES: not for this; -ERANGE: not inside
 */
int shm_reg_find(const struct shm_reg_table *table, uint64_t key, uint64_t offset, size_t len,
		 unsigned int right, uint64_t *address);

#endif /* WEFT_SHM_REG_H */
