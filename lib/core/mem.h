/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/mem.h
 * A registration of memory. mem/mem.h has what can be done with it.
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
	 * WEFT_LANE_ACCESS_* it is registered with. Written under the context's lock; read without
	 * it. Once others know the registration only LOCAL_WRITE can go, when a domain that comes
	 * later finds that the memory is read-only. Whoever reads it uses domains that were there
	 * before, whose registrations do not change: either value is right for them, so no order is
	 * needed (relaxed).
	 */
	_Atomic unsigned int access;
	bool write_optional; /* try LOCAL_WRITE, do without it if the memory is not writable */
	bool on_the_fly;     /* for an operation, not by the user */
	uint64_t key;        /* with rights: what peers name it by */
	struct weft_mem_slot *slot; /* of the key; NULL = no rights, or revoked */
	_Atomic bool revoked;
	struct weft_regcache_entry *cached; /* made by weft_mem_get() and kept; NULL = not */
	/* the same memory with keys that allow reading, or writing, alone; weft_mem_export() */
	struct weft_mem *narrow[2];
	uint32_t exported; /* of such a one: operations whose peers have its keys */
	bool withdrawn;    /* of such a one: in narrow[] no more; the last of them ends it */
	/*
	 * By number of the domain in the context, for good: whoever looks for his own
	 * (weft_mem_lane_of(), without a lock) never meets another's.
	 */
	struct weft_mem_domain {
		/*
		 * That it was registered with, or that has taken it over; NULL = not registered.
		 * Written under the context's lock, after mem (release); who reads without the lock
		 * (acquire) has an iface of the domain, so mem stays.
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
