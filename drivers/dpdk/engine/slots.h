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

#define RAW_SLOTS_MIN 16u /* of an idle connection; more on demand */

/* Take one more reference for the queue, on every segment. */
static inline void raw_ref_chain(struct rte_mbuf *m)
{
	do {
		rte_mbuf_refcnt_update(m, 1);
	} while ((m = m->next));
}

/*
 * Free a buffer that most likely has no other reference. As rte_pktmbuf_free(), but the core is
 * known already.
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

/* Free the buffers of a frame, and return the connection's share. */
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

/* The frame is acknowledged, or the connection is over: free its buffers, wherever they are. */
void raw_slot_free_slow(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore);

static inline void raw_slot_free(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore)
{
	if (likely(!slot->taken_back && slot->m->nb_segs == 1))
		raw_slot_release(c, slot, lcore);
	else
		raw_slot_free_slow(c, slot, lcore);
}

/* Allocate the slots of an idle connection. @return 0 or -ENOMEM */
int raw_slots_init(struct raw_conn *c);
/* Allocate slots for more outstanding frames. @return false: no memory */
bool raw_slots_grow(struct raw_conn *c);
/* Nothing has been outstanding for a long time. */
void raw_slots_shrink(struct raw_conn *c);
/* The connection is over: nothing is retransmitted. */
void raw_slots_release(struct raw_conn *c);

#endif /* WEFT_ENGINE_SLOTS_H */
