/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/timer.h
 * When the retransmission timer of a connection is due: its tail probe, its timeout, and the round
 * trips that they follow. engine/reliability.c does what is due.
 */
#ifndef WEFT_ENGINE_TIMER_H
#define WEFT_ENGINE_TIMER_H

#include <stdint.h>

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/conn_table.h"
#include "engine/loss_rules.h"

/* The round trip of the slowest path, which the timers follow. */
const struct weft_rtt *raw_timer_slowest(const struct raw_conn *c);
void raw_timer_learn(struct raw_conn *c);
/* A frame was acknowledged @p age ns after it was sent: the peer was late. */
void raw_timer_late(struct raw_conn *c, uint64_t age);
void raw_timer_arm_rto(struct raw_conn *c);

static inline void raw_timer_arm(struct raw_conn *c)
{
	if (c->tx.una == c->tx.next) {
		c->tx.timer = 0;
		return;
	}
	if (unlikely(c->tx.tail != RAW_TAIL_NONE)) {
		raw_timer_arm_rto(c);
		return;
	}
	c->tx.timer = c->iface->tx_clock + c->tx.probe_wait;
	raw_deadline_tx(c, c->tx.timer);
}

#endif /* WEFT_ENGINE_TIMER_H */
