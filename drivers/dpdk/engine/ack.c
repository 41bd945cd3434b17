/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The sender's half of reliability: processing of acknowledgements.
 *
 * Sequences [snd_una, snd_next) are outstanding. A slot whose mbuf is NULL has been acknowledged by
 * a SACK bit.
 */

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "engine/ack.h"
#include "engine/conn.h"
#include "engine/flush.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/share.h"
#include "engine/slots.h"
#include "engine/window.h"
#include "frame/frame.h"

#define STALE_ROUGH 4u /* of this number of stale samples, one is used all the same */

/* gcc does not inline it by itself: that costs a twentieth of raw_ack_new()'s time. */
static __rte_always_inline void slot_acked(struct raw_conn *c, struct raw_slot *slot)
{
	struct raw_iface *iface = c->iface;
	struct raw_path *p = &c->path[slot->path];

	if (!slot->m)
		return; /* a SACK bit has acknowledged it before */
	weft_loss_acked(&p->loss, &p->rtt, slot->order, slot->tries, slot->sent, iface->tx_clock);
	if (unlikely(c->path_watch))
		raw_multi_slot_acked(c, slot);
	if (unlikely(slot->lost))
		raw_window_found(c, slot);
	else
		c->inflight -= slot->bytes;
	c->base.queued -= slot->payload;
	raw_slot_free(c, slot, iface->lcore);
}

/*
 * The time of arrival of the acknowledgement. Between reading the clock and receiving, progress()
 * may have sent frames, which takes a system call on some ports. A round trip that is too short
 * would be worse than one that is too long, since a minimum is kept. So the clock is read again.
 */
static uint32_t ack_arrival(const struct raw_conn *c)
{
	const struct raw_iface *iface = c->iface;

	if (likely(!c->cc || !iface->sent_first))
		return (uint32_t)iface->now;
	return (uint32_t)iface->platform->now(iface->platform->arg);
}

/*
 * Was the echoed frame sent long after the clock had been read? If nearly all are, a small window
 * needs some rough samples: they are better than none.
 */
static bool too_stale(struct raw_conn *c, uint32_t ts, uint32_t rtt)
{
	const struct raw_iface *iface = c->iface;
	uint32_t s = ts / 64 % RAW_STALE;

	if (iface->stale[s].ts != ts || iface->stale[s].error <= RTE_MAX(RAW_STAMP_ERROR, rtt / 4))
		return false;
	return !c->cc || c->path[c->next_path].ack_req_bytes == 0 ||
	       ++c->stale_missed % STALE_ROUGH != 0;
}

/*
 * @return the round trip in ns, over the path that the frame names; 0 = the frame has no usable
 * echo
 */
static uint32_t take_sample(struct raw_conn *c, const struct weft_frame_hdr *hdr)
{
	struct raw_iface *iface = c->iface;
	uint32_t hold = weft_get16(hdr->ts_hold), rtt;
	uint8_t path = hdr->echo_path;

	if (iface->gap || path >= c->path_count)
		return 0;
	rtt = ack_arrival(c) - weft_get32(hdr->ts_echo);
	if (rtt > INT32_MAX)
		return 0;
	hold *= WEFT_FRAME_HOLD_UNIT;
	if (too_stale(c, weft_get32(hdr->ts_echo), rtt))
		return 0;
	if (hold > rtt && hold - rtt > RAW_STAMP_ERROR)
		return 0; /* the peer's clock was read long before the frame arrived */
	rtt = rtt > hold ? rtt - hold : 1;
	weft_rtt_sample(&c->path[path].rtt, rtt);
	c->base.rtt_ns = c->path[path].rtt.srtt;
	raw_timer_learn(c);
	return rtt;
}

static unsigned int take_sack(struct raw_conn *c, const struct weft_frame_sack *sack, uint32_t ack)
{
	uint32_t pos = 0, bit, seq, words = weft_get16(sack->words);
	unsigned int acked = 0;

	while (weft_sack_next(sack + 1, words, &pos, &bit)) {
		seq = ack + 1 + bit;
		if (weft_seq_diff(seq, c->snd_una) < 0)
			continue; /* older than what is known */
		if (seq - c->snd_una >= c->snd_next - c->snd_una) {
			raw_count(c->iface, RAW_DROP_BAD_ACK);
			break;
		}
		if (!raw_slot(c, seq)->m)
			continue;
		slot_acked(c, raw_slot(c, seq));
		acked++;
		if (weft_seq_diff(seq + 1, c->sack_high) > 0)
			c->sack_high = seq + 1;
	}
	return acked;
}

/* raw_ack_input() of a frame that acknowledges more than the one before, or has a SACK block. */
unsigned int raw_ack_new(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			 const struct weft_frame_sack *sack)
{
	uint32_t ack = weft_get32(hdr->ack), before = c->inflight, rtt = 0;
	bool silent = false;
	unsigned int acked = 0;

	if (unlikely(ack - c->snd_una > c->snd_next - c->snd_una)) {
		/* An older one was overtaken. One of a frame that was never sent is invalid. */
		if (weft_seq_diff(ack, c->snd_una) > 0)
			raw_count(c->iface, RAW_DROP_BAD_ACK);
		return 0;
	}
	if (c->cc && unlikely(c->cc_quiet != 0))
		raw_window_quiet_over(c, ack);
	if (unlikely(c->tail == RAW_TAIL_ACK_REQUESTED) && (ack != c->snd_una || sack))
		raw_tail_answered(c);
	while (c->snd_una != ack) {
		acked += raw_slot(c, c->snd_una)->m != NULL;
		slot_acked(c, raw_slot(c, c->snd_una));
		c->snd_una++;
	}
	if (unlikely(sack))
		acked += take_sack(c, sack, ack);
	/*
	 * Skips frames that a SACK has acknowledged. Only a peer that contradicts itself gets here,
	 * and snd_una must stay a frame in a slot.
	 */
	while (c->snd_una != c->snd_next && !raw_slot(c, c->snd_una)->m)
		c->snd_una++;
	if (weft_seq_diff(c->sack_high, c->snd_una) < 0)
		c->sack_high = c->snd_una;
	if (acked == 0)
		return 0;

	if (weft_get16(hdr->ts_hold) != WEFT_FRAME_NO_ECHO)
		rtt = take_sample(c, hdr);
	if (c->cc) {
		c->cc_acked += before - c->inflight;
		if (rtt != 0 || c->cc_full)
			raw_window_acked(c, hdr, rtt, before);
	}
	if (unlikely(c->path_watch))
		silent = raw_multi_acked(c, hdr);
	c->backoff = 0;
	if (weft_seq_diff(c->snd_una, c->round_end) >= 0) {
		c->round_at = c->iface->live_clock;
		c->round_end = c->snd_una + RTE_MIN(RAW_ROUND, c->snd_next - c->snd_una);
	}
	if (unlikely(c->win_frames < c->win_whole))
		raw_share_acked(c, acked);
	c->tail = RAW_TAIL_NONE;
	if (c->zc_ack == RAW_ZC_ACK_NO_REQUEST)
		c->acked_alone = hdr->type == WEFT_FRAME_ACK;
	c->zc_ack = RAW_ZC_ACK_NONE;
	c->base.tx_room = true;
	raw_timer_arm(c);
	/* Lost frames that the window has held back may be sent now, too. */
	if (unlikely(c->sack_high != c->snd_una || c->cc_lost != 0 || silent))
		raw_loss_detect(c);
	if (unlikely(!STAILQ_EMPTY(&c->flushes)))
		raw_flushes_check(c);
	return acked;
}
