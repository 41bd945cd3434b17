/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/slots.h
 * Frames that were sent and are not acknowledged: their slots, and their buffers.
 */
#ifndef WEFT_ENGINE_SLOTS_H
#define WEFT_ENGINE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "engine/conn.h"
#include "engine/iface.h"

#define RAW_SLOTS_MIN 16u /* what an idle connection has; more on demand */

/* One reference more for the queue, on every segment. */
static inline void raw_ref_chain(struct rte_mbuf *m)
{
	do {
		rte_mbuf_refcnt_update(m, 1);
	} while ((m = m->next));
}

/*
 * A buffer whose last reference is most likely ours. As rte_pktmbuf_free(), by a core known
 * already.
 */
static inline void raw_mbuf_free(struct rte_mbuf *m, unsigned int lcore)
{
	void *obj = m;

	if (unlikely(rte_mbuf_refcnt_read(m) != 1 || m->next || !RTE_MBUF_DIRECT(m))) {
		rte_pktmbuf_free(m);
		return;
	}
	rte_mempool_generic_put(m->pool, &obj, 1, rte_mempool_default_cache(m->pool, lcore));
}

/* The buffers of a frame go back, and the connection's share with them. */
static inline void raw_slot_release(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore)
{
	struct raw_iface *iface = c->iface;

	iface->share.tx_held--;
	if (unlikely(slot->m->nb_segs > 1)) {
		iface->share.hdr_held -= slot->m->nb_segs;
		c->hdr_held -= slot->m->nb_segs;
	}
	raw_mbuf_free(slot->m, lcore);
	slot->m = NULL;
}

/* The frame is acknowledged, or the connection over: its buffers go back, wherever they are. */
void raw_slot_free_slow(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore);

static inline void raw_slot_free(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore)
{
	if (likely(!slot->taken_back && slot->m->nb_segs == 1))
		raw_slot_release(c, slot, lcore);
	else
		raw_slot_free_slow(c, slot, lcore);
}

/* As many as an idle connection has. @return 0 or -ENOMEM */
int raw_slots_init(struct raw_conn *c);
/* Slots for more frames outstanding. @return false: no memory */
bool raw_slots_grow(struct raw_conn *c);
/* Nothing is outstanding, nor has been for long. */
void raw_slots_shrink(struct raw_conn *c);
/* The connection is over: nothing is sent again. */
void raw_slots_release(struct raw_conn *c);

#endif /* WEFT_ENGINE_SLOTS_H */
