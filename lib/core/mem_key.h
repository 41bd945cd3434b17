/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/mem_key.h
 * Remote keys of registered memory: finds the memory of a key from the wire, and invalidates a key
 * immediately when it is revoked.
 *
 * Keys are 64 random bits. The low bits of a key select one slot in each level. Levels are only
 * added, never removed, so threads of other workers look keys up without a lock. A thread that uses
 * the memory is counted in the slot (enter, leave). Revoking a key waits for the copies that are
 * under way.
 */
#ifndef WEFT_MEM_KEY_H
#define WEFT_MEM_KEY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/platform.h"

struct weft_mem;

struct weft_mem_slot {
	_Atomic uint64_t key; /* 0 = free */
	_Atomic uint32_t users;
	struct weft_mem *mem; /* while key is set */
};

#define WEFT_MEM_KEY_LEVELS 16

/** Zeroed = empty. Level i has 256 << i slots. */
struct weft_mem_table {
	struct weft_mem_slot *_Atomic level[WEFT_MEM_KEY_LEVELS];
};

/**
 * Give @p mem a key. Under the context's lock.
 * @return 0; -ENOMEM; the error of the random source
 */
int weft_mem_key_make(struct weft_mem_table *keys, const struct weft_platform *platform,
		      struct weft_mem *mem, struct weft_mem_slot **slot, uint64_t *key);

/**
 * Revoke a key. After the call no thread uses the memory by it, and none can start to. Under the
 * context's lock.
 */
void weft_mem_key_revoke(struct weft_mem_slot *slot);

/** The slot of a valid key, entered: slot->mem stays until weft_mem_key_leave(); or NULL. */
struct weft_mem_slot *weft_mem_key_enter(struct weft_mem_table *keys, uint64_t key);

static inline void weft_mem_key_leave(struct weft_mem_slot *slot)
{
	/* Release: accesses to the memory happen before the return of weft_mem_key_revoke(). */
	atomic_fetch_sub_explicit(&slot->users, 1, memory_order_release);
}

void weft_mem_table_fini(struct weft_mem_table *keys);

#endif /* WEFT_MEM_KEY_H */
