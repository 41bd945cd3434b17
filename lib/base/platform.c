/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/platform_host.h"
#include "base/siphash.h"

/*
 * The clock of the real machine. A progress call reads it once, so it should cost a few ns: the
 * CPU's counter where it runs at a constant rate on all cores, else clock_gettime(). ns = base +
 * (ticks - start) * mult / 2^32.
 *
 * Where the rate must be measured, it follows from two readings of both clocks that are at least
 * MEASURE_NS apart. The first one is made at the start, the second one by the first call after that
 * time. No call waits: in between, clock_gettime() is the clock.
 */

#define NS_PER_S 1000000000ull
#define MEASURE_NS (NS_PER_S / 100)

__extension__ typedef unsigned __int128 u128;

static struct {
	atomic_bool counter; /* start, base_ns and mult are valid: use the counter */
	uint64_t start;      /* ticks */
	uint64_t base_ns;
	uint64_t mult; /* ns per tick, 32 fraction bits */
} clk;

/* Before the counter is used. */
static struct {
	bool usable;           /* a second reading makes sense */
	uint64_t ticks, ns;    /* the first reading */
	atomic_flag measuring; /* a thread makes the second one, or has made it */
} first = {.measuring = ATOMIC_FLAG_INIT};

static pthread_once_t clk_once = PTHREAD_ONCE_INIT;

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

#if defined(__x86_64__)

static inline uint64_t ticks(void)
{
	return __rdtsc();
}

/*
 * The CPU reports an invariant TSC, and the kernel has not rejected the TSC (unsynchronised
 * sockets, bad firmware).
 */
static bool counter_usable(void)
{
	unsigned int a, b, c, d;
	char line[256] = "";
	FILE *f;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
		return false;
	f = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return strstr(line, "tsc") != NULL;
}

/* Two clocks at one moment: the attempt in which least time passes between them. */
static void read_pair(uint64_t *t, uint64_t *ns)
{
	uint64_t before, after, now, best = UINT64_MAX;
	int i;

	*t = *ns = 0;
	for (i = 0; i < 16; i++) {
		before = ticks();
		now = monotonic_ns();
		after = ticks();
		if (after - before < best) {
			best = after - before;
			*t = before; /* so the counter's time is never behind clock_gettime() */
			*ns = now;
		}
	}
}

/* The error is a few ppm, and less if more time has passed. */
static bool counter_rate(uint64_t *start, uint64_t *base, uint64_t *mult)
{
	read_pair(start, base);
	if (*start <= first.ticks || *base <= first.ns)
		return false;
	*mult = (uint64_t)(((u128)(*base - first.ns) << 32) / (*start - first.ticks));
	return *mult != 0;
}

static bool rate_is_known(void)
{
	return false;
}

#elif defined(__aarch64__)

static inline uint64_t ticks(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}

static bool counter_usable(void)
{
	return true; /* the architecture promises a constant rate, the same on all cores */
}

static bool counter_rate(uint64_t *start, uint64_t *base, uint64_t *mult)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	if (hz == 0)
		return false;
	*start = ticks();
	*base = monotonic_ns();
	*mult = (uint64_t)(((u128)NS_PER_S << 32) / hz);
	return true;
}

static void read_pair(uint64_t *t, uint64_t *ns)
{
	*t = ticks();
	*ns = monotonic_ns();
}

static bool rate_is_known(void)
{
	return true;
}

#else

static inline uint64_t ticks(void)
{
	return 0;
}

static bool counter_usable(void)
{
	return false;
}

static bool counter_rate(uint64_t *start, uint64_t *base, uint64_t *mult)
{
	*start = *base = *mult = 0;
	return false;
}

static void read_pair(uint64_t *t, uint64_t *ns)
{
	*t = *ns = 0;
}

static bool rate_is_known(void)
{
	return false;
}

#endif

static void use_counter(void)
{
	if (counter_rate(&clk.start, &clk.base_ns, &clk.mult))
		/* Release: a thread that reads it also reads the other fields. */
		atomic_store_explicit(&clk.counter, true, memory_order_release);
}

static void clock_setup(void)
{
	first.usable = counter_usable();
	if (!first.usable)
		return;
	read_pair(&first.ticks, &first.ns);
	if (!rate_is_known())
		return;
	atomic_flag_test_and_set_explicit(&first.measuring, memory_order_relaxed);
	use_counter();
}

static inline uint64_t counter_now(void)
{
	return clk.base_ns + (uint64_t)(((u128)(ticks() - clk.start) * clk.mult) >> 32);
}

/* The counter is not used, or not yet. */
static __attribute__((noinline)) uint64_t system_now(void)
{
	uint64_t now;

	pthread_once(&clk_once, clock_setup);
	now = monotonic_ns();
	/* Relaxed: the first reading is older than this call, and one thread makes the second. */
	if (first.usable && now - first.ns >= MEASURE_NS &&
	    !atomic_flag_test_and_set_explicit(&first.measuring, memory_order_relaxed))
		use_counter();
	/*
	 * Acquire: pairs with use_counter(). Another thread may have used the counter since `now`
	 * was read, and has a time from it that may be some ns later.
	 */
	return atomic_load_explicit(&clk.counter, memory_order_acquire) ? counter_now() : now;
}

static uint64_t host_now(void *arg)
{
	(void)arg;
	/* Acquire: pairs with use_counter(). */
	if (__builtin_expect(atomic_load_explicit(&clk.counter, memory_order_acquire), 1))
		return counter_now();
	return system_now();
}

static int host_random(void *arg, void *buf, size_t len)
{
	unsigned char *p = buf;
	ssize_t n;

	(void)arg;
	while (len > 0) {
		n = getrandom(p, len, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * A hash of the kernel's boot id: addresses are sent to other hosts, which need not learn the id
 * itself.
 */
static uint64_t host_id(void *arg)
{
	static const struct weft_siphash_key key = {0x7765667420686f73ull, 0x7420696420303031ull};
	char boot[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n;

	(void)arg;
	if (!f)
		return 0;
	n = fread(boot, 1, sizeof(boot), f);
	fclose(f);
	return n > 0 ? weft_siphash(&key, boot, n) | 1 : 0;
}

const struct weft_platform weft_platform_host = {
	.now = host_now,
	.random = host_random,
	.host_id = host_id,
};
