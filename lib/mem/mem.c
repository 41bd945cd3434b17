/* SPDX-License-Identifier: BSD-3-Clause */

#include "mem/mem.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "core/worker.h"
#include "mem/cache.h"

/* ------------------------------------------------------------------ domains */

struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface)
{
	const struct weft_mem_domain *d;

	if (iface->mem_domain == 0)
		return NULL;
	d = &mem->domains[iface->mem_domain - 1];
	/* Pairs with add_domain(). The iface may be closing in another worker: do not read it. */
	return atomic_load_explicit(&d->iface, memory_order_acquire) ? d->mem : NULL;
}

/* Peers have the number in their keys. @return WEFT_MAX_DOMAINS: too many, or no memory */
static unsigned int domain_index(struct weft_context *ctx, const struct weft_lane_iface *iface)
{
	struct weft_ctx_domain *d;
	unsigned int i;

	for (i = 0; i < ctx->num_domains; i++) {
		d = &ctx->domains[i];
		if (d->driver == iface->driver && strcmp(d->name, iface->attr.domain) == 0)
			return i;
	}
	if (i == WEFT_MAX_DOMAINS)
		return i;
	d = &ctx->domains[i];
	d->name = strdup(iface->attr.domain);
	if (!d->name)
		return WEFT_MAX_DOMAINS;
	d->driver = iface->driver;
	ctx->num_domains++;
	return i;
}

void weft_mem_domains_free(struct weft_context *ctx)
{
	while (ctx->num_domains > 0)
		free(ctx->domains[--ctx->num_domains].name);
}

static struct weft_ctx_domain *domain_of(struct weft_context *ctx,
					 const struct weft_lane_iface *iface)
{
	return &ctx->domains[iface->mem_domain - 1];
}

/* Least squares over the measurements; each further one lowers the weight of all before by 1/64. */
static void note_cost(struct weft_reg_cost *c, double bytes, double s)
{
	const double keep = 1 - 1.0 / 64;

	c->n = c->n * keep + 1;
	c->x = c->x * keep + bytes;
	c->t = c->t * keep + s;
	c->xx = c->xx * keep + bytes * bytes;
	c->xt = c->xt * keep + bytes * s;
}

static bool get_cost(struct weft_context *ctx, const struct weft_lane_iface *iface, double *cost,
		     double *growth)
{
	const struct weft_reg_cost *c;
	double var;

	*cost = iface->attr.reg_cost;
	*growth = iface->attr.reg_growth;
	if (iface->mem_domain == 0 || domain_of(ctx, iface)->measured.n < 4)
		return false;
	c = &domain_of(ctx, iface)->measured;
	/* Measurements of about one size give no slope: the driver's figure stays. */
	var = c->xx - c->x * c->x / c->n;
	if (var > 0.01 * c->xx)
		*growth = (c->xt - c->x * c->t / c->n) / var;
	if (*growth < 0)
		*growth = 0;
	*cost = (c->t - *growth * c->x) / c->n;
	if (*cost < 0)
		*cost = 0;
	return true;
}

static int register_timed(struct weft_mem *mem, struct weft_lane_iface *iface,
			  struct weft_mem_lane **out, char *why, size_t why_len)
{
	const struct weft_platform *platform = mem->ctx->platform;
	uint64_t before = platform->now(platform->arg);
	int rc = iface->driver->mem_register(iface, mem->address, mem->length, weft_mem_access(mem),
					     out, why, why_len);

	if (rc == 0)
		note_cost(&domain_of(mem->ctx, iface)->measured, (double)mem->length,
			  (double)(platform->now(platform->arg) - before) * 1e-9);
	return rc;
}

/*
 * Register with write access. If that fails and is optional, register without it: read-only memory,
 * such as a file mapped for reading, can be sent, and peers can read it.
 */
static int register_as_can(struct weft_mem *mem, struct weft_lane_iface *iface,
			   struct weft_mem_lane **out, char *why, size_t why_len)
{
	int rc = register_timed(mem, iface, out, why, why_len);

	if ((rc != -EFAULT && rc != -EACCES && rc != -EPERM) || !mem->write_optional)
		return rc;
	atomic_fetch_and_explicit(&mem->access, ~WEFT_LANE_ACCESS_LOCAL_WRITE,
				  memory_order_relaxed);
	mem->write_optional = false;
	return register_timed(mem, iface, out, why, why_len);
}

/* ------------------------------------------------------------------ shortage */

static void note_shortage(const struct weft_mem *mem, const struct weft_lane_iface *iface, int rc)
{
	struct weft_context *ctx = mem->ctx;
	struct weft_backoff *b = &domain_of(ctx, iface)->backoff;

	if (rc == 0)
		weft_backoff_worked(b, ctx->mem_bytes, mem->length);
	else if (weft_backoff_is_shortage(rc))
		weft_backoff_failed(b, ctx->platform->now(ctx->platform->arg), ctx->mem_bytes,
				    mem->length, rc);
}

/* @return 0, or a recent error that registering @p length bytes for one operation would repeat */
static int shortage_check(struct weft_context *ctx, size_t length)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < ctx->num_domains && rc == 0; i++)
		if (ctx->domains[i].backoff.wait != 0)
			rc = weft_backoff_check(&ctx->domains[i].backoff,
						ctx->platform->now(ctx->platform->arg),
						ctx->mem_bytes, length);
	return rc;
}

/* ------------------------------------------------------------------ domains */

/* Is this the domain's first failure with this error? A program may cause one each millisecond. */
static bool is_news(struct weft_context *ctx, const struct weft_lane_iface *iface, int err)
{
	struct weft_ctx_domain *d = domain_of(ctx, iface);
	unsigned int k;

	for (k = 0; k < sizeof(d->logged) / sizeof(d->logged[0]); k++) {
		if (d->logged[k] == err)
			return false;
		if (d->logged[k] == 0) {
			d->logged[k] = err;
			return true;
		}
	}
	return false;
}

/* Lanes without keys need registrations only for sends, which they can copy instead. */
static bool may_lack(const struct weft_lane_iface *iface)
{
	return iface->driver->mem_key == NULL;
}

static void registration_failed(const struct weft_mem *mem, const struct weft_lane_iface *iface,
				int err, const char *why)
{
	bool news = is_news(mem->ctx, iface, err);

	/* Registering on the fly has a fallback, so it logs an error once for each domain. */
	if (!mem->on_the_fly && may_lack(iface))
		weft_warn("%s: cannot register %zu bytes at %p: %s. This lane copies them",
			  iface->name, mem->length, mem->address,
			  why[0] ? why : weft_strerror(err));
	else if (!mem->on_the_fly)
		weft_error("%s: cannot register %zu bytes at %p: %s", iface->name, mem->length,
			   mem->address, why[0] ? why : weft_strerror(err));
	else if (news && err == -EOPNOTSUPP && may_lack(iface))
		weft_info("%s: large messages (%zu bytes at %p) are copied: %s", iface->name,
			  mem->length, mem->address, why);
	else if (news)
		weft_warn(
			"%s: cannot register memory of large messages (%zu bytes at %p): %s. They "
			"are copied; this is logged once, rndv.register_failed counts",
			iface->name, mem->length, mem->address, why[0] ? why : weft_strerror(err));
}

static int add_domain(struct weft_mem *mem, struct weft_lane_iface *iface)
{
	struct weft_mem_domain *d;
	char why[256] = "";
	int rc;

	if (iface->mem_domain == 0)
		return 0; /* without registration, or beyond WEFT_MAX_DOMAINS: its lanes copy */
	d = &mem->domains[iface->mem_domain - 1];
	if (d->iface)
		return 0;
	rc = register_as_can(mem, iface, &d->mem, why, sizeof(why));
	note_shortage(mem, iface, rc);
	/* The lane's table of registrations is full: other lanes can use the memory. */
	if (rc == -ENOSPC && !mem->on_the_fly) {
		if (is_news(mem->ctx, iface, rc))
			weft_warn("%s: %s; further memory is registered without this lane",
				  iface->name, why[0] ? why : weft_strerror(rc));
		return 0;
	}
	if (rc < 0) {
		registration_failed(mem, iface, rc, why);
		return rc;
	}
	atomic_store_explicit(&d->iface, iface, memory_order_release);
	return 0;
}

static void drop_domain(struct weft_mem_domain *d)
{
	struct weft_lane_iface *iface = d->iface;

	d->iface = NULL;
	iface->driver->mem_deregister(iface, d->mem);
}

static void domains_drop(struct weft_mem *mem)
{
	unsigned int i;

	for (i = 0; i < WEFT_MAX_DOMAINS; i++)
		if (mem->domains[i].iface)
			drop_domain(&mem->domains[i]);
}

static void number_domain(struct weft_context *ctx, struct weft_lane_iface *iface)
{
	unsigned int i;

	iface->mem_domain = 0;
	iface->domain = WEFT_NO_DOMAIN;
	if (!iface->driver->mem_register || iface->attr.domain[0] == '\0')
		return;
	i = domain_index(ctx, iface);
	if (i == WEFT_MAX_DOMAINS) {
		weft_warn("%s: the context has had %d registration domains, or there is no "
			  "memory; this lane registers no memory, and copies",
			  iface->name, WEFT_MAX_DOMAINS);
		return;
	}
	iface->mem_domain = (uint8_t)(i + 1);
	if (iface->driver->mem_key)
		iface->domain = (uint8_t)i;
}

void weft_mem_iface_opened(struct weft_context *ctx, struct weft_lane_iface *iface)
{
	struct weft_mem *mem;

	number_domain(ctx, iface);
	get_cost(ctx, iface, &iface->attr.reg_cost, &iface->attr.reg_growth);
	LIST_FOREACH(mem, &ctx->mems, entry)
		add_domain(mem, iface); /* on error the lane copies; it has been logged */
}

static struct weft_lane_iface *other_iface(struct weft_context *ctx,
					   const struct weft_lane_iface *iface)
{
	struct weft_lane_iface *other;
	struct weft_worker *w;
	unsigned int i;

	LIST_FOREACH(w, &ctx->workers, entry) {
		for (i = 0; i < w->num_ifaces; i++) {
			other = w->ifaces[i];
			if (other != iface && other->mem_domain == iface->mem_domain)
				return other;
		}
	}
	return NULL;
}

void weft_mem_iface_closing(struct weft_context *ctx, struct weft_lane_iface *iface)
{
	struct weft_lane_iface *next;
	struct weft_mem_domain *d;
	struct weft_mem *mem;

	if (iface->mem_domain == 0)
		return;
	next = other_iface(ctx, iface);
	LIST_FOREACH(mem, &ctx->mems, entry) {
		d = &mem->domains[iface->mem_domain - 1];
		if (d->iface != iface)
			continue;
		if (next)
			d->iface = next;
		else
			drop_domain(d);
	}
}

static bool has_domain(const struct weft_mem *mem)
{
	unsigned int i = 0;

	while (i < WEFT_MAX_DOMAINS && !mem->domains[i].iface)
		i++;
	return i < WEFT_MAX_DOMAINS;
}

/*
 * @param partial  lanes that can copy may lack it; on the fly at least one lane must have it
 * @return 0, or the error of a domain that must not lack it: others may have been added. If the
 *   user registers @p mem, a domain whose table is full (-ENOSPC) may lack it, too
 */
static int domains_add(struct weft_mem *mem, bool partial)
{
	struct weft_worker *w;
	int rc, lack = 0;
	unsigned int i;

	LIST_FOREACH(w, &mem->ctx->workers, entry) {
		for (i = 0; i < w->num_ifaces; i++) {
			rc = add_domain(mem, w->ifaces[i]);
			if (rc < 0 && !(partial && may_lack(w->ifaces[i])))
				return rc;
			if (rc < 0)
				lack = rc;
		}
	}
	return mem->on_the_fly && !has_domain(mem) ? lack : 0;
}

bool weft_mem_cost(struct weft_context *ctx, const struct weft_lane_iface *iface, double *cost,
		   double *growth)
{
	bool measured;

	pthread_mutex_lock(&ctx->lock);
	measured = get_cost(ctx, iface, cost, growth);
	pthread_mutex_unlock(&ctx->lock);
	return measured;
}

/* ------------------------------------------------------------------ remote keys */

/* Number of random keys that are tried for a free slot before the next level is used. */
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
	/* Release: a thread that reads the key also reads slot->mem. */
	atomic_store_explicit(&slot->key, key, memory_order_release);
	mem->slot = slot;
	mem->key = key;
}

/* The context's lock is held. @return 0; -ENOMEM, also without a free slot; or of random() */
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

/* The context's lock is held. @return 0; -EEXIST; -ENOMEM, also if the key's slots are in use */
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

/* The context's lock is held. After the call no thread uses the memory by this key. */
static void revoke_key(struct weft_mem_slot *slot)
{
	atomic_store(&slot->key, 0);
	/* A user copies at most one lane message, which is too short for a wait queue. */
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
 * Interfaces come and go with workers, so the driver's state of a registration moves to another
 * interface of the domain when its own closes. Changes need the context's lock; those of exports
 * need its export_lock. core/worker.h names the fields read without a lock.
 */

/*
 * Rights of peers that need writable memory. Without these and LOCAL_WRITE, write access is tried
 * first, and read-only memory is registered as such.
 */
#define MUST_WRITE (WEFT_LANE_ACCESS_REMOTE_WRITE | WEFT_LANE_ACCESS_REMOTE_ATOMIC)

static void free_mem(struct weft_mem *mem)
{
	domains_drop(mem);
	free(mem);
}

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

static void withdraw_key(struct weft_mem *mem)
{
	if (!mem->slot)
		return;
	atomic_store(&mem->revoked, true);
	revoke_key(mem->slot);
	mem->slot = NULL;
}

/* Make a registration with the properties of @p like. The caller holds the context's lock. */
static int mem_make_like(struct weft_context *ctx, const struct weft_mem *like, bool partial,
			 struct weft_mem **out)
{
	struct weft_mem *mem;
	int rc = like->on_the_fly ? shortage_check(ctx, like->length) : 0;

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
	rc = domains_add(mem, partial);
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
	/* Another thread may have made the registration in the meantime. */
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
