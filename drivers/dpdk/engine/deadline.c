/* SPDX-License-Identifier: BSD-3-Clause */
/* The next check of a connection: its entries in the two heaps of its iface (engine/timer.h). */

#include <rte_common.h>

#include "base/container.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/timer.h"

static inline uint32_t index_of(const struct raw_conn *c)
{
	return c->id & 0xffff;
}

void raw_deadline_et_sooner(struct raw_conn *c, uint64_t t)
{
	struct raw_iface *iface = c->iface;

	c->tx_clock_at = t;
	weft_deadlines_by(&iface->by_tx_clock, index_of(c), t);
	iface->next_tx_clock = RTE_MIN(iface->next_tx_clock, t);
}

void raw_deadline_live(struct raw_conn *c, uint64_t t)
{
	struct raw_iface *iface = c->iface;

	weft_deadlines_by(&iface->by_live_clock, index_of(c), t);
	iface->next_live_clock = RTE_MIN(iface->next_live_clock, t);
}

void raw_deadlines_forget(struct raw_conn *c)
{
	weft_deadlines_remove(&c->iface->by_tx_clock, index_of(c));
	weft_deadlines_remove(&c->iface->by_live_clock, index_of(c));
	c->tx_clock_at = RAW_NEVER;
}
