/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The registration cache on real memory and the kernel's userfaultfd: what is unmapped, moved or
 * emptied is never found again. Registrations are the mock's: it copies what is in the memory when
 * it is registered, so that a stale hit shows old content, as a NIC would.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn_util.h"
#include "mem.h"
#include "regcache.h"
#include "uffd.h"

#define PAGE 4096ul

/* ------------------------------------------------------------------ a driver that remembers */

/* What the pages were when they were registered: first byte of each, at most 64 of them. */
struct snapshot {
	uint8_t first[64];
	void *addr;
	size_t len;
	unsigned int access;
};

static _Atomic unsigned int snapshots, registered;
static int refuse;
static const void *read_only; /* pages that begin here can't be written */
static uint64_t reg_ns; /* what a registration takes on the mock's clock, per page; plus 1 us */

static int snap_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
			 struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct snapshot *s;
	size_t i;

	(void)iface;
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
	free(mem);
	snapshots--;
}

static int snap_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len);
static int snap_query(const struct weft_lane_conf *conf, struct weft_lane_resource **list)
{
	return mock_driver.query(conf, list);
}

static const struct weft_lane_driver snap_driver = {
	.name = "snap",
	.abi = WEFT_LANE_ABI,
	.query = snap_query,
	.open = snap_open,
	.mem_register = snap_register,
	.mem_deregister = snap_deregister,
	.options = "net",
};

static int snap_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	int rc = mock_driver.open(p, iface, why, why_len);

	if (rc == 0) {
		(*iface)->driver = &snap_driver;
		snprintf((*iface)->name, sizeof((*iface)->name), "snap:%.40s", p->resource);
	}
	return rc;
}

extern const struct weft_lane_driver weft_self_driver;
static const struct weft_lane_driver *const drivers[] = {&snap_driver, &weft_self_driver, NULL};

/* ------------------------------------------------------------------ scene */

struct scene {
	struct weft_context *ctx;
	struct weft_worker *w;
	struct weft_regcache_stats stats;
};

static uint8_t *map_pages(void *at, size_t pages, int fill);

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

static void open_scene(struct scene *s, const char *entries, const char *bytes, const char *mode)
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

static void close_scene(struct scene *s)
{
	weft_worker_destroy(s->w);
	assert_int_equal(weft_context_destroy(s->ctx), 0);
	assert_int_equal(snapshots, 0);
}

static const struct weft_regcache_stats *stats(struct scene *s)
{
	weft_regcache_query(s->ctx->regcache, &s->stats);
	return &s->stats;
}

static uint8_t *map_pages(void *at, size_t pages, int fill)
{
	uint8_t *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);

	assert_true(p != MAP_FAILED && (at == NULL || p == at));
	memset(p, fill, pages * PAGE);
	return p;
}

/* What the lane would send from @p addr. */
static uint8_t seen(struct scene *s, const struct weft_mem *mem, const uint8_t *addr)
{
	struct snapshot *snap = (struct snapshot *)weft_mem_lane_of(mem, mock_iface(s->w, 0));

	assert_non_null(snap);
	assert_in_range((uintptr_t)addr, (uintptr_t)snap->addr,
			(uintptr_t)snap->addr + snap->len - 1);
	return snap->first[(addr - (uint8_t *)snap->addr) / PAGE];
}

static struct weft_mem *get_for(struct scene *s, void *addr, size_t len, unsigned int access)
{
	struct weft_mem *mem = NULL;

	assert_int_equal(weft_mem_get(s->ctx, addr, len, access, &mem), 0);
	assert_true((uintptr_t)mem->address <= (uintptr_t)addr);
	assert_true((uintptr_t)mem->address + mem->length >= (uintptr_t)addr + len);
	return mem;
}

static struct weft_mem *get(struct scene *s, void *addr, size_t len)
{
	return get_for(s, addr, len, 0);
}

/* What the registration of a use with @p access allows. */
static unsigned int access_for(struct scene *s, void *addr, size_t len, unsigned int access)
{
	struct weft_mem *mem = get_for(s, addr, len, access);
	unsigned int got = ((struct snapshot *)weft_mem_lane_of(mem, mock_iface(s->w, 0)))->access;

	assert_int_equal(got, mem->access);
	weft_mem_put(mem);
	return got;
}

/* Register, use, give back. */
static uint8_t use(struct scene *s, uint8_t *addr, size_t len)
{
	struct weft_mem *mem = get(s, addr, len);
	uint8_t what = seen(s, mem, addr);

	weft_mem_put(mem);
	return what;
}

static bool have_uffd(void)
{
	char why[256];
	int fd = weft_uffd_open(why, sizeof(why));

	if (fd < 0)
		print_message("left out: %s\n", why);
	else
		close(fd);
	return fd >= 0;
}

#define NEEDS_UFFD()              \
	do {                      \
		(void)state;      \
		if (!have_uffd()) \
			skip();   \
	} while (0)

/* ------------------------------------------------------------------ hits */

static void the_second_use_is_a_hit(void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 32, 1);
	registered = 0;
	assert_int_equal(use(&s, p, 32 * PAGE), 1);
	assert_int_equal(use(&s, p, 32 * PAGE), 1);
	assert_int_equal(use(&s, p + 100, 5 * PAGE), 1);
	assert_int_equal(registered, 1);
	assert_int_equal(stats(&s)->hits, 2);
	assert_int_equal(stats(&s)->entries, 1);
	assert_int_equal(stats(&s)->bytes, 32 * PAGE);
	close_scene(&s);
	munmap(p, 32 * PAGE);
}

static void overlapping_uses_become_one_entry(void **state)
{
	struct weft_mem *old;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 30, 1);
	old = get(&s, p, 10 * PAGE);
	use(&s, p + 20 * PAGE, 10 * PAGE);
	assert_int_equal(stats(&s)->entries, 2);
	use(&s, p + 5 * PAGE, 20 * PAGE);
	assert_int_equal(stats(&s)->entries, 1);
	assert_int_equal(stats(&s)->bytes, 30 * PAGE);
	/* The one in use is still there for its user. */
	assert_int_equal(seen(&s, old, p), 1);
	assert_int_equal(snapshots, 2);
	weft_mem_put(old);
	assert_int_equal(snapshots, 1);
	close_scene(&s);
	munmap(p, 30 * PAGE);
}

/* ------------------------------------------------------------------ rights */

#define LOCAL WEFT_LANE_ACCESS_LOCAL_WRITE
#define READ WEFT_LANE_ACCESS_REMOTE_READ
#define WRITE WEFT_LANE_ACCESS_REMOTE_WRITE

static void a_key_allows_what_it_was_asked_for_and_an_entry_with_other_rights_is_no_hit(
	void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	registered = 0;
	/* Sent from, without a key that leaves; then offered; then received into. */
	assert_int_equal(access_for(&s, p, 8 * PAGE, 0), LOCAL);
	assert_int_equal(access_for(&s, p, 8 * PAGE, READ), LOCAL | READ);
	assert_int_equal(registered, 2);
	assert_int_equal(access_for(&s, p, PAGE, LOCAL), LOCAL | READ);
	assert_int_equal(access_for(&s, p, PAGE, 0), LOCAL | READ);
	assert_int_equal(registered, 2);
	/* A peer that may write shall not get the key with which others read, nor the other way round. */
	assert_int_equal(access_for(&s, p, PAGE, WRITE), LOCAL | WRITE);
	assert_int_equal(access_for(&s, p, PAGE, READ), LOCAL | READ);
	assert_int_equal(registered, 4);
	assert_int_equal(stats(&s)->entries, 1);
	assert_int_equal(stats(&s)->bytes, 8 * PAGE);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

static void an_entry_that_is_replaced_for_its_rights_stays_for_its_user(void **state)
{
	struct weft_mem *old;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	old = get_for(&s, p, 8 * PAGE, READ);
	access_for(&s, p + PAGE, PAGE, WRITE);
	assert_int_equal(seen(&s, old, p), 1);
	assert_int_equal(snapshots, 2);
	weft_mem_put(old);
	assert_int_equal(snapshots, 1);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

static void memory_for_reading_only_can_be_sent_but_not_received_into(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 2, 1);
	read_only = p;
	assert_int_equal(access_for(&s, p, PAGE, 0), 0);
	assert_int_equal(access_for(&s, p, PAGE, READ), READ);
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, LOCAL, &mem), -EFAULT);
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, WRITE, &mem), -EFAULT);
	read_only = NULL;
	close_scene(&s);
	munmap(p, 2 * PAGE);
}

/* ------------------------------------------------------------------ what goes away */

static void unmapped_memory_is_never_found_again(void **state)
{
	unsigned int i;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 0);
	for (i = 0; i < 2000; i++) {
		assert_int_equal(use(&s, p, 16 * PAGE), i & 0xff);
		assert_int_equal(use(&s, p, 16 * PAGE), i & 0xff);
		/* By turns: unmap and map again; map over it; unmap one page in the middle. */
		if (i % 3 == 0)
			assert_int_equal(munmap(p, 16 * PAGE), 0);
		else if (i % 3 == 2)
			assert_int_equal(munmap(p + 7 * PAGE, PAGE), 0);
		map_pages(p, 16, (i + 1) & 0xff);
	}
	assert_true(stats(&s)->hits >= 2000);
	assert_true(stats(&s)->invalidated >= 1999);
	/* What was invalidated does not stay registered. */
	weft_worker_progress(s.w);
	assert_true(snapshots <= 1);
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

static void emptied_memory_is_registered_anew(void **state)
{
	struct scene s;
	uint8_t *p;
	int advice[] = {MADV_DONTNEED, MADV_FREE}, i;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	for (i = 0; i < 2; i++) {
		map_pages(p, 16, 1);
		assert_int_equal(use(&s, p, 16 * PAGE), 1);
		assert_int_equal(madvise(p, PAGE, advice[i]), 0);
		p[0] = 7;
		registered = 0;
		assert_int_equal(use(&s, p, 16 * PAGE), 7);
		assert_int_equal(registered, 1);
	}
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

static void moved_memory_is_registered_at_its_new_place(void **state)
{
	uint8_t *p, *place, *q;
	struct scene s;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	place = map_pages(NULL, 16, 9);
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	assert_int_equal(use(&s, place, 16 * PAGE), 9);
	q = mremap(p, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	assert_true(q == place);
	assert_int_equal(use(&s, q, 16 * PAGE), 1);
	map_pages(p, 16, 5);
	assert_int_equal(use(&s, p, 16 * PAGE), 5);
	/* Shrunk in place. */
	q = mremap(p, 16 * PAGE, 8 * PAGE, 0);
	assert_true(q == p);
	map_pages(p + 8 * PAGE, 8, 6);
	assert_int_equal(use(&s, p + 8 * PAGE, 8 * PAGE), 6);
	close_scene(&s);
	munmap(p, 16 * PAGE);
	munmap(place, 16 * PAGE);
}

static void a_child_process_changes_nothing_here(void **state)
{
	struct scene s;
	uint8_t *p;
	int status;
	pid_t pid;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	pid = fork();
	if (pid == 0) {
		/* It may do with its memory what it likes, without anybody listening. */
		memset(p, 2, 16 * PAGE);
		if (use(&s, p, 16 * PAGE) != 2)
			_exit(1);
		munmap(p, 16 * PAGE);
		map_pages(p, 16, 3);
		_exit(use(&s, p, 16 * PAGE) == 3 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	registered = 0;
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	assert_int_equal(registered, 0);
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

/* ------------------------------------------------------------------ threads */

struct threads {
	struct scene *s;
	uint8_t *area;
	_Atomic bool stop;
	_Atomic unsigned int stale, rounds;
};

/*
 * Each thread maps the same address anew, or a neighbour's unmapping has just freed it: what it
 * registers must be its own content.
 */
static void *map_and_use(void *arg)
{
	struct threads *t = arg;
	uint8_t *p;
	uint8_t mark;

	while (!atomic_load(&t->stop)) {
		p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		mark = (uint8_t)(atomic_fetch_add(&t->rounds, 1) % 250 + 1);
		p[0] = mark;
		if (use(t->s, p, 64 * PAGE) != mark || use(t->s, p, 64 * PAGE) != mark)
			atomic_fetch_add(&t->stale, 1);
		munmap(p, 64 * PAGE);
	}
	return NULL;
}

static void threads_that_map_each_others_addresses_see_their_own_content(void **state)
{
	struct threads t = {0};
	pthread_t id[4];
	struct scene s;
	unsigned int i;

	NEEDS_UFFD();
	open_scene(&s, "64", "1g", "auto");
	t.s = &s;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&id[i], NULL, map_and_use, &t), 0);
	for (i = 0; i < 4000 && atomic_load(&t.rounds) < 20000; i++)
		usleep(1000);
	atomic_store(&t.stop, true);
	for (i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	assert_int_equal(t.stale, 0);
	assert_true(t.rounds > 100);
	close_scene(&s);
}

/* ------------------------------------------------------------------ bounds */

static void entries_and_bytes_are_bounded_and_the_longest_unused_go(void **state)
{
	struct weft_mem *held;
	struct scene s;
	unsigned int i;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "8", "64k", "auto");
	p = map_pages(NULL, 200, 1);
	held = get(&s, p, 2 * PAGE);
	for (i = 1; i < 50; i++) {
		use(&s, p + 4 * i * PAGE, PAGE);
		assert_in_range(stats(&s)->entries, 1, 8);
		assert_in_range(snapshots, 1, 8);
	}
	/* The recent ones are there, the old ones are not, and what is in use stays. */
	registered = 0;
	use(&s, p + 4 * 49 * PAGE, PAGE);
	use(&s, p, 2 * PAGE);
	assert_int_equal(registered, 0);
	use(&s, p + 4 * PAGE, PAGE);
	assert_int_equal(registered, 1);
	assert_int_equal(seen(&s, held, p), 1);
	/* 16 pages in all: a larger one is not kept; 14 more beside the 2 that are held are. */
	use(&s, p + 4 * PAGE, 17 * PAGE);
	assert_true(stats(&s)->bytes <= 16 * PAGE);
	use(&s, p + 4 * PAGE, 14 * PAGE);
	assert_int_equal(stats(&s)->bytes, 16 * PAGE);
	assert_int_equal(stats(&s)->entries, 2);
	weft_mem_put(held);
	close_scene(&s);
	munmap(p, 200 * PAGE);
}

/* Evicted ranges are no longer watched: nobody waits for their events, and they can be watched again. */
static void what_was_evicted_can_be_kept_again(void **state)
{
	struct scene s;
	unsigned int i;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "2", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	for (i = 0; i < 400; i++) {
		use(&s, p + i % 4 * 2 * PAGE, PAGE);
		if (i % 7 == 0) {
			map_pages(p + i % 4 * 2 * PAGE, 1, (int)(i & 0xff));
			assert_int_equal(use(&s, p + i % 4 * 2 * PAGE, PAGE), i & 0xff);
		}
	}
	assert_true(stats(&s)->evicted > 200);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

/* ------------------------------------------------------------------ what is not kept */

static void what_cannot_be_watched_for_certain_is_not_kept(void **state)
{
	uint8_t *shared, *file, *hole;
	struct scene s;
	FILE *f = tmpfile();

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), 4 * PAGE), 0);
	file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	memset(shared, 1, 4 * PAGE);
	memset(file, 2, 4 * PAGE);
	assert_int_equal(use(&s, shared, 4 * PAGE), 1);
	assert_int_equal(use(&s, file, 4 * PAGE), 2);
	assert_int_equal(stats(&s)->entries, 0);
	assert_int_equal(stats(&s)->uncached, 2);
	assert_int_equal(snapshots, 0);
	hole = map_pages(NULL, 3, 1);
	munmap(hole + PAGE, PAGE);
	assert_false(weft_uffd_anonymous((uintptr_t)hole, (uintptr_t)hole + 3 * PAGE));
	assert_true(weft_uffd_anonymous((uintptr_t)hole, (uintptr_t)hole + PAGE));
	munmap(hole, 3 * PAGE);
	munmap(shared, 4 * PAGE);
	munmap(file, 4 * PAGE);
	fclose(f);
	close_scene(&s);
}

static void off_registers_every_time(void **state)
{
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 4, 1);
	registered = 0;
	use(&s, p, PAGE);
	use(&s, p, PAGE);
	assert_int_equal(registered, 2);
	assert_int_equal(snapshots, 0);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

static void a_refused_registration_is_the_callers_error(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 4, 1);
	refuse = -ENOMEM;
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, 0, &mem), -ENOMEM);
	refuse = 0;
	assert_int_equal(use(&s, p, PAGE), 1);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

/* Lines of the log file with @p what. */
static unsigned int count_lines(const char *path, const char *what)
{
	FILE *f = fopen(path, "r");
	unsigned int n = 0;
	char line[600];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

static void a_registration_that_fails_with_every_message_is_told_once_per_reason(void **state)
{
	char path[] = "/tmp/weft-regcache-XXXXXX";
	int fd = mkstemp(path), level = weft_log_level;
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;
	int i;

	(void)state;
	assert_true(fd >= 0);
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 4, 1);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	for (i = 0; i < 100; i++) {
		refuse = i % 2 ? -ENOMEM : -EPERM;
		assert_int_equal(weft_mem_get(s.ctx, p, PAGE, 0, &mem), refuse);
	}
	/* Who registers asks himself, and is told each time. */
	assert_int_equal(weft_mem_register(s.ctx, p, PAGE, NULL, &mem), refuse);
	assert_int_equal(weft_mem_register(s.ctx, p, PAGE, NULL, &mem), refuse);
	refuse = 0;
	assert_int_equal(weft_log_setup(WEFT_LOG_ERROR, "/dev/null"), 0);
	assert_int_equal(count_lines(path, "large messages"), 2);
	assert_int_equal(count_lines(path, "raise it"), 4);
	assert_int_equal(count_lines(path, "weft error"), 2);
	weft_log_level = level;
	close_scene(&s);
	munmap(p, 4 * PAGE);
	close(fd);
	unlink(path);
}

/* Workers come and go; what is kept follows, and the context can be destroyed with it. */
static void kept_registrations_follow_the_interfaces(void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 4, 1);
	use(&s, p, 4 * PAGE);
	weft_worker_destroy(s.w);
	assert_int_equal(snapshots, 0);
	s.w = mock_worker(s.ctx, "snap:0");
	assert_int_equal(snapshots, 1);
	registered = 0;
	assert_int_equal(use(&s, p, 4 * PAGE), 1);
	assert_int_equal(registered, 0);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

/* ------------------------------------------------------------------ cost */

static void registering_is_measured(void **state)
{
	struct weft_iface_info info = {.size = sizeof(info)};
	struct scene s;
	unsigned int i;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 64, 1);
	reg_ns = 400;
	for (i = 0; i < 40; i++)
		use(&s, p, (1 + i % 64) * PAGE);
	reg_ns = 0;
	assert_int_equal(weft_worker_query_iface(s.w, 0, &info), 0);
	assert_in_range((int)(info.reg_cost * 1e9), 990, 1010);
	assert_in_range((int)(info.reg_growth * 1e9 * PAGE), 396, 404);
	close_scene(&s);
	munmap(p, 64 * PAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(the_second_use_is_a_hit),
		CONN_TEST(overlapping_uses_become_one_entry),
		CONN_TEST(
			a_key_allows_what_it_was_asked_for_and_an_entry_with_other_rights_is_no_hit),
		CONN_TEST(an_entry_that_is_replaced_for_its_rights_stays_for_its_user),
		CONN_TEST(memory_for_reading_only_can_be_sent_but_not_received_into),
		CONN_TEST(unmapped_memory_is_never_found_again),
		CONN_TEST(emptied_memory_is_registered_anew),
		CONN_TEST(moved_memory_is_registered_at_its_new_place),
		CONN_TEST(a_child_process_changes_nothing_here),
		CONN_TEST(threads_that_map_each_others_addresses_see_their_own_content),
		CONN_TEST(entries_and_bytes_are_bounded_and_the_longest_unused_go),
		CONN_TEST(what_was_evicted_can_be_kept_again),
		CONN_TEST(what_cannot_be_watched_for_certain_is_not_kept),
		CONN_TEST(off_registers_every_time),
		CONN_TEST(a_refused_registration_is_the_callers_error),
		CONN_TEST(a_registration_that_fails_with_every_message_is_told_once_per_reason),
		CONN_TEST(kept_registrations_follow_the_interfaces),
		CONN_TEST(registering_is_measured),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("regcache", tests, NULL, NULL);
}
