/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/outstanding.h
 * Frames that were sent and are not acknowledged: slots, shared buffers, flushes, zero-copy.
 */
#ifndef WEFT_ENGINE_OUTSTANDING_H
#define WEFT_ENGINE_OUTSTANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "lane.h"

/* ---------------------------------------------------------------- slots */

#define RAW_SLOTS_MIN 1u /* first slots of a connection; they are doubled on demand */

static inline void raw_ref_chain(struct rte_mbuf *m)
{
	do {
		rte_mbuf_refcnt_update(m, 1);
	} while ((m = m->next));
}

/* As rte_pktmbuf_free(), by a faster way for a single buffer. @p lcore: that of the caller */
static inline void raw_mbuf_free(struct rte_mbuf *m, unsigned int lcore)
{
	void *obj = m;

	if (unlikely(rte_mbuf_refcnt_read(m) != 1 || m->next || !RTE_MBUF_DIRECT(m))) {
		rte_pktmbuf_free(m);
		return;
	}
	rte_mempool_generic_put(m->pool, &obj, 1, rte_mempool_default_cache(m->pool, lcore));
}

static inline void raw_slot_release(struct raw_iface *iface, struct raw_tx *tx,
				    struct raw_slot *slot, unsigned int lcore)
{
	iface->share.tx_held--;
	if (unlikely(slot->m->nb_segs > 1)) {
		iface->share.hdr_held -= slot->m->nb_segs;
		tx->hdr_held -= slot->m->nb_segs;
	}
	raw_mbuf_free(slot->m, lcore);
	slot->m = NULL;
}

void raw_slot_free_slow(struct raw_iface *iface, struct raw_tx *tx, struct raw_slot *slot,
			unsigned int lcore);

/* The frame is acknowledged, or the connection is over: frees its buffers or its heap copy. */
static inline void raw_slot_free(struct raw_iface *iface, struct raw_tx *tx, struct raw_slot *slot,
				 unsigned int lcore)
{
	if (likely(!slot->taken_back && slot->m->nb_segs == 1))
		raw_slot_release(iface, tx, slot, lcore);
	else
		raw_slot_free_slow(iface, tx, slot, lcore);
}

/* The slot of idle connections: read like an acknowledged frame's, never written. */
extern struct raw_slot raw_no_slot;

/* Has the connection returned its slots, or not had any yet? */
static inline bool raw_slots_none(const struct raw_tx *tx)
{
	return tx->slots == &raw_no_slot;
}

/* Makes the first slots, or doubles their number. @return false: no memory */
bool raw_slots_grow(struct raw_tx *tx);
/* Nothing is outstanding: frees the slots. */
void raw_slots_drop(struct raw_tx *tx);
/* The connection is over: frees its open frame, all outstanding frames, and the slots. */
void raw_slots_release(struct raw_iface *iface, struct raw_tx *tx);

/* ---------------------------------------------------------------- shared buffers */

/* Least share: frames that a connection may hold until all together hold tx_held_hard. */
#define RAW_SHARE_MIN 8u
#define RAW_SHARE_TIMES 4u
#define RAW_STALL_NS 10000000ull

/*
 * May a connection with @p mine frames outstanding hold one more? The limit of each is a multiple
 * of the free frames: a single connection gets four fifths, so some are left for the next one.
 */
static inline bool raw_share_frame(struct raw_iface *iface, uint32_t mine)
{
	uint32_t held = iface->share.tx_held;

	if (likely(held < iface->share.tx_held_max &&
		   mine < RAW_SHARE_TIMES * (iface->share.tx_held_max - held)))
		return true;
	if (mine < RAW_SHARE_MIN && held < iface->share.tx_held_hard)
		return true;
	iface->share.pressed = true;
	return false;
}

bool raw_share_hdrs(struct raw_iface *iface, const struct raw_tx *tx, uint32_t n);
void raw_share_init(struct raw_iface *iface);
/*
 * The peer is silent, although the oldest frame was retransmitted, or an acknowledgement was
 * requested. If this lasts for RAW_STALL_NS and two round trips of @p rtt ns, the window of the
 * connection shrinks to RAW_SHARE_MIN frames.
 */
void raw_share_stalled(struct raw_iface *iface, struct raw_tx *tx, uint32_t rtt);
void raw_share_acked(struct raw_iface *iface, struct raw_tx *tx, unsigned int acked);
void raw_share_take_back(struct raw_iface *iface);
struct rte_mbuf *raw_copy_frame(struct raw_iface *iface, const struct raw_copy *copy);
const uint8_t *raw_copy_bytes(const struct raw_copy *copy, struct raw_zc **zc);

/* ---------------------------------------------------------------- flushes */

struct raw_flush {
	struct weft_lane_comp *comp;
	uint32_t seq; /* completes when all sequences before it are acknowledged */
	STAILQ_ENTRY(raw_flush) link;
};

/* Queues @p f, from malloc(). It completes after all sent frames, and after the open one. */
void raw_flush_queue(struct raw_tx *tx, struct raw_flush *f, struct weft_lane_comp *comp);
void raw_flushes_end(struct raw_tx *tx, int status);
unsigned int raw_flushes_check(struct raw_tx *tx);

/* ---------------------------------------------------------------- zero-copy messages */

/* A zero-copy message in progress. shinfo counts references to the user's memory. */
struct raw_zc {
	struct rte_mbuf_ext_shared_info shinfo;
	struct raw_iface *iface;
	struct weft_lane_comp *comp; /* NULL = already reported */
	struct weft_mem_lane *mem;   /* registration, until comp is NULL; NULL = none is needed */
	int status;
	bool waiting;
	LIST_ENTRY(raw_zc) wait_link; /* of iface->zc.waiting */
	LIST_ENTRY(raw_zc) conn_link; /* of raw_tx.zc, or iface->zc.orphans, while comp is set */
	STAILQ_ENTRY(raw_zc) link;    /* of iface->zc.free or iface->zc.released */
};

/* shinfo.free_cb: the last reference to the user's memory is dropped. */
void raw_zc_released(void *addr, void *opaque);
/* @return a new message to be sent; NULL: no memory */
struct raw_zc *raw_zc_get(struct raw_iface *iface);
/* Takes back a message that was not sent, and to which no mbuf refers. */
void raw_zc_put(struct raw_iface *iface, struct raw_zc *zc);
unsigned int raw_zc_complete(struct raw_iface *iface);
void raw_zc_cancel(struct raw_iface *iface, struct raw_tx *tx);
void raw_zc_fail(struct raw_tx *tx, int status);
void raw_zc_destroy(struct raw_iface *iface);
unsigned int raw_zc_poll(struct raw_iface *iface);

/* @return the zero-copy message in a frame, or NULL */
static inline struct raw_zc *raw_zc_of(const struct rte_mbuf *m)
{
	const struct rte_mbuf *user = m->next;

	return user != NULL && RTE_MBUF_HAS_EXTBUF(user) ? user->shinfo->fcb_opaque : NULL;
}

#endif /* WEFT_ENGINE_OUTSTANDING_H */
