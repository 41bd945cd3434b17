/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory. The device addresses a registration by an IOVA that begins at the offset of
 * the first byte within its 2 MiB of virtual memory (roce_iova()), instead of by its virtual
 * address. So a peer gets a key and an offset, and no address of this process.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "roce.h"

static struct roce_dev *dev_of(struct weft_lane_iface *iface)
{
	return roce_iface_of(iface)->dev;
}

/*
 * Access rights as verbs flags. Remote writes and atomics require local write access (InfiniBand
 * specification 10.6.3.1).
 */
static int verbs_access(const struct roce_dev *dev, unsigned int access)
{
	int flags = 0;

	if (access & WEFT_LANE_ACCESS_LOCAL_WRITE)
		flags |= IBV_ACCESS_LOCAL_WRITE;
	if (access & WEFT_LANE_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & WEFT_LANE_ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	/* A device without atomics refuses the flag; its lanes have no amo64() either. */
	if ((access & WEFT_LANE_ACCESS_REMOTE_ATOMIC) && dev->attr.atomic_cap != IBV_ATOMIC_NONE)
		flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	return flags;
}

void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	weft_roce_text_setup(dev->name, what, err,
			     limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur, why,
			     why_len);
}

static int mem_reg(struct roce_dev *dev, void *addr, size_t len, unsigned int access,
		   struct weft_mem_lane *m)
{
	m->start = (uintptr_t)addr;
	m->length = len;
	m->iova = roce_iova(addr);
	errno = 0;
	m->mr = ibv_reg_mr_iova(dev->pd, addr, len, m->iova, verbs_access(dev, access));
	return m->mr ? 0 : errno ? -errno : -EIO;
}

int roce_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		      struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct weft_mem_lane *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	rc = mem_reg(dev_of(iface), addr, len, access, m);
	if (rc < 0) {
		roce_setup_failed(dev_of(iface), "registration of memory", -rc, why, why_len);
		free(m);
		return rc;
	}
	*mem = m;
	return 0;
}

void roce_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	int err = ibv_dereg_mr(mem->mr);

	if (err != 0)
		weft_error("%s: memory at %p can't be deregistered: %s", dev_of(iface)->name,
			   (void *)mem->start, strerror(err));
	free(mem);
}

uint64_t roce_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return roce_key(mem);
}

/* ------------------------------------------------------------------ the cost of registration */

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Register @p len bytes of memory whose pages exist. @return least time in s; -1: it failed */
static double reg_time(struct roce_dev *dev, void *addr, size_t len)
{
	struct weft_mem_lane m;
	double t, best = 1.0;
	int i;

	for (i = 0; i < 5; i++) {
		t = now_seconds();
		if (mem_reg(dev, addr, len, WEFT_LANE_ACCESS_LOCAL_WRITE, &m) < 0)
			return -1;
		t = now_seconds() - t;
		ibv_dereg_mr(m.mr);
		if (t < best)
			best = t;
	}
	return best;
}

void roce_mem_measure(struct roce_dev *dev)
{
	const size_t small = 4096, large = 1 << 20;
	double t_small, t_large;
	void *p = mmap(NULL, large, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	/* UCX's assumption, in case the measurement fails. */
	dev->reg_cost = 16e-6;
	dev->reg_growth = 0.06e-9;
	if (p == MAP_FAILED)
		return;
	t_small = reg_time(dev, p, small);
	t_large = reg_time(dev, p, large);
	munmap(p, large);
	if (t_small <= 0 || t_large <= 0)
		return;
	dev->reg_growth = t_large > t_small ? (t_large - t_small) / (double)(large - small) : 0;
	dev->reg_cost = t_small;
}

/* ------------------------------------------------------------------ pools */

struct roce_chunk {
	struct roce_chunk *next;
	void *mem;
	size_t size;
	struct ibv_mr *mr;
};

#define POOL_FIRST 32   /* objects of the first chunk; each further one doubles the pool */
#define POOL_CHUNK 512  /* objects of a chunk at most */
#define POOL_SKIP 65536 /* after a failure at most this number of calls fail without a try */

void roce_pool_init(struct roce_pool *pool, struct roce_dev *dev, size_t size, size_t max)
{
	*pool = (struct roce_pool){.dev = dev, .size = (size + 63) & ~(size_t)63, .max = max};
}

void roce_pool_fini(struct roce_pool *pool)
{
	struct roce_chunk *c;

	while ((c = pool->chunks)) {
		pool->chunks = c->next;
		ibv_dereg_mr(c->mr);
		munmap(c->mem, c->size);
		free(c);
	}
	pool->free = NULL;
}

static int pool_grow(struct roce_pool *pool)
{
	size_t stride = sizeof(struct roce_buf) + pool->size, n, i;
	struct roce_chunk *c;
	struct roce_buf *buf;
	int err = ENOMEM;

	n = pool->total == 0 ? POOL_FIRST : pool->total < POOL_CHUNK ? pool->total : POOL_CHUNK;
	if (n > pool->max - pool->total)
		n = pool->max - pool->total;
	if (n == 0)
		return -ENOBUFS;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->size = n * stride;
	c->mem = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->mem != MAP_FAILED) {
		c->mr = ibv_reg_mr(pool->dev->pd, c->mem, c->size, IBV_ACCESS_LOCAL_WRITE);
		err = errno;
	}
	if (c->mem == MAP_FAILED || !c->mr) {
		if (c->mem != MAP_FAILED)
			munmap(c->mem, c->size);
		free(c);
		return err ? -err : -ENOMEM;
	}
	c->next = pool->chunks;
	pool->chunks = c;
	for (i = n; i-- > 0;) {
		buf = (struct roce_buf *)((char *)c->mem + i * stride);
		buf->lkey = c->mr->lkey;
		buf->next = pool->free;
		pool->free = buf;
	}
	pool->total += n;
	return 0;
}

int roce_pool_reserve(struct roce_pool *pool, size_t n)
{
	int rc = 0;

	while (rc == 0 && pool->total - pool->in_use < n)
		rc = pool_grow(pool);
	return rc;
}

bool roce_pool_more(struct roce_pool *pool)
{
	if (pool->skip > 0) {
		pool->skip--;
		return false;
	}
	if (pool_grow(pool) == 0) {
		pool->skip_next = 0;
		return true;
	}
	pool->skip_next = pool->skip_next == 0          ? 16
			  : pool->skip_next < POOL_SKIP ? pool->skip_next * 2
							: POOL_SKIP;
	pool->skip = pool->skip_next;
	return false;
}
