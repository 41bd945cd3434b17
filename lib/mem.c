/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Registered memory. A registration belongs to the context and has one driver state per domain;
 * interfaces come and go with workers, so a domain's state moves to another interface of the same
 * domain when its own closes. Everything here holds the context's lock, except the look-up on the
 * hot path: it reads what does not change while the worker that asks is alive.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "mem.h"
#include "regcache.h"

static bool is_domain_of(const struct weft_mem_domain *d, const struct weft_lane_iface *iface)
{
	return d->iface != NULL && d->driver == iface->driver &&
	       strcmp(d->domain, iface->attr.domain) == 0;
}

struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface)
{
	unsigned int i;

	/* The entry's iface may be closing in another worker: it is compared, never followed. */
	for (i = 0; i < WEFT_MAX_IFACES; i++)
		if (mem->domains[i].iface == iface || is_domain_of(&mem->domains[i], iface))
			return mem->domains[i].mem;
	return NULL;
}

/* Domains keep their number as long as the context lives: peers have it in their keys. */
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
	d = &ctx->domains[ctx->num_domains++];
	d->driver = iface->driver;
	snprintf(d->name, sizeof(d->name), "%s", iface->attr.domain);
	return i;
}

/* Least squares over what was measured, the last 64 or so counting most. */
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
	unsigned int i;
	double var;

	*cost = iface->attr.reg_cost;
	*growth = iface->attr.reg_growth;
	if (iface->driver->mem_register == NULL)
		return false;
	i = domain_index(ctx, iface);
	if (i == WEFT_MAX_DOMAINS || ctx->domains[i].measured.n < 4)
		return false;
	c = &ctx->domains[i].measured;
	/* Of one size alone no slope can be told: the driver's stays. */
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
			  struct weft_mem_lane **out)
{
	const struct weft_platform *platform = mem->ctx->platform;
	unsigned int i = domain_index(mem->ctx, iface);
	uint64_t before = platform->now(platform->arg);
	int rc = iface->driver->mem_register(iface, mem->address, mem->length, out);

	if (rc == 0 && i < WEFT_MAX_DOMAINS)
		note_cost(&mem->ctx->domains[i].measured, (double)mem->length,
			  (double)(platform->now(platform->arg) - before) * 1e-9);
	return rc;
}

/* Register with the iface's domain unless that has been done. */
static int add_domain(struct weft_mem *mem, struct weft_lane_iface *iface)
{
	static _Thread_local struct weft_log_limit limit; /* large messages may ask for it each */
	struct weft_mem_domain *d = NULL;
	unsigned int i;
	int rc;

	if (iface->driver->mem_register == NULL)
		return 0;
	for (i = WEFT_MAX_IFACES; i-- > 0;) {
		if (is_domain_of(&mem->domains[i], iface))
			return 0;
		if (mem->domains[i].iface == NULL)
			d = &mem->domains[i];
	}
	if (d == NULL)
		return 0; /* more domains than one worker can have: those lanes copy */
	rc = register_timed(mem, iface, &d->mem);
	if (rc < 0) {
		weft_log_limited(&limit, WEFT_LOG_ERROR, "%s: cannot register %zu bytes at %p: %s",
				 iface->name, mem->length, mem->address, weft_strerror(rc));
		return rc;
	}
	d->driver = iface->driver;
	memcpy(d->domain, iface->attr.domain, sizeof(d->domain));
	d->iface = iface;
	return 0;
}

static void drop_domain(struct weft_mem_domain *d)
{
	struct weft_lane_iface *iface = d->iface;

	d->iface = NULL;
	iface->driver->mem_deregister(iface, d->mem);
}

static void free_mem(struct weft_mem *mem)
{
	unsigned int i;

	for (i = 0; i < WEFT_MAX_IFACES; i++)
		if (mem->domains[i].iface != NULL)
			drop_domain(&mem->domains[i]);
	free(mem);
}

/* The number that peers learn, if they need one. */
static uint8_t domain_number(struct weft_context *ctx, const struct weft_lane_iface *iface)
{
	unsigned int i;

	if (iface->driver->mem_register == NULL)
		return WEFT_NO_DOMAIN;
	i = domain_index(ctx, iface);
	if (i == WEFT_MAX_DOMAINS)
		weft_warn("%s: the context has had %d registration domains; this one has no "
			  "remote keys",
			  iface->name, WEFT_MAX_DOMAINS);
	return i < WEFT_MAX_DOMAINS && iface->driver->mem_key != NULL ? (uint8_t)i : WEFT_NO_DOMAIN;
}

void weft_mem_iface_opened(struct weft_context *ctx, struct weft_lane_iface *iface)
{
	struct weft_mem *mem;

	iface->domain = domain_number(ctx, iface);
	get_cost(ctx, iface, &iface->attr.reg_cost, &iface->attr.reg_growth);
	LIST_FOREACH(mem, &ctx->mems, entry)
		add_domain(mem, iface); /* on error the lane copies; it has been logged */
}

/* Another open iface of the same domain, in any worker. */
static struct weft_lane_iface *heir(struct weft_context *ctx, const struct weft_lane_iface *iface)
{
	struct weft_lane_iface *other;
	struct weft_worker *w;
	unsigned int i;

	LIST_FOREACH(w, &ctx->workers, entry) {
		for (i = 0; i < w->num_ifaces; i++) {
			other = w->ifaces[i];
			if (other != iface && other->driver == iface->driver &&
			    strcmp(other->attr.domain, iface->attr.domain) == 0)
				return other;
		}
	}
	return NULL;
}

void weft_mem_iface_closing(struct weft_context *ctx, struct weft_lane_iface *iface)
{
	struct weft_lane_iface *next = heir(ctx, iface);
	struct weft_mem *mem;
	unsigned int i;

	LIST_FOREACH(mem, &ctx->mems, entry) {
		for (i = 0; i < WEFT_MAX_IFACES; i++) {
			if (mem->domains[i].iface != iface)
				continue;
			if (next != NULL)
				mem->domains[i].iface = next;
			else
				drop_domain(&mem->domains[i]);
		}
	}
}

static int mem_register(struct weft_context *ctx, struct weft_mem *mem)
{
	struct weft_worker *w;
	unsigned int i;
	int rc;

	LIST_FOREACH(w, &ctx->workers, entry) {
		for (i = 0; i < w->num_ifaces; i++) {
			rc = add_domain(mem, w->ifaces[i]);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* Are these rights known, and does the context's use allow for them? */
static int rights_check(const struct weft_context *ctx, unsigned int rights)
{
	const unsigned int rma = WEFT_MEM_REMOTE_READ | WEFT_MEM_REMOTE_WRITE;

	if (rights & ~(rma | WEFT_MEM_REMOTE_ATOMIC))
		return -EINVAL;
	if ((rights & rma) && !(ctx->features & WEFT_FEATURE_RMA)) {
		weft_error("memory cannot be registered for puts and gets by peers: the context "
			   "was created without WEFT_FEATURE_RMA");
		return -EOPNOTSUPP;
	}
	if ((rights & WEFT_MEM_REMOTE_ATOMIC) &&
	    !(ctx->features & (WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64))) {
		weft_error("memory cannot be registered for atomics by peers: the context was "
			   "created without WEFT_FEATURE_AMO32 or WEFT_FEATURE_AMO64");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* No peer gets at it any more. */
static void revoke(struct weft_mem *mem)
{
	if (mem->slot == NULL)
		return;
	atomic_store(&mem->revoked, true);
	weft_mem_key_revoke(mem->slot);
	mem->slot = NULL;
}

int weft_mem_register(struct weft_context *ctx, void *address, size_t length,
		      const struct weft_mem_params *params, struct weft_mem **out)
{
	struct weft_mem_params p;
	struct weft_mem *mem;
	int rc;

	if (ctx == NULL || out == NULL || address == NULL || length == 0 ||
	    weft_struct_in(&p, sizeof(p), params) < 0 || length > SIZE_MAX - (uintptr_t)address)
		return -EINVAL;
	rc = rights_check(ctx, p.flags);
	if (rc < 0)
		return rc;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -ENOMEM;
	mem->ctx = ctx;
	mem->address = address;
	mem->length = length;
	mem->rights = p.flags;
	pthread_mutex_lock(&ctx->lock);
	rc = mem_register(ctx, mem);
	if (rc == 0 && mem->rights)
		rc = weft_mem_key_make(&ctx->keys, ctx->platform, mem, &mem->slot, &mem->key);
	if (rc == 0)
		LIST_INSERT_HEAD(&ctx->mems, mem, entry);
	else
		free_mem(mem);
	pthread_mutex_unlock(&ctx->lock);
	if (rc == 0)
		*out = mem;
	return rc;
}

int weft_mem_deregister(struct weft_mem *mem)
{
	struct weft_context *ctx;
	int rc = 0;

	if (mem == NULL)
		return 0;
	ctx = mem->ctx;
	pthread_mutex_lock(&ctx->lock);
	revoke(mem); /* even if the memory cannot be let go yet */
	if (mem->refs > 0) {
		rc = -EBUSY;
	} else {
		LIST_REMOVE(mem, entry);
		free_mem(mem);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* ------------------------------------------------------------------ remote keys */

unsigned int weft_mem_keys(struct weft_mem *mem, struct weft_mem_key *keys, unsigned int max)
{
	const struct weft_mem_domain *d;
	unsigned int i, n = 0;

	pthread_mutex_lock(&mem->ctx->lock);
	for (i = 0; i < WEFT_MAX_IFACES && n < max; i++) {
		d = &mem->domains[i];
		if (d->iface == NULL || d->iface->domain == WEFT_NO_DOMAIN)
			continue;
		keys[n++] = (struct weft_mem_key){
			.domain = d->iface->domain,
			.driver = d->driver,
			.key = d->driver->mem_key(d->iface, d->mem),
		};
	}
	pthread_mutex_unlock(&mem->ctx->lock);
	return n;
}

/* ------------------------------------------------------------------ on the fly */

int weft_mem_get(struct weft_context *ctx, void *address, size_t length, struct weft_mem **out)
{
	if (ctx->regcache == NULL)
		return weft_mem_register(ctx, address, length, NULL, out);
	return weft_regcache_get(ctx->regcache, address, length, out);
}

void weft_mem_put(struct weft_mem *mem)
{
	if (mem->ctx->regcache == NULL)
		weft_mem_deregister(mem);
	else
		weft_regcache_put(mem->ctx->regcache, mem);
}

/* ------------------------------------------------------------------ what registering costs */

bool weft_mem_cost(struct weft_context *ctx, const struct weft_lane_iface *iface, double *cost,
		   double *growth)
{
	bool measured;

	pthread_mutex_lock(&ctx->lock);
	measured = get_cost(ctx, iface, cost, growth);
	pthread_mutex_unlock(&ctx->lock);
	return measured;
}
