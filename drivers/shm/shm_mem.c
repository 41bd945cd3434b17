/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shm/shm_mem.h"

/* ------------------------------------------------------------------ the segment of a connection */

/* Shrinking the file would end the other process by SIGBUS. F_SEAL_SEAL keeps the seals. */
#define SEGMENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct shm_segment *segment_map(int fd)
{
	void *p = mmap(NULL, sizeof(struct shm_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A forked child must not use the connection. */
	madvise(p, sizeof(struct shm_segment), MADV_DONTFORK);
	return p;
}

struct shm_segment *shm_segment_create(int *fd)
{
	struct shm_segment *segment;
	int error;

	*fd = memfd_create("weft-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return NULL;
	segment = NULL;
	if (ftruncate(*fd, sizeof(*segment)) == 0 && fcntl(*fd, F_ADD_SEALS, SEGMENT_SEALS) == 0)
		segment = segment_map(*fd);
	if (!segment) {
		error = errno;
		close(*fd);
		errno = error;
		return NULL;
	}
	segment->magic = SHM_MAGIC;
	segment->version = SHM_VERSION;
	segment->size = sizeof(*segment);
	return segment;
}

const char *shm_memfd_check(int fd, int seals, size_t size)
{
	int present = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	/* Only memory files have seals. Reads of other files could block or fail. */
	if (present < 0 || (present & seals) != seals)
		return "what it passed is no sealed memory file";
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return "the memory file it passed has no ordinary pages";
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)size)
		return "the segment it passed has another size";
	return NULL;
}

struct shm_segment *shm_segment_map(int fd, const char **why)
{
	struct shm_segment *segment;

	*why = shm_memfd_check(fd, SEGMENT_SEALS, sizeof(*segment));
	if (*why)
		return NULL;
	*why = "the segment it passed cannot be mapped";
	segment = segment_map(fd);
	if (!segment)
		return NULL;
	*why = "the segment it passed is of another version";
	if (segment->magic != SHM_MAGIC || segment->version != SHM_VERSION ||
	    segment->size != sizeof(*segment)) {
		shm_segment_unmap(segment);
		return NULL;
	}
	return segment;
}

void shm_segment_unmap(struct shm_segment *segment)
{
	munmap(segment, sizeof(*segment));
}

/* ------------------------------------------------------------------ registered memory */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define TABLE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

#define REMOTE                                                          \
	(WEFT_LANE_ACCESS_REMOTE_READ | WEFT_LANE_ACCESS_REMOTE_WRITE | \
	 WEFT_LANE_ACCESS_REMOTE_ATOMIC)

struct weft_mem_lane {
	struct shm_reg_slot *slot;
	uint64_t key;
	SLIST_ENTRY(weft_mem_lane) next;
};

/* Protects the one table, which has the registrations of all contexts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct shm_reg_table *table;
	int fd;
	pid_t pid; /* owner of the table: a forked child has none */
	unsigned int users;
	uint32_t used; /* slots used at least once: the first ones */
	const struct weft_platform *platform;
	SLIST_HEAD(, weft_mem_lane) free;
} own;

/* ------------------------------------------------------------------ fork() */

/*
 * A forked child closes its copy of the descriptor before it runs other code, because later the
 * number may be of another file. The table remains with the parent.
 */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	if (own.users > 0) {
		close(own.fd);
		own.users = 0;
		own.pid = 0;
	}
	pthread_mutex_unlock(&lock);
}

static int fork_error;

static void register_atfork(void)
{
	fork_error = -pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* ------------------------------------------------------------------ the own table */

/* Peers get the descriptor, so it is sealed: no peer may write entries that others trust. */
static int make_table(void)
{
	own.fd = memfd_create("weft-shm-reg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (own.fd < 0)
		return -errno;
	own.table = MAP_FAILED;
	if (ftruncate(own.fd, sizeof(*own.table)) == 0 &&
	    fcntl(own.fd, F_ADD_SEALS, TABLE_SEALS) == 0)
		own.table = mmap(NULL, sizeof(*own.table), PROT_READ | PROT_WRITE, MAP_SHARED,
				 own.fd, 0);
	if (own.table == MAP_FAILED ||
	    fcntl(own.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0) {
		int error = errno;

		if (own.table != MAP_FAILED)
			munmap(own.table, sizeof(*own.table));
		close(own.fd);
		return -error;
	}
	madvise(own.table, sizeof(*own.table), MADV_DONTFORK);
	own.pid = getpid();
	own.used = 0;
	own.users = 0;
	SLIST_INIT(&own.free);
	return 0;
}

int shm_reg_open(const struct weft_platform *platform, int *fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc;

	pthread_once(&once, register_atfork);
	pthread_mutex_lock(&lock);
	/* After a plain clone() no atfork handler has run: own.fd may be of another file. */
	if (own.users > 0 && own.pid != getpid())
		own.users = 0;
	rc = own.users == 0 ? fork_error : 0;
	if (rc == 0 && own.users == 0)
		rc = make_table();
	if (rc == 0) {
		own.platform = platform;
		own.users++;
		*fd = own.fd;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void shm_reg_close(void)
{
	struct weft_mem_lane *mem;

	pthread_mutex_lock(&lock);
	if (own.pid == getpid() && --own.users == 0) {
		while ((mem = SLIST_FIRST(&own.free))) {
			SLIST_REMOVE_HEAD(&own.free, next);
			free(mem);
		}
		munmap(own.table, sizeof(*own.table));
		close(own.fd);
	}
	pthread_mutex_unlock(&lock);
}

static struct weft_mem_lane *slot_get(void)
{
	struct weft_mem_lane *mem = SLIST_FIRST(&own.free);

	if (mem) {
		SLIST_REMOVE_HEAD(&own.free, next);
		return mem;
	}
	if (own.used == SHM_REG_SLOTS)
		return NULL;
	mem = malloc(sizeof(*mem));
	if (mem)
		mem->slot = &own.table->slots[own.used++];
	return mem;
}

static int slot_fill(struct weft_mem_lane *mem, uint64_t address, size_t len, unsigned int access)
{
	struct shm_reg_slot *slot = mem->slot;
	int rc;

	do {
		rc = own.platform->random(own.platform->arg, &mem->key, sizeof(mem->key));
		mem->key = (mem->key & ~(uint64_t)(SHM_REG_SLOTS - 1)) |
			   (uint64_t)(slot - own.table->slots);
	} while (rc == 0 && mem->key < SHM_REG_SLOTS);
	if (rc < 0)
		return rc;
	atomic_store_explicit(&slot->address, address, memory_order_relaxed);
	atomic_store_explicit(&slot->length, len, memory_order_relaxed);
	atomic_store_explicit(&slot->access, access & REMOTE, memory_order_relaxed);
	/* Release: a reader that sees the key also sees the other words of the slot. */
	atomic_store_explicit(&slot->key, mem->key, memory_order_release);
	return 0;
}

int shm_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		     struct weft_mem_lane **out, char *why, size_t why_len)
{
	struct weft_mem_lane *mem;
	int rc;

	(void)iface;
	pthread_mutex_lock(&lock);
	mem = slot_get();
	rc = own.used == SHM_REG_SLOTS ? -ENOSPC : -ENOMEM;
	if (mem)
		rc = slot_fill(mem, (uintptr_t)addr, len, access);
	if (mem && rc < 0)
		SLIST_INSERT_HEAD(&own.free, mem, next);
	if (rc == -ENOSPC)
		snprintf(why, why_len, "a process has at most %u registrations for shared memory",
			 SHM_REG_SLOTS);
	else if (rc < 0)
		snprintf(why, why_len, "cannot register memory for other processes: %s",
			 strerror(-rc));
	pthread_mutex_unlock(&lock);
	if (rc == 0)
		*out = mem;
	return rc;
}

void shm_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	pthread_mutex_lock(&lock);
	atomic_store_explicit(&mem->slot->key, 0, memory_order_relaxed);
	/* Pairs with the fence in shm_reg_find(): no reader mixes these words with later ones. */
	atomic_thread_fence(memory_order_release);
	SLIST_INSERT_HEAD(&own.free, mem, next);
	pthread_mutex_unlock(&lock);
}

uint64_t shm_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return mem->key;
}

/* ------------------------------------------------------------------ the table of a peer */

static bool is_table(int fd)
{
	/* F_SEAL_FUTURE_WRITE: no process can punch a hole any more, so its pages stay. */
	return !shm_memfd_check(fd, TABLE_SEALS | F_SEAL_FUTURE_WRITE,
				sizeof(struct shm_reg_table));
}

const struct shm_reg_table *shm_reg_map(int fd)
{
	void *p;

	if (!is_table(fd))
		return NULL;
	p = mmap(NULL, sizeof(struct shm_reg_table), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, sizeof(struct shm_reg_table), MADV_DONTFORK);
	return p;
}

void shm_reg_unmap(const struct shm_reg_table *table)
{
	munmap((void *)(uintptr_t)table, sizeof(*table));
}

int shm_reg_find(const struct shm_reg_table *table, uint64_t key, uint64_t offset, size_t len,
		 unsigned int right, uint64_t *address)
{
	const struct shm_reg_slot *slot = &table->slots[key % SHM_REG_SLOTS];
	uint64_t base, length, access;

	if (key < SHM_REG_SLOTS || atomic_load_explicit(&slot->key, memory_order_acquire) != key)
		return -EKEYREJECTED;
	base = atomic_load_explicit(&slot->address, memory_order_relaxed);
	length = atomic_load_explicit(&slot->length, memory_order_relaxed);
	access = atomic_load_explicit(&slot->access, memory_order_relaxed);
	/* All words are of one registration if the key is unchanged after they were read. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key)
		return -EKEYREJECTED;
	if (!(access & right))
		return -EACCES;
	if (offset > length || len > length - offset)
		return -ERANGE;
	*address = base + offset;
	return 0;
}
