/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/iface.h"
#include "engine/txq.h"
#include "frame/frame_port.h"

/*
 * Hand frames to the port. Frames that the port does not take stay in the queue, and sends return
 * -EAGAIN once the queue is full: no thread spins on a full ring.
 */
void raw_txq_flush(struct raw_iface *iface)
{
	unsigned int n, sent;

	while (iface->txq.count > 0) {
		n = RTE_MIN(iface->txq.count, RAW_TXQ - iface->txq.head);
		n = RTE_MIN(n, RAW_BURST);
		sent = raw_port_tx(iface, n);
		iface->txq.head = (iface->txq.head + sent) % RAW_TXQ;
		iface->txq.count -= sent;
		if (sent > 0) {
			/* The port will be polled for these buffers soon, even if it was idle for a
			 * long time before. */
			iface->tx_used = true;
			iface->idle_polls = 0;
		}
		if (unlikely(iface->ended != 0)) {
			raw_txq_end(iface);
			return;
		}
		if (sent < n) {
			raw_count(iface, RAW_TX_RING_FULL);
			return;
		}
	}
	/* An empty queue begins at 0, so that the end of the array rarely cuts a burst in two. */
	iface->txq.head = 0;
}

void raw_txq_drop(struct raw_iface *iface)
{
	while (iface->txq.count > 0) {
		rte_pktmbuf_free(iface->txq.frames[iface->txq.head]);
		iface->txq.head = (iface->txq.head + 1) % RAW_TXQ;
		iface->txq.count--;
	}
}

void raw_txq_end(struct raw_iface *iface)
{
	iface->counter[RAW_DROP_ENDED] += iface->txq.count;
	raw_txq_drop(iface);
	iface->txq.head = 0;
}
