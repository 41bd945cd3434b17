/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/outstanding.h"
#include "engine/rules.h"
#include "frame/frame_port.h"
#include "lane.h"

/* ---------------------------------------------------------------- shared buffers */

/*
 * Frames stay in buffers of the port's pools until they are acknowledged, and a peer that has
 * stopped acknowledges nothing. So the window of a stalled connection (raw_share_stalled()) shrinks
 * to the least share, and grows again by each acknowledged frame.
 *
 * When buffers are short, those of stalled connections are taken back: their frames are copied to
 * the heap, from which they are retransmitted. That memory has a limit for all connections.
 *
 * A zero-copy frame that was taken back still holds its reference to the user's memory: its
 * completion is the peer's acknowledgement.
 */

/* Most frames taken back in one progress() call: some 0.1 ms of copying. */
#define TAKE_BATCH 32u
/* Frames taken back may occupy this multiple of the memory of the port's frame pool. */
#define HEAP_SHARE 4u

struct raw_copy {
	struct rte_mbuf_ext_shared_info *shinfo; /* of the user's memory; NULL = none */
	uint32_t length;
	uint8_t data[];
};

void raw_share_init(struct raw_iface *iface)
{
	const struct rte_mempool *pool = iface->port->pool;

	TAILQ_INIT(&iface->share.stalled);
	iface->share.taken_back_max = (uint64_t)HEAP_SHARE * pool->size * pool->elt_size;
}

bool raw_share_hdrs(struct raw_iface *iface, const struct raw_tx *tx, uint32_t n)
{
	uint32_t held = iface->share.hdr_held;

	if (likely(held + n <= iface->share.hdr_held_max &&
		   tx->hdr_held < RAW_SHARE_TIMES * (iface->share.hdr_held_max - held)))
		return true;
	if (tx->hdr_held + n <= 3 * RAW_SHARE_MIN && held + n <= iface->share.hdr_held_hard)
		return true;
	iface->share.pressed = true;
	return false;
}

/* ---------------------------------------------------------------- stalled connections */

void raw_share_stalled(struct raw_iface *iface, struct raw_tx *tx, uint32_t rtt)
{
	if (tx->win_frames < tx->win_whole || tx->win_whole <= RAW_SHARE_MIN ||
	    iface->live_clock - tx->round_at < RTE_MAX(RAW_STALL_NS, 2ull * rtt))
		return;
	tx->win_frames = RAW_SHARE_MIN;
	tx->take_next = tx->una;
	TAILQ_INSERT_TAIL(&iface->share.stalled, tx, stall_link);
	raw_count(iface, RAW_TX_STALLED);
}

static void window_grow(struct raw_iface *iface, struct raw_tx *tx, uint32_t to)
{
	if (tx->win_frames >= tx->win_whole)
		return;
	tx->win_frames = RTE_MIN(to, tx->win_whole);
	if (tx->win_frames == tx->win_whole)
		TAILQ_REMOVE(&iface->share.stalled, tx, stall_link);
}

void raw_share_acked(struct raw_iface *iface, struct raw_tx *tx, unsigned int acked)
{
	window_grow(iface, tx, tx->win_frames + acked);
}

/* ---------------------------------------------------------------- frames in memory */

static struct raw_copy *copy_new(const struct rte_mbuf *m)
{
	struct raw_copy *copy = malloc(sizeof(*copy) + m->pkt_len);
	uint32_t at = 0;

	if (!copy)
		return NULL;
	copy->shinfo = NULL;
	copy->length = m->pkt_len;
	for (; m; m = m->next) {
		memcpy(copy->data + at, rte_pktmbuf_mtod(m, const void *), m->data_len);
		at += m->data_len;
		if (RTE_MBUF_HAS_EXTBUF(m))
			copy->shinfo = m->shinfo;
	}
	if (copy->shinfo)
		rte_mbuf_ext_refcnt_update(copy->shinfo, 1);
	return copy;
}

/* No slot refers to the message any more, but the port does. */
static void zc_wait(struct raw_iface *iface, struct raw_zc *zc)
{
	if (!zc->comp || zc->waiting)
		return;
	zc->waiting = true;
	LIST_INSERT_HEAD(&iface->zc.waiting, zc, wait_link);
}

/*
 * The PMD of a NIC may hold its mbufs until more is sent, while the user waits for the memory.
 * Other ports copy frames, or free them at once.
 */
static void zc_wait_for_nic(struct raw_iface *iface, struct raw_zc *zc)
{
	if (zc && iface->port->flags & WEFT_FRAME_PORT_REG &&
	    rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0)
		zc_wait(iface, zc);
}

static void copy_free(struct raw_iface *iface, struct raw_copy *copy)
{
	iface->share.taken_back -= copy->length;
	if (copy->shinfo) {
		if (rte_mbuf_ext_refcnt_update(copy->shinfo, -1) == 0)
			copy->shinfo->free_cb(NULL, copy->shinfo->fcb_opaque);
		else /* the port may still hold the original frame */
			zc_wait_for_nic(iface, copy->shinfo->fcb_opaque);
	}
	free(copy);
}

/* @return the frame's bytes. @p zc: the user memory that the frame holds, or NULL */
const uint8_t *raw_copy_bytes(const struct raw_copy *copy, struct raw_zc **zc)
{
	*zc = copy->shinfo ? copy->shinfo->fcb_opaque : NULL;
	return copy->data;
}

/* @return a frame to send, whose only reference is the queue's; NULL: no buffer */
struct rte_mbuf *raw_copy_frame(struct raw_iface *iface, const struct raw_copy *copy)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(iface->port->pool);

	if (!m)
		return NULL;
	memcpy(rte_pktmbuf_mtod(m, void *), copy->data, copy->length);
	m->data_len = (uint16_t)copy->length;
	m->pkt_len = copy->length;
	return m;
}

static bool take_back_frame(struct raw_iface *iface, struct raw_tx *tx, struct raw_slot *slot)
{
	struct raw_copy *copy;

	if (iface->share.taken_back + slot->m->pkt_len > iface->share.taken_back_max)
		return false;
	copy = copy_new(slot->m);
	if (!copy)
		return false;
	iface->share.taken_back += copy->length;
	raw_slot_release(iface, tx, slot, iface->lcore);
	slot->copy = copy;
	slot->taken_back = true;
	raw_count(iface, RAW_TX_TAKEN_BACK);
	return true;
}

/* @return frames taken back; UINT32_MAX: the limit is reached, or the heap has no memory */
static uint32_t take_some(struct raw_iface *iface, struct raw_tx *tx, uint32_t most)
{
	struct raw_slot *slot;
	uint32_t n = 0;

	if (weft_seq_diff(tx->take_next, tx->una) < 0)
		tx->take_next = tx->una;
	for (; tx->take_next != tx->next && n < most; tx->take_next++) {
		slot = raw_slot(tx, tx->take_next);
		if (!slot->m || slot->taken_back)
			continue;
		if (!take_back_frame(iface, tx, slot))
			return UINT32_MAX;
		n++;
	}
	return n;
}

void raw_share_take_back(struct raw_iface *iface)
{
	struct raw_tx *tx;
	uint32_t n = 0, done;

	iface->share.pressed = false;
	TAILQ_FOREACH(tx, &iface->share.stalled, stall_link) {
		done = take_some(iface, tx, TAKE_BATCH - n);
		if (done == UINT32_MAX)
			return;
		n += done;
		if (n == TAKE_BATCH)
			return;
	}
}

/* ---------------------------------------------------------------- slots */

struct raw_slot raw_no_slot;

static void free_slots(struct raw_tx *tx)
{
	if (!raw_slots_none(tx))
		free(tx->slots);
}

/* @p n is a power of two that suffices. @return false: no memory, nothing has changed */
static bool resize_slots(struct raw_tx *tx, uint32_t n)
{
	struct raw_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t seq = tx->una; seq != tx->next; seq++)
		slots[seq & (n - 1)] = *raw_slot(tx, seq);
	free_slots(tx);
	tx->slots = slots;
	tx->slot_mask = n - 1;
	return true;
}

bool raw_slots_grow(struct raw_tx *tx)
{
	return resize_slots(tx, raw_slots_none(tx) ? RAW_SLOTS_MIN : 2 * (tx->slot_mask + 1));
}

void raw_slots_drop(struct raw_tx *tx)
{
	free_slots(tx);
	tx->slots = &raw_no_slot;
	tx->slot_mask = 0;
}

void raw_slot_free_slow(struct raw_iface *iface, struct raw_tx *tx, struct raw_slot *slot,
			unsigned int lcore)
{
	struct raw_zc *zc;

	if (slot->taken_back) {
		copy_free(iface, slot->copy);
		slot->copy = NULL;
		return;
	}
	zc = raw_zc_of(slot->m);
	raw_slot_release(iface, tx, slot, lcore);
	zc_wait_for_nic(iface, zc);
}

void raw_slots_release(struct raw_iface *iface, struct raw_tx *tx)
{
	if (tx->open) {
		rte_pktmbuf_free(tx->open);
		iface->share.tx_held--;
		tx->open = NULL;
	}
	window_grow(iface, tx, tx->win_whole);
	tx->timer = 0;
	tx->loss_timer = 0;
	tx->inflight = 0;
	for (; tx->slots && tx->una != tx->next; tx->una++) {
		if (raw_slot(tx, tx->una)->m)
			raw_slot_free(iface, tx, raw_slot(tx, tx->una), rte_lcore_id());
	}
	/* A closed connection is kept for seconds, and there may be hundreds. */
	free_slots(tx);
	tx->slots = NULL;
}

/* ---------------------------------------------------------------- flushes */

void raw_flush_queue(struct raw_tx *tx, struct raw_flush *f, struct weft_lane_comp *comp)
{
	/* The open frame, which gets the next sequence, counts, too. */
	*f = (struct raw_flush){.comp = comp, .seq = tx->next + (tx->open != NULL)};
	STAILQ_INSERT_TAIL(&tx->flushes, f, link);
}

unsigned int raw_flushes_check(struct raw_tx *tx)
{
	struct raw_flush *f;
	unsigned int n = 0;

	while ((f = STAILQ_FIRST(&tx->flushes)) && weft_seq_diff(tx->una, f->seq) >= 0) {
		struct weft_lane_comp *comp = f->comp;

		STAILQ_REMOVE_HEAD(&tx->flushes, link);
		free(f);
		comp->done(comp, 0);
		n++;
	}
	return n;
}

void raw_flushes_end(struct raw_tx *tx, int status)
{
	struct raw_flush *f;

	while ((f = STAILQ_FIRST(&tx->flushes))) {
		struct weft_lane_comp *comp = f->comp;

		STAILQ_REMOVE_HEAD(&tx->flushes, link);
		free(f);
		comp->done(comp, status);
	}
}

/* ---------------------------------------------------------------- zero-copy messages */

/*
 * The pieces of a zero-copy message share one counter (shinfo). It reaches zero when the slot has
 * released the frame (the peer acknowledged, or the lane failed) and the NIC has released it; then
 * the memory belongs to the user again. That may happen inside a tx_burst() of another connection,
 * so the callback only queues. Completions run in progress(), or when the lane ep ends.
 *
 * PMDs of NICs free sent mbufs when descriptors run short, which never happens if nothing more is
 * sent. The tx_done() of such a port (WEFT_FRAME_PORT_REG) reports whether the NIC has read all
 * frames that it was given. The memory then belongs to the user again although mbufs still refer to
 * it: the PMD will only free them.
 */

#define ZC_CHUNK 64u
#define ZC_POLL_NS 10000ull /* least ns between two calls of tx_done() */

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
		return; /* its iface is closed: see free_chunks() */
	zc_waits_no_more(zc);
	STAILQ_INSERT_TAIL(&zc->iface->zc.released, zc, link);
}

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
	/* From here on zc may be in use for another message, if the port has released it. */
	comp->done(comp, status);
	return true;
}

struct raw_zc *raw_zc_get(struct raw_iface *iface)
{
	struct zc_chunk *chunk;
	struct raw_zc *zc;

	if (unlikely(STAILQ_EMPTY(&iface->zc.free))) {
		/* Chunks are kept: one for each 64 messages that were outstanding at a time. */
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

/* Completes messages that wait now, not later ones: their frames may still be in the queue. */
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
 * Called while the slots still hold the unacknowledged frames. A message that is acknowledged and
 * released has succeeded, although its completion has not run yet.
 */
void raw_zc_fail(struct raw_tx *tx, int status)
{
	struct raw_zc *zc;

	LIST_FOREACH(zc, &tx->zc, conn_link) {
		if (rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0)
			zc->status = status;
	}
}

/* A message that the hardware may still read completes later, in progress() or in close(). */
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
			/* so that the port is polled, and releases the message */
			iface->tx_used = true;
			continue;
		}
		/* iface->zc.released contains the message, and returns it to the free ones. */
		zc_complete(zc);
	}
}

/*
 * A PMD may hold mbufs even after its queue was closed, and release them later: raw_zc_released()
 * then reads zc->iface. So a chunk with a message in such an mbuf is never freed.
 */
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

void raw_zc_destroy(struct raw_iface *iface)
{
	struct raw_zc *zc;

	raw_zc_complete(iface);
	while ((zc = LIST_FIRST(&iface->zc.orphans)))
		zc_complete(zc);
	free_chunks(iface);
}
