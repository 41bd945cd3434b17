/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/pool.h
 * Buffers of a port: one pool of whole frames, one of small mbufs for headers and external buffers.
 */
#ifndef WEFT_PORT_POOL_H
#define WEFT_PORT_POOL_H

#include <stddef.h>
#include <stdint.h>

struct weft_port_dev;

/** Both pools of a queue pair together take at most this, unless rings or the user need more. */
#define WEFT_PORT_POOL_BYTES (16u << 20)

/** Data room of the buffers of a port, headroom included. */
uint16_t weft_port_pool_room(const struct weft_port_dev *d);

/**
 * Create the pools of queue pair @p q.
 *
 * @param rx_bufs  buffers beyond those of the rings; 0 = as many as fit WEFT_PORT_POOL_BYTES
 * @return 0 or -ENOMEM with @p why
 */
int weft_port_pools_create(struct weft_port_dev *d, uint16_t q, uint16_t nb_rx, uint16_t nb_tx,
			   uint32_t rx_bufs, char *why, size_t why_len);

/**
 * Free the pools of queue pair @p q once all their buffers are back. A peer in this process
 * (net_ring), or the PMD's ring, may still hold some; then a later call for any port frees them. A
 * PMD may also check the pool of a queue that the port's next opening does not use. So the pools of
 * all queues but the first stay until the queue has another one.
 */
void weft_port_pools_free(struct weft_port_dev *d, uint16_t q);

#endif /* WEFT_PORT_POOL_H */
