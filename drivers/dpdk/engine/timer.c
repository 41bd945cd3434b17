/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "engine/conn.h"
#include "engine/conn_rx.h"
#include "engine/conn_table.h"
#include "engine/loss_rules.h"
#include "engine/multipath.h"
#include "engine/timer.h"

#define LATE_MAX (2ull * WEFT_RTO_MIN)
#define QUEUE_NS 20000u /* of half a round trip, beyond the least one */

/*
 * @return the round trip of the slowest path, since a tail may be on any of them. Only paths that
 * new frames take and that have been measured count, if there are any.
 */
const struct weft_rtt *raw_timer_slowest(const struct raw_conn *c)
{
	const struct weft_rtt *r = &c->path[c->next_path].rtt, *p;

	for (uint8_t i = 0; c->multi && i < c->path_count; i++) {
		p = &c->path[i].rtt;
		if (p->srtt != 0 && raw_multi_usable(c, i) &&
		    (r->srtt == 0 || weft_rtt_rto(p, 0) > weft_rtt_rto(r, 0)))
			r = p;
	}
	return r;
}

static void set_probe_wait(struct raw_conn *c)
{
	uint64_t wait = weft_rtt_probe(raw_timer_slowest(c), 2 * RAW_ACK_DELAY);

	c->tx.probe_wait = (uint32_t)RTE_MAX(wait, c->tx.late + c->tx.late / 4ull);
}

/*
 * A new sample of a round trip: the values that follow from it are computed now, not for each
 * frame.
 */
void raw_timer_learn(struct raw_conn *c)
{
	const struct weft_rtt *r = &c->path[c->next_path].rtt;

	if (unlikely(r->srtt / 2 > r->min + QUEUE_NS))
		c->path_busy = true; /* other paths may have shorter queues (engine/path_open.c) */
	c->tx.late -= c->tx.late / 16;
	set_probe_wait(c);
}

void raw_timer_late(struct raw_conn *c, uint64_t age)
{
	if (age <= c->tx.late)
		return;
	c->tx.late = (uint32_t)RTE_MIN(age, LATE_MAX);
	set_probe_wait(c);
}

/* The last frame was retransmitted: from here on the retransmission timeout applies. */
void raw_timer_arm_rto(struct raw_conn *c)
{
	/* Each path gets a try before the timeout doubles. */
	c->tx.timer = c->iface->tx_clock +
		      weft_rtt_rto(raw_timer_slowest(c), c->tx.backoff / c->path_count);
	raw_deadline_tx(c, c->tx.timer);
}
