/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_mem.h
 * Registrations, their keys and their cost; pools of registered buffers.
 */
#ifndef WEFT_ROCE_MEM_H
#define WEFT_ROCE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "lane.h"

struct roce_dev;

/** A registration. */
struct weft_mem_lane {
	struct ibv_mr *mr;
	uintptr_t start;
	size_t length;
	/*
	 * the device's address of the first byte (roce_iova()), so that no virtual address is on
	 * the wire
	 */
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

/** For a local scatter entry; the caller has checked the range. */
static inline uint64_t roce_mem_iova(const struct weft_mem_lane *mem, const void *p)
{
	return (uintptr_t)p - mem->start + mem->iova;
}

static inline bool roce_mem_holds(const struct weft_mem_lane *mem, const void *p, size_t n)
{
	uintptr_t at = (uintptr_t)p;

	return at >= mem->start && n <= mem->length && at - mem->start <= mem->length - n;
}

/** Keys contain the remote key and the device's address of the first byte. */
static inline uint64_t roce_key(const struct weft_mem_lane *mem)
{
	return mem->mr->rkey | mem->iova << 32;
}

/** The error message for a verbs object that could not be created: locked memory may be short. */
void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len);

int roce_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		      struct weft_mem_lane **mem, char *why, size_t why_len);
void roce_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
uint64_t roce_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
/** Register and deregister some memory, and fill dev->reg_cost and reg_growth. */
void roce_mem_measure(struct roce_dev *dev);

/** One object of a pool of registered memory. */
struct roce_buf {
	struct roce_buf *next;
	uint32_t lkey;
	_Alignas(64) uint8_t data[];
};

struct roce_pool {
	struct roce_dev *dev;
	struct roce_buf *free;
	size_t size; /* of data */
	size_t total, in_use, max;
	uint32_t skip, skip_next; /* requests to grow that are not tried, after one that failed */
	struct roce_chunk *chunks;
};

void roce_pool_init(struct roce_pool *pool, struct roce_dev *dev, size_t size, size_t max);
void roce_pool_fini(struct roce_pool *pool);
/** Make sure that @p n objects are free, if the limit allows. @return 0 or a negative error */
int roce_pool_reserve(struct roce_pool *pool, size_t n);
/**
 * No object is free, and one is needed: grow. After a failure, skip most attempts, because each is
 * a system call. @return true = one is free
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

#endif /* WEFT_ROCE_MEM_H */
