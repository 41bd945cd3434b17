/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/mem.h
 * Registered memory: it follows the interfaces that come and go; the keys by which peers reach it;
 * registration on the fly.
 *
 *	mem/mem.c          registering, deregistering; what lives while interfaces come and go
 *	mem/domain.c       a registration's state in each domain, its cost, memory that runs out
 *	mem/key.c          keys by which peers reach memory through messages
 *	mem/cache.c        the registration cache: look-up, eviction
 *	mem/cache_table.c  what it holds, by kind and by address
 *	mem/cache_watch.c  the thread that hears of memory that is unmapped
 *	mem/uffd.c         userfaultfd, by which it does
 */
#ifndef WEFT_MEM_H
#define WEFT_MEM_H

#include "base/counters.h"
#include "core/mem.h"

/* ------------------------------------------------------------------ remote keys */

/** What a peer's lanes need to read and write a registration. */
struct weft_mem_key {
	/**
	 * Number of the domain in this context. The peer learned it from the worker address: its
	 * lane with weft_ep_lane.remote_domain equal to this uses this key.
	 */
	uint8_t domain;
	const struct weft_lane_driver *driver;
	uint64_t key; /**< weft_lane_driver.mem_key() */
};

/**
 * The keys of @p mem, one per domain whose driver has mem_key(). A domain that loses its last iface
 * takes its key with it. Takes the context's lock.
 * @return how many were written, at most @p max; WEFT_MAX_IFACES is always enough
 */
unsigned int weft_mem_keys(struct weft_mem *mem, struct weft_mem_key *keys, unsigned int max);

/* ------------------------------------------------------------------ on the fly */

/**
 * A registration that covers [address, address + length), for an operation on memory that its user
 * has not registered: from the registration cache, or made now (system calls: not for small
 * messages). Its start and length may be larger than requested. Any thread; takes the context's
 * lock.
 * @param access  WEFT_LANE_ACCESS_*. What peers may do with its keys is exactly this, with memory
 *   that was requested with this REMOTE right, now or before, and with no other; without a REMOTE
 *   right here its keys must not be given away, for they may allow anything
 * @param[out] mem  to be given back with weft_mem_put() when no lane uses it any more
 * @return 0, or the driver's error, which has been logged (once per device and error, then counted)
 */
int weft_mem_get(struct weft_context *ctx, void *address, size_t length, unsigned int access,
		 struct weft_mem **mem);
void weft_mem_put(struct weft_mem *mem);

/**
 * The same of memory whose keys a peer has and may still use, because its operation did not end as
 * agreed: the lanes' hardware refuses them from the return of this call on. Memory that peers may
 * write has one user at a time, so that is certain; memory that they may only read lives on while
 * other operations use the same registration, and is not found by new ones.
 */
void weft_mem_put_dead(struct weft_mem *mem);

/**
 * A registration of all of @p mem whose keys allow peers exactly @p remote, and are not those that
 * the user gives away. What weft_mem_get() has made for @p remote is it itself; for the user's it
 * is made at the first call and lives as long as @p mem. Any thread; takes the context's lock.
 * @param remote  #WEFT_LANE_ACCESS_REMOTE_READ or #WEFT_LANE_ACCESS_REMOTE_WRITE
 * @return to be given back with weft_mem_unexport(); NULL = it can't be registered so; logged as
 *   with weft_mem_get()
 */
struct weft_mem *weft_mem_export(struct weft_mem *mem, unsigned int remote);
/**
 * @param dead  as weft_mem_put_dead(); weft_mem_get()'s own are not touched: that call is due for
 * them
 */
void weft_mem_unexport(struct weft_mem *mem, struct weft_mem *exported, bool dead);

/** Does the registration cover the buffer? */
static inline bool weft_mem_covers(const struct weft_mem *mem, const void *buf, size_t length)
{
	uintptr_t base = (uintptr_t)mem->address, at = (uintptr_t)buf;

	return at >= base && at - base <= mem->length && length <= mem->length - (at - base);
}

/**
 * weft_mem_get() without the cache.
 * @param partial  lanes that can copy instead (drivers without mem_key()) may lack it, if others
 *   have it
 */
int weft_mem_make(struct weft_context *ctx, void *address, size_t length, unsigned int access,
		  bool partial, struct weft_mem **mem);

/**
 * Registering @p length bytes more is known to fail (base/backoff.h). Takes the context's lock.
 * @return bytes of registrations that must go before it may work; 0 = it is not known
 */
size_t weft_mem_excess(struct weft_context *ctx, size_t length);

/**
 * What registering costs in the domain of @p iface: measured (an average over the last
 * registrations of this context), else the driver's figures.
 * @param[out] cost    s
 * @param[out] growth  s/byte
 * @return true = measured
 */
bool weft_mem_cost(struct weft_context *ctx, const struct weft_lane_iface *iface, double *cost,
		   double *growth);

/*
 * ------------------------------------------------------------------ set-up: the context's lock is
 * held
 */

/** A new iface of a worker: what is registered is registered with its domain, too. */
void weft_mem_iface_opened(struct weft_context *ctx, struct weft_lane_iface *iface);

/**
 * The iface is about to close; it is still open. Its registrations move to another iface of the
 * domain, or end.
 */
void weft_mem_iface_closing(struct weft_context *ctx, struct weft_lane_iface *iface);

/* ------------------------------------------------------------------ the cache: mem/cache.h */

enum weft_regcache_mode { WEFT_REGCACHE_AUTO, WEFT_REGCACHE_ON, WEFT_REGCACHE_OFF };

/** A cache that does nothing before the first miss. @return NULL = no memory */
struct weft_regcache *weft_regcache_new(struct weft_context *ctx);
/**
 * Everything is given back: deregisters what is kept, ends the thread. The context's lock is not
 * held.
 */
void weft_regcache_free(struct weft_regcache *rc);

/** Are registrations kept, as far as is known? It is tried at the first use. */
bool weft_regcache_keeps(struct weft_regcache *rc);

/** Deregister what has been invalidated. Any thread that holds none of the locks. */
void weft_regcache_reap(struct weft_regcache *rc);

/** What it has counted, and what it holds. */
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

#endif /* WEFT_MEM_H */
