/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache_table.h
 * What the registration cache holds, by kind and by address. Pure: no locks, no system calls, no
 * allocation.
 *
 * **Kinds.** A key must not reach memory that was never offered. So registrations that peers have
 * keys of are kept apart, one kind per right, and grow only by what was offered with that right: to
 * the byte, not to whole pages, and without what lies between. Registrations for our own lanes, of
 * which no key leaves, are whole pages. Entries of one kind do not overlap; those of different
 * kinds may.
 *
 * Our own lanes may also use what is kept for peers.
 */
#ifndef WEFT_REGCACHE_TABLE_H
#define WEFT_REGCACHE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum weft_regcache_kind {
	WEFT_REGCACHE_LOCAL, /**< no keys */
	WEFT_REGCACHE_READ,  /**< peers may read */
	WEFT_REGCACHE_WRITE, /**< peers may write */
	WEFT_REGCACHE_KINDS,
};

struct weft_mem;

struct weft_regcache_entry {
	uintptr_t start, end; /**< registered: bytes; LOCAL: whole pages */
	struct weft_mem *mem;
	unsigned int access; /**< WEFT_LANE_ACCESS_*; remote ones are the kind's */
	enum weft_regcache_kind kind;
	uint32_t refs; /**< operations */
	bool listed;   /**< in the table: hits are possible */
	TAILQ_ENTRY(weft_regcache_entry)
	link; /**< lru while listed and idle; garbage when neither */
};

struct weft_regcache_list {
	struct weft_regcache_entry **entry; /**< by address; of the owner's */
	unsigned int num;
};

struct weft_regcache_table {
	struct weft_regcache_list kind[WEFT_REGCACHE_KINDS];
	uintptr_t page_size;
};

/** Kind of a use. @return WEFT_REGCACHE_KINDS for rights that nothing is kept for */
enum weft_regcache_kind weft_regcache_kind(unsigned int access);

/** First entry that ends behind @p start. */
unsigned int weft_regcache_position(const struct weft_regcache_list *list, uintptr_t start);

/** An entry that may be used for [start, end) with @p access, or NULL. */
struct weft_regcache_entry *weft_regcache_find(const struct weft_regcache_table *t, uintptr_t start,
					       uintptr_t end, unsigned int access);

/**
 * What shall be registered for [start, end) of @p kind: with what overlaps it, since the new entry
 * takes the place of that.
 */
void weft_regcache_widen(const struct weft_regcache_table *t, enum weft_regcache_kind kind,
			 uintptr_t *start, uintptr_t *end);

/** Overlaps nothing of its kind, and there is room. */
void weft_regcache_insert(struct weft_regcache_table *t, struct weft_regcache_entry *e);
/** The entry at @p i of its kind goes. */
struct weft_regcache_entry *weft_regcache_remove(struct weft_regcache_list *list, unsigned int i);

/** The whole pages of [start, end). */
void weft_regcache_pages(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end);

/** Of whole pages [start, end) what no entry needs; an empty range when one is in the middle. */
void weft_regcache_unshared(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end);

#endif /* WEFT_REGCACHE_TABLE_H */
