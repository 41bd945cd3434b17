/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/txq.h
 * The queue of frames to the port; no call waits.
 */
#ifndef WEFT_ENGINE_TXQ_H
#define WEFT_ENGINE_TXQ_H

#include <rte_mbuf.h>

#include "engine/iface.h"

static inline unsigned int raw_txq_space(const struct raw_iface *iface)
{
	return RAW_TXQ - iface->txq.count;
}

static inline void raw_txq_push(struct raw_iface *iface, struct rte_mbuf *m)
{
	iface->txq.frames[(iface->txq.head + iface->txq.count++) % RAW_TXQ] = m;
	iface->base.tx_open = true;
}

/* Send the first @p n frames, which are contiguous; RAW_BURST at most. @return frames taken */
static inline unsigned int raw_port_tx(struct raw_iface *iface, unsigned int n)
{
	struct rte_mbuf **frames = &iface->txq.frames[iface->txq.head];
	unsigned int sent;

	weft_tap_offer(iface->tap, frames, n, WEFT_PCAPNG_OUT, iface->now);
	sent = iface->port->ops->tx_burst(iface->port, frames, (uint16_t)n);
	weft_tap_taken(iface->tap, sent);
	return sent;
}

void raw_txq_flush(struct raw_iface *iface);
void raw_txq_drop(struct raw_iface *iface);

/* Count and drop the frames that wait for a port that takes no more frames. */
void raw_txq_end(struct raw_iface *iface);

#endif /* WEFT_ENGINE_TXQ_H */
