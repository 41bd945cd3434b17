/* SPDX-License-Identifier: BSD-3-Clause */

/* Sequences [una, next) are outstanding. A SACK bit has acknowledged a slot whose mbuf is NULL. */

#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/outstanding.h"
#include "engine/path_open.h"
#include "engine/reliability.h"
#include "engine/rules.h"
#include "engine/window.h"
#include "frame/frame.h"

/* ---------------------------------------------------------------- timer */

#define LATE_MAX (2ull * WEFT_RTO_MIN)
/* ns: there is a queue if half of the smoothed round trip exceeds the least one by more */
#define QUEUE_NS 20000u

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

void raw_timer_learn(struct raw_conn *c)
{
	const struct weft_rtt *r = &c->path[c->next_path].rtt;

	if (unlikely(r->srtt / 2 > r->min + QUEUE_NS))
		c->path_busy = true; /* other paths may have shorter queues (engine/path_open.c) */
	c->tx.late -= c->tx.late / 16;
	set_probe_wait(c);
}

/* The peer acknowledged a frame only @p age ns after it was sent: tail probes wait longer. */
static void timer_late(struct raw_conn *c, uint64_t age)
{
	if (age <= c->tx.late)
		return;
	c->tx.late = (uint32_t)RTE_MIN(age, LATE_MAX);
	set_probe_wait(c);
}

/* After a tail probe, or a request for an ACK, the retransmission timeout applies. */
void raw_timer_arm_rto(struct raw_conn *c)
{
	/* Each path gets a try before the timeout doubles. */
	c->tx.timer = c->iface->tx_clock +
		      weft_rtt_rto(raw_timer_slowest(c), c->tx.backoff / c->path_count);
	raw_deadline_tx(c, c->tx.timer);
}

/* ---------------------------------------------------------------- retransmission */

/*
 * After a request the peer acknowledges frames that had arrived before: they waited in a full ring,
 * or for the peer's core. Round trips do not show that delay, as a burst of long frames gives no
 * exact sample. To be called before the first acknowledgement after a request is processed.
 */
static void tail_answered(struct raw_conn *c)
{
	const struct raw_slot *slot = raw_slot(&c->tx, c->tx.una);
	uint64_t age = c->iface->tx_clock - slot->sent;

	if (slot->m && slot->tries <= 1)
		timer_late(c, age);
}

#define RESERVE_TRIES 2u /* a frame that was lost more often may take a path in reserve */

/* Copies a frame, which the NIC may still read, to a new buffer. User memory is not copied. */
static struct rte_mbuf *copy_frame(struct raw_iface *iface, const struct rte_mbuf *m)
{
	struct rte_mempool *pool = m->nb_segs == 1 ? iface->port->pool : iface->port->hdr_pool;
	struct rte_mbuf *head = NULL, **tail = &head, *s;
	uint32_t pkt_len = m->pkt_len;
	uint16_t segs = m->nb_segs;
	uint64_t ol_flags = m->ol_flags, tx_offload = m->tx_offload;

	for (; m; m = m->next, tail = &s->next) {
		s = rte_pktmbuf_alloc(pool);
		if (!s) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		*tail = s;
		if (RTE_MBUF_HAS_EXTBUF(m)) {
			rte_pktmbuf_attach(s, (struct rte_mbuf *)(uintptr_t)m);
			s->next = NULL;
			s->nb_segs = 1;
			continue;
		}
		s->data_len = m->data_len;
		memcpy(rte_pktmbuf_mtod(s, void *), rte_pktmbuf_mtod(m, const void *), m->data_len);
	}
	head->pkt_len = pkt_len;
	head->nb_segs = segs;
	head->ol_flags |= ol_flags & (RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM);
	head->tx_offload = tx_offload;
	return head;
}

static bool held_by_port(const struct rte_mbuf *m)
{
	for (; m; m = m->next) {
		if (rte_mbuf_refcnt_read(m) > 1)
			return true;
	}
	return false;
}

/* Retransmit the frame in one piece. @return 0; -EAGAIN: no room or buffer, nothing was sent */
static int send_whole(struct raw_conn *c, struct raw_slot *slot, uint8_t path, uint16_t flags)
{
	struct raw_path *p = &c->path[path];
	struct raw_iface *iface = c->iface;
	struct weft_frame_hdr *hdr;
	struct rte_mbuf *m = slot->m;

	if (raw_txq_space(iface) == 0)
		return -EAGAIN;
	if (slot->taken_back) {
		/* The copy on the heap stays until the frame is acknowledged. */
		m = raw_copy_frame(iface, slot->copy);
	} else if (held_by_port(slot->m)) {
		m = copy_frame(iface, slot->m);
		if (m) {
			raw_count(iface, RAW_TX_RETX_COPY);
			rte_pktmbuf_free(slot->m);
			slot->m = m;
		}
	}
	if (!m) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		return -EAGAIN;
	}
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), c->peer_mac,
	       6); /* the MAC may have changed (engine/neighbour.c) */
	hdr = raw_hdr(c, m);
	flags |= weft_get16(hdr->flags) & WEFT_FRAME_F_CRC32C;
	hdr->flags = weft_put16(flags);
	raw_stamp(c->iface, &c->rx, hdr, p, path);
	raw_finish(c, m, slot->bytes, p);
	slot->order = p->order++;
	if (c->csum != RAW_CSUM_SEALED) {
		if (!slot->taken_back)
			raw_ref_chain(m);
		raw_txq_push(iface, m);
		return 0;
	}
	raw_sealed_queue(c, m, path);
	if (slot->taken_back)
		rte_pktmbuf_free(m);
	return 0;
}

static int retransmit_slot(struct raw_conn *c, uint32_t seq, enum raw_counter why, uint16_t flags)
{
	struct raw_iface *iface = c->iface;
	struct raw_slot *slot = raw_slot(&c->tx, seq);
	uint8_t before = slot->path, path;
	int err;

	/* Another path is taken, if there is one: the cause of the loss may last on this one. */
	path = raw_multi_other(c, before, why != RAW_TX_FAST || slot->tries > RESERVE_TRIES);
	if (unlikely(slot->tries >= RAW_MTU_TRIES))
		raw_mtu_suspect(c, seq);
	flags |= WEFT_FRAME_F_RETX;
	err = raw_parts_needed(c, slot) ? raw_parts_send(c, slot, seq, path, flags)
					: send_whole(c, slot, path, flags);
	if (err != 0)
		return err;
	slot->path = path;
	slot->sent = iface->tx_clock;
	if (c->tx.cc)
		raw_window_resent(c, slot, before);
	raw_multi_resent(c, slot, before, why != RAW_TX_FAST);
	c->path_busy = true; /* other paths may lose less (engine/path_open.c) */
	if (slot->tries < UINT8_MAX)
		slot->tries++;
	WEFT_PROBE5(retransmit, c,
		    why == RAW_TX_FAST  ? "a later frame came"
		    : why == RAW_TX_RTO ? "timeout"
					: "probe",
		    seq, path, slot->tries);
	c->path[slot->path].retransmits++;
	c->base.retransmits++;
	raw_count(iface, why);
	return 0;
}

/*
 * Retransmits frames that newer frames of the same path have overtaken, once each had time to
 * arrive, and frames of a silent path. loss_timer is set for frames that have to wait.
 */
void raw_loss_detect(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t wait = RAW_NEVER, due;
	struct raw_slot *slot;
	struct raw_path *p;
	uint32_t seq;
	bool silent;

	c->tx.loss_timer = 0;
	for (seq = c->tx.una; seq != c->tx.next; seq++) {
		slot = raw_slot(&c->tx, seq);
		p = &c->path[slot->path];
		if (!slot->m)
			continue;
		silent = unlikely(c->multi) && raw_multi_lost(c, slot);
		if (!silent && !weft_loss_suspect(&p->loss, slot->order))
			continue;
		due = slot->sent + weft_loss_timeout(&p->rtt);
		if (due > iface->tx_clock && !silent) {
			wait = RTE_MIN(wait, due);
			continue;
		}
		if (c->tx.cc && !slot->lost)
			raw_window_lost(c, slot);
		if (c->tx.cc && !raw_window_again(&c->tx, iface->tx_clock, slot->bytes, &wait))
			continue;
		if (retransmit_slot(c, seq, RAW_TX_FAST, 0) != 0) {
			/* no room in the queue: go on in the next progress call */
			wait = iface->tx_clock + 1;
			break;
		}
	}
	if (wait != RAW_NEVER) {
		c->tx.loss_timer = wait;
		raw_deadline_tx(c, wait);
	}
}

static uint32_t last_unacked(const struct raw_tx *tx)
{
	uint32_t seq = tx->next - 1;

	while (seq != tx->una && !raw_slot(tx, seq)->m)
		seq--;
	return seq;
}

/* Only frames of the peer's worker count: its heartbeat thread (ALIVE) receives no frames. */
static bool received_since(const struct raw_conn *c, uint64_t live_clock)
{
	return raw_live_seen(&c->live, c->rx.seen) > live_clock;
}

/*
 * A ring in memory loses no frame, and a switch behind it rarely loses one: a silent peer almost
 * always waits for its core. So an empty frame requests an acknowledgement first. Data is
 * retransmitted after a frame of the peer that does not acknowledge it.
 */
static bool queries_first(const struct raw_conn *c)
{
	return (c->iface->port->flags & WEFT_FRAME_PORT_MEMORY) != 0 &&
	       (c->tx.tail == RAW_TAIL_NONE || !received_since(c, c->tx.tail_at));
}

static void back_off(struct raw_conn *c)
{
	if (c->tx.backoff >= 15u * c->path_count)
		return;
	c->tx.backoff++;
	c->live.pings++;
	if (c->tx.cc)
		raw_window_timeout(c);
	if (c->tx.backoff >= c->path_count)
		raw_path_open(c); /* a try over each path had no answer */
}

/* @return false: the queue has no room */
static bool query_peer(struct raw_conn *c)
{
	bool first = c->tx.tail == RAW_TAIL_NONE;

	if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) != 0)
		return false;
	raw_count(c->iface, RAW_TX_QUERY);
	c->tx.tail_at = c->iface->live_clock;
	if (first) {
		c->tx.tail = RAW_TAIL_ACK_REQUESTED;
		c->tx.timer = c->iface->tx_clock + c->tx.probe_wait;
		raw_deadline_tx(c, c->tx.timer);
		return true;
	}
	back_off(c);
	raw_share_stalled(c->iface, &c->tx, c->base.rtt_ns);
	raw_timer_arm(c);
	return true;
}

static void send_again(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->tx.tail != RAW_TAIL_PROBED) {
		if (retransmit_slot(c, last_unacked(&c->tx), RAW_TX_PROBE, WEFT_FRAME_F_ACK_REQ) ==
		    0) {
			c->tx.tail = RAW_TAIL_PROBED;
			c->tx.tail_at = iface->live_clock;
		}
	} else {
		if (retransmit_slot(c, c->tx.una, RAW_TX_RTO, WEFT_FRAME_F_ACK_REQ) == 0) {
			c->tx.tail_at = iface->live_clock;
			back_off(c);
		}
		raw_share_stalled(iface, &c->tx, c->base.rtt_ns);
	}
	raw_timer_arm(c);
}

/*
 * First the last frame is retransmitted: the SACK in its ACK names the missing frames. Only then
 * the oldest frame is retransmitted, at growing intervals.
 */
bool raw_timer_fire(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->txq.count > 0) {
		/* Frames in the engine's own queue are not lost. */
		c->tx.timer = iface->tx_clock + WEFT_PROBE_MIN;
		raw_deadline_tx(c, c->tx.timer);
		return false;
	}
	if (!queries_first(c))
		send_again(c);
	else if (!query_peer(c))
		raw_timer_arm(c);
	return c->tx.tail != RAW_TAIL_NONE && c->tx.backoff >= 2;
}

/* ---------------------------------------------------------------- acknowledgements */

#define STALE_ROUGH 4u /* one of N stale samples is used nevertheless */

/* gcc does not inline this function by itself: its call takes 1/20 of raw_ack_new()'s time. */
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
		raw_window_found(&c->tx, slot);
	else
		c->tx.inflight -= slot->bytes;
	c->base.queued -= slot->payload;
	raw_slot_free(iface, &c->tx, slot, iface->lcore);
}

/*
 * Between reading the clock and receiving, progress() may have sent frames, which takes a system
 * call on some ports. So the clock is then read again: for congestion control, which keeps a
 * minimum, a round trip that is too short is worse than one that is too long.
 */
static uint32_t ack_arrival(const struct raw_iface *iface, const struct raw_tx *tx)
{
	if (likely(!tx->cc || !iface->sent_first))
		return (uint32_t)iface->now;
	return (uint32_t)iface->platform->now(iface->platform->arg);
}

/*
 * Was the echoed frame sent long after its timestamp had been read? If nearly all frames are, a
 * small window uses some rough samples.
 */
static bool too_stale(struct raw_conn *c, uint32_t ts, uint32_t rtt)
{
	const struct raw_iface *iface = c->iface;
	uint32_t s = ts / 64 % RAW_STALE;

	if (iface->stale[s].ts != ts || iface->stale[s].error <= RTE_MAX(RAW_STAMP_ERROR, rtt / 4))
		return false;
	return !c->tx.cc || c->path[c->next_path].ack_req_bytes == 0 ||
	       ++c->stale_missed % STALE_ROUGH != 0;
}

/* @return ns of the round trip over the path hdr->echo_path; 0 = there is no usable echo */
static uint32_t take_sample(struct raw_conn *c, const struct weft_frame_hdr *hdr)
{
	struct raw_iface *iface = c->iface;
	uint32_t hold = weft_get16(hdr->ts_hold), rtt;
	uint8_t path = hdr->echo_path;

	if (iface->gap || path >= c->path_count)
		return 0;
	rtt = ack_arrival(iface, &c->tx) - weft_get32(hdr->ts_echo);
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
		if (weft_seq_diff(seq, c->tx.una) < 0)
			continue; /* acknowledged before */
		if (seq - c->tx.una >= c->tx.next - c->tx.una) {
			raw_count(c->iface, RAW_DROP_BAD_ACK);
			break;
		}
		if (!raw_slot(&c->tx, seq)->m)
			continue;
		slot_acked(c, raw_slot(&c->tx, seq));
		acked++;
		if (weft_seq_diff(seq + 1, c->tx.sack_high) > 0)
			c->tx.sack_high = seq + 1;
	}
	return acked;
}

/* With N or fewer frames in flight too few follow a lost one to reveal its loss. */
#define NEIGHBOURS 4u

/* May a probe leave early? Where the window is a few frames, early probes would fill the queue. */
static bool has_space(const struct raw_conn *c)
{
	return !c->tx.cc ||
	       (c->tx.cc_gap == 0 && c->tx.cc_limit >= 2 * NEIGHBOURS * (uint32_t)c->frame_size);
}

/*
 * While few frames are outstanding, the wait for the tail probe begins when the last one was sent,
 * and not with this acknowledgement. A little time is left for the acknowledgement that may follow.
 * Where round trips vary, the wait is longer: the frame may only be late.
 */
static void timer_acked(struct raw_conn *c)
{
	const struct weft_rtt *r;
	uint64_t wait, due;

	raw_timer_arm(c);
	if (c->tx.timer == 0 || likely(raw_tx_outstanding(&c->tx) > NEIGHBOURS) || !has_space(c))
		return;
	r = raw_timer_slowest(c);
	wait = RTE_MAX((uint64_t)c->tx.probe_wait,
		       (uint64_t)r->srtt + 4ull * r->var + 2 * RAW_ACK_DELAY);
	due = raw_slot(&c->tx, last_unacked(&c->tx))->sent + wait;
	c->tx.timer = RTE_MIN(c->tx.timer, RTE_MAX(due, c->iface->tx_clock + 2ull * RAW_ACK_DELAY));
	raw_deadline_tx(c, c->tx.timer);
}

/* ack_any() in the most common case. @return false: another case; nothing has been done */
static inline bool only_one_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr)
{
	struct raw_slot *slot = raw_slot(&c->tx, c->tx.una);
	struct raw_iface *iface = c->iface;
	struct raw_path *p = &c->path[slot->path];

	if (c->tx.tail != RAW_TAIL_NONE || c->tx.zc_ack != RAW_ZC_ACK_NONE || c->path_watch != 0 ||
	    c->tx.cc_full || c->tx.cc_quiet != 0 || c->tx.win_frames < c->tx.win_whole ||
	    !STAILQ_EMPTY(&c->tx.flushes) || slot->tries != 1 || slot->taken_back || slot->lost ||
	    weft_get16(hdr->ts_hold) != WEFT_FRAME_NO_ECHO || !slot->m || slot->m->nb_segs != 1)
		return false;
	weft_loss_acked(&p->loss, &p->rtt, slot->order, 1, slot->sent, iface->tx_clock);
	c->tx.inflight -= slot->bytes;
	c->tx.cc_acked += slot->bytes;
	c->base.queued -= slot->payload;
	iface->share.tx_held--;
	raw_mbuf_free(slot->m, iface->lcore);
	slot->m = NULL;
	c->tx.una = c->tx.next;
	c->tx.sack_high = c->tx.next;
	c->tx.backoff = 0;
	c->tx.round_at = iface->live_clock;
	c->tx.round_end = c->tx.next;
	c->tx.timer = 0;
	c->base.tx_room = true;
	return true;
}

static __rte_noinline unsigned int ack_any(struct raw_conn *c, const struct weft_frame_hdr *hdr,
					   const struct weft_frame_sack *sack)
{
	uint32_t ack = weft_get32(hdr->ack), before = c->tx.inflight, rtt = 0;
	bool silent = false;
	unsigned int acked = 0;

	if (unlikely(ack - c->tx.una > c->tx.next - c->tx.una)) {
		/* A newer acknowledgement has overtaken this one, or the frame was never sent. */
		if (weft_seq_diff(ack, c->tx.una) > 0)
			raw_count(c->iface, RAW_DROP_BAD_ACK);
		return 0;
	}
	if (c->tx.cc && unlikely(c->tx.cc_quiet != 0))
		raw_window_quiet_over(c, ack);
	if (unlikely(c->tx.tail == RAW_TAIL_ACK_REQUESTED) && (ack != c->tx.una || sack))
		tail_answered(c);
	while (c->tx.una != ack) {
		acked += raw_slot(&c->tx, c->tx.una)->m != NULL;
		slot_acked(c, raw_slot(&c->tx, c->tx.una));
		c->tx.una++;
	}
	if (unlikely(sack))
		acked += take_sack(c, sack, ack);
	/* If `ack` contradicts the peer's SACK bits: the slot of `una` must hold a frame. */
	while (c->tx.una != c->tx.next && !raw_slot(&c->tx, c->tx.una)->m)
		c->tx.una++;
	if (weft_seq_diff(c->tx.sack_high, c->tx.una) < 0)
		c->tx.sack_high = c->tx.una;
	if (acked == 0)
		return 0;

	if (hdr->type == WEFT_FRAME_ACK)
		raw_conn_delay(c, hdr->path, weft_get32(hdr->ts));
	if (weft_get16(hdr->ts_hold) != WEFT_FRAME_NO_ECHO)
		rtt = take_sample(c, hdr);
	if (c->tx.cc) {
		c->tx.cc_acked += before - c->tx.inflight;
		if (rtt != 0 || c->tx.cc_full)
			raw_window_acked(c, hdr, rtt, before);
	}
	if (unlikely(c->path_watch))
		silent = raw_multi_acked(c, hdr);
	c->tx.backoff = 0;
	if (weft_seq_diff(c->tx.una, c->tx.round_end) >= 0) {
		c->tx.round_at = c->iface->live_clock;
		c->tx.round_end = c->tx.una + RTE_MIN(RAW_ROUND, c->tx.next - c->tx.una);
	}
	if (unlikely(c->tx.win_frames < c->tx.win_whole))
		raw_share_acked(c->iface, &c->tx, acked);
	c->tx.tail = RAW_TAIL_NONE;
	if (c->tx.zc_ack == RAW_ZC_ACK_NO_REQUEST)
		c->tx.acked_alone = hdr->type == WEFT_FRAME_ACK;
	c->tx.zc_ack = RAW_ZC_ACK_NONE;
	raw_window_open(c);
	timer_acked(c);
	/* Lost frames that the window has held back may be sent now, too. */
	if (unlikely(c->tx.sack_high != c->tx.una || c->tx.cc_lost != 0 || silent))
		raw_loss_detect(c);
	if (unlikely(!STAILQ_EMPTY(&c->tx.flushes)))
		raw_flushes_check(&c->tx);
	return acked;
}

/* raw_ack_input() of a frame whose `ack` is not `una`, or which has a SACK block. */
unsigned int raw_ack_new(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			 const struct weft_frame_sack *sack)
{
	if (weft_get32(hdr->ack) == c->tx.next && raw_tx_outstanding(&c->tx) == 1 && !sack &&
	    likely(only_one_acked(c, hdr)))
		return 1;
	return ack_any(c, hdr, sack);
}
