/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Buffers that connections share. Frames are held until they are acknowledged, in the port's pools,
 * and a peer that stops acknowledges nothing.
 *
 * - A connection may hold four times the number of free buffers (raw_share_frame()), so that some
 *   are left for the next connection. It always has a least share, whatever the others hold.
 * - A connection is stalled when its oldest frame was retransmitted without result for
 *   RAW_STALL_NS and two round trips. Its window shrinks to the least share and grows again by each
 *   acknowledged frame. The window of a peer that acknowledges a frame now and then stays small.
 * - When buffers are short, those of stalled connections are taken back: their frames are copied to
 *   the heap, from which they are retransmitted. That memory has a limit for all connections;
 *   beyond it frames stay in their buffers.
 *
 * A zero-copy frame that was taken back still holds its reference to the user's memory: its
 * completion is the peer's acknowledgement.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/share.h"
#include "engine/slots.h"
#include "engine/zcopy.h"

/* Frames taken back in one progress() call: some 0.1 ms of copying. */
#define TAKE_BATCH 32u
/* As a multiple of the memory of the port's frame pool. */
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

/*
 * May the connection use @p n more small buffers? As for frames, the limit is a multiple of the
 * free ones.
 */
bool raw_share_hdrs(struct raw_conn *c, uint32_t n)
{
	struct raw_iface *iface = c->iface;
	uint32_t held = iface->share.hdr_held;

	if (likely(held + n <= iface->share.hdr_held_max &&
		   c->hdr_held < RAW_SHARE_TIMES * (iface->share.hdr_held_max - held)))
		return true;
	if (c->hdr_held + n <= 3 * RAW_SHARE_MIN && held + n <= iface->share.hdr_held_hard)
		return true;
	iface->share.pressed = true;
	return false;
}

/* ---------------------------------------------------------------- stalled connections */

/* Its oldest frame was just retransmitted, since the peer is silent. */
void raw_share_stalled(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->win_frames < c->win_whole || c->win_whole <= RAW_SHARE_MIN ||
	    iface->live_clock - c->round_at < RTE_MAX(RAW_STALL_NS, 2ull * c->base.rtt_ns))
		return;
	c->win_frames = RAW_SHARE_MIN;
	c->take_next = c->snd_una;
	TAILQ_INSERT_TAIL(&iface->share.stalled, c, stall_link);
	raw_count(iface, RAW_TX_STALLED);
}

/* The connection has acknowledged frames, or is over. */
static void window_grow(struct raw_conn *c, uint32_t to)
{
	if (c->win_frames >= c->win_whole)
		return;
	c->win_frames = RTE_MIN(to, c->win_whole);
	if (c->win_frames == c->win_whole)
		TAILQ_REMOVE(&c->iface->share.stalled, c, stall_link);
}

void raw_share_acked(struct raw_conn *c, unsigned int acked)
{
	window_grow(c, c->win_frames + acked);
}

void raw_share_forget(struct raw_conn *c)
{
	window_grow(c, c->win_whole);
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

void raw_copy_free(struct raw_iface *iface, struct raw_copy *copy)
{
	iface->share.taken_back -= copy->length;
	if (copy->shinfo) {
		if (rte_mbuf_ext_refcnt_update(copy->shinfo, -1) == 0)
			copy->shinfo->free_cb(NULL, copy->shinfo->fcb_opaque);
		else /* the port may still hold the original frame */
			raw_zc_slot_freed(iface, copy->shinfo->fcb_opaque);
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

/* @return false: the memory limit is reached */
static bool take_back_frame(struct raw_conn *c, struct raw_slot *slot)
{
	struct raw_iface *iface = c->iface;
	struct raw_copy *copy;

	if (iface->share.taken_back + slot->m->pkt_len > iface->share.taken_back_max)
		return false;
	copy = copy_new(slot->m);
	if (!copy)
		return false;
	iface->share.taken_back += copy->length;
	raw_slot_release(c, slot, iface->lcore);
	slot->copy = copy;
	slot->taken_back = true;
	raw_count(iface, RAW_TX_TAKEN_BACK);
	return true;
}

/* @return frames taken back; UINT32_MAX: no memory */
static uint32_t take_some(struct raw_conn *c, uint32_t most)
{
	struct raw_slot *slot;
	uint32_t n = 0;

	if (weft_seq_diff(c->take_next, c->snd_una) < 0)
		c->take_next = c->snd_una;
	for (; c->take_next != c->snd_next && n < most; c->take_next++) {
		slot = raw_slot(c, c->take_next);
		if (!slot->m || slot->taken_back)
			continue;
		if (!take_back_frame(c, slot))
			return UINT32_MAX;
		n++;
	}
	return n;
}

/* A connection got no buffer: return some buffers of stalled connections to the pools. */
void raw_share_take_back(struct raw_iface *iface)
{
	struct raw_conn *c;
	uint32_t n = 0, done;

	iface->share.pressed = false;
	TAILQ_FOREACH(c, &iface->share.stalled, stall_link) {
		done = take_some(c, TAKE_BATCH - n);
		if (done == UINT32_MAX)
			return;
		n += done;
		if (n == TAKE_BATCH)
			return;
	}
}
