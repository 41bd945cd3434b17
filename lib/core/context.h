/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/context.h
 * State that all workers of a context share: configuration, drivers and their resources, registered
 * memory and its remote keys.
 */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/pacing.h"
#include "base/platform.h"
#include "lane.h"
#include "weft.h"

/* ------------------------------------------------------------------ remote keys */

/*
 * The table of remote keys of registered memory. It finds the memory of a key from the wire. A key
 * is invalid as soon as it is revoked.
 *
 * A key has 64 bits, random or chosen by the application. Its low bits select one slot in each
 * level. Levels are only added, never removed, so threads of other workers look keys up without a
 * lock. A thread that uses the memory is counted in the slot (enter, leave). Revoking a key waits
 * for the copies that are under way.
 */

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

static inline void weft_mem_key_leave(struct weft_mem_slot *slot)
{
	/* Release: accesses to the memory happen before the return of revoke_key(). */
	atomic_fetch_sub_explicit(&slot->users, 1, memory_order_release);
}

/* ------------------------------------------------------------------ context */

struct weft_conf; /* parsed configuration: core/config.h */
struct weft_config;
struct weft_found;
struct weft_handler; /* msg/module.h */
struct weft_module;  /* msg/module.h */
struct weft_proto;   /* proto/proto.h */
struct weft_regcache;
struct weft_worker; /* core/worker.h */

/**
 * Tables of the upper layers, passed by pointer to the layers below, which include no header of
 * those above. A test may give a context another table before it makes the first worker.
 */
struct weft_tables {
	/** NULL-terminated (proto/proto.h); of protocols with equal times the first is chosen */
	const struct weft_proto *const *protos;
	/** NULL-terminated, and by message id (msg/module.h) */
	const struct weft_module *const *modules;
	const struct weft_handler *handlers;
};

/**
 * Registration domains that one context can number; ifaces of further domains have no remote keys.
 */
#define WEFT_MAX_DOMAINS 32

struct weft_context {
	const struct weft_conf *conf;
	struct weft_config *config;
	const struct weft_platform *platform;
	const struct weft_lane_driver *const *drivers; /* NULL-terminated */
	const struct weft_lane_driver **drivers_list;  /* to be freed; NULL = they are static */
	const struct weft_tables *tables;              /* of the layers above: lib/dispatch.c */
	uint64_t features;
	pid_t pid; /* of the process that made it; a forked child must not use it */
	char name[64];
	struct weft_found *found; /* resources per driver, same order: context.c */
	pthread_mutex_t lock;     /* workers, registrations, driver query/open/close */
	/*
	 * Guards narrow[], exported and withdrawn of mems. It is taken per message, so it is never
	 * held during a driver's call. Taken inside `lock`.
	 */
	pthread_mutex_t export_lock;
	LIST_HEAD(, weft_worker) workers;
	LIST_HEAD(, weft_mem) mems;
	size_t mem_bytes; /* of all mems */
	struct weft_regcache *regcache;
	_Atomic bool mem_garbage; /* weft_regcache_reap() has work; progress checks it */
	/**
	 * Registration domains that ifaces of this context have had. A domain's index is its
	 * number, which never changes.
	 */
	struct weft_ctx_domain {
		const struct weft_lane_driver *driver;
		char *name;
		struct weft_reg_cost {
			double n, x, t, xx, xt; /* decaying sums: 1, bytes, s, bytes^2, bytes*s */
		} measured;
		int logged[4]; /* errors of registrations on the fly that have been logged */
		struct weft_backoff backoff; /* of registrations on the fly; bytes: mem_bytes */
	} domains[WEFT_MAX_DOMAINS];
	unsigned int num_domains;
	struct weft_mem_table keys; /* read without the lock */
};

/**
 * False in a forked child. Its sockets, rings and devices belong to the parent, which continues to
 * use them, so the child must not close or release any of them.
 */
static inline bool weft_context_is_ours(const struct weft_context *ctx)
{
	return ctx->pid == getpid();
}

/** A copy of struct weft_lane_resource. */
struct weft_found_resource {
	char *name, *why; /* why NULL = usable */
	bool inside;
};

/** What a driver found. */
struct weft_found {
	bool queried;
	int num; /* or the error of query() */
	struct weft_found_resource *list;
};

/* ------------------------------------------------------------------ registrations */

/** A registration of memory. mem/mem.h has its functions. */
struct weft_mem {
	struct weft_context *ctx;
	void *address;
	size_t length;
	_Atomic uint32_t refs; /* operations using it, of any worker */
	unsigned int rights;   /* WEFT_MEM_F_REMOTE_* */
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
	bool key_chosen;            /* by the application: for messages only */
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

#endif /* WEFT_CONTEXT_H */
