/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/reliability.h
 * Acknowledgements, the retransmission timer and loss detection, by the rules of engine/rules.h.
 */
#ifndef WEFT_ENGINE_RELIABILITY_H
#define WEFT_ENGINE_RELIABILITY_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/rules.h"
#include "frame/frame.h"

#define RAW_STAMP_ERROR 1000u /* ns: an error of a timestamp that any round trip tolerates */
/* The lane fails if one of the N oldest frames is not acknowledged for the peer timeout. */
#define RAW_ROUND 8u

unsigned int raw_ack_new(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			 const struct weft_frame_sack *sack);

/* Processes a frame's acknowledgement. @return the number of newly acknowledged frames */
static inline unsigned int raw_ack_input(struct raw_conn *c, const struct weft_frame_hdr *hdr,
					 const struct weft_frame_sack *sack)
{
	if (weft_get32(hdr->ack) == c->tx.una && !sack)
		return 0;
	return raw_ack_new(c, hdr, sack);
}

void raw_loss_detect(struct raw_conn *c);
/*
 * The timer of the connection has expired: sends a tail probe, a request or a retransmission.
 * @return true: two timeouts or more had no answer, so the peer's MAC address may have changed
 */
bool raw_timer_fire(struct raw_conn *c);

/* ---------------------------------------------------------------- timer */

/* The round trip of the slowest path that new frames take, since the tail may be on any path. */
const struct weft_rtt *raw_timer_slowest(const struct raw_conn *c);
void raw_timer_learn(struct raw_conn *c);
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

#endif /* WEFT_ENGINE_RELIABILITY_H */
