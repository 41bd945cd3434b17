/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/regcache_util.h
 * A context with a worker whose lane registers memory, for tests of the registration cache: the
 * driver keeps what the memory held when it was registered, so that a stale hit shows old content,
 * as a NIC would.
 */
#ifndef WEFT_TEST_REGCACHE_UTIL_H
#define WEFT_TEST_REGCACHE_UTIL_H

#include <stdatomic.h>

#include "mem/cache.h"
#include "mem/mem.h"
#include "mem/watch.h"
#include "mock/conn_util.h"

#define PAGE 4096ul
#define LOCAL WEFT_LANE_ACCESS_LOCAL_WRITE
#define READ WEFT_LANE_ACCESS_REMOTE_READ
#define WRITE WEFT_LANE_ACCESS_REMOTE_WRITE

/** What the pages were when they were registered: first byte of each, at most 64 of them. */
struct snapshot {
	uint8_t first[64];
	void *addr;
	size_t len;
	unsigned int access;
};

extern _Atomic unsigned int snapshots, registered; /**< now, ever */
extern int refuse;                                 /**< error of each registration */
extern unsigned int reg_calls;                     /**< calls of the driver */
extern size_t lockable;       /**< bytes that may be registered at a time; 0 = no limit */
extern const void *read_only; /**< pages that begin here can't be written */
extern uint64_t reg_ns; /**< what a registration takes on the mock's clock, per page; plus 1 us */

struct scene {
	struct weft_context *ctx;
	struct weft_worker *w;
	struct weft_regcache_stats stats;
};

void open_scene(struct scene *s, const char *entries, const char *bytes, const char *mode);
void close_scene(struct scene *s);
const struct weft_regcache_stats *stats(struct scene *s);
/** Pages full of @p fill. @param at NULL = anywhere; else what is there goes */
uint8_t *map_pages(void *at, size_t pages, int fill);
/** What the lane would send from @p addr. */
uint8_t seen(struct scene *s, const struct weft_mem *mem, const uint8_t *addr);
struct weft_mem *get_for(struct scene *s, void *addr, size_t len, unsigned int access);
struct weft_mem *get(struct scene *s, void *addr, size_t len);
/** What the registration of a use with @p access allows. */
unsigned int access_for(struct scene *s, void *addr, size_t len, unsigned int access);
/** Register, use, give back. @return what the lane sees first */
uint8_t use(struct scene *s, uint8_t *addr, size_t len);
bool have_uffd(void);

#define NEEDS_UFFD()              \
	do {                      \
		(void)state;      \
		if (!have_uffd()) \
			skip();   \
	} while (0)

#endif /* WEFT_TEST_REGCACHE_UTIL_H */
