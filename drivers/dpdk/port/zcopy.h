/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/zcopy.h
 * Sends from user memory: whether they are possible, and mapping that memory for NICs.
 */
#ifndef WEFT_PORT_ZCOPY_H
#define WEFT_PORT_ZCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/frame_port.h"
#include "port/port.h"

struct rte_device;
struct rte_eth_txconf;

/* ---- memory that NICs may read -------------------------------------------------------------- */

/*
 * User memory that NICs may read: registered with the EAL (rte_extmem_register()) and mapped for
 * DMA (rte_dev_dma_map()), with the address as its IOVA; or memory of the EAL itself, which its
 * NICs can already reach.
 *
 * DPDK has room for few such areas: 128 memseg lists, including the EAL's own, and 256 maps of a
 * VFIO container. VFIO reports success for a second map of the same bytes without checking it, so
 * maps never overlap here. The process has one table of disjoint areas (all NICs behind VFIO share
 * one container). A registration covers one or several neighbouring areas, and an area is unmapped
 * when it has no registration left.
 *
 * When the port of an area's device is closed, or the device is taken away, the device of another
 * open port takes its place. Without one the area is unmapped, though it may still be registered,
 * and is mapped again for the next port.
 *
 * Any thread may call: the table has a lock of its own.
 */

/** The most areas that this process maps: the application may need some of DPDK's, too. */
#define WEFT_DMA_AREAS 64u

struct weft_dma_stats {
	unsigned int areas;
	uint64_t bytes;
	uint64_t mapped, unmapped;
	uint64_t no_room;
	uint64_t failed;
};

/** A port is opened: find out which memory @p dev can reach, by mapping one page for a test. */
enum weft_dma_reach weft_dma_open(uint16_t port, struct rte_device *dev);
/** The port is stopped. May be called again, and for ports that were not opened. */
void weft_dma_close(uint16_t port);

/**
 * Let the device of @p port read [addr, addr + len).
 * @param reach     the result of weft_dma_open()
 * @param[out] mem  one reference, for weft_mem_lane_put()
 * @return 0; -ENOSPC: too many areas, give some back; -EOPNOTSUPP: memory that the device cannot
 *   read; -ENODEV: the port's device was taken away, or the port was closed; or the error of the
 *   EAL or the IOMMU, with a sentence in @p why
 */
int weft_dma_map(uint16_t port, enum weft_dma_reach reach, void *addr, size_t len,
		 struct weft_mem_lane **mem, char *why, size_t why_len);

void weft_dma_query(struct weft_dma_stats *stats);

/* ---- zero-copy sends ------------------------------------------------------------------------ */

/** Fill @p d->zcopy from d->info and d->limits. @p no_extbuf: as in struct weft_port_opts. */
void weft_port_zcopy_find(struct weft_port_dev *d, bool no_extbuf);
/**
 * Will chains be sent? Only zero copy sends them. @p d->frame_size is known.
 * @param sums  the NIC fills UDP checksums
 */
bool weft_port_wants_chains(const struct weft_port_dev *d, bool no_extbuf, bool sums);
/** @p conf->offloads is set */
void weft_port_zcopy_txconf(const struct weft_port_dev *d, struct rte_eth_txconf *conf);
/** The other flags of @p p are set. @return #WEFT_FRAME_PORT_EXTBUF, #WEFT_FRAME_PORT_REG, or 0 */
uint32_t weft_port_zcopy_flags(struct weft_port *p, bool no_extbuf);
bool weft_port_tx_done(struct weft_frame_port *fp);
int weft_port_mem_map(struct weft_frame_port *fp, void *addr, size_t len,
		      struct weft_mem_lane **mem, char *why, size_t why_len);
/** Before a queue closes: with WEFT_TX_DONE_STATUS wait up to 20 ms for the NIC's reads. */
void weft_port_zcopy_drain(struct weft_port *p);
void weft_port_zcopy_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg);

#endif /* WEFT_PORT_ZCOPY_H */
