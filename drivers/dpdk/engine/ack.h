/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/ack.h
 * The sender's half of reliability (engine/ack.c, engine/retransmit.c).
 */
#ifndef WEFT_ENGINE_ACK_H
#define WEFT_ENGINE_ACK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/timer.h"
#include "frame/frame.h"

#define RAW_STAMP_ERROR 1000u /* ns that a timestamp may be wrong by in any case */
#define RAW_ROUND 8u /* frames of which one must not stay unacknowledged for the peer's timeout */

unsigned int raw_ack_new(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			 const struct weft_frame_sack *sack);

/* Acknowledgements of any frame of the peer. @return frames newly acknowledged */
static inline unsigned int raw_ack_input(struct raw_conn *c, const struct weft_frame_hdr *hdr,
					 const struct weft_frame_sack *sack)
{
	if (weft_get32(hdr->ack) == c->snd_una && !sack)
		return 0;
	return raw_ack_new(c, hdr, sack);
}

void raw_loss_detect(struct raw_conn *c);
/* The path whose round trip the timers follow. */
const struct weft_rtt *raw_timer_slowest(const struct raw_conn *c);
void raw_timer_learn(struct raw_conn *c);
void raw_timer_arm_rto(struct raw_conn *c);

static inline void raw_timer_arm(struct raw_conn *c)
{
	if (c->snd_una == c->snd_next) {
		c->timer = 0;
		return;
	}
	if (unlikely(c->tail != RAW_TAIL_NONE)) {
		raw_timer_arm_rto(c);
		return;
	}
	c->timer = c->iface->et + c->probe_wait;
	raw_deadline_et(c, c->timer);
}

/* The first acknowledgement after a question; before it is taken. */
void raw_tail_answered(struct raw_conn *c);

/* @return the peer is silent for long: it may have moved */
bool raw_timer_fire(struct raw_conn *c);

#endif /* WEFT_ENGINE_ACK_H */
