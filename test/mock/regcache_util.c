/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "context.h"
#include "mem/mem.h"
#include "mock/mock_priv.h"
#include "mock/regcache_util.h"

/* ------------------------------------------------------------------ a driver that remembers */

_Atomic unsigned int snapshots, registered;
int refuse;
unsigned int reg_calls; /* calls of the driver */
size_t lockable;        /* bytes that may be registered at a time; 0 = no limit */
static size_t locked;
const void *read_only; /* pages that begin here can't be written */
uint64_t reg_ns;       /* what a registration takes on the mock's clock, per page; plus 1 us */

static int snap_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
			 struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct snapshot *s;
	size_t i;

	(void)iface;
	reg_calls++;
	if (lockable != 0 && locked + len > lockable)
		return -ENOMEM;
	if (refuse < 0) {
		snprintf(why, why_len, "the limit of locked memory is 64 KiB: raise it");
		return refuse;
	}
	if (addr == read_only && (access & WEFT_LANE_ACCESS_LOCAL_WRITE))
		return -EFAULT;
	s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->addr = addr;
	s->len = len;
	s->access = access;
	for (i = 0; i < 64 && i * PAGE < len; i++)
		s->first[i] = ((uint8_t *)addr)[i * PAGE];
	locked += len;
	snapshots++;
	registered++;
	if (reg_ns)
		mock_now += 1000 + reg_ns * (len / PAGE);
	*mem = (struct weft_mem_lane *)s;
	return 0;
}

static void snap_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	locked -= ((struct snapshot *)mem)->len;
	free(mem);
	snapshots--;
}

static int snap_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len);
static int snap_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	return mock_driver.query(conf, add, arg);
}

/* Lanes whose registrations have keys cannot do without them. */
static uint64_t snap_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return (uintptr_t)mem;
}

static const struct weft_lane_driver snap_driver = {
	.name = "snap",
	.abi = WEFT_LANE_ABI,
	.query = snap_query,
	.open = snap_open,
	.mem_register = snap_register,
	.mem_deregister = snap_deregister,
	.mem_key = snap_key,
	.options = "net",
};

static int snap_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	int rc = mock_driver.open(p, iface, why, why_len);
	struct mock_iface *f = (struct mock_iface *)*iface;

	if (rc == 0) {
		f->base.driver = &snap_driver;
		snprintf(f->name, sizeof(f->name), "snap:%.40s", p->resource);
	}
	return rc;
}

extern const struct weft_lane_driver weft_self_driver;
static const struct weft_lane_driver *const drivers[] = {&snap_driver, &weft_self_driver, NULL};

/* ------------------------------------------------------------------ scene */

/*
 * A starting thread maps memory for itself, which must not take the place of what a test has just
 * unmapped. Unmapping what is watched ends when the thread is at work.
 */
static void start_monitor(struct scene *s)
{
	uint8_t *p = map_pages(NULL, 1, 0);
	struct weft_mem *mem;

	assert_int_equal(weft_mem_get(s->ctx, p, PAGE, 0, &mem), 0);
	weft_mem_put(mem);
	munmap(p, PAGE);
	weft_worker_progress(s->w);
	memset(&s->ctx->domains[0].measured, 0, sizeof(s->ctx->domains[0].measured));
}

void open_scene(struct scene *s, const char *entries, const char *bytes, const char *mode)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "test");
	struct weft_config *config;

	assert_int_equal(weft_config_read(&config), 0);
	assert_int_equal(weft_config_modify(config, "REG_CACHE", mode), 0);
	assert_int_equal(weft_config_modify(config, "REG_CACHE_ENTRIES", entries), 0);
	assert_int_equal(weft_config_modify(config, "REG_CACHE_SIZE", bytes), 0);
	assert_int_equal(weft_config_modify(config, "LOG_FILE", "/dev/null"), 0);
	p.config = config;
	assert_int_equal(weft_context_create_in(&p, &mock_platform, drivers, &s->ctx), 0);
	weft_config_release(config);
	s->w = mock_worker(s->ctx, "snap:0");
	start_monitor(s);
}

void close_scene(struct scene *s)
{
	weft_worker_destroy(s->w);
	assert_int_equal(weft_context_destroy(s->ctx), 0);
	assert_int_equal(snapshots, 0);
}

const struct weft_regcache_stats *stats(struct scene *s)
{
	weft_regcache_query(s->ctx->regcache, &s->stats);
	return &s->stats;
}

uint8_t *map_pages(void *at, size_t pages, int fill)
{
	uint8_t *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	assert_true(p != MAP_FAILED && (at == NULL || p == at));
	memset(p, fill, pages * PAGE);
	return p;
}

/* What the lane would send from @p addr. */
uint8_t seen(struct scene *s, const struct weft_mem *mem, const uint8_t *addr)
{
	struct snapshot *snap = (struct snapshot *)weft_mem_lane_of(mem, mock_iface(s->w, 0));

	assert_non_null(snap);
	assert_in_range((uintptr_t)addr, (uintptr_t)snap->addr,
			(uintptr_t)snap->addr + snap->len - 1);
	return snap->first[(addr - (uint8_t *)snap->addr) / PAGE];
}

struct weft_mem *get_for(struct scene *s, void *addr, size_t len, unsigned int access)
{
	struct weft_mem *mem = NULL;

	assert_int_equal(weft_mem_get(s->ctx, addr, len, access, &mem), 0);
	assert_true((uintptr_t)mem->address <= (uintptr_t)addr);
	assert_true((uintptr_t)mem->address + mem->length >= (uintptr_t)addr + len);
	return mem;
}

struct weft_mem *get(struct scene *s, void *addr, size_t len)
{
	return get_for(s, addr, len, 0);
}

/* What the registration of a use with @p access allows. */
unsigned int access_for(struct scene *s, void *addr, size_t len, unsigned int access)
{
	struct weft_mem *mem = get_for(s, addr, len, access);
	unsigned int got = ((struct snapshot *)weft_mem_lane_of(mem, mock_iface(s->w, 0)))->access;

	assert_int_equal(got, mem->access);
	weft_mem_put(mem);
	return got;
}

/* Register, use, give back. */
uint8_t use(struct scene *s, uint8_t *addr, size_t len)
{
	struct weft_mem *mem = get(s, addr, len);
	uint8_t what = seen(s, mem, addr);

	weft_mem_put(mem);
	return what;
}

bool have_uffd(void)
{
	char why[256];
	int fd = weft_uffd_open(why, sizeof(why));

	if (fd < 0)
		print_message("left out: %s\n", why);
	else
		close(fd);
	return fd >= 0;
}
