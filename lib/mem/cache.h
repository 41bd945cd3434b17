/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache.h
 * Registrations made on the fly, kept for the next message from the same memory. Behind
 * weft_mem_get() and weft_mem_put() (mem/mem.h).
 *
 * **A hit is certain.** What is kept is watched (mem/uffd.h): the call that unmaps, moves or
 * empties the memory waits until the cache has heard of it, and a look-up asks the kernel whether
 * such a call is under way. What cannot be watched is registered for one operation and not kept.
 * A mapping is watched as a whole, since a part would split it, and the program's mremap() would
 * fail. (The heap and the main stack, which mremap() is not for, are watched by pages.) It is
 * watched by one context: another one of the process keeps nothing that lies in it.
 *
 * Locks, outermost first: `slow` (who registers and evicts; never held for a hit), the context's
 * lock, `lock` (the table; a few instructions). The monitor thread takes `lock` around reading
 * events, so nobody may do anything under it that might give memory back to the system: no
 * malloc(), no free(), no driver call. The thread itself does neither either; what it invalidates
 * is deregistered by whoever comes next, a progress call at the latest.
 *
 * An entry is a hit only for who may use it: whose keys go to a peer wants one that allows peers
 * exactly the same, and that covers only what was offered with this right before
 * (mem/cache_table.h).
 *
 * What peers may write has one user at a time: when its operation fails, the peer's hardware may
 * still write, and nobody else's operation must keep that from being stopped (weft_mem_put_dead()).
 *
 * A child process after fork() has the table but neither the thread nor the events: there nothing
 * is kept. It closes its copy of the descriptor (pthread_atfork(); a process that was made without,
 * by clone() itself, and does not exec has to end before what is watched can be unmapped after the
 * context's end).
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
