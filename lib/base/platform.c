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
 */

#define NS_PER_S 1000000000ull

__extension__ typedef unsigned __int128 u128;

static struct {
	atomic_bool ready;
	bool counter;   /* use the counter; else clock_gettime() */
	uint64_t start; /* ticks */
	uint64_t base_ns;
	uint64_t mult; /* ns per tick, 32 fraction bits */
} clk;

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

/*
 * Ticks per second: two pairs of readings about 10 ms apart. Each pair is the one of several
 * attempts with the least time between its two clocks, so an interrupt between them does no harm.
 * The remaining error is a few ppm.
 */
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
			*t = before + best / 2;
			*ns = now;
		}
	}
}

static bool counter_rate(uint64_t *start, uint64_t *base, uint64_t *mult)
{
	uint64_t t1, ns1;

	read_pair(start, base);
	while (monotonic_ns() - *base < NS_PER_S / 100)
		;
	read_pair(&t1, &ns1);
	if (t1 <= *start || ns1 <= *base)
		return false;
	*mult = (uint64_t)(((u128)(ns1 - *base) << 32) / (t1 - *start));
	return *mult != 0;
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

#endif

static void clock_setup(void)
{
	clk.counter = counter_usable() && counter_rate(&clk.start, &clk.base_ns, &clk.mult);
	atomic_store_explicit(&clk.ready, true, memory_order_release);
}

static uint64_t host_now(void *arg)
{
	(void)arg;
	/*
	 * Pairs with the release in clock_setup(): a thread that sees `ready` sees the other
	 * fields.
	 */
	if (__builtin_expect(!atomic_load_explicit(&clk.ready, memory_order_acquire), 0))
		pthread_once(&clk_once, clock_setup);
	if (!clk.counter)
		return monotonic_ns();
	return clk.base_ns + (uint64_t)(((u128)(ticks() - clk.start) * clk.mult) >> 32);
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
