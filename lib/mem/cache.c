/* SPDX-License-Identifier: BSD-3-Clause */

#include "mem/cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/log.h"
#include "core/config.h"
#include "mem/mem.h"
#include "mem/watch.h"

/* ------------------------------------------------------------------ contents */

/*
 * These functions take no locks, make no system calls and allocate nothing.
 *
 * **Kinds.** A key must not give access to memory that was never offered. So registrations whose
 * keys go to peers are separate, one kind per right. They grow only by memory offered with that
 * right: by bytes, not by whole pages, and without memory in between. Registrations for local
 * lanes, whose keys are not sent, are whole pages. Entries of one kind do not overlap; those of
 * different kinds may.
 */

enum weft_regcache_kind {
	WEFT_REGCACHE_LOCAL, /**< peers get no keys */
	WEFT_REGCACHE_READ,  /**< peers may only read */
	WEFT_REGCACHE_WRITE, /**< peers may only write */
	WEFT_REGCACHE_KINDS,
};

struct weft_regcache_entry {
	uintptr_t start, end; /**< registered bytes; LOCAL: whole pages */
	struct weft_mem *mem;
	unsigned int access; /**< WEFT_LANE_ACCESS_*; the remote rights are those of the kind */
	enum weft_regcache_kind kind;
	uint32_t refs; /**< operations that use the entry; 0 = idle */
	bool listed;
	TAILQ_ENTRY(weft_regcache_entry)
	link; /**< while idle: in lru if listed, else in garbage */
};

struct weft_regcache_list {
	struct weft_regcache_entry **entry; /**< sorted by address */
	unsigned int num;
};

struct weft_regcache_table {
	struct weft_regcache_list kind[WEFT_REGCACHE_KINDS];
	uintptr_t page_size;
};

/* @return the kind for @p access; WEFT_REGCACHE_KINDS for rights that are never cached */
static enum weft_regcache_kind kind_of(unsigned int access)
{
	switch (access & WEFT_LANE_ACCESS_REMOTE) {
	case 0:
		return WEFT_REGCACHE_LOCAL;
	case WEFT_LANE_ACCESS_REMOTE_READ:
		return WEFT_REGCACHE_READ;
	case WEFT_LANE_ACCESS_REMOTE_WRITE:
		return WEFT_REGCACHE_WRITE;
	default:
		return WEFT_REGCACHE_KINDS;
	}
}

/* @return index of the first entry that ends behind @p start, or list->num */
static unsigned int table_position(const struct weft_regcache_list *list, uintptr_t start)
{
	unsigned int lo = 0, hi = list->num, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (list->entry[mid]->end <= start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct weft_regcache_entry *find_in(const struct weft_regcache_list *list, uintptr_t start,
					   uintptr_t end, unsigned int access)
{
	unsigned int i = table_position(list, start);
	struct weft_regcache_entry *e = i < list->num ? list->entry[i] : NULL;

	return e != NULL && e->start <= start && e->end >= end && (e->access & access) == access
		       ? e
		       : NULL;
}

static struct weft_regcache_entry *table_find(const struct weft_regcache_table *t, uintptr_t start,
					      uintptr_t end, unsigned int access)
{
	enum weft_regcache_kind kind = kind_of(access), last = kind;
	struct weft_regcache_entry *e = NULL;

	/* Local use accepts any kind. A key for a peer must allow exactly this access. */
	if (kind == WEFT_REGCACHE_LOCAL)
		last = WEFT_REGCACHE_KINDS - 1;
	for (; kind <= last && kind < WEFT_REGCACHE_KINDS && !e; kind++)
		e = find_in(&t->kind[kind], start, end, access);
	return e;
}

static void table_widen(const struct weft_regcache_table *t, enum weft_regcache_kind kind,
			uintptr_t *start, uintptr_t *end)
{
	const struct weft_regcache_list *list = &t->kind[kind];
	const struct weft_regcache_entry *e;
	unsigned int i;

	/* Each entry overlaps the requested range, so together they have no gap. */
	for (i = table_position(list, *start); i < list->num; i++) {
		e = list->entry[i];
		if (e->start >= *end)
			break;
		if (e->start < *start)
			*start = e->start;
		if (e->end > *end)
			*end = e->end;
	}
}

/* Insert an entry that overlaps none of its kind; there is room for it. */
static void table_insert(struct weft_regcache_table *t, struct weft_regcache_entry *e)
{
	struct weft_regcache_list *list = &t->kind[e->kind];
	unsigned int i = table_position(list, e->start);

	memmove(&list->entry[i + 1], &list->entry[i], (list->num - i) * sizeof(list->entry[0]));
	list->entry[i] = e;
	list->num++;
}

static struct weft_regcache_entry *table_remove(struct weft_regcache_list *list, unsigned int i)
{
	struct weft_regcache_entry *e = list->entry[i];

	memmove(&list->entry[i], &list->entry[i + 1], (list->num - i - 1) * sizeof(list->entry[0]));
	list->num--;
	return e;
}

static void table_pages(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end)
{
	*start &= ~(t->page_size - 1);
	*end = (*end + t->page_size - 1) & ~(t->page_size - 1);
}

/* Remove the entry's whole pages from the range. */
static void cut_off(const struct weft_regcache_table *t, const struct weft_regcache_entry *e,
		    uintptr_t *start, uintptr_t *end)
{
	uintptr_t from = e->start, to = e->end;

	table_pages(t, &from, &to);
	if (from <= *start)
		*start = to > *start ? to : *start;
	else if (to >= *end)
		*end = from < *end ? from : *end;
	else
		*end = *start; /* the entry is in the middle: nothing remains */
	if (*start > *end)
		*start = *end;
}

/* Reduce whole pages [start, end) to those without entries; to none if one is in the middle. */
static void table_unshared(const struct weft_regcache_table *t, uintptr_t *start, uintptr_t *end)
{
	unsigned int kind, i;

	for (kind = 0; kind < WEFT_REGCACHE_KINDS; kind++) {
		const struct weft_regcache_list *list = &t->kind[kind];

		/* An entry whose last byte is in the first page ends behind the page's start. */
		for (i = table_position(list, *start); i < list->num && *start < *end; i++) {
			if (list->entry[i]->start >= *end)
				break;
			cut_off(t, list->entry[i], start, end);
		}
	}
}

/* ------------------------------------------------------------------ the cache */

/* The most entries that a new one may evict; a new entry that needs more is not stored. */
#define MAX_EVICT 64

TAILQ_HEAD(entry_list, weft_regcache_entry);

struct weft_regcache {
	struct weft_context *ctx;
	pthread_mutex_t slow;
	_Atomic bool tried; /* written under slow */
	struct weft_regcache_watch watch;
	/* under lock */
	pthread_mutex_t lock;
	struct weft_regcache_table table;
	unsigned int num;
	struct entry_list lru;     /* listed, idle: least recently used first */
	struct entry_list garbage; /* to be deregistered by weft_regcache_reap() */
	uint64_t events;
	struct weft_regcache_stats stats;
	/* read without a lock */
	_Atomic bool running;
	_Atomic bool *dirty; /* is &ctx->mem_garbage; true = there is garbage */
};

/* ------------------------------------------------------------------ the table; lock is held */

static void to_garbage(struct weft_regcache *rc, struct weft_regcache_entry *e)
{
	TAILQ_INSERT_TAIL(&rc->garbage, e, link);
	atomic_store_explicit(rc->dirty, true, memory_order_release);
}

/* Hide from look-ups. An idle entry is garbage now, another one when its last user releases it. */
static void entry_unlist(struct weft_regcache *rc, struct weft_regcache_list *list, unsigned int i)
{
	struct weft_regcache_entry *e = table_remove(list, i);

	rc->num--;
	rc->stats.bytes -= e->end - e->start;
	e->listed = false;
	if (e->refs == 0) {
		TAILQ_REMOVE(&rc->lru, e, link);
		to_garbage(rc, e);
	}
}

static void entry_insert(struct weft_regcache *rc, struct weft_regcache_entry *e)
{
	table_insert(&rc->table, e);
	rc->num++;
	rc->stats.bytes += e->end - e->start;
	e->listed = true;
}

static struct weft_mem *cache_hit(struct weft_regcache *rc, uintptr_t start, uintptr_t end,
				  unsigned int access)
{
	struct weft_regcache_entry *e = table_find(&rc->table, start, end, access);

	if (!e)
		return NULL;
	/* Only deregistering stops a peer's writes: writable memory must have no second user. */
	if (e->refs > 0 && e->kind == WEFT_REGCACHE_WRITE)
		return NULL;
	if (e->refs++ == 0)
		TAILQ_REMOVE(&rc->lru, e, link);
	rc->stats.hits++;
	return e->mem;
}

static unsigned int unlist_range(struct weft_regcache *rc, struct weft_regcache_list *list,
				 uintptr_t start, uintptr_t end)
{
	unsigned int i = table_position(list, start), n = 0;

	for (; i < list->num && list->entry[i]->start < end; n++)
		entry_unlist(rc, list, i);
	return n;
}

static void forget_range(void *arg, const struct weft_uffd_range *r)
{
	struct weft_regcache *rc = arg;
	unsigned int kind;

	rc->events++;
	for (kind = 0; kind < WEFT_REGCACHE_KINDS; kind++)
		rc->stats.invalidated += unlist_range(rc, &rc->table.kind[kind], r->start, r->end);
}

/* ------------------------------------------------------------------ start and end */

static int cache_start(struct weft_regcache *rc, char *why, size_t why_len)
{
	unsigned int kind, max = rc->ctx->conf->reg_cache_entries;

	for (kind = 0; kind < WEFT_REGCACHE_KINDS; kind++) {
		rc->table.kind[kind].entry = calloc(max, sizeof(struct weft_regcache_entry *));
		if (!rc->table.kind[kind].entry) {
			snprintf(why, why_len, "out of memory");
			return -ENOMEM;
		}
	}
	rc->watch.lock = &rc->lock;
	rc->watch.gone = forget_range;
	rc->watch.arg = rc;
	return weft_regcache_watch_start(&rc->watch, rc->table.page_size, why, why_len);
}

/* rc->slow is held. */
static void try_start(struct weft_regcache *rc)
{
	char why[256] = "";

	rc->tried = true;
	if (rc->ctx->conf->reg_cache == WEFT_REGCACHE_OFF)
		return;
	if (cache_start(rc, why, sizeof(why)) < 0) {
		weft_warn("registration cache is off, every large message from memory that is not "
			  "registered costs a registration: %s",
			  why);
		return;
	}
	atomic_store(&rc->running, true);
	weft_info("registration cache: up to %u entries, %zu bytes",
		  rc->ctx->conf->reg_cache_entries, rc->ctx->conf->reg_cache_bytes);
}

struct weft_regcache *weft_regcache_new(struct weft_context *ctx)
{
	struct weft_regcache *rc = calloc(1, sizeof(*rc));

	if (!rc)
		return NULL;
	rc->ctx = ctx;
	rc->watch = (struct weft_regcache_watch){.uffd = -1, .wake = -1};
	rc->table.page_size = (size_t)sysconf(_SC_PAGESIZE);
	rc->dirty = &ctx->mem_garbage;
	pthread_mutex_init(&rc->slow, NULL);
	pthread_mutex_init(&rc->lock, NULL);
	TAILQ_INIT(&rc->lru);
	TAILQ_INIT(&rc->garbage);
	return rc;
}

void weft_regcache_free(struct weft_regcache *rc)
{
	unsigned int kind;

	if (!rc)
		return;
	/* First of all: from here on no thread reads events. */
	weft_regcache_watch_stop(&rc->watch);
	pthread_mutex_lock(&rc->lock);
	for (kind = 0; kind < WEFT_REGCACHE_KINDS; kind++)
		unlist_range(rc, &rc->table.kind[kind], 0, UINTPTR_MAX);
	pthread_mutex_unlock(&rc->lock);
	weft_regcache_reap(rc);
	pthread_mutex_destroy(&rc->slow);
	pthread_mutex_destroy(&rc->lock);
	for (kind = 0; kind < WEFT_REGCACHE_KINDS; kind++)
		free(rc->table.kind[kind].entry);
	free(rc);
}

void weft_regcache_reap(struct weft_regcache *rc)
{
	struct weft_regcache_entry *e;
	struct entry_list list;

	if (!rc || !atomic_load_explicit(rc->dirty, memory_order_acquire))
		return;
	TAILQ_INIT(&list);
	pthread_mutex_lock(&rc->lock);
	TAILQ_CONCAT(&list, &rc->garbage, link);
	atomic_store_explicit(rc->dirty, false, memory_order_relaxed);
	pthread_mutex_unlock(&rc->lock);
	while ((e = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, e, link);
		weft_mem_deregister(e->mem);
		free(e);
	}
}

void weft_regcache_query(struct weft_regcache *rc, struct weft_regcache_stats *stats)
{
	pthread_mutex_lock(&rc->lock);
	*stats = rc->stats;
	stats->entries = rc->num;
	pthread_mutex_unlock(&rc->lock);
}

/* ------------------------------------------------------------------ get, put */

static int get_once(struct weft_regcache *rc, void *address, size_t length, unsigned int access,
		    struct weft_mem **mem)
{
	pthread_mutex_lock(&rc->lock);
	rc->stats.uncached++;
	pthread_mutex_unlock(&rc->lock);
	return weft_mem_make(rc->ctx, address, length, access, true, mem);
}

struct evicted {
	struct weft_uffd_range range[MAX_EVICT];
	unsigned int num;
};

/* rc->slow and rc->lock are held. @return bytes; 0: all are in use, or MAX_EVICT is reached */
static size_t evict_one(struct weft_regcache *rc, struct evicted *out)
{
	struct weft_regcache_entry *e = TAILQ_FIRST(&rc->lru);
	struct weft_regcache_list *list;
	struct weft_uffd_range *g;

	if (!e || out->num == MAX_EVICT)
		return 0;
	g = &out->range[out->num++];
	*g = (struct weft_uffd_range){e->start, e->end};
	table_pages(&rc->table, &g->start, &g->end);
	list = &rc->table.kind[e->kind];
	entry_unlist(rc, list, table_position(list, e->start));
	rc->stats.evicted++;
	return e->end - e->start;
}

/*
 * An entry with these pages is gone. Stop watching their mappings if no other entry is in them. If
 * a part of the pages has been unmapped, or /proc cannot be read, the watch stays: it only costs
 * events. rc->slow is held, so no entry is added in the meantime. rc->lock is not held, since
 * weft_uffd_anonymous() calls malloc().
 */
static void end_watch(struct weft_regcache *rc, const struct weft_uffd_range *pages)
{
	struct weft_uffd_range whole, rest;

	if (!weft_uffd_anonymous(pages->start, pages->end, &whole))
		return;
	rest = whole;
	pthread_mutex_lock(&rc->lock);
	table_unshared(&rc->table, &rest.start, &rest.end);
	pthread_mutex_unlock(&rc->lock);
	if (rest.start >= rest.end)
		return;
	/* The rest is a part of a mapping, unless it is on the heap, which is watched by pages. */
	if ((rest.start != whole.start || rest.end != whole.end) &&
	    (!weft_uffd_anonymous(rest.start, rest.end, &whole) || rest.start != whole.start ||
	     rest.end != whole.end))
		return;
	weft_uffd_unwatch(rc->watch.uffd, rest.start, rest.end);
}

/* Unlock rc->lock, and stop watching pages without entries. rc->slow stays held. */
static void unlock_evicted(struct weft_regcache *rc, struct evicted *out)
{
	unsigned int i;

	pthread_mutex_unlock(&rc->lock);
	for (i = 0; i < out->num; i++)
		end_watch(rc, &out->range[i]);
}

/* rc->slow and rc->lock are held. @return false: too few idle entries, or MAX_EVICT is reached */
static bool make_room(struct weft_regcache *rc, size_t bytes, struct evicted *out)
{
	const struct weft_conf *conf = rc->ctx->conf;

	while (rc->num >= conf->reg_cache_entries ||
	       rc->stats.bytes + bytes > conf->reg_cache_bytes)
		if (evict_one(rc, out) == 0)
			return false;
	return true;
}

static bool has_idle(struct weft_regcache *rc, size_t bytes)
{
	const struct weft_regcache_entry *e;
	size_t sum = 0;

	pthread_mutex_lock(&rc->lock);
	TAILQ_FOREACH(e, &rc->lru, link) {
		sum += e->end - e->start;
		if (sum >= bytes)
			break;
	}
	pthread_mutex_unlock(&rc->lock);
	return sum >= bytes;
}

/* Evict idle entries, if possible @p bytes of them, and deregister them. rc->slow is held. */
static void give_back(struct weft_regcache *rc, size_t bytes)
{
	struct evicted out = {.num = 0};
	size_t freed = 0, n;

	pthread_mutex_lock(&rc->lock);
	while (freed < bytes && (n = evict_one(rc, &out)) > 0)
		freed += n;
	unlock_evicted(rc, &out);
	weft_regcache_reap(rc);
}

/* Unlist what the new entry replaces: overlapping ones, and local ones that it covers. */
static void replace_covered(struct weft_regcache *rc, const struct weft_regcache_entry *e)
{
	struct weft_regcache_list *local = &rc->table.kind[WEFT_REGCACHE_LOCAL];
	uintptr_t start = e->start, end = e->end;
	unsigned int i;

	unlist_range(rc, &rc->table.kind[e->kind], start, end);
	if (e->kind == WEFT_REGCACHE_LOCAL)
		return;
	table_pages(&rc->table, &start, &end);
	for (i = table_position(local, start); i < local->num;) {
		const struct weft_regcache_entry *l = local->entry[i];

		if (l->start >= end)
			break;
		if (l->start >= start && l->end <= end && (l->access & e->access) == l->access)
			entry_unlist(rc, local, i);
		else
			i++;
	}
}

/* rc->slow is held. @return false: the registration is for one operation only */
static bool keep_registration(struct weft_regcache *rc, struct weft_regcache_entry *e,
			      uint64_t events)
{
	struct evicted out = {.num = 0};
	bool kept;

	pthread_mutex_lock(&rc->lock);
	/* If memory was unmapped since widen_range(), it may have been this range. */
	kept = events == rc->events;
	if (kept)
		replace_covered(rc, e);
	kept = kept && make_room(rc, e->end - e->start, &out);
	if (kept) {
		entry_insert(rc, e);
		e->refs = 1;
		rc->stats.misses++;
	} else {
		rc->stats.uncached++;
	}
	unlock_evicted(rc, &out);
	return kept;
}

/* @return the number of events so far */
static uint64_t widen_range(struct weft_regcache *rc, enum weft_regcache_kind kind,
			    uintptr_t *start, uintptr_t *end)
{
	uint64_t events;

	if (kind == WEFT_REGCACHE_LOCAL)
		table_pages(&rc->table, start, end);
	pthread_mutex_lock(&rc->lock);
	events = rc->events;
	table_widen(&rc->table, kind, start, end);
	pthread_mutex_unlock(&rc->lock);
	return events;
}

/* Watch the mappings of the range. @return false: impossible, or it is too large for the cache */
static bool watch_range(struct weft_regcache *rc, uintptr_t start, uintptr_t end)
{
	struct weft_uffd_range whole;

	if (end - start > rc->ctx->conf->reg_cache_bytes)
		return false;
	table_pages(&rc->table, &start, &end);
	if (!weft_uffd_anonymous(start, end, &whole))
		return false;
	/* The first try fails if the mapping has changed, or another context watches a part. */
	return weft_uffd_watch(rc->watch.uffd, whole.start, whole.end) == 0 ||
	       weft_uffd_watch(rc->watch.uffd, start, end) == 0;
}

/*
 * As weft_mem_make(), with all lanes. Memory registered by idle entries must not cause a failure:
 * the first retry evicts the known excess, the second at least as much as the new registration
 * needs. rc->slow is held. @return -EAGAIN, too: the range is not watched
 */
static int register_range(struct weft_regcache *rc, uintptr_t start, uintptr_t end,
			  unsigned int access, struct weft_mem **mem)
{
	size_t length = end - start, bytes;
	int err = weft_mem_make(rc->ctx, (void *)start, length, access, false, mem), i;

	for (i = 0; i < 2 && weft_backoff_is_shortage(err); i++) {
		bytes = weft_mem_excess(rc->ctx, length);
		if (bytes == 0 || !has_idle(rc, bytes))
			break;
		give_back(rc, i == 0 || bytes > length ? bytes : length);
		/* Evicted entries may have shared pages with this range, now unwatched. */
		if (!watch_range(rc, start, end))
			return -EAGAIN;
		err = weft_mem_make(rc->ctx, (void *)start, length, access, false, mem);
	}
	return err;
}

/* rc->slow is held. @return 0; -EAGAIN: the range cannot be cached; or another error */
static int cache_miss(struct weft_regcache *rc, uintptr_t start, uintptr_t end, unsigned int access,
		      struct weft_mem **mem)
{
	enum weft_regcache_kind kind = kind_of(access);
	struct weft_regcache_entry *e;
	uint64_t events;
	int err;

	if (kind == WEFT_REGCACHE_KINDS)
		return -EAGAIN;
	events = widen_range(rc, kind, &start, &end);
	if (!watch_range(rc, start, end))
		return -EAGAIN;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	err = register_range(rc, start, end, access, &e->mem);
	if (err < 0) {
		free(e);
		return err;
	}
	e->start = start;
	e->end = end;
	e->kind = kind;
	e->access = weft_mem_access(e->mem);
	*mem = e->mem;
	e->mem->cached = e;
	if (!keep_registration(rc, e, events)) {
		e->mem->cached = NULL;
		free(e);
	}
	return 0;
}

static struct weft_mem *cache_lookup(struct weft_regcache *rc, uintptr_t start, uintptr_t end,
				     unsigned int access)
{
	struct weft_mem *mem;

	pthread_mutex_lock(&rc->lock);
	mem = cache_hit(rc, start, end, access);
	pthread_mutex_unlock(&rc->lock);
	return mem;
}

int weft_regcache_get(struct weft_regcache *rc, void *address, size_t length, unsigned int access,
		      struct weft_mem **mem)
{
	uintptr_t start = (uintptr_t)address, end = start + length;

	weft_regcache_reap(rc);
	if (end <= start)
		return -EINVAL;
	if (!atomic_load(&rc->running)) {
		pthread_mutex_lock(&rc->slow);
		if (!rc->tried)
			try_start(rc);
		pthread_mutex_unlock(&rc->slow);
	}
	if (!atomic_load(&rc->running) || rc->watch.pid != getpid() ||
	    weft_uffd_changing(rc->watch.uffd, rc->watch.page))
		return get_once(rc, address, length, access, mem);
	*mem = cache_lookup(rc, start, end, access);
	if (*mem)
		return 0;
	pthread_mutex_lock(&rc->slow);
	*mem = cache_lookup(rc, start, end, access); /* another thread may have registered it */
	if (!*mem)
		cache_miss(rc, start, end, access, mem); /* on an error *mem stays NULL */
	pthread_mutex_unlock(&rc->slow);
	weft_regcache_reap(rc);
	return *mem ? 0 : get_once(rc, address, length, access, mem);
}

bool weft_regcache_keeps(struct weft_regcache *rc)
{
	if (!rc || rc->ctx->conf->reg_cache == WEFT_REGCACHE_OFF)
		return false;
	return atomic_load(&rc->running) || !atomic_load(&rc->tried);
}

void weft_regcache_put(struct weft_regcache *rc, struct weft_mem *mem)
{
	struct weft_regcache_entry *e = mem->cached;

	if (!e) {
		weft_mem_deregister(mem);
		return;
	}
	pthread_mutex_lock(&rc->lock);
	if (--e->refs == 0) {
		if (e->listed)
			TAILQ_INSERT_TAIL(&rc->lru, e, link);
		else
			to_garbage(rc, e);
	}
	pthread_mutex_unlock(&rc->lock);
	weft_regcache_reap(rc);
}

void weft_regcache_put_dead(struct weft_regcache *rc, struct weft_mem *mem)
{
	struct weft_regcache_entry *e = mem->cached;
	struct weft_regcache_list *list;
	bool last;

	if (!e) {
		weft_mem_deregister(mem);
		return;
	}
	pthread_mutex_lock(&rc->lock);
	/* The entry is in use, so it is not in the list of idle entries. */
	list = &rc->table.kind[e->kind];
	if (e->listed)
		entry_unlist(rc, list, table_position(list, e->start));
	last = --e->refs == 0;
	pthread_mutex_unlock(&rc->lock);
	/* No garbage, which another thread could deregister after this function returns. */
	if (last) {
		weft_mem_deregister(mem);
		free(e);
	}
}
