/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache_table.h
 * The contents of the registration cache, by kind and by address. Pure: no locks, no system calls,
 * no allocation.
 *
 * **Kinds.** A key must not give access to memory that was never offered. So registrations whose
 * keys go to peers are separate, one kind per right. They grow only by memory offered with that
 * right: by bytes, not by whole pages, and without memory in between. Registrations for local
 * lanes, whose keys are not sent, are whole pages. Entries of one kind do not overlap; those of
 * different kinds may.
 *
 * Local lanes may also use registrations made for peers.
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
	uintptr_t start, end; /**< registered bytes; LOCAL: whole pages */
	struct weft_mem *mem;
	unsigned int access; /**< WEFT_LANE_ACCESS_*; the remote rights are those of the kind */
	enum weft_regcache_kind kind;
	uint32_t refs; /**< operations that use it */
	bool listed;   /**< in the table: hits are possible */
	TAILQ_ENTRY(weft_regcache_entry)
	link; /**< lru while listed and idle; garbage when neither */
};

struct weft_regcache_list {
	struct weft_regcache_entry **entry; /**< by address; the array is the owner's */
	unsigned int num;
};

struct weft_regcache_table {
	struct weft_regcache_list kind[WEFT_REGCACHE_KINDS];
	uintptr_t page_size;
};

/** The kind of a use. @return WEFT_REGCACHE_KINDS for rights that are never cached */
enum weft_regcache_kind weft_regcache_kind(unsigned int access);

/** The first entry that ends behind @p start. */
unsigned int weft_regcache_position(const struct weft_regcache_list *list, uintptr_t start);

/** An entry that may be used for [start, end) with @p access, or NULL. */
struct weft_regcache_entry *weft_regcache_find(const struct weft_regcache_table *t, uintptr_t start,
					       uintptr_t end, unsigned int access);

/**
 * Extend [start, end) of @p kind by the entries that overlap it, since the new entry will replace
 * them.
 */
void weft_regcache_widen(const struct weft_regcache_table *t, enum weft_regcache_kind kind,
			 uintptr_t *start, uintptr_t *end);

/** Insert an entry that overlaps none of its kind; there is room for it. */
void weft_regcache_insert(struct weft_regcache_table *t, struct weft_regcache_entry *e);
/** Remove the entry at @p i. */
struct weft_regcache_entry *weft_regcache_remove(struct weft_regcache_list *list, unsigned int i);

/** The whole pages of [start, end). */
void weft_regcache_pages(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end);

/**
 * Reduce whole pages [start, end) to those that no entry needs: none if an entry is in the middle.
 */
void weft_regcache_unshared(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end);

#endif /* WEFT_REGCACHE_TABLE_H */
