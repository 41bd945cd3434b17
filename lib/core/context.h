/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/context.h
 * State that all workers of a context share: configuration, drivers and their resources, registered
 * memory.
 */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/pacing.h"
#include "base/platform.h"
#include "core/mem_key.h"
#include "lane.h"
#include "weft.h"

struct weft_conf; /* parsed configuration: core/config.h */
struct weft_config;
struct weft_found;
struct weft_handler; /* msg/module.h */
struct weft_module;  /* msg/module.h */
struct weft_mem;     /* core/mem.h */
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

/** The tables of this build (lib/tables.c). */
extern const struct weft_tables weft_tables;

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
	const struct weft_tables *tables;              /* of the layers above: lib/tables.c */
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
	_Atomic bool mem_garbage; /* registrations wait for regcache_reap(); progress checks it */
	/**
	 * Registration domains that ifaces of this context have had. A domain's index is its
	 * number, which never changes.
	 */
	struct weft_ctx_domain {
		const struct weft_lane_driver *driver;
		char name[32];
		struct weft_reg_cost {
			double n, x, t, xx, xt; /* decaying sums: 1, bytes, s, bytes^2, bytes*s */
		} measured;
		int logged[4]; /* errors of registrations on the fly that have been logged */
		struct weft_backoff backoff; /* of registrations on the fly; bytes: mem_bytes */
	} domains[WEFT_MAX_DOMAINS];
	unsigned int num_domains;
	struct weft_mem_table keys; /* read without the lock: core/mem_key.h */
};

/**
 * False in a forked child. Its sockets, rings and devices belong to the parent, which continues to
 * use them, so the child must not close or release any of them.
 */
static inline bool weft_context_is_ours(const struct weft_context *ctx)
{
	return ctx->pid == getpid();
}

/**
 * As weft_context_create(), with another platform: for the simulator and tests. NULL = the real
 * one.
 * @param drivers  NULL-terminated table, static storage; NULL = all drivers of the build
 */
int weft_context_create_in(const struct weft_context_params *params,
			   const struct weft_platform *platform,
			   const struct weft_lane_driver *const *drivers,
			   struct weft_context **ctx);

/**
 * All drivers of this build and those that were added, NULL-terminated (lib/drivers.c). @return to
 * be freed; NULL = no memory
 */
const struct weft_lane_driver **weft_drivers_list(void);

/** What a driver found. */
struct weft_found {
	bool queried;
	int num; /* or the error of query() */
	struct weft_lane_resource *list;
};

/**
 * Resources of a driver; its query() is called once. The context's lock is held, or the context is
 * not shared yet.
 */
struct weft_found *weft_context_find(struct weft_context *ctx,
				     const struct weft_lane_driver *driver);

#endif /* WEFT_CONTEXT_H */
