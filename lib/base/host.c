/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/host.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/container.h"

/* ------------------------------------------------------------------ clock and randomness */

/*
 * Each progress call reads the clock, so a reading should cost a few ns: ns = base + (ticks -
 * start) * mult / 2^32. Where the rate must be measured, it follows from two readings of both
 * clocks at least MEASURE_NS apart: by the first call, and by the first call after that time. In
 * between, clock_gettime() is the clock, so no call waits.
 */

#define NS_PER_S 1000000000ull
#define MEASURE_NS (NS_PER_S / 100)

__extension__ typedef unsigned __int128 u128;

static struct {
	atomic_bool counter; /* the other fields are valid */
	uint64_t start;      /* ticks */
	uint64_t base_ns;
	uint64_t mult; /* ns per tick, 32 fraction bits */
} clk;

static struct {
	bool usable; /* the counter's rate is constant, and equal on all cores */
	uint64_t ticks, ns;
	atomic_flag measuring; /* the second reading is under way, done, or not needed */
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

/* The CPU must report an invariant TSC, and the kernel must list the TSC as a clock source. */
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
			*t = before; /* the counter's time does not start behind *ns */
			*ns = now;
		}
	}
}

/* The error is a few ppm MEASURE_NS after the first reading, and less later. */
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
	return true; /* the architecture specifies a constant rate, the same on all cores */
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
		/* Release: pairs with the acquires in system_now() and host_now(). */
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

/* Time while the counter is not in use; begins to use it if its rate is known. */
static __attribute__((noinline)) uint64_t system_now(void)
{
	uint64_t now;

	pthread_once(&clk_once, clock_setup);
	now = monotonic_ns();
	/* Relaxed: pthread_once() orders the first reading. The flag only selects one thread. */
	if (first.usable && now - first.ns >= MEASURE_NS &&
	    !atomic_flag_test_and_set_explicit(&first.measuring, memory_order_relaxed))
		use_counter();
	/* Acquire: pairs with use_counter(). The counter's time may be some ns later than `now`. */
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

/* Worker addresses contain the hash, so other hosts do not get the boot id. */
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

/* ------------------------------------------------------------------ copy rate */

/*
 * Pieces of 4 KiB are copied between buffers larger than the first-level cache, as packing a
 * message does. A round is short, 64 KiB / 7 GB/s = 9 us, so most rounds lie between two
 * preemptions, and the fastest one counts. 64 rounds take 0.6 ms. After fewer than COPY_ENOUGH
 * rounds a single preemption could decide the result.
 */
#define COPY_BUFFER (512u << 10)
#define COPY_PIECE 4096u
#define COPY_ROUND (64u << 10)
#define COPY_ROUNDS 64
#define COPY_ENOUGH 16
#define COPY_LIMIT_NS 5000000u

static pthread_mutex_t copy_bw_lock = PTHREAD_MUTEX_INITIALIZER;
static double copy_bw;

/* The asm statement keeps the compiler from removing the copies. */
static unsigned char copy_round(unsigned char *dst, const unsigned char *src, size_t at)
{
	for (size_t n = 0; n < COPY_ROUND; n += COPY_PIECE)
		memcpy(dst + (at + n) % COPY_BUFFER, src + (at + n) % COPY_BUFFER, COPY_PIECE);
	__asm__ volatile("" : : "r"(dst) : "memory");
	return dst[at % COPY_BUFFER];
}

double weft_bcopy_bw_measure(const struct weft_platform *platform)
{
	unsigned char *mem = malloc(2 * COPY_BUFFER);
	uint64_t start, before, now, best = UINT64_MAX;
	double bw;

	if (!mem)
		return WEFT_BCOPY_BW_DEFAULT;
	memset(mem, 1, 2 * COPY_BUFFER); /* page faults come before the measurement */
	start = platform->now(platform->arg);
	for (unsigned int i = 0; i < COPY_ROUNDS; i++) {
		before = platform->now(platform->arg);
		copy_round(mem + COPY_BUFFER, mem, i * COPY_ROUND);
		now = platform->now(platform->arg);
		if (now - before < best)
			best = now - before;
		if (now - start > COPY_LIMIT_NS && i + 1 >= COPY_ENOUGH)
			break;
	}
	free(mem);
	bw = best > 0 ? COPY_ROUND / ((double)best * 1e-9) : 0;
	if (bw <= 0 || bw > 1e13)
		return WEFT_BCOPY_BW_DEFAULT;
	return bw > WEFT_BCOPY_BW_LEAST ? bw : WEFT_BCOPY_BW_LEAST;
}

/*
 * Each process measures, and endpoints have the rate of the slower end. Without rounding nearly
 * every peer of a large job would need a configuration of 32 KiB of its own.
 */
#define COPY_STEPS 4 /* rates of an octave */

static double round_rate(double bw)
{
	return exp2(round(log2(bw) * COPY_STEPS) / COPY_STEPS);
}

double weft_bcopy_bw(const struct weft_platform *platform)
{
	double bw;

	/* A simulated clock must not give the result of the process. */
	if (!platform || platform->now != weft_platform_host.now)
		return WEFT_BCOPY_BW_DEFAULT;
	pthread_mutex_lock(&copy_bw_lock);
	if (!(copy_bw > 0))
		copy_bw = round_rate(weft_bcopy_bw_measure(platform));
	bw = copy_bw;
	pthread_mutex_unlock(&copy_bw_lock);
	return bw;
}

/* ------------------------------------------------------------------ memory limit */

/* @return SIZE_MAX = no number ("max"), or the file cannot be opened */
static size_t read_limit(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long value;
	size_t limit = SIZE_MAX;

	if (!f)
		return SIZE_MAX;
	if (fscanf(f, "%llu", &value) == 1 && value < SIZE_MAX)
		limit = (size_t)value;
	fclose(f);
	return limit;
}

/* @return the least limit of @p group and the groups above it; SIZE_MAX = none; cuts @p group */
static size_t least_limit(const char *mount, char *group, const char *file)
{
	size_t least = SIZE_MAX, limit;
	char path[1200], *slash;

	for (;;) {
		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		limit = read_limit(path);
		least = limit < least ? limit : least;
		slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

static int has_memory(const char *controllers)
{
	const char *at = strstr(controllers, "memory");

	return at && (at == controllers || at[-1] == ',') && (at[6] == '\0' || at[6] == ',');
}

size_t weft_memory_group_limit(const char *groups, const char *mount)
{
	/* A line is "ID:CONTROLLERS:GROUP"; of version 2: "0::GROUP". */
	char line[1024], controllers[256], group[768], below[512];
	size_t least = SIZE_MAX, limit = SIZE_MAX;
	FILE *f = fopen(groups, "re");

	if (!f)
		return SIZE_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "0::%767[^\n]", group) == 1) {
			limit = least_limit(mount, group, "memory.max");
		} else if (sscanf(line, "%*u:%255[^:]:%767[^\n]", controllers, group) == 2 &&
			   has_memory(controllers)) {
			snprintf(below, sizeof(below), "%s/memory", mount);
			limit = least_limit(below, group, "memory.limit_in_bytes");
		}
		least = limit < least ? limit : least;
	}
	fclose(f);
	return least;
}

size_t weft_memory_limit(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	size_t limit = weft_memory_group_limit("/proc/self/cgroup", "/sys/fs/cgroup");
	size_t host = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0;

	if (limit == SIZE_MAX)
		return host;
	return host == 0 || limit < host ? limit : host;
}

/* ------------------------------------------------------------------ requests to the kernel */

/* Bytes of one recv(): the kernel splits a dump into parts of at most this size. */
#define ANSWER 16384

void weft_netlink_init(struct weft_netlink *n, uint16_t type, uint16_t flags, const void *body,
		       size_t length)
{
	assert(length <= sizeof(n->room));
	memset(n, 0, sizeof(*n));
	n->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(length);
	n->head.nlmsg_type = type;
	n->head.nlmsg_flags = NLM_F_REQUEST | flags;
	memcpy(n->room, body, length);
}

void weft_netlink_add(struct weft_netlink *n, unsigned short type, const void *value, size_t length)
{
	size_t at = NLMSG_ALIGN(n->head.nlmsg_len);
	struct rtattr *a = (struct rtattr *)((uint8_t *)n + at);

	assert(at + RTA_SPACE(length) <= sizeof(*n));
	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(length);
	memcpy(RTA_DATA(a), value, length);
	n->head.nlmsg_len = (uint32_t)(at + RTA_SPACE(length));
}

uint32_t weft_netlink_u32(const struct rtattr *a)
{
	uint32_t v = 0;

	if (RTA_PAYLOAD(a) >= sizeof(v))
		memcpy(&v, RTA_DATA(a), sizeof(v));
	return v;
}

struct answer {
	uint16_t wanted;
	size_t least;
	weft_netlink_cb take;
	void *arg;
	bool any; /* a wanted message has arrived */
};

/* As NLMSG_NEXT(), but @p left does not wrap around after a last message without padding. */
static const struct nlmsghdr *next_message(const struct nlmsghdr *msg, size_t *left)
{
	size_t step = NLMSG_ALIGN(msg->nlmsg_len);

	*left -= step < *left ? step : *left;
	return (const struct nlmsghdr *)((uintptr_t)msg + step);
}

/* @return 1: the answer is complete; 0: more follows; or a negative errno */
static int take_messages(struct answer *to, const void *buf, size_t left)
{
	const struct nlmsghdr *msg = buf;
	const struct nlmsgerr *e;
	bool more = false;

	for (; NLMSG_OK(msg, left); msg = next_message(msg, &left)) {
		if (msg->nlmsg_type == NLMSG_DONE)
			return 1;
		if (msg->nlmsg_type == NLMSG_ERROR) {
			e = NLMSG_DATA(msg);
			if (msg->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
				return -EPROTO;
			return e->error < 0 ? e->error : 1;
		}
		more = msg->nlmsg_flags & NLM_F_MULTI;
		if (msg->nlmsg_type != to->wanted || msg->nlmsg_len < NLMSG_SPACE(to->least))
			continue;
		to->any = true;
		if (to->take)
			to->take(msg, to->arg);
	}
	return !more;
}

int weft_netlink_call(int protocol, const struct weft_netlink *n, uint16_t wanted, size_t least,
		      weft_netlink_cb take, void *arg)
{
	struct answer to = {.wanted = wanted, .least = least, .take = take, .arg = arg};
	_Alignas(struct nlmsghdr) uint8_t buf[ANSWER];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	ssize_t got;
	int rc;

	if (fd < 0)
		return -EPERM;
	got = send(fd, n, n->head.nlmsg_len, 0);
	rc = got == (ssize_t)n->head.nlmsg_len ? 0 : -EPROTO;
	while (rc == 0) {
		got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);
		rc = got <= 0 || (size_t)got > sizeof(buf) ? -EPROTO
							   : take_messages(&to, buf, (size_t)got);
	}
	close(fd);
	if (rc < 0)
		return rc;
	return to.any || n->head.nlmsg_flags & NLM_F_DUMP ? 0 : -EPROTO;
}

#ifndef RTM_F_FIB_MATCH
#define RTM_F_FIB_MATCH 0x2000
#endif

static void take_route(const struct nlmsghdr *msg, void *arg)
{
	struct rtattr *a;
	int left;

	for (a = weft_netlink_attrs(msg, sizeof(struct rtmsg), &left); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_OIF)
			*(uint32_t *)arg = weft_netlink_u32(a);
}

bool weft_netlink_has_route(unsigned int if_index, int family, const void *src, const void *dst)
{
	size_t len = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	const struct rtmsg rt = {
		.rtm_family = (unsigned char)family,
		.rtm_dst_len = (unsigned char)(len * 8),
		.rtm_src_len = (unsigned char)(len * 8),
		/* Without this flag IPv4 treats any address as one on the interface's own link. */
		.rtm_flags = family == AF_INET ? RTM_F_FIB_MATCH : 0,
	};
	struct weft_netlink n;
	uint32_t device = 0;
	int err;

	weft_netlink_init(&n, RTM_GETROUTE, 0, &rt, sizeof(rt));
	weft_netlink_add(&n, RTA_DST, dst, len);
	weft_netlink_add(&n, RTA_SRC, src, len);
	weft_netlink_add(&n, RTA_OIF, &if_index, sizeof(if_index));
	err = weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWROUTE, sizeof(rt), take_route, &device);
	/* With a source address, an IPv6 route may use another interface than RTA_OIF. */
	if (err == 0)
		return family == AF_INET || device == if_index;
	return err != -ENETUNREACH && err != -EHOSTUNREACH && err != -EACCES && err != -EINVAL;
}

/* ------------------------------------------------------------------ the user's folder */

/* Another user with write access to the folder could put a socket there, or replace a file. */
bool weft_private_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

bool weft_user_folder(uid_t uid, const char *tmp, char *own, size_t size)
{
	return snprintf(own, size, "%s/weft-%u", tmp, (unsigned int)uid) < (int)size &&
	       weft_private_folder(own);
}

int weft_user_folder_find(char path[WEFT_USER_FOLDER], char *why, size_t why_len)
{
	unsigned int uid = geteuid();

	if (weft_user_folder(uid, "/tmp", path, WEFT_USER_FOLDER))
		return 0;
	if (uid == 0)
		snprintf(path, WEFT_USER_FOLDER, "/run/weft-0");
	else
		snprintf(path, WEFT_USER_FOLDER, "/run/user/%u/weft", uid);
	if (weft_private_folder(path))
		return 0;
	snprintf(why, why_len,
		 "neither /tmp/weft-%u nor %s is a folder that user %u owns and no other user can "
		 "write to: remove the first one, or have its owner remove it",
		 uid, path, uid);
	return -EACCES;
}

/*
 * ECONNREFUSED means that no process has the socket open; the error differs if one has, also before
 * listen() or with another type of socket. The owner notices nothing.
 */
bool weft_socket_is_dead(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(un.sun_path))
		return false;
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	rc = connect(fd, (struct sockaddr *)&un, sizeof(un)) ? errno : 0;
	close(fd);
	return rc == ECONNREFUSED;
}

static void sweep_one(const char *folder, int dir, const char *name, time_t before)
{
	struct stat st;
	char path[512];

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_ctime > before)
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (weft_socket_is_dead(path))
		unlinkat(dir, name, 0);
}

void weft_sockets_sweep(const char *folder, const char *prefix, unsigned int age_s)
{
	time_t before = time(NULL) - (time_t)age_s;
	const struct dirent *e;
	DIR *dir = opendir(folder);

	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			sweep_one(folder, dirfd(dir), e->d_name, before);
	closedir(dir);
}
