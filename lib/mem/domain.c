/* SPDX-License-Identifier: BSD-3-Clause */

#include "mem/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mem/mem.h"
#include "core/worker.h"

struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface)
{
	const struct weft_mem_domain *d;

	if (iface->mem_domain == 0)
		return NULL;
	d = &mem->domains[iface->mem_domain - 1];
	/*
	 * Pairs with add_domain(). The iface may be closing in another worker, so it is not
	 * dereferenced.
	 */
	return atomic_load_explicit(&d->iface, memory_order_acquire) ? d->mem : NULL;
}

/*
 * A domain's number stays the same while the context exists: peers have it in their keys. @return
 * WEFT_MAX_DOMAINS: there are too many, or there is no memory
 */
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
	/* Measurements of a single size give no slope: the driver's figure stays. */
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
 * Register with LOCAL_WRITE, or without it if the memory is read-only and the use permits that:
 * constants, or a file mapped for reading, can be sent, and peers can read them.
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

int weft_mem_shortage(struct weft_context *ctx, size_t length)
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

/*
 * Is it the first time that this domain fails with this error? A program may request it every
 * millisecond.
 */
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

/*
 * Do lanes of the iface need registrations only for sends from user memory, which they can copy
 * instead?
 */
static bool may_lack(const struct weft_lane_iface *iface)
{
	return iface->driver->mem_key == NULL;
}

static void registration_failed(const struct weft_mem *mem, const struct weft_lane_iface *iface,
				int err, const char *why)
{
	bool news = is_news(mem->ctx, iface, err);

	/*
	 * A program that registers memory gets a line for each failure. Registering on the fly
	 * has a fallback, and one line for each kind of error.
	 */
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

/* Register with the iface's domain, once. */
static int add_domain(struct weft_mem *mem, struct weft_lane_iface *iface)
{
	struct weft_mem_domain *d;
	char why[256] = "";
	int rc;

	if (iface->mem_domain == 0)
		/*
		 * a lane without registration, or more than WEFT_MAX_DOMAINS domains: those lanes
		 * copy
		 */
		return 0;
	d = &mem->domains[iface->mem_domain - 1];
	if (d->iface)
		return 0;
	rc = register_as_can(mem, iface, &d->mem, why, sizeof(why));
	note_shortage(mem, iface, rc);
	/*
	 * A lane whose table of registrations is full copies this memory; the other lanes can use
	 * it.
	 */
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

void weft_mem_domains_drop(struct weft_mem *mem)
{
	unsigned int i;

	for (i = 0; i < WEFT_MAX_DOMAINS; i++)
		if (mem->domains[i].iface)
			drop_domain(&mem->domains[i]);
}

/* Sets the domain's number in this context, and the one that peers use, if they need one. */
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

/* Another open iface of the same domain, in any worker. */
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

int weft_mem_domains_add(struct weft_mem *mem, bool partial)
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
