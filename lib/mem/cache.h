/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache.h
 * The registration cache: registrations made on the fly, stored for the next operation on the same
 * memory. weft_mem_get() and weft_mem_put() (mem/mem.h) use it.
 *
 * **A hit is always valid.** Memory in the cache is watched (mem/watch.h). A call that unmaps,
 * moves or empties it blocks until the cache has received the event, and a look-up queries the
 * kernel for such calls. Memory that cannot be watched is registered for one operation and not
 * stored. A mapping is watched as a whole if possible: watching a part splits it, and the program's
 * mremap() would fail. (The heap and the main stack, to which mremap() is not applied, are watched
 * by pages.) Only one context can watch a page: other contexts of the process do not cache memory
 * in it.
 *
 * Locks, outermost first: `slow` (held by threads that register and evict), the context's lock,
 * `lock` (the table; a few instructions). The monitor thread holds `lock` while it reads events. So
 * code under `lock` must do nothing that could return memory to the system: no malloc(), no free(),
 * no driver call. This applies to the monitor thread, too. So the next caller, a progress call at
 * the latest, deregisters the memory of entries that the monitor has removed.
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
#ifndef WEFT_MEM_CACHE_H
#define WEFT_MEM_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/worker.h"
#include "lane_attr.h"

enum weft_regcache_mode { WEFT_REGCACHE_AUTO, WEFT_REGCACHE_ON, WEFT_REGCACHE_OFF };

/** Make a cache that does nothing before its first use. @return NULL = no memory */
struct weft_regcache *weft_regcache_new(struct weft_context *ctx);
/** End the thread, and deregister everything. The caller does not hold the context's lock. */
void weft_regcache_free(struct weft_regcache *rc);

/** @return true before the first use, which tries to start the cache, unless WEFT_REG_CACHE=off */
bool weft_regcache_keeps(struct weft_regcache *rc);

/** Deregister the entries that are garbage. The caller holds no lock of the cache or context. */
void weft_regcache_reap(struct weft_regcache *rc);

#define WEFT_REGCACHE_COUNTERS(X)                                                         \
	X(hits, "regcache.hits", "Registrations found in the cache.")                     \
	X(misses, "regcache.misses", "Registrations made and kept.")                      \
	X(uncached, "regcache.uncached", "Registrations made for one operation.")         \
	X(evicted, "regcache.evicted", "Registrations given up to make room for others.") \
	X(invalidated, "regcache.invalidated",                                            \
	  "Registrations whose memory was unmapped, moved or emptied.")                   \
	X(entries, "regcache.entries_now", "Registrations kept now, in use included.")    \
	X(bytes, "regcache.bytes_now", "Bytes of memory that is registered now.")

struct weft_regcache_stats {
	WEFT_REGCACHE_COUNTERS(WEFT_COUNTER_FIELD)
};

void weft_regcache_query(struct weft_regcache *rc, struct weft_regcache_stats *stats);

int weft_regcache_get(struct weft_regcache *rc, void *address, size_t length, unsigned int access,
		      struct weft_mem **mem);
void weft_regcache_put(struct weft_regcache *rc, struct weft_mem *mem);
void weft_regcache_put_dead(struct weft_regcache *rc, struct weft_mem *mem);

#endif /* WEFT_MEM_CACHE_H */
