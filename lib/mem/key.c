/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys by which peers access registered memory through messages: random, revoked immediately,
 * looked up without a lock.
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "mem/mem.h"
#include "core/mem_key.h"

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

int weft_mem_key_make(struct weft_mem_table *keys, const struct weft_platform *platform,
		      struct weft_mem *mem, struct weft_mem_slot **out, uint64_t *out_key)
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
			slot->mem = mem;
			/* Release: a thread that reads the key reads its memory, too. */
			atomic_store_explicit(&slot->key, key, memory_order_release);
			*out = slot;
			*out_key = key;
			return 0;
		}
	}
	return -ENOMEM;
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
		 * Both are sequentially consistent, as in weft_mem_key_revoke(): either this thread
		 * reads the revoked key, or the revoking thread reads this user.
		 */
		atomic_fetch_add(&slot->users, 1);
		if (atomic_load(&slot->key) == key)
			return slot;
		weft_mem_key_leave(slot);
	}
	return NULL;
}

void weft_mem_key_revoke(struct weft_mem_slot *slot)
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
