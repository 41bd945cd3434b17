/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that were sent and may be retransmitted: from sealing to acknowledgement. */

#include <errno.h>
#include <stdlib.h>

#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/parts.h"
#include "engine/share.h"
#include "engine/slots.h"
#include "engine/zcopy.h"
#include "engine/window.h"

/*
 * @p n is a power of two, and the outstanding frames fit. @return false: no memory, nothing has
 * changed
 */
static bool resize_slots(struct raw_conn *c, uint32_t n)
{
	struct raw_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t seq = c->snd_una; seq != c->snd_next; seq++)
		slots[seq & (n - 1)] = *raw_slot(c, seq);
	free(c->slots);
	c->slots = slots;
	c->slot_mask = n - 1;
	return true;
}

int raw_slots_init(struct raw_conn *c)
{
	return resize_slots(c, RAW_SLOTS_MIN) ? 0 : -ENOMEM;
}

bool raw_slots_grow(struct raw_conn *c)
{
	return resize_slots(c, 2 * (c->slot_mask + 1));
}

void raw_slots_shrink(struct raw_conn *c)
{
	if (c->slot_mask >= RAW_SLOTS_MIN)
		resize_slots(c, RAW_SLOTS_MIN);
}

void raw_slot_free_slow(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore)
{
	struct raw_iface *iface = c->iface;
	struct raw_zc *zc;

	if (slot->taken_back) {
		raw_copy_free(iface, slot->copy);
		slot->copy = NULL;
		return;
	}
	zc = raw_zc_of(slot->m);
	raw_slot_release(c, slot, lcore);
	raw_zc_slot_freed(iface, zc);
}

/* The connection is over: nothing is retransmitted. */
void raw_slots_release(struct raw_conn *c)
{
	if (c->open) {
		rte_pktmbuf_free(c->open);
		c->iface->share.tx_held--;
		c->open = NULL;
	}
	c->open_room = 0;
	raw_share_forget(c);
	raw_parts_forget(c);
	c->timer = 0;
	c->loss_timer = 0;
	c->inflight = 0;
	raw_window_over(c);
	c->base.queued = 0;
	for (; c->slots && c->snd_una != c->snd_next; c->snd_una++) {
		if (raw_slot(c, c->snd_una)->m)
			raw_slot_free(c, raw_slot(c, c->snd_una), rte_lcore_id());
	}
	/*
	 * A closed connection is kept for seconds, and there may be hundreds: they need no slots.
	 */
	free(c->slots);
	c->slots = NULL;
}
