/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_dev.h
 * Devices of the process, their ports, GIDs and routes; registrations, and registered buffers.
 */
#ifndef WEFT_ROCE_DEV_H
#define WEFT_ROCE_DEV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "lane.h"
#include "roce_text.h"
#include "roce_wire.h"

/** An event of a device or of a queue pair; each iface that it may concern gets a copy. */
struct roce_event {
	STAILQ_ENTRY(roce_event) link;
	enum ibv_event_type type;
	uint32_t qpn; /* number of the queue pair, for an event of a queue pair */
	/* completion queue or shared receive queue that failed: only compared, never accessed */
	const void *queue;
};

struct roce_watch {
	LIST_ENTRY(roce_watch) link;
	STAILQ_HEAD(, roce_event) events; /* protected by the device's lock */
	atomic_bool pending;              /* events may be queued; read without the lock */
	unsigned int port;
};

struct roce_job {
	STAILQ_ENTRY(roce_job) link;
	void (*run)(struct roce_job *job); /* one of the device's threads calls it */
	int err;                           /* positive errno, written before done */
	bool waits;                        /* not begun; protected by the device's lock */
	uint8_t host[16];                  /* GID of the host that run() waits for; all 0 = none */
	atomic_bool done;
};

/* Calls that may run at the same time: silent hosts delay others only when all are in use. */
#define ROCE_THREADS 8
/* Calls for one host at a time: a silent host with many lanes must not use all threads. */
#define ROCE_THREADS_HOST 2

struct roce_dev {
	LIST_ENTRY(roce_dev) link;
	unsigned int refs;
	char name[64];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	double reg_cost, reg_growth;
	pthread_mutex_t lock; /* protects watches and jobs */
	LIST_HEAD(, roce_watch) watches;
	pthread_t threads[ROCE_THREADS];
	unsigned int num_threads;
	pthread_cond_t wake;
	STAILQ_HEAD(, roce_job) jobs;
	const struct roce_job *running[ROCE_THREADS];
	unsigned int jobs_open;
	bool threads_end;
};

void roce_dev_put(struct roce_dev *dev);

/**
 * Call @p add for each port, with a reason if it cannot be used. @return 0 or the error of @p add
 */
int roce_dev_list(weft_lane_resource_cb add, void *arg);

/** Find the present index of this GID and type: @p gid->index. @return false = not in the table */
bool roce_dev_gid_find(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid);
void roce_gid_gone_text(const struct weft_roce_gid *gid, char *what, size_t len);
/** Identity of the hardware: PCI address, or the device's name. */
void roce_dev_identity(struct roce_dev *dev, char *buf, size_t size);
/** bytes/s of the port by its attributes. */
double roce_port_rate(const struct ibv_port_attr *port);
/** bytes/s of the port, by a query of the device; 0 = the device does not report it. */
double roce_dev_port_rate(const struct roce_dev *dev, unsigned int port);

struct roce_port_watch {
	bool up;
	uint64_t down_since; /* ns: time of the last PORT_ERR; 0 = there was none */
};

#define ROCE_DEVICE_GONE "the device failed or was removed (the kernel log has the reason)"
#define ROCE_QUEUE_GONE "a queue of the device failed (the kernel log has the reason)"

struct roce_port_info {
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct ibv_port_attr attr;
	struct weft_roce_gid gid;
	uint8_t mtu;
	char why[96], netdev[64];
};

int roce_port_open(const struct weft_lane_open *params, struct roce_port_info *info, char *why,
		   size_t why_len);
void roce_addr_fill(struct weft_roce_addr *addr, enum weft_roce_kind kind, const uint8_t gid[16],
		    uint8_t mtu, uint32_t seg);
/** Both kinds of iface use these for is_reachable() and print_address(). */
int roce_reachable(const struct weft_roce_gid *own, bool gone, const char *netdev,
		   enum weft_roce_kind kind, const void *addr, size_t len, char *why,
		   size_t why_len);
void roce_print_address(const void *addr, size_t len, char *buf, size_t size);

/* ------------------------------------------------------------------ registrations and buffers */

struct roce_dev;

struct weft_mem_lane {
	struct ibv_mr *mr;
	uintptr_t start;
	size_t length;
	/* device's address of the first byte (roce_iova()): no virtual address is on the wire */
	uint64_t iova;
};

/**
 * The device's address (IOVA) for the byte at @p p, the first one of a registration. The kernel
 * requires the same offset within a page, of 4 KiB to 64 KiB, as that of the virtual address. When
 * the offsets within a huge page are equal, too, the device maps the memory by huge pages, which
 * makes registration and translation faster.
 */
static inline uint64_t roce_iova(const void *p)
{
	return (uintptr_t)p & ((2u << 20) - 1);
}

static inline uint64_t roce_mem_iova(const struct weft_mem_lane *mem, const void *p)
{
	return (uintptr_t)p - mem->start + mem->iova;
}

static inline bool roce_mem_holds(const struct weft_mem_lane *mem, const void *p, size_t n)
{
	uintptr_t at = (uintptr_t)p;

	return at >= mem->start && n <= mem->length && at - mem->start <= mem->length - n;
}

static inline uint64_t roce_key(const struct weft_mem_lane *mem)
{
	return mem->mr->rkey | mem->iova << 32;
}

/** Write into @p why that verbs object @p what could not be created: locked memory may be short. */
void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len);

int roce_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		      struct weft_mem_lane **mem, char *why, size_t why_len);
void roce_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
uint64_t roce_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem);

struct roce_buf {
	struct roce_buf *next;
	uint32_t lkey;
	_Alignas(64) uint8_t data[];
};

struct roce_pool {
	struct roce_dev *dev;
	struct roce_buf *free;
	size_t size; /* bytes of roce_buf.data */
	size_t total, in_use, max;
	/* after a failure to grow: calls of roce_pool_more() that still fail without an attempt */
	uint32_t skip, skip_next;
	struct roce_chunk *chunks;
};

void roce_pool_init(struct roce_pool *pool, struct roce_dev *dev, size_t size, size_t max);
void roce_pool_fini(struct roce_pool *pool);
/** Make sure that @p n buffers are free, if the limit allows. @return 0 or a negative error */
int roce_pool_reserve(struct roce_pool *pool, size_t n);
/**
 * After a failure to grow, most attempts are skipped, because each is a system call.
 * @return true = a buffer is free
 */
bool roce_pool_more(struct roce_pool *pool);

static inline struct roce_buf *roce_pool_get(struct roce_pool *pool)
{
	struct roce_buf *buf = pool->free;

	if (__builtin_expect(!buf, 0)) {
		if (!roce_pool_more(pool))
			return NULL;
		buf = pool->free;
	}
	pool->free = buf->next;
	pool->in_use++;
	return buf;
}

static inline void roce_pool_put(struct roce_pool *pool, struct roce_buf *buf)
{
	buf->next = pool->free;
	pool->free = buf;
	pool->in_use--;
}

#endif /* WEFT_ROCE_DEV_H */
