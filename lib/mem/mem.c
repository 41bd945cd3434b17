/* SPDX-License-Identifier: BSD-3-Clause */

#include "mem/mem.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/copy.h"
#include "base/log.h"
#include "core/context.h"
#include "mem/cache.h"
#include "mem/domain.h"

/* ------------------------------------------------------------------ remote keys */

/*
 * Keys by which peers access registered memory through messages: random or the application's,
 * revoked immediately, looked up without a lock.
 */

/* Random keys that are tried for a free slot before the next level is used. */
#define TRIES 8

static uint32_t level_mask(unsigned int level)
{
	return (256u << level) - 1;
}

static struct weft_mem_slot *level_get(struct weft_mem_table *keys, unsigned int level)
{
	struct weft_mem_slot *slots =
		atomic_load_explicit(&keys->level[level], memory_order_relaxed);

	if (slots)
		return slots;
	slots = calloc(level_mask(level) + 1, sizeof(*slots));
	/* Release: a reader that finds the level finds it zeroed. */
	atomic_store_explicit(&keys->level[level], slots, memory_order_release);
	return slots;
}

static void set_key(struct weft_mem_slot *slot, uint64_t key, struct weft_mem *mem)
{
	slot->mem = mem;
	/* Release: a thread that reads the key reads its memory, too. */
	atomic_store_explicit(&slot->key, key, memory_order_release);
	mem->slot = slot;
	mem->key = key;
}

/*
 * Give @p mem a random key. Under the context's lock.
 * @return 0; -ENOMEM; the error of the random source
 */
static int make_key(struct weft_mem_table *keys, const struct weft_platform *platform,
		    struct weft_mem *mem)
{
	for (unsigned int level = 0; level < WEFT_MEM_KEY_LEVELS; level++) {
		struct weft_mem_slot *slots = level_get(keys, level), *slot;

		if (!slots)
			return -ENOMEM;
		for (unsigned int i = 0; i < TRIES; i++) {
			uint64_t key;
			int rc = platform->random(platform->arg, &key, sizeof(key));

			if (rc < 0)
				return rc;
			slot = &slots[key & level_mask(level)];
			if (key == 0 || atomic_load_explicit(&slot->key, memory_order_relaxed))
				continue;
			set_key(slot, key, mem);
			return 0;
		}
	}
	return -ENOMEM;
}

/*
 * Give @p mem the application's key. Under the context's lock.
 * @return 0; -EEXIST; -ENOMEM
 */
static int enter_key(struct weft_mem_table *keys, uint64_t key, struct weft_mem *mem)
{
	struct weft_mem_slot *slots, *slot, *unused = NULL;

	for (unsigned int level = 0; level < WEFT_MEM_KEY_LEVELS; level++) {
		slots = unused ? atomic_load_explicit(&keys->level[level], memory_order_relaxed)
			       : level_get(keys, level);
		if (!slots)
			break;
		slot = &slots[key & level_mask(level)];
		if (atomic_load_explicit(&slot->key, memory_order_relaxed) == key)
			return -EEXIST;
		if (!unused && !atomic_load_explicit(&slot->key, memory_order_relaxed))
			unused = slot;
	}
	if (!unused)
		return -ENOMEM;
	set_key(unused, key, mem);
	return 0;
}

struct weft_mem_slot *weft_mem_key_enter(struct weft_mem_table *keys, uint64_t key)
{
	struct weft_mem_slot *slots, *slot;

	if (key == 0)
		return NULL;
	for (unsigned int level = 0; level < WEFT_MEM_KEY_LEVELS; level++) {
		slots = atomic_load_explicit(&keys->level[level], memory_order_acquire);
		if (!slots)
			return NULL;
		slot = &slots[key & level_mask(level)];
		if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key)
			continue;
		/*
		 * Both are sequentially consistent, as in revoke_key(): either this thread
		 * reads the revoked key, or the revoking thread reads this user.
		 */
		atomic_fetch_add(&slot->users, 1);
		if (atomic_load(&slot->key) == key)
			return slot;
		weft_mem_key_leave(slot);
	}
	return NULL;
}

/*
 * Revoke a key. After the call no thread uses the memory by it, and none can start to. Under the
 * context's lock.
 */
static void revoke_key(struct weft_mem_slot *slot)
{
	atomic_store(&slot->key, 0);
	/* Users copy at most one lane message: too short for a wait queue. */
	while (atomic_load(&slot->users))
		sched_yield();
}

void weft_mem_table_fini(struct weft_mem_table *keys)
{
	for (unsigned int level = 0; level < WEFT_MEM_KEY_LEVELS; level++)
		free(atomic_load_explicit(&keys->level[level], memory_order_relaxed));
}

/* ------------------------------------------------------------------ keys of lanes */

unsigned int weft_mem_keys(struct weft_mem *mem, struct weft_mem_key *keys, unsigned int max)
{
	struct weft_lane_iface *iface;
	unsigned int i, n = 0;

	pthread_mutex_lock(&mem->ctx->lock);
	for (i = 0; i < WEFT_MAX_DOMAINS && n < max; i++) {
		iface = mem->domains[i].iface;
		if (!iface || iface->domain == WEFT_NO_DOMAIN)
			continue;
		keys[n++] = (struct weft_mem_key){
			.domain = iface->domain,
			.driver = iface->driver,
			.key = iface->driver->mem_key(iface, mem->domains[i].mem),
		};
	}
	pthread_mutex_unlock(&mem->ctx->lock);
	return n;
}

/* ------------------------------------------------------------------ registrations */

/*
 * Registered memory. A registration belongs to the context and has one driver state per domain
 * (mem/domain.c). Interfaces come and go with workers, so a domain's state moves to another
 * interface of the same domain when its own closes. Changes need the context's lock, or its
 * export_lock; core/context.h names the fields that are read without.
 */

/*
 * Rights of peers that need writable memory. Without these and LOCAL_WRITE, write access is tried
 * first, and read-only memory is registered as such.
 */
#define MUST_WRITE (WEFT_LANE_ACCESS_REMOTE_WRITE | WEFT_LANE_ACCESS_REMOTE_ATOMIC)

static void free_mem(struct weft_mem *mem)
{
	weft_mem_domains_drop(mem);
	free(mem);
}

/* Are these rights valid, and used by a feature of the context? @return 0, -EINVAL, -EOPNOTSUPP */
static int rights_check(const struct weft_context *ctx, unsigned int rights)
{
	const unsigned int rma = WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE;

	if (rights & ~(rma | WEFT_MEM_F_REMOTE_ATOMIC))
		return -EINVAL;
	if ((rights & rma) && !(ctx->features & WEFT_FEATURE_RMA)) {
		weft_error("memory cannot be registered for puts and gets by peers: the context "
			   "was created without WEFT_FEATURE_RMA");
		return -EOPNOTSUPP;
	}
	if ((rights & WEFT_MEM_F_REMOTE_ATOMIC) &&
	    !(ctx->features & (WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64))) {
		weft_error("memory cannot be registered for atomics by peers: the context was "
			   "created without WEFT_FEATURE_AMO32 or WEFT_FEATURE_AMO64");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Remove @p mem from the context's list and free it, together with its exported registrations. */
static void mem_drop(struct weft_mem *mem)
{
	unsigned int i;

	for (i = 0; i < sizeof(mem->narrow) / sizeof(mem->narrow[0]); i++)
		if (mem->narrow[i])
			mem_drop(mem->narrow[i]);
	LIST_REMOVE(mem, entry);
	mem->ctx->mem_bytes -= mem->length;
	free_mem(mem);
}

/* The access that lanes must allow so that peers have these rights. */
static unsigned int access_of(unsigned int rights)
{
	unsigned int access = 0;

	if (rights & WEFT_MEM_F_REMOTE_READ)
		access |= WEFT_LANE_ACCESS_REMOTE_READ;
	if (rights & WEFT_MEM_F_REMOTE_WRITE)
		access |= WEFT_LANE_ACCESS_REMOTE_WRITE;
	if (rights & WEFT_MEM_F_REMOTE_ATOMIC)
		access |= WEFT_LANE_ACCESS_REMOTE_ATOMIC;
	return access;
}

/* Withdraw the key of @p mem: from now on peers have no access. */
static void withdraw_key(struct weft_mem *mem)
{
	if (!mem->slot)
		return;
	atomic_store(&mem->revoked, true);
	revoke_key(mem->slot);
	mem->slot = NULL;
}

/* A registration of all domains, or of some, in the context's list; the lock is held. */
static int mem_make_like(struct weft_context *ctx, const struct weft_mem *like, bool partial,
			 struct weft_mem **out)
{
	struct weft_mem *mem;
	int rc = like->on_the_fly ? weft_mem_shortage(ctx, like->length) : 0;

	if (rc < 0)
		return rc;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->ctx = ctx;
	mem->address = like->address;
	mem->length = like->length;
	mem->rights = like->rights;
	atomic_init(&mem->access, like->access | WEFT_LANE_ACCESS_LOCAL_WRITE);
	mem->write_optional = !(like->access & (MUST_WRITE | WEFT_LANE_ACCESS_LOCAL_WRITE));
	mem->on_the_fly = like->on_the_fly;
	rc = weft_mem_domains_add(mem, partial);
	if (rc < 0) {
		free_mem(mem);
		return rc;
	}
	LIST_INSERT_HEAD(&ctx->mems, mem, entry);
	ctx->mem_bytes += mem->length;
	*out = mem;
	return 0;
}

int weft_mem_register(struct weft_context *ctx, void *address, size_t length,
		      const struct weft_mem_params *params, struct weft_mem **out)
{
	struct weft_mem *mem = NULL, like;
	struct weft_mem_params p;
	unsigned int rights;
	bool chosen;
	int rc;

	if (!ctx || !out || !address || length == 0 || weft_struct_in(&p, sizeof(p), params) < 0 ||
	    length > SIZE_MAX - (uintptr_t)address)
		return -EINVAL;
	rights = p.flags & ~WEFT_MEM_F_KEY;
	chosen = p.flags & WEFT_MEM_F_KEY;
	if (chosen && (rights == 0 || p.key == 0))
		return -EINVAL;
	rc = rights_check(ctx, rights);
	if (rc < 0)
		return rc;
	like = (struct weft_mem){.address = address, .length = length, .rights = rights};
	like.access = access_of(rights);
	pthread_mutex_lock(&ctx->lock);
	rc = mem_make_like(ctx, &like, true, &mem);
	if (rc == 0)
		mem->key_chosen = chosen;
	if (rc == 0 && rights)
		rc = chosen ? enter_key(&ctx->keys, p.key, mem)
			    : make_key(&ctx->keys, ctx->platform, mem);
	if (rc < 0 && mem)
		mem_drop(mem);
	pthread_mutex_unlock(&ctx->lock);
	if (rc == 0)
		*out = mem;
	return rc;
}

int weft_mem_deregister(struct weft_mem *mem)
{
	struct weft_context *ctx;
	int rc = 0;

	if (!mem || !weft_context_is_ours(mem->ctx))
		return 0;
	ctx = mem->ctx;
	pthread_mutex_lock(&ctx->lock);
	withdraw_key(mem); /* even if the memory cannot be deregistered yet */
	if (mem->refs > 0) {
		rc = -EBUSY;
	} else {
		mem_drop(mem);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* ------------------------------------------------------------------ on the fly */

int weft_mem_make(struct weft_context *ctx, void *address, size_t length, unsigned int access,
		  bool partial, struct weft_mem **out)
{
	struct weft_mem like = {
		.address = address, .length = length, .access = access, .on_the_fly = true};
	int rc;

	if (length > SIZE_MAX - (uintptr_t)address)
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	rc = mem_make_like(ctx, &like, partial, out);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

size_t weft_mem_excess(struct weft_context *ctx, size_t length)
{
	size_t most = 0, n;
	unsigned int i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < ctx->num_domains; i++) {
		n = weft_backoff_excess(&ctx->domains[i].backoff, ctx->mem_bytes, length);
		if (n > most)
			most = n;
	}
	pthread_mutex_unlock(&ctx->lock);
	return most;
}

int weft_mem_get(struct weft_context *ctx, void *address, size_t length, unsigned int access,
		 struct weft_mem **out)
{
	if (!ctx->regcache)
		return weft_mem_make(ctx, address, length, access, true, out);
	return weft_regcache_get(ctx->regcache, address, length, access, out);
}

void weft_mem_put(struct weft_mem *mem)
{
	if (!mem->ctx->regcache)
		weft_mem_deregister(mem);
	else
		weft_regcache_put(mem->ctx->regcache, mem);
}

void weft_mem_put_dead(struct weft_mem *mem)
{
	if (!mem->ctx->regcache)
		weft_mem_deregister(mem);
	else
		weft_regcache_put_dead(mem->ctx->regcache, mem);
}

/*
 * Count one more operation whose peer has keys of the registration at @p at. @return the
 * registration, or NULL = there is none
 */
static struct weft_mem *export_again(struct weft_context *ctx, struct weft_mem *const *at)
{
	struct weft_mem *narrow;

	pthread_mutex_lock(&ctx->export_lock);
	narrow = *at;
	if (narrow)
		narrow->exported++;
	pthread_mutex_unlock(&ctx->export_lock);
	return narrow;
}

struct weft_mem *weft_mem_export(struct weft_mem *mem, unsigned int remote)
{
	struct weft_mem like = {.address = mem->address, .length = mem->length, .access = remote};
	struct weft_mem **at = &mem->narrow[remote == WEFT_LANE_ACCESS_REMOTE_WRITE];
	struct weft_mem *narrow;

	if (mem->on_the_fly)
		return (weft_mem_access(mem) & WEFT_LANE_ACCESS_REMOTE) == remote ? mem : NULL;
	narrow = export_again(mem->ctx, at);
	if (narrow)
		return narrow;
	like.on_the_fly = true;
	pthread_mutex_lock(&mem->ctx->lock);
	/* Another thread may have made it in the meantime. */
	narrow = export_again(mem->ctx, at);
	if (!narrow && mem_make_like(mem->ctx, &like, true, &narrow) == 0) {
		narrow->exported = 1;
		pthread_mutex_lock(&mem->ctx->export_lock);
		*at = narrow;
		pthread_mutex_unlock(&mem->ctx->export_lock);
	}
	pthread_mutex_unlock(&mem->ctx->lock);
	return narrow;
}

void weft_mem_unexport(struct weft_mem *mem, struct weft_mem *exported, bool dead)
{
	unsigned int i;
	bool gone;

	if (exported == mem)
		return;
	pthread_mutex_lock(&mem->ctx->export_lock);
	exported->exported--;
	for (i = 0; dead && i < sizeof(mem->narrow) / sizeof(mem->narrow[0]); i++) {
		if (mem->narrow[i] != exported)
			continue;
		mem->narrow[i] = NULL;
		exported->withdrawn = true;
	}
	gone = exported->withdrawn && exported->exported == 0;
	pthread_mutex_unlock(&mem->ctx->export_lock);
	if (!gone)
		return;
	pthread_mutex_lock(&mem->ctx->lock);
	mem_drop(exported);
	pthread_mutex_unlock(&mem->ctx->lock);
}
