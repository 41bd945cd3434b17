/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/mem.h
 * A registration of memory. mem/mem.h has its functions.
 */
#ifndef WEFT_CORE_MEM_H
#define WEFT_CORE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/context.h"
#include "lane.h"

struct weft_mem {
	struct weft_context *ctx;
	void *address;
	size_t length;
	_Atomic uint32_t refs; /* operations using it, of any worker */
	unsigned int rights;   /* WEFT_MEM_REMOTE_* */
	/*
	 * WEFT_LANE_ACCESS_* that it is registered with. Written under the context's lock, read
	 * without it. Once other threads can see the registration, the only change is that
	 * LOCAL_WRITE is removed, when a domain that registers later finds the memory read-only. A
	 * reader uses domains that were registered before, whose registrations do not change. Both
	 * values are right for it, so no order is needed (relaxed).
	 */
	_Atomic unsigned int access;
	bool write_optional;        /* try LOCAL_WRITE, omit it if the memory is not writable */
	bool on_the_fly;            /* for an operation, not by the user */
	uint64_t key;               /* with rights for peers: the key on the wire */
	struct weft_mem_slot *slot; /* of the key; NULL = no rights, or revoked */
	_Atomic bool revoked;
	struct weft_regcache_entry *cached; /* its entry in the cache; NULL = none */
	/* the same memory with keys that allow reading, or writing, alone; weft_mem_export() */
	struct weft_mem *narrow[2];
	uint32_t exported; /* of a narrow one: operations whose peers have its keys */
	bool withdrawn;    /* of a narrow one: not in narrow[]; its last operation frees it */
	/*
	 * Indexed by the number of the domain in the context, which never changes: a lookup without
	 * a lock (weft_mem_lane_of()) never finds the entry of another domain.
	 */
	struct weft_mem_domain {
		/*
		 * The iface that registered it, or that has taken it over; NULL = not registered.
		 * Written under the context's lock, after mem (release). A thread that reads it
		 * without the lock (acquire) has an iface of the domain open, so mem stays valid.
		 */
		struct weft_lane_iface *_Atomic iface;
		struct weft_mem_lane *mem;
	} domains[WEFT_MAX_DOMAINS];
	LIST_ENTRY(weft_mem) entry;
};

static inline unsigned int weft_mem_access(const struct weft_mem *mem)
{
	return atomic_load_explicit(&mem->access, memory_order_relaxed);
}

/** Driver state of @p mem for @p iface, or NULL. */
struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface);

#endif /* WEFT_CORE_MEM_H */
