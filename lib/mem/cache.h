/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache.h
 * Registrations made on the fly, stored for the next message from the same memory. Used by
 * weft_mem_get() and weft_mem_put() (mem/mem.h).
 *
 * **A hit is always valid.** Memory in the cache is watched (mem/uffd.h). A call that unmaps, moves
 * or empties it blocks until the cache has received the event, and a look-up queries the kernel for
 * such calls. Memory that cannot be watched is registered for one operation and not stored. A
 * mapping is watched as a whole: watching a part would split it, and the program's mremap() would
 * fail. (The heap and the main stack, to which mremap() is not applied, are watched by pages.) Only
 * one context can watch a mapping: other contexts of the process do not cache memory in it.
 *
 * Locks, outermost first: `slow` (held by threads that register and evict, never for a hit), the
 * context's lock, `lock` (the table; a few instructions). The monitor thread holds `lock` while it
 * reads events. So code under `lock` must do nothing that could return memory to the system: no
 * malloc(), no free(), no driver call. This applies to the monitor thread, too. The next caller
 * deregisters what it invalidates, a progress call at the latest.
 *
 * An entry is a hit only for a compatible use. If its keys go to a peer, the entry must allow peers
 * exactly the same access, and cover only memory offered with this right before
 * (mem/cache_table.h).
 *
 * Memory that peers may write has one user at a time. When its operation fails, the peer's hardware
 * may still write, and deregistering must not have to wait for other operations
 * (weft_mem_put_dead()).
 *
 * A child process after fork() has the table but neither the thread nor the events: it caches
 * nothing. It closes its copy of the descriptor (pthread_atfork()). A process made by clone()
 * itself runs no such handler. If it does not exec, it has to end before watched memory can be
 * unmapped after the context's end.
 */
#ifndef WEFT_REGCACHE_H
#define WEFT_REGCACHE_H

#include "mem/mem.h"

/** As weft_mem_get(). */
int weft_regcache_get(struct weft_regcache *rc, void *address, size_t length, unsigned int access,
		      struct weft_mem **mem);
void weft_regcache_put(struct weft_regcache *rc, struct weft_mem *mem);
/** As weft_mem_put_dead(). */
void weft_regcache_put_dead(struct weft_regcache *rc, struct weft_mem *mem);

#endif /* WEFT_REGCACHE_H */
