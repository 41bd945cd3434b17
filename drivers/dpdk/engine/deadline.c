/* SPDX-License-Identifier: BSD-3-Clause */
/* The next check of a connection: its entries in the two heaps of its iface (engine/timer.h). */

#include <rte_common.h>

#include "base/deadline.h"
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

	c->et_at = t;
	weft_deadlines_by(&iface->by_et, index_of(c), t);
	iface->next_et = RTE_MIN(iface->next_et, t);
}

void raw_deadline_lt(struct raw_conn *c, uint64_t t)
{
	struct raw_iface *iface = c->iface;

	weft_deadlines_by(&iface->by_lt, index_of(c), t);
	iface->next_lt = RTE_MIN(iface->next_lt, t);
}

void raw_deadlines_forget(struct raw_conn *c)
{
	weft_deadlines_remove(&c->iface->by_et, index_of(c));
	weft_deadlines_remove(&c->iface->by_lt, index_of(c));
	c->et_at = RAW_NEVER;
}
