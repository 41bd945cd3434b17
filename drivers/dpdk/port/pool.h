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
 * Make the pools of queue pair @p q.
 *
 * @param rx_bufs  buffers wanted beyond what rings hold; 0 = what fits WEFT_PORT_POOL_BYTES
 * @return 0 or -ENOMEM with @p why
 */
int weft_port_pools_create(struct weft_port_dev *d, uint16_t q, uint16_t nb_rx, uint16_t nb_tx,
			   uint32_t rx_bufs, char *why, size_t why_len);

/**
 * Free the pools of queue pair @p q, once all their buffers are back: a peer in this process may
 * still hold some (net_ring), or the PMD in its ring, and then they are freed by a later call for
 * any port. A PMD may also check the pool of a queue that the port's next life does not use: that
 * of every queue but the first stays until the queue has another.
 */
void weft_port_pools_free(struct weft_port_dev *d, uint16_t q);

#endif /* WEFT_PORT_POOL_H */
