/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lifetime of a zero-copy message.
 *
 * The pieces share one counter (shinfo). It reaches zero when the slot has released the frame (the
 * peer acknowledged, or the lane failed) and the NIC has released it; only then the memory belongs
 * to the user again. That may happen inside a tx_burst() of another connection, so the callback
 * only queues, and completions run in progress().
 *
 * PMDs of NICs free sent mbufs when descriptors run short, which never happens if nothing more is
 * sent. The tx_done() of such a port (WEFT_FRAME_PORT_REG) reports whether the NIC has read all
 * frames that it was given. It is called while a message waits for nothing else. The memory then
 * belongs to the user again although mbufs still refer to it: the PMD will only free them.
 */

#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "engine/build.h"
#include "engine/conn_tx.h"
#include "engine/iface.h"
#include "engine/zcopy.h"
#include "frame/frame_port.h"
#include "lane.h"

#define ZC_CHUNK 64u
#define ZC_POLL_NS 10000ull /* ns between two calls of tx_done() */

struct zc_chunk {
	struct zc_chunk *next;
	struct raw_zc zc[ZC_CHUNK];
};

static void zc_waits_no_more(struct raw_zc *zc)
{
	if (zc->waiting)
		LIST_REMOVE(zc, wait_link);
	zc->waiting = false;
}

void raw_zc_released(void *addr, void *opaque)
{
	struct raw_zc *zc = opaque;

	(void)addr;
	if (unlikely(!zc->iface))
		return; /* see raw_zc_destroy() */
	zc_waits_no_more(zc);
	STAILQ_INSERT_TAIL(&zc->iface->zc.released, zc, link);
}

/* Run the completion. @return false: it has run before */
static bool zc_complete(struct raw_zc *zc)
{
	struct weft_lane_comp *comp = zc->comp;
	int status = zc->status;

	zc_waits_no_more(zc);
	if (!comp)
		return false;
	LIST_REMOVE(zc, conn_link);
	zc->comp = NULL;
	if (zc->mem)
		weft_mem_lane_put(zc->mem);
	zc->mem = NULL;
	/* From here on it may be in use for another message, if the port has released it. */
	comp->done(comp, status);
	return true;
}

struct raw_zc *raw_zc_get(struct raw_iface *iface)
{
	struct zc_chunk *chunk;
	struct raw_zc *zc;

	if (unlikely(STAILQ_EMPTY(&iface->zc.free))) {
		/* Once for each 64 messages outstanding at a time. */
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = iface->zc.chunks;
		iface->zc.chunks = chunk;
		for (unsigned int i = 0; i < ZC_CHUNK; i++)
			STAILQ_INSERT_TAIL(&iface->zc.free, &chunk->zc[i], link);
	}
	zc = STAILQ_FIRST(&iface->zc.free);
	STAILQ_REMOVE_HEAD(&iface->zc.free, link);
	return zc;
}

void raw_zc_put(struct raw_iface *iface, struct raw_zc *zc)
{
	rte_mbuf_ext_refcnt_set(&zc->shinfo, 0);
	STAILQ_INSERT_HEAD(&iface->zc.free, zc, link);
}

/* @return the number of completions run */
unsigned int raw_zc_complete(struct raw_iface *iface)
{
	struct raw_zc *zc;
	unsigned int n = 0;

	while ((zc = STAILQ_FIRST(&iface->zc.released))) {
		STAILQ_REMOVE_HEAD(&iface->zc.released, link);
		STAILQ_INSERT_HEAD(&iface->zc.free, zc, link);
		n += zc_complete(zc);
	}
	return n;
}

/* No slot refers to the message any more, but the port does. */
void raw_zc_wait(struct raw_iface *iface, struct raw_zc *zc)
{
	if (!zc->comp || zc->waiting)
		return;
	zc->waiting = true;
	LIST_INSERT_HEAD(&iface->zc.waiting, zc, wait_link);
}

/*
 * If the NIC has read all that it was given, complete all messages that wait now. Frames that
 * completions send in the meantime may still be in the queue. @return the number of completions run
 */
unsigned int raw_zc_poll(struct raw_iface *iface)
{
	struct raw_zc_list done = LIST_HEAD_INITIALIZER(done);
	struct raw_zc *zc;
	unsigned int n = 0;

	iface->zc.poll_at = iface->now + ZC_POLL_NS;
	raw_txq_flush(iface);
	if (iface->txq.count > 0 || !iface->port->ops->tx_done(iface->port))
		return 0;
	while ((zc = LIST_FIRST(&iface->zc.waiting))) {
		LIST_REMOVE(zc, wait_link);
		LIST_INSERT_HEAD(&done, zc, wait_link);
	}
	while ((zc = LIST_FIRST(&done))) {
		raw_count(iface, RAW_TX_ZCOPY_EARLY);
		n += zc_complete(zc);
	}
	return n;
}

/*
 * The lane ends; called while the slots still hold the unacknowledged frames. Their completions
 * still wait until the NIC releases the memory, and then carry the error. A message that is
 * acknowledged and released has succeeded, although its completion has not run yet.
 */
void raw_zc_fail(struct raw_tx *tx, int status)
{
	struct raw_zc *zc;

	LIST_FOREACH(zc, &tx->zc, conn_link) {
		if (rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0)
			zc->status = status;
	}
}

/*
 * The lane ep ends; its slots have been released. Completions of messages that the port releases
 * now run now. Memory that the hardware may still read stays with the iface; its completions run in
 * a later progress(), or in close().
 */
void raw_zc_cancel(struct raw_iface *iface, struct raw_tx *tx)
{
	struct raw_zc *zc;

	if (LIST_EMPTY(&tx->zc))
		return;
	raw_txq_flush(iface);
	if (iface->port->ops->tx_kick)
		iface->port->ops->tx_kick(iface->port);
	while ((zc = LIST_FIRST(&tx->zc))) {
		if (rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0) {
			LIST_REMOVE(zc, conn_link);
			LIST_INSERT_HEAD(&iface->zc.orphans, zc, conn_link);
			iface->tx_used = true; /* keeps polling of the port */
			continue;
		}
		/*
		 * It is in the list of released messages, and returns from there to the free ones.
		 */
		zc_complete(zc);
	}
}

/* A PMD that holds mbufs after its queue was closed calls back: such a chunk must not be freed. */
static void free_chunks(struct raw_iface *iface)
{
	struct zc_chunk *chunk, *next;
	unsigned int i, held;

	for (chunk = iface->zc.chunks; chunk; chunk = next) {
		next = chunk->next;
		for (i = held = 0; i < ZC_CHUNK; i++) {
			held += rte_mbuf_ext_refcnt_read(&chunk->zc[i].shinfo) != 0;
			chunk->zc[i].iface = NULL;
		}
		if (held == 0)
			free(chunk);
	}
	iface->zc.chunks = NULL;
}

/* The port is closed: the NIC reads no memory any more. */
void raw_zc_destroy(struct raw_iface *iface)
{
	struct raw_zc *zc;

	raw_zc_complete(iface);
	while ((zc = LIST_FIRST(&iface->zc.orphans)))
		zc_complete(zc);
	free_chunks(iface);
}
