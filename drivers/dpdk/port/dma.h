/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/dma.h
 * User memory that NICs may read: registered with the EAL (rte_extmem_register()) and mapped for
 * DMA (rte_dev_dma_map()), with the address as its IOVA; or memory of the EAL's own, which its NICs
 * can reach already.
 *
 * DPDK has few places for such memory: 128 memseg lists with the EAL's own among them, and 256 maps
 * of a VFIO container. VFIO takes a second map of the same bytes for success without looking at it,
 * so maps never overlap here: there is one table of disjoint areas for the process (all NICs behind
 * VFIO share one container), a registration covers one or several neighbours, and an area goes when
 * no registration is left in it.
 *
 * A map is undone through a device, and devices come and go: when the port of an area's device is
 * closed, or its device taken away, another open port's takes its place; with none left the area is
 * unmapped, though it may still be registered, and mapped again for the next port.
 *
 * Any thread may call: the table has a lock of its own.
 */
#ifndef WEFT_PORT_DMA_H
#define WEFT_PORT_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/frame_port.h"

struct rte_device;

/** Areas that this process maps at most: the application may want some, too. */
#define WEFT_DMA_AREAS 64u

/** What NICs of this process may be given to read besides mbufs. */
enum weft_dma_reach {
	WEFT_DMA_NONE, /**< nothing */
	WEFT_DMA_EAL,  /**< memory of the EAL's own */
	WEFT_DMA_USER, /**< any memory that is registered */
};

struct weft_dma_stats {
	unsigned int areas; /**< now */
	uint64_t bytes;     /**< now */
	uint64_t mapped, unmapped;
	uint64_t no_room; /**< registrations refused because there were too many areas */
	uint64_t failed;  /**< refused by the EAL or the IOMMU */
};

/**
 * A port is being opened: what can @p dev reach? Tries with a page of its own; no frame is sent.
 */
enum weft_dma_reach weft_dma_open(uint16_t port, struct rte_device *dev);
/**
 * It is stopped, and its device may be freed from now on. Any number of times, also for ports that
 * were not opened.
 */
void weft_dma_close(uint16_t port);

/**
 * Let the device of @p port read [addr, addr + len).
 * @param reach     what weft_dma_open() said of it
 * @param[out] mem  one reference, for weft_mem_lane_put()
 * @return 0; -ENOSPC: too many areas, give some back; -EOPNOTSUPP: memory that it cannot be given;
 *   -ENODEV: its device was taken away; or the error of the EAL or the IOMMU, with a sentence in @p
 *   why
 */
int weft_dma_map(uint16_t port, enum weft_dma_reach reach, void *addr, size_t len,
		 struct weft_mem_lane **mem, char *why, size_t why_len);

void weft_dma_query(struct weft_dma_stats *stats);

#endif /* WEFT_PORT_DMA_H */
