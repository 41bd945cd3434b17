/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/mem.h
 * Registered memory, and the keys by which peers access it.
 *
 *	mem/mem.c     registering, deregistering; moving state between interfaces; keys for
 *	              messages; a registration's state in each domain, its cost, exhausted memory
 *	mem/cache.c   the registration cache: its contents by kind and by address, look-up, eviction
 *	mem/watch.c   userfaultfd, which sends events of unmapped memory; the thread that reads them
 */
#ifndef WEFT_MEM_H
#define WEFT_MEM_H

#include "core/worker.h"

/* ------------------------------------------------------------------ remote keys */

/** The key with which a peer's lanes read and write a registration. */
struct weft_mem_key {
	/**
	 * Number of the domain in this context, as in the worker address. A lane of the peer whose
	 * weft_ep_lane.remote_domain equals the number uses this key.
	 */
	uint8_t domain;
	const struct weft_lane_driver *driver;
	uint64_t key; /**< result of weft_lane_driver.mem_key() */
};

/**
 * Get the keys of @p mem, one per domain whose driver has mem_key(). A domain without an open iface
 * has no key. The call takes the context's lock.
 * @return number of keys written, at most @p max
 */
unsigned int weft_mem_keys(struct weft_mem *mem, struct weft_mem_key *keys, unsigned int max);

/** @return the slot of a valid key; slot->mem exists until weft_mem_key_leave(); NULL = invalid */
struct weft_mem_slot *weft_mem_key_enter(struct weft_mem_table *keys, uint64_t key);

void weft_mem_table_fini(struct weft_mem_table *keys);

/* ------------------------------------------------------------------ on the fly */

/**
 * Get a registration that covers [address, address + length), for an operation on memory that the
 * user has not registered. It is from the registration cache, or made now by system calls, which is
 * too slow for small messages. It may begin before @p address and end later than requested. Any
 * thread may call this. The call can take the context's lock.
 * @param access  WEFT_LANE_ACCESS_*. With a REMOTE right, its keys give peers exactly this access,
 *   and only to memory for which the same right was requested, now or before. Without a REMOTE
 *   right its keys must not be sent to peers, because they may allow any access
 * @param[out] mem  to be released by weft_mem_put() when no lane uses it any more
 * @return 0; -ENOMEM; -EINVAL: the range exceeds the address space; the driver's error, which is
 *   logged once per domain and kind of error; or that error without an attempt, while locked memory
 *   is used up (base/pacing.h)
 */
int weft_mem_get(struct weft_context *ctx, void *address, size_t length, unsigned int access,
		 struct weft_mem **mem);
void weft_mem_put(struct weft_mem *mem);

/**
 * Release memory whose keys a peer has and may still use, because its operation did not end as
 * agreed. Memory that peers may write has one user at a time, so it is deregistered: when the
 * function has returned, the lanes' hardware refuses its keys. Memory that peers may only read
 * remains registered while other operations use the same registration; new ones do not find it.
 */
void weft_mem_put_dead(struct weft_mem *mem);

/**
 * Get a registration of all of @p mem whose keys allow peers exactly @p remote, and are not those
 * that the user sends to peers. For a registration by weft_mem_get() with @p remote it is @p mem
 * itself. For one of the user it is made at the first call, and exists as long as @p mem. After a
 * weft_mem_unexport() with @p dead it ends when its last user has released it, and the next call
 * makes another one. Any thread may call this. The call can take the context's lock.
 * @param remote  #WEFT_LANE_ACCESS_REMOTE_READ or #WEFT_LANE_ACCESS_REMOTE_WRITE
 * @return to be released by weft_mem_unexport(); NULL = @p mem is by weft_mem_get() with other
 *   rights, or it cannot be registered with this right, which is logged as by weft_mem_get()
 */
struct weft_mem *weft_mem_export(struct weft_mem *mem, unsigned int remote);
/**
 * Release @p exported.
 * @param dead  the peer may still use its keys, as in weft_mem_put_dead(). The call does nothing
 *   for registrations of weft_mem_get(): call weft_mem_put_dead() for them
 */
void weft_mem_unexport(struct weft_mem *mem, struct weft_mem *exported, bool dead);

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
 * How much must be deregistered before @p length bytes more can be registered, by what the domains
 * have refused (base/pacing.h)? The call takes the context's lock.
 * @return bytes; 0 = no domain has refused a total as small as this
 */
size_t weft_mem_excess(struct weft_context *ctx, size_t length);

#include "mem/cache.h"

/* ------------------------------------------------------------------ domains */

/* The context's lock is held in the functions below, unless stated otherwise. */

/** @return the driver's state of @p mem for @p iface, or NULL. The call needs no lock. */
struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface);

/**
 * Get the cost of registering in the domain of @p iface: fitted to the last registrations of this
 * context, or the driver's figures if there are too few. The call takes the context's lock.
 * @param[out] cost    s
 * @param[out] growth  s/byte
 * @return true = measured
 */
bool weft_mem_cost(struct weft_context *ctx, const struct weft_lane_iface *iface, double *cost,
		   double *growth);

/** The interfaces of the context must have been closed. */
void weft_mem_domains_free(struct weft_context *ctx);

void weft_mem_iface_opened(struct weft_context *ctx, struct weft_lane_iface *iface);

/** Move the registrations of a closing iface to another one of its domain, or end them. */
void weft_mem_iface_closing(struct weft_context *ctx, struct weft_lane_iface *iface);

#endif /* WEFT_MEM_H */
